import { RULES_MAX, givenAnswer, parseGivenRules, type GivenRule } from "./given-rules";
import { mediaUrl, useRules } from "./rules";

const rule = (host: string, path: string, carried = true): GivenRule => ({ host, path, carried });
const answer = (given: GivenRule, url: string): boolean | undefined => givenAnswer([given], new URL(url));

describe("given rules: patterns", () => {
  test.each<[string, string, string, boolean | undefined]>([
    ["a.example", "/chunk/*", "https://a.example/chunk/1", true],
    ["a.example", "/chunk/*", "https://b.example/chunk/1", undefined],
    ["*.a.example", "/*", "https://x.a.example/1", true],
    ["*.a.example", "/*", "https://a.example/1", undefined],
    ["*.a.example", "/*", "https://xa.example/1", undefined],
    ["*", "/v/*/seg-*.bin", "https://a.example/v/7/seg-1.bin", true],
    ["*", "/v/*/seg-*.bin", "https://a.example/v/seg-1.bin", undefined],
    ["*", "/a*a", "https://a.example/a", undefined],
    ["*", "/x", "https://a.example/x", true],
    ["*", "/x", "https://a.example/xy", undefined],
  ])("%s %s on %s: %s", (host, path, url, expected) => expect(answer(rule(host, path), url)).toBe(expected));

  test("many stars against a long path match quickly", () => {
    expect(answer(rule("*", `/${"*a".repeat(127)}`), `https://a.example/${"a".repeat(8000)}b`)).toBeUndefined();
  });

  test.each(["m3u8", "mpd", "key", "vtt", "html", "json"])("no rule carries a .%s", (kind) =>
    expect(answer(rule("*", "/*"), `https://a.example/x.${kind}`)).toBe(false),
  );
});

describe("given rules: parsing an answer of Origo", () => {
  test.each([null, 7, "x", {}, { rules: {} }, { rules: [null, 5, {}] }])("%j has no rules", (value) =>
    expect(parseGivenRules(value)).toEqual([]),
  );

  test("invalid rules are left out, and the number of rules is limited", () => {
    const good = rule("a.example", "/x/*");
    const bad = [
      rule("https://a.example", "/"),
      rule("a.example", "x"),
      { ...good, carried: 1 },
      rule("A b", "/"),
      rule("a.example", `/${"x".repeat(256)}`),
    ];
    expect(parseGivenRules({ rules: [good, ...bad] })).toEqual([good]);
    expect(parseGivenRules({ rules: Array(RULES_MAX + 1).fill(good) })).toHaveLength(RULES_MAX);
  });
});

describe("given rules: beside the built-in table", () => {
  afterEach(() => useRules({ given: [], experimental: false }));

  test("they add and exempt media, but cannot carry what the table keeps direct", () => {
    useRules({
      given: [rule("a.example", "/chunk/*"), rule("a.example", "/live/*", false), rule("*", "/*")],
      experimental: false,
    });
    const isCarried = (url: string): boolean => mediaUrl(url) !== null;
    expect(
      [
        "https://a.example/chunk/1",
        "https://a.example/live/1.m4s",
        "https://rr1---sn.googlevideo.com/chunk/1",
        "https://a.example/master.m3u8",
      ].map(isCarried),
    ).toEqual([true, false, false, false]);
    useRules({ given: [], experimental: false });
    expect(isCarried("https://a.example/chunk/1")).toBe(false);
  });
});
