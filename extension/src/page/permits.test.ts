import { Permits } from "./permits";

const OK = { status: 200, statusText: "OK" };
const CDN = "https://cdn.example";

function make() {
  const page = { policies: 0, asked: [] as string[] };
  return {
    page,
    permits: new Permits(
      () => page.policies,
      (url) => page.asked.includes(url),
    ),
  };
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

test("permits: an address that the browser upgrades to https is never permitted", () => {
  const { permits } = make();
  permits.note("http://cdn.example/a/1.ts", `${CDN}/a/1.ts`, OK);
  expect([permits.allows("http://cdn.example/a/2.ts"), permits.allows(`${CDN}/a/2.ts`)]).toEqual([false, false]);
});

test("permits: an address in the clear is permitted only if the browser asked for it so", () => {
  const { page, permits } = make();
  const [first, next] = ["http://cdn.example/a/1.ts", "http://cdn.example/a/2.ts"];
  permits.note(first, first, OK);
  page.asked = [first.replace("http:", "https:")];
  expect(permits.allows(next)).toBe(false);
  page.asked = [first];
  expect(permits.allows(next)).toBe(true);
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
