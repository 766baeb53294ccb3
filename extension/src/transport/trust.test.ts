import {
  AT_ONCE,
  AT_ONCE_PER_HOST,
  COMPARED_ONE_IN,
  formOf,
  KINDS_ENOUGH,
  shapeOf,
  Trust,
  TRUST_MS,
  type Asking,
} from "./trust";

const PAGE = "https://page.example";
const PROXIES = ["a", "b"];
const asking = (url: string, more: Partial<Asking> = {}): Asking => ({
  pageOrigin: PAGE,
  url: new URL(url),
  range: null,
  ...more,
});
const SEGMENT = asking("https://m.example/v/seg-1.ts");

function trusting(...known: Asking[]): Trust {
  const trust = new Trust();
  for (const each of known) trust.noteSame(each, "form", PROXIES, 0);
  return trust;
}

describe("trust: what was compared is carried", () => {
  test("a kind is the address without its numbers; the page, the host and the way of asking must be the same", () => {
    const trust = trusting(SEGMENT);
    const decided = (url: string, more?: Partial<Asking>): unknown => trust.decide(asking(url, more), PROXIES, 1);
    expect(decided("https://m.example/v/seg-207.ts?token=9")).toBe("carry");
    for (const url of ["https://m.example/a/seg-1.ts", "https://n.example/v/seg-1.ts", "http://m.example/v/seg-1.ts"])
      expect(decided(url)).toBe("compare");
    expect(decided("https://m.example/v/seg-1.ts", { pageOrigin: "https://other.example" })).toBe("compare");
    expect(decided("https://m.example/v/seg-1.ts", { range: { start: 0, end: 9 } })).toBe("compare");
  });

  test("after a time, or with a proxy that did not take part, it is compared again", () => {
    const trust = trusting(SEGMENT);
    expect(trust.decide(SEGMENT, ["a"], TRUST_MS - 1)).toBe("carry");
    expect(trust.decide(SEGMENT, ["a", "c"], 1)).toBe("compare");
    expect(trust.decide(SEGMENT, PROXIES, TRUST_MS)).toBe("compare");
  });

  test(`one in ${COMPARED_ONE_IN} is compared again`, () => {
    const trust = trusting(SEGMENT);
    for (let round = 0; round < 2; round++) {
      for (let count = 1; count < COMPARED_ONE_IN; count++) expect(trust.decide(SEGMENT, PROXIES, 1)).toBe("carry");
      const untilBegun = [1, 2, 3].map(() => trust.decide(SEGMENT, PROXIES, 1));
      expect(untilBegun).toEqual(["compare", "compare", "compare"]);
      trust.begin(SEGMENT)?.();
    }
  });

  test(`after ${KINDS_ENOUGH} kinds of a host the others are trusted, asked in the same way`, () => {
    const kinds = ["a", "b", "c"].map((level) => asking(`https://m.example/${level}/1.ts`));
    const next = asking("https://m.example/d/1.ts");
    expect(trusting(...kinds.slice(1)).decide(next, PROXIES, 1)).toBe("compare");
    const trust = trusting(...kinds);
    expect(trust.decide(next, PROXIES, 1)).toBe("carry");
    expect([trust.isKnown(next, "form"), trust.isKnown(next, "other")]).toEqual([true, false]);
    expect(trust.decide({ ...next, range: { start: 0, end: 1 } }, PROXIES, 1)).toBe("compare");
  });

  test("several forms of one kind can be known, and a difference forgets the host", () => {
    const trust = trusting(SEGMENT);
    expect([trust.isKnown(SEGMENT, "form"), trust.isKnown(SEGMENT, "other")]).toEqual([true, false]);
    trust.noteSame(SEGMENT, "other", PROXIES, 1);
    expect([trust.isKnown(SEGMENT, "form"), trust.isKnown(SEGMENT, "other")]).toEqual([true, true]);
    trust.forget(SEGMENT);
    expect(trust.decide(SEGMENT, PROXIES, 1)).toBe("compare");
  });

  test("what pages can make it remember is bounded: the oldest host goes first", () => {
    const trust = trusting(SEGMENT);
    for (let name = 0; name < 1024; name++)
      trust.noteSame(asking(`https://h.example/${"x".repeat(name)}/1.ts`), "form", PROXIES, 0);
    expect(trust.decide(SEGMENT, PROXIES, 1)).toBe("compare");
    expect(trust.decide(asking(`https://h.example/xx/1.ts`), PROXIES, 1)).toBe("carry");
  });
});

describe("trust: comparisons at once", () => {
  test("one of a kind: the others wait for its end", async () => {
    const trust = new Trust();
    const end = trust.begin(SEGMENT);
    expect(trust.begin(SEGMENT)).toBeUndefined();
    const wait = trust.decide(SEGMENT, PROXIES, 0);
    end?.();
    await wait;
    expect(trust.decide(SEGMENT, PROXIES, 0)).toBe("compare");
  });

  test(`${AT_ONCE_PER_HOST} of a host, ${AT_ONCE} in all`, () => {
    const trust = new Trust();
    const begin = (host: string, kind: string): boolean =>
      trust.begin(asking(`https://${host}.example/${kind}.ts`)) !== undefined;
    expect(["x", "y", "z"].map((kind) => begin("a", kind))).toEqual([true, true, false]);
    expect(["b", "c", "d"].map((host) => begin(host, "x"))).toEqual([true, true, false]);
  });
});

describe("trust: shapes and forms", () => {
  test.each([
    ["/live/720p/seg-00012.m4s", "/live/#p/seg-#.m4s"],
    ["/v/8c5f2d1e-3b7a-4f60-9c1d-2a4e6b8d0f13/init.mp4", "/v/#-#b#a-#f#-#c#d-#/init.mp4"],
    ["/Zk3jR81mPq0xLw7Tt/a.ts", "/#/a.ts"],
    ["/internationalization/high/seg.ts", "/internationalization/high/seg.ts"],
  ])("%s has the shape %s", (path, shape) => expect(shapeOf(new URL(path, "https://m.example"))).toBe(shape));

  test("a form tells who answered, what kind of body it is and by what it varies", () => {
    const url = new URL("https://m.example/1.ts");
    const base = { "content-type": "video/mp2t", etag: '"1"', vary: "Origin, Accept" };
    const form = formOf(url, base);
    expect(formOf(new URL("https://m.example/2.ts"), { ...base, etag: '"2"', vary: "accept,origin", age: "5" })).toBe(
      form,
    );
    expect(formOf(new URL("https://n.example/1.ts"), base)).not.toBe(form);
    for (const other of [{ "content-type": "video/mp4" }, { vary: "Cookie" }, { "last-modified": "x" }])
      expect(formOf(url, { ...base, ...other })).not.toBe(form);
  });
});
