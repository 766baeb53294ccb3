import { proxiedFault } from "./origin-part";

const head = (status: number, contentRange?: string, totalBytes: number | null = null) => ({
  status,
  headers: contentRange === undefined ? {} : { "content-range": contentRange },
  totalBytes,
});
const asked = { allowFallback: true, verbatim: false };

test.each([
  ["another range", { start: 10, end: 19 }, head(206, "bytes 0-9/100", 10), "asked for bytes 10-19, got bytes 0-9/100"],
  ["a longer range", { start: 10, end: 19 }, head(206, "bytes 10-20/100", 11), "got bytes 10-20/100"],
  ["a shorter range", { start: 10, end: 19 }, head(206, "bytes 10-18/100", 9), "got bytes 10-18/100"],
  ["another length", { start: 10, end: 19 }, head(206, "bytes 10-19/100", 9), "got bytes 10-19/100 in 9 bytes"],
  ["a part of the whole", undefined, head(206, "bytes 0-9/100", 10), "asked for the whole, got bytes 0-9/100"],
  ["the whole", { start: 10, end: 19 }, head(200, undefined, 100), "got the whole in 100 bytes"],
])("origin-part: an answer through proxies with %s is refused by name", (_what, range, now, message) => {
  expect(proxiedFault(asked, range, now)).toMatchObject({
    kind: "rangeRefused",
    message: expect.stringContaining(message),
  });
});

test("origin-part: the end of the resource may cut a range, and verbatim passes on a whole or a beginning", () => {
  const range = { start: 90, end: 199 };
  expect(proxiedFault(asked, range, head(206, "bytes 90-99/100", 10))).toBeUndefined();
  expect(proxiedFault(asked, undefined, head(206, "bytes 0-99/100", 100))).toBeUndefined();
  const verbatim = { ...asked, verbatim: true };
  expect(proxiedFault(verbatim, range, head(200, undefined, 100))).toBeUndefined();
  expect(proxiedFault(verbatim, range, head(206, "bytes 90-95/100", 6))).toBeUndefined();
  expect(proxiedFault(verbatim, range, head(206, "bytes 0-5/100", 6))?.kind).toBe("rangeRefused");
});
