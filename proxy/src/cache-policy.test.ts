import { AnswerPolicy } from "./cache-policy";

const NOW = Date.parse("Fri, 02 Jan 2026 00:00:00 GMT");
const at = (seconds: number): string => new Date(NOW + seconds * 1000).toUTCString();

/** For how many seconds an answer is fresh. It took half a second to come. */
function freshSeconds(headers: Record<string, string>): number {
  const policy = new AnswerPolicy({ headers }, NOW - 500, NOW);
  let seconds = 0;
  while (seconds < 100 && policy.isFresh(NOW + seconds * 1000)) seconds++;
  return seconds;
}

test.each([
  [{}, 0],
  [{ "last-modified": at(-1e6) }, 0],
  [{ "cache-control": "public" }, 0],
  [{ "cache-control": "immutable" }, 0],
  [{ "cache-control": "public, MAX-AGE=5" }, 4],
  [{ "cache-control": 'max-age="7"' }, 6],
  [{ "cache-control": "max-age=5, s-maxage=9" }, 8],
  [{ "cache-control": "max-age=9, s-maxage=0" }, 0],
  [{ "cache-control": "max-age=9, must-revalidate" }, 8],
  [{ "cache-control": "max-age=9, proxy-revalidate" }, 0],
  [{ "cache-control": "max-age=9", age: "3" }, 5],
  [{ "cache-control": "max-age=9", age: "30" }, 0],
  [{ "cache-control": "max-age=9", date: at(-5) }, 4],
  [{ "cache-control": "max-age=9", date: at(500) }, 8],
  [{ "cache-control": "max-age=x" }, 0],
  [{ "cache-control": "no-cache, max-age=9" }, 0],
  [{ "cache-control": "no-store, max-age=9" }, 0],
  [{ "cache-control": "private, max-age=9" }, 0],
  [{ "cache-control": "max-age=2, stale-while-revalidate=60" }, 1],
  [{ pragma: "no-cache" }, 0],
  [{ pragma: "no-cache", expires: at(9) }, 0],
  [{ "cache-control": "max-age=9", vary: "*" }, 0],
  [{ "cache-control": "max-age=9", vary: "Accept, *" }, 0],
  [{ "cache-control": "max-age=9", vary: "origin, accept-encoding" }, 8],
  // No proxy sends cookies, so all of its requests are alike.
  [{ "cache-control": "max-age=9", vary: "Cookie" }, 8],
  [{ expires: "0" }, 0],
  [{ expires: at(-1) }, 0],
  [{ expires: at(9), date: at(0) }, 8],
  [{ expires: at(9), date: at(0), "cache-control": "max-age=3" }, 2],
] as [Record<string, string>, number][])("cache policy: %j is fresh for %i s", (headers, seconds) => {
  expect(freshSeconds(headers)).toBe(seconds);
});

const conditions = (headers: Record<string, string>, isPart = false) =>
  new AnswerPolicy({ headers }, NOW, NOW).conditions(isPart);

test.each([
  ["a strong ETag", { etag: '"1"', "last-modified": at(-9) }, { "if-none-match": '"1"' }, { "if-none-match": '"1"' }],
  ["a weak ETag", { etag: 'W/"1"', "last-modified": at(-9) }, { "if-none-match": 'W/"1"' }, undefined],
  ["a date", { "last-modified": at(-1) }, { "if-modified-since": at(-1) }, { "if-modified-since": at(-1) }],
  ["a date in the same second", { "last-modified": at(0) }, undefined, undefined],
  ["a date in the second of the origin's own", { "last-modified": at(-9), date: at(-9) }, undefined, undefined],
  ["no date", { "last-modified": "yesterday" }, undefined, undefined],
  ["no-store", { etag: '"1"', "cache-control": "no-store" }, undefined, undefined],
  ["private", { etag: '"1"', "cache-control": "private" }, undefined, undefined],
  ["vary: *", { etag: '"1"', vary: "*" }, undefined, undefined],
  ["nothing", {}, undefined, undefined],
] as [string, Record<string, string>, object | undefined, object | undefined][])(
  "cache policy: %s confirms a whole answer or a part",
  (_name, headers, whole, part) => {
    expect([conditions(headers), conditions(headers, true)]).toEqual([whole, part]);
  },
);

test("cache policy: a 304 confirms the answer whose validators it has, or none, and renews it", () => {
  const policy = new AnswerPolicy({ headers: { etag: '"1"', age: "50", "cache-control": "max-age=9" } }, NOW, NOW);
  const confirmed = (headers: Record<string, string>) => policy.confirmed({ headers }, NOW, NOW);
  expect([confirmed({ etag: '"2"' }), confirmed({ "last-modified": at(0) })]).toEqual([undefined, undefined]);
  expect(confirmed({})!.isFresh(NOW + 8000)).toBe(true);
  expect(confirmed({ etag: 'W/"1"', "cache-control": "max-age=99" })!.isFresh(NOW + 90_000)).toBe(true);
  expect(confirmed({ "cache-control": "no-store" })!.isReusable(false)).toBe(false);
});
