/** What the store answers again, and when it asks the origin: RFC 9111. */
import type { CacheMode } from "@tributary/contract";
import { egressError } from "./egress/error";
import { fetched, settled, setup, URL_A } from "../test/fake-origin";

const HOUR = { "cache-control": "max-age=3600" };
const ETAG = { etag: '"1"' };
const SINCE = { "last-modified": "Thu, 01 Jan 1970 00:00:00 GMT" };
test.each([
  ["no freshness, no validator", {}, undefined, 0, "asks"],
  ["an ETag alone", ETAG, undefined, 0, { "if-none-match": '"1"' }],
  ["a weak ETag", { etag: 'W/"1"' }, undefined, 0, { "if-none-match": 'W/"1"' }],
  ["a date alone", SINCE, undefined, 5000, { "if-modified-since": SINCE["last-modified"] }],
  [
    "a date and no-cache",
    { ...SINCE, "cache-control": "no-cache" },
    undefined,
    0,
    { "if-modified-since": SINCE["last-modified"] },
  ],
  ["max-age, inside", { "cache-control": "max-age=10" }, undefined, 9999, "hits"],
  ["max-age, outside", { "cache-control": "max-age=10" }, undefined, 10_000, "asks"],
  [
    "max-age, outside, with an ETag",
    { ...ETAG, "cache-control": "max-age=10" },
    undefined,
    10_000,
    { "if-none-match": '"1"' },
  ],
  ["longer than the operator keeps chunks", HOUR, undefined, 60_000, "asks"],
  ["no-store", { ...ETAG, "cache-control": "no-store" }, undefined, 0, "asks"],
  ["no-store alone", { "cache-control": "no-store" }, undefined, 0, "asks"],
  ["private", { ...ETAG, "cache-control": "private, max-age=9" }, undefined, 0, "asks"],
  ["private alone", { "cache-control": "private" }, undefined, 0, "asks"],
  ["vary: Cookie, because no proxy sends cookies", { ...HOUR, vary: "Cookie" }, undefined, 0, "hits"],
  ["vary: *", { ...HOUR, ...ETAG, vary: "*" }, undefined, 0, "asks"],
  ["request mode no-cache", { ...HOUR, ...ETAG }, "no-cache", 0, { "if-none-match": '"1"' }],
  ["request mode no-cache, no validator", HOUR, "no-cache", 0, "asks"],
  ["request mode no-store", { ...HOUR, ...ETAG }, "no-store", 0, "asks"],
] as [string, Record<string, string>, CacheMode | undefined, number, "hits" | "asks" | Record<string, string>][])(
  "chunks: a second request: %s",
  async (_name, headers, cache, ms, outcome) => {
    const at = setup({ cacheKeepMs: 60_000 });
    at.clock.ms = 2000;
    await fetched(at, URL_A, "abc", headers);
    at.clock.ms += ms;
    at.open(URL_A, undefined, cache);
    expect(at.origin.fetches).toHaveLength(outcome === "hits" ? 1 : 2);
    if (outcome !== "hits") expect(at.origin.fetches[1]!.conditions).toEqual(outcome === "asks" ? undefined : outcome);
  },
);

test("chunks: an answer for one page is not used for a page of another origin, nor joined, nor cut", async () => {
  const at = setup({ cacheKeepMs: 60_000 });
  const [one, other] = ["https://one.example", "https://other.example"];
  const first = at.open(URL_A, undefined, undefined, one);
  at.open(URL_A, undefined, undefined, other);
  at.open();
  expect(at.origin.fetches.map(({ pageOrigin }) => pageOrigin)).toEqual([one, other, undefined]);
  await at.origin.fetches[0]!.head(3, HOUR);
  await at.origin.fetches[0]!.push("abc");
  await at.origin.fetches[0]!.push(null);
  first.lease.close();
  const again = at.open(URL_A, undefined, undefined, one);
  await settled();
  expect(again.reader.text).toBe("abc");
  at.open(URL_A, { start: 0, end: 1 }, undefined, other);
  expect(at.origin.fetches).toHaveLength(4);
});

test.each([
  "null",
  "page.example",
  "https://page.example/",
  "https://page.example\r\nx: y",
  "file:///",
  "h".repeat(9000),
])("chunks: %j is not the origin of a page", (pageOrigin) => {
  const at = setup();
  expect(() => at.open(URL_A, undefined, undefined, pageOrigin)).toThrow(/pageOrigin must be an origin as in/);
  expect(at.origin.fetches).toHaveLength(0);
});

test("chunks: 304 gives the kept bytes, with the freshness and head of the 304", async () => {
  const at = setup();
  await fetched(at, URL_A, "abc", ETAG);
  const [second, joined] = [at.open(), at.open()];
  await at.origin.fetches[1]!.head(0, { ...ETAG, "cache-control": "max-age=5", "content-type": "text/html" }, 304);
  for (const { reader } of [second, joined]) {
    expect(reader.text).toBe("abc");
    expect(reader.head).toEqual({
      status: 200,
      totalBytes: 3,
      headers: { ...ETAG, "cache-control": "max-age=5", age: "0" },
      serverFetchMs: 12,
    });
  }
  at.clock.ms = 4000;
  at.open();
  expect(at.origin.fetches).toHaveLength(2);
  expect(at.store.stats).toEqual({ originBytes: 3, cacheHits: 4, cacheBytes: 3 });
});

