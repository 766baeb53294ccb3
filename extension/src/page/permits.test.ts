import { Permits } from "./permits";

const OK = { status: 200, statusText: "OK" };
const CDN = "https://cdn.example";

function make() {
  const page = { policies: 0, nowMs: 0, refused: "", listed: [] as { name: string; startTime: number }[], waits: 0 };
  const permits = new Permits({
    refuses: (url) => url === page.refused,
    countPolicies: () => page.policies,
    takeListed: (hear) => page.listed.splice(0).forEach(({ name, startTime }) => hear(name, startTime)),
    nowMs: () => page.nowMs,
    setTimeout: (callback) => {
      page.waits += 1;
      queueMicrotask(callback);
    },
  });
  const list = (...names: string[]): void =>
    void page.listed.push(...names.map((name) => ({ name, startTime: page.nowMs })));
  return { page, permits, list };
}

test("permits: a folder is permitted once the browser has brought a file of it", () => {
  const { permits } = make();
  expect(permits.allows(`${CDN}/a/1.ts`)).toBe(false);
  permits.note(`${CDN}/a/1.ts?x=/b/`, `${CDN}/a/1.ts?x=/b/`, OK);
  expect(
    [`${CDN}/a/2.ts`, `${CDN}/a/b/1.ts`, `${CDN}/b/1.ts`, `${CDN}/1.ts`].map((url) => permits.allows(url)),
  ).toEqual([true, false, false, false]);
  expect(["http://cdn.example/a/1.ts", `${CDN}:444/a/1.ts`].map((url) => permits.allows(url))).toEqual([false, false]);
  expect(permits.targets).toEqual([]);
});

test("permits: nothing of an origin where the browser reported a request to the site", () => {
  const { permits } = make();
  permits.refuse(`${CDN}/a/1.ts`);
  permits.refuse("inline");
  for (const name of ["a", "b", "c", "d"]) permits.note(`${CDN}/${name}/1.ts`, `${CDN}/${name}/1.ts`, OK);
  const urls = [`${CDN}/a/2.ts`, `${CDN}/e/1.ts`];
  expect(urls.map((url) => permits.allows(url))).toEqual([false, false]);
  permits.note("https://other.example/1.ts", "https://other.example/1.ts", OK);
  expect(permits.allows("https://other.example/2.ts")).toBe(true);
});

test("permits: nothing that a policy refuses, in a permitted folder or beside such ones", async () => {
  const { page, permits } = make();
  for (const name of ["a", "b", "c"]) permits.note(`${CDN}/${name}/1.ts`, `${CDN}/${name}/1.ts`, OK);
  for (const url of [`${CDN}/a/2.ts`, `${CDN}/d/1.ts`]) {
    page.refused = url;
    expect([permits.allows(url), await permits.willAllow(url), page.waits]).toEqual([false, false, 0]);
    page.refused = "";
    expect(permits.allows(url)).toBe(true);
  }
});

describe("permits: sites that have a folder for each segment", () => {
  const after = (...brought: string[]): Permits => {
    const { permits } = make();
    for (const path of brought) permits.note(CDN + path, CDN + path, OK);
    return permits;
  };

  test.each<[string, string[], string, boolean]>([
    ["beside fewer folders", ["/v/1/s.ts", "/v/2/s.ts", "/v/2/t.ts"], "/v/9/s.ts", false],
    ["beside enough folders", ["/v/1/s.ts", "/v/2/s.ts", "/v/3/s.ts"], "/v/9/s.ts", true],
    ["at the origin's root", ["/1/s.ts", "/2/s.ts", "/3/s.ts"], "/9/s.ts", true],
    ["higher than those", ["/v/1/s.ts", "/v/2/s.ts", "/v/3/s.ts"], "/v/s.ts", false],
    ["deeper than those", ["/v/1/s.ts", "/v/2/s.ts", "/v/3/s.ts"], "/v/9/x/s.ts", false],
    ["elsewhere", ["/v/1/s.ts", "/v/2/s.ts", "/v/3/s.ts"], "/w/9/s.ts", false],
    ["below enough branches", ["/v/1/a/s.ts", "/v/2/a/s.ts", "/v/3/a/s.ts"], "/v/9/b/s.ts", true],
    ["below one branch", ["/v/1/a/s.ts", "/v/1/b/s.ts", "/v/1/c/s.ts"], "/v/2/a/s.ts", false],
  ])("a folder %s", (_name, brought, path, isAllowed) => {
    const permits = after(...brought);
    expect(permits.allows(CDN + path)).toBe(isAllowed);
    expect([permits.allows(`https://other.example${path}`), permits.allows(`http://cdn.example${path}`)]).toEqual([
      false,
      false,
    ]);
  });

  test("in the clear, too, and not after the page adds a policy", () => {
    const { page, permits, list } = make();
    const names = [1, 2, 3].map((at) => `http://cdn.example/v/${at}/s.ts`);
    for (const name of names) permits.note(name, name, OK);
    expect(permits.allows("http://cdn.example/v/9/s.ts")).toBe(false);
    list(names[0]!);
    expect(permits.allows("http://cdn.example/v/9/s.ts")).toBe(true);
    page.policies = 1;
    expect(permits.allows("http://cdn.example/v/9/s.ts")).toBe(false);
  });
});

