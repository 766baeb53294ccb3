import { exposeTo, passedStatusText } from "./cors";

const media = new URL("https://media.example/a.mp4");
const headers = { "content-type": "video/mp4", etag: '"1"', "set-cookie": "a=b", "content-range": "bytes 0-1/2" };

describe("cors: what a page may read", () => {
  test("the same origin reads all headers but cookies", () => {
    expect(exposeTo("https://media.example", media, headers)).toEqual({
      type: "basic",
      headers: { "content-type": "video/mp4", etag: '"1"', "content-range": "bytes 0-1/2" },
    });
  });

  test.each(["*", "https://page.example", " * "])(
    "another origin that %j allows reads the safelisted headers",
    (allowed) => {
      const exposure = exposeTo("https://page.example", media, { ...headers, "access-control-allow-origin": allowed });
      expect(exposure).toEqual({ type: "cors", headers: { "content-type": "video/mp4" } });
    },
  );

  test.each([
    undefined,
    "",
    "null",
    "https://other.example",
    "https://page.example.evil",
    "http://page.example",
    "https://page.example, *",
  ])("another origin that %j does not allow reads nothing", (allowed) => {
    const given = allowed === undefined ? headers : { ...headers, "access-control-allow-origin": allowed };
    expect(exposeTo("https://page.example", media, given)).toBeUndefined();
  });

  test("the value null does not allow an opaque origin", () => {
    expect(exposeTo("null", media, { "access-control-allow-origin": "null" })).toBeUndefined();
  });

  test("exposed headers are added by name or by *", () => {
    const base = { ...headers, "access-control-allow-origin": "*" };
    const named = exposeTo("https://page.example", media, { ...base, "access-control-expose-headers": "ETag, X" });
    expect(Object.keys(named?.headers ?? {})).toEqual(["content-type", "etag"]);
    const all = exposeTo("https://page.example", media, { ...base, "access-control-expose-headers": "*" });
    expect(Object.keys(all?.headers ?? {})).not.toContain("set-cookie");
    expect(Object.keys(all?.headers ?? {})).toContain("content-range");
  });

  test("statuses for sign-in and server errors are not passed on", () => {
    expect([200, 206, 404, 416].map(passedStatusText).every((text) => text !== undefined)).toBe(true);
    expect([301, 401, 403, 429, 500, 502].map(passedStatusText)).toEqual(Array(6).fill(undefined));
  });
});