test("chunks: 304 about another answer is no answer: the origin is asked without a condition", async () => {
  const at = setup();
  await fetched(at, URL_A, "abc", ETAG);
  const { reader } = at.open();
  await at.origin.fetches[1]!.head(0, { etag: '"2"' }, 304);
  expect(at.origin.fetches[2]!.conditions).toBeUndefined();
  await at.origin.fetches[2]!.head(3, { etag: '"2"' });
  await at.origin.fetches[2]!.push("def");
  expect(reader.text).toBe("def");
});

test("chunks: new bytes take the place of the old ones, and a failed question leaves them", async () => {
  const at = setup();
  await fetched(at, URL_A, "abc", ETAG);
  at.open();
  at.origin.fetches[1]!.reject(egressError("originUnreachable", "away"));
  await settled();
  at.open();
  expect(at.origin.fetches[2]!.conditions).toEqual({ "if-none-match": '"1"' });
  await at.origin.fetches[2]!.head(3, { etag: '"2"' });
  await at.origin.fetches[2]!.push("def");
  await at.origin.fetches[2]!.push(null);
  at.open();
  expect(at.origin.fetches[3]!.conditions).toEqual({ "if-none-match": '"2"' });
  expect(at.store.stats.cacheBytes).toBe(3);
});

test("chunks: a part of the kept whole needs a strong validator", async () => {
  const at = setup();
  await fetched(at, URL_A, "abcdef", ETAG);
  await fetched(at, "http://o.test/weak", "abcdef", { etag: 'W/"1"' });
  const { reader } = at.open(URL_A, { start: 2, end: 3 });
  expect(at.origin.fetches[2]!.conditions).toEqual({ "if-none-match": '"1"' });
  await at.origin.fetches[2]!.head(0, {}, 304);
  expect([reader.text, reader.head!.status, reader.head!.headers["content-range"]]).toEqual(["cd", 206, "bytes 2-3/6"]);
  at.open("http://o.test/weak", { start: 2, end: 3 });
  expect(at.origin.fetches[3]!.conditions).toBeUndefined();
});

test("chunks: a request that comes after the head joins the body only when the origin confirms it", async () => {
  const { origin, open } = setup();
  open();
  await origin.fetches[0]!.head(6, ETAG);
  await origin.fetches[0]!.push("abc");
  const [confirmed, joined] = [open(), open()];
  expect(origin.fetches).toHaveLength(2);
  await origin.fetches[1]!.head(0, ETAG, 304);
  await origin.fetches[0]!.push("def");
  await origin.fetches[0]!.push(null);
  for (const { reader } of [confirmed, joined]) expect(reader.text).toBe("abcdef");
  open();
  expect(origin.fetches[2]!.conditions).toEqual({ "if-none-match": '"1"' });
});

test("chunks: a body that is given up before the origin confirms it is fetched again", async () => {
  const { origin, open } = setup();
  const first = open();
  await origin.fetches[0]!.head(6, ETAG);
  const second = open();
  first.lease.close();
  await origin.fetches[1]!.head(0, ETAG, 304);
  await origin.fetches[2]!.head(3, ETAG);
  await origin.fetches[2]!.push("abc");
  expect(second.reader.text).toBe("abc");
});

test.each([{ "cache-control": "private" }, { "cache-control": "no-store" }, { ...HOUR, vary: "Accept, *" }])(
  "chunks: readers that wait for an answer with %j get one each",
  async (headers) => {
    const { origin, open } = setup();
    const readers = [open(), open(), open()].map(({ reader }) => reader);
    await origin.fetches[0]!.head(3, headers);
    expect(origin.fetches).toHaveLength(3);
    for (const [index, text] of ["abc", "def", "ghi"].entries()) {
      if (index > 0) await origin.fetches[index]!.head(3, headers);
      await origin.fetches[index]!.push(text);
      await origin.fetches[index]!.push(null);
    }
    expect(readers.map(({ text }) => text)).toEqual(["abc", "def", "ghi"]);
  },
);

test("chunks: a request past the caches does not join a fetch, and the next one joins the newer fetch", async () => {
  const { origin, open } = setup();
  const first = open();
  const second = open(URL_A, undefined, "no-cache");
  const third = open();
  open(URL_A, undefined, "no-store");
  const fourth = open();
  expect(origin.fetches).toHaveLength(3);
  for (const [index, text] of ["old", "new"].entries()) {
    await origin.fetches[index]!.head(3);
    await origin.fetches[index]!.push(text);
  }
  expect([first, second, third, fourth].map(({ reader }) => reader.text)).toEqual(["old", "new", "new", "new"]);
});