test("permits: an address that the browser upgrades to https is never permitted", () => {
  const { permits } = make();
  permits.note("http://cdn.example/a/1.ts", `${CDN}/a/1.ts`, OK);
  expect([permits.allows("http://cdn.example/a/2.ts"), permits.allows(`${CDN}/a/2.ts`)]).toEqual([false, false]);
});

describe("permits: an address in the clear", () => {
  const [first, next] = ["http://cdn.example/a/1.ts", "http://cdn.example/a/2.ts"];

  test("is permitted only if the browser asked its origin so", () => {
    const { permits, list } = make();
    permits.note(first, first, OK);
    list(first.replace("http:", "https:"), "http://other.example/a/1.ts");
    expect(permits.allows(next)).toBe(false);
    list("http://cdn.example/page.css");
    expect([permits.allows(next), permits.allows("http://cdn.example/b/1.ts")]).toEqual([true, false]);
  });

  test("is not permitted by what the browser asked before a policy", async () => {
    const { page, permits, list } = make();
    list(first);
    [page.policies, page.nowMs] = [1, 1000];
    permits.note(first, first, OK);
    expect(await permits.willAllow(first)).toBe(false);
    list(next);
    expect(permits.allows(next)).toBe(true);
  });

  test("is permitted when the browser lists it a little later", async () => {
    const { page, permits, list } = make();
    permits.note(first, first, OK);
    const permitted = permits.willAllow(first);
    list(first);
    expect(await permitted).toBe(true);
    expect(page.waits).toBe(1);
  });

  test("that the browser upgrades is never allowed, and one without an answer is refused at once", async () => {
    const { page, permits, list } = make();
    permits.note(first, first, OK);
    list(first.replace("http:", "https:"));
    expect(await permits.willAllow(first)).toBe(false);
    const { waits } = page;
    expect(await permits.willAllow("http://cdn.example/b/1.ts")).toBe(false);
    expect([waits > 10, page.waits - waits]).toEqual([true, 0]);
  });
});

test("permits: a redirect permits the folder that was asked for, and its end as a target only", () => {
  const { permits } = make();
  permits.note(`${CDN}/a/1.ts`, "https://edge.example/b/1.ts", OK);
  expect([permits.allows(`${CDN}/a/2.ts`), permits.allows("https://edge.example/b/2.ts")]).toEqual([true, false]);
  expect(permits.targets).toEqual(["https://edge.example"]);
});

test("permits: a policy that the page adds ends all permits", () => {
  const { page, permits } = make();
  permits.note(`${CDN}/a/1.ts`, "https://edge.example/1.ts", OK);
  page.policies = 1;
  expect([permits.allows(`${CDN}/a/2.ts`), permits.targets]).toEqual([false, []]);
  permits.note(`${CDN}/a/1.ts`, `${CDN}/a/1.ts`, OK);
  expect(permits.allows(`${CDN}/a/2.ts`)).toBe(true);
});

test("permits: the reason phrases of an origin are those that the browser showed", () => {
  const { permits } = make();
  permits.note(`${CDN}/a/1.ts`, `${CDN}/a/1.ts`, { status: 200, statusText: "Fine" });
  permits.note(`${CDN}/a/1.ts`, "https://edge.example/1.ts", { status: 206, statusText: "" });
  expect([200, 206].map((status) => permits.phraseOf(`${CDN}/b/2.ts`, status))).toEqual(["Fine", undefined]);
  expect([200, 206].map((status) => permits.phraseOf("https://edge.example/2.ts", status))).toEqual(["", ""]);
});
