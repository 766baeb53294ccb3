import { exposeTo } from "./cors";

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

  test.each<[string, [string, string | null][], "basic" | "cors" | undefined]>([
    ["own", [["P", null]], "basic"],
    [
      "own, own",
      [
        ["P", null],
        ["P", null],
      ],
      "basic",
    ],
    [
      "own to another that shares with the page",
      [
        ["P", null],
        ["A", "P"],
      ],
      "cors",
    ],
    [
      "own to another that shares with all",
      [
        ["P", null],
        ["A", "*"],
      ],
      "cors",
    ],
    [
      "own to another that does not share",
      [
        ["P", null],
        ["A", null],
      ],
      undefined,
    ],
    [
      "within another",
      [
        ["A", "P"],
        ["A", "P"],
      ],
      "cors",
    ],
    [
      "within another, where the first does not share",
      [
        ["A", null],
        ["A", "*"],
      ],
      undefined,
    ],
    [
      "another to a third, all shared",
      [
        ["A", "*"],
        ["B", "*"],
      ],
      "cors",
    ],
    [
      "another to a third that shares with the page only",
      [
        ["A", "*"],
        ["B", "P"],
      ],
      undefined,
    ],
    [
      "another to a third that shares with null",
      [
        ["A", "*"],
        ["B", "null"],
      ],
      "cors",
    ],
    [
      "another back to the own one, which shares with nobody",
      [
        ["A", "*"],
        ["P", null],
      ],
      undefined,
    ],
    [
      "another back to the own one, which shares with the page",
      [
        ["A", "*"],
        ["P", "P"],
      ],
      undefined,
    ],
    [
      "another back to the own one, which shares with all",
      [
        ["A", "*"],
        ["P", "*"],
      ],
      "cors",
    ],
    [
      "own, another, and within it",
      [
        ["P", null],
        ["A", "P"],
        ["A", "P"],
      ],
      "cors",
    ],
    [
      "own, another, a third",
      [
        ["P", null],
        ["A", "P"],
        ["B", "P"],
      ],
      undefined,
    ],
  ])("redirects: %s", (_name, route, type) => {
    const name = (short: string | null): string | null =>
      short?.replace(/^[PAB]$/, (letter) => `https://${letter.toLowerCase()}.example`) ?? null;
    const hops = route.map(([origin, allowed]) => ({
      origin: name(origin)!,
      allowedOrigin: name(allowed),
      setsCookie: false,
    }));
    const end = hops.pop()!;
    const seen = exposeTo(
      "https://p.example",
      new URL(end.origin),
      end.allowedOrigin === null ? {} : { "access-control-allow-origin": end.allowedOrigin },
      hops,
    );
    expect(seen?.type).toBe(type);
  });

  test("exposed headers are added by name or by *", () => {
    const base = { ...headers, "access-control-allow-origin": "*" };
    const named = exposeTo("https://page.example", media, { ...base, "access-control-expose-headers": "ETag, X" });
    expect(Object.keys(named?.headers ?? {})).toEqual(["content-type", "etag"]);
    const all = exposeTo("https://page.example", media, { ...base, "access-control-expose-headers": "*" });
    expect(Object.keys(all?.headers ?? {})).not.toContain("set-cookie");
    expect(Object.keys(all?.headers ?? {})).toContain("content-range");
  });
});
