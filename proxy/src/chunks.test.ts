import { CHUNK_BYTES } from "./chunk";
import { EgressError, egressError } from "./egress/error";
import { clients, fetched, FRESH, LIMITS, Reader, SEGMENT, settled, setup, URL_A } from "../test/fake-origin";

test("chunks: three readers at different times share one fetch and one buffer", async () => {
  const { origin, store, open } = setup();
  const first = open();
  const second = open();
  await origin.fetches[0]!.head(6, { etag: '"e"', "set-cookie": "secret", "cache-control": "public, max-age=9" });
  await origin.fetches[0]!.push("abc");
  const third = open();
  await settled();
  expect(third.reader.text).toBe("abc");
  await origin.fetches[0]!.push("def");
  await origin.fetches[0]!.push(null);
  for (const { reader } of [first, second, third]) expect(reader.text).toBe("abcdef");
  expect(origin.fetches).toHaveLength(1);
  expect(first.reader.head).toEqual({
    status: 200,
    totalBytes: 6,
    headers: { etag: '"e"', "cache-control": "public, max-age=9", "set-cookie": "" },
    serverFetchMs: 12,
  });
  expect(third.reader.head!.serverFetchMs).toBe(0);
  expect(store.stats).toEqual({ originBytes: 6, cacheHits: 2, cacheBytes: 6 });
});

test("chunks: a listener is not called before open returns, nor after the lease is closed", async () => {
  const at = setup();
  await fetched(at, URL_A, "abc");
  const { reader, lease } = at.open();
  expect(reader.head).toBeUndefined();
  lease.close();
  await settled();
  expect(reader.head).toBeUndefined();
});

test("chunks: a range is its own chunk while the whole is not kept, and a URL fragment changes nothing", async () => {
  const { origin, open } = setup();
  open();
  open(URL_A, { start: 0, end: 1 });
  open(`${URL_A}#t=1`);
  expect(origin.fetches).toHaveLength(2);
});

test.each([
  ["from the start", { start: 0, end: 1 }, "ab", "bytes 0-1/6"],
  ["in the middle", { start: 2, end: 3 }, "cd", "bytes 2-3/6"],
  ["to the end", { start: 4 }, "ef", "bytes 4-5/6"],
  ["beyond the end", { start: 4, end: 99 }, "ef", "bytes 4-5/6"],
  ["the last two", { suffixBytes: 2 }, "ef", "bytes 4-5/6"],
  ["the last hundred", { suffixBytes: 100 }, "abcdef", "bytes 0-5/6"],
])("chunks: a range is read from the kept whole: %s", async (_name, range, text, contentRange) => {
  const at = setup();
  await fetched(at, URL_A, "abcdef");
  const { reader, lease } = at.open(URL_A, range);
  await settled();
  expect(reader.text).toBe(text);
  expect(reader.head).toEqual({
    status: 206,
    totalBytes: text.length,
    headers: { ...FRESH, age: "0", "content-range": contentRange },
    serverFetchMs: 0,
  });
  expect(reader.growths).toBe(1);
  expect(() => reader.source!.view(0, text.length + 1)).toThrow(RangeError);
  lease.close();
  expect(at.origin.fetches).toHaveLength(1);
  expect(at.store.stats).toEqual({ originBytes: 6, cacheHits: 1, cacheBytes: 6 });
});

test("chunks: the origin answers a range that the kept whole cannot answer", async () => {
  const at = setup();
  const whole = at.open();
  await at.origin.fetches[0]!.head(6, FRESH);
  await at.origin.fetches[0]!.push("abcdef");
  at.open(URL_A, { start: 0, end: 1 });
  expect(at.origin.fetches).toHaveLength(2);
  await at.origin.fetches[0]!.push(null);
  whole.lease.close();
  at.open(URL_A, { start: 6, end: 7 });
  at.open(URL_A, { suffixBytes: 0 });
  expect(at.origin.fetches).toHaveLength(4);
  at.clock.ms = 60_000;
  at.open(URL_A, { start: 2, end: 3 });
  expect(at.origin.fetches).toHaveLength(5);
  const partial = at.open("http://o.test/b");
  await at.origin.fetches[5]!.head(6, FRESH, 206);
  await at.origin.fetches[5]!.push("abcdef");
  await at.origin.fetches[5]!.push(null);
  partial.lease.close();
  at.open("http://o.test/b", { start: 0, end: 1 });
  expect(at.origin.fetches).toHaveLength(7);
});

test("chunks: the fetch continues while one reader is left, and ends with the last one", async () => {
  const { origin, open } = setup();
  const [first, second] = [open(), open()];
  await origin.fetches[0]!.head(6);
  first.lease.close();
  await origin.fetches[0]!.push("abc");
  expect(origin.fetches[0]!.aborted).toBe(false);
  second.lease.close();
  second.lease.close();
  expect(origin.fetches[0]!.aborted).toBe(true);
  await settled();
  open();
  expect(origin.fetches).toHaveLength(2);
});

test("chunks: a 404 reaches its readers and is not kept", async () => {
  const { origin, open } = setup();
  const { reader } = open();
  await origin.fetches[0]!.head(4, {}, 404);
  await origin.fetches[0]!.push("gone");
  await origin.fetches[0]!.push(null);
  expect([reader.head!.status, reader.text]).toEqual([404, "gone"]);
  open();
  expect(origin.fetches).toHaveLength(2);
});

test("chunks: a full cache drops the least recently used, and never keeps a chunk larger than itself", async () => {
  const at = setup({ cacheBytes: 2.5 * CHUNK_BYTES });
  await fetched(at, "http://o.test/1", "abc");
  await fetched(at, "http://o.test/2", "def");
  at.open("http://o.test/1").lease.close();
  await fetched(at, "http://o.test/3", "ghi");
  expect(at.store.stats.cacheBytes).toBe(6);
  at.open("http://o.test/1").lease.close();
  expect(at.origin.fetches).toHaveLength(3);
  await fetched(at, "http://o.test/4", "x".repeat(2 * CHUNK_BYTES));
  expect(at.store.stats.cacheBytes).toBe(6);
  at.open("http://o.test/2");
  expect(at.origin.fetches).toHaveLength(5);
});

test("chunks: a chunk that leaves the cache while it is read stays whole for its reader", async () => {
  const at = setup({ cacheBytes: 1.5 * CHUNK_BYTES });
  await fetched(at, "http://o.test/1", "abc");
  const { reader } = at.open("http://o.test/1");
  await settled();
  await fetched(at, "http://o.test/2", "def");
  expect(reader.text).toBe("abc");
});

test("chunks: memory counts as bytes arrive, and the slowest reader goes when it is full", async () => {
  const { origin, open, clock } = setup({ pinnedBytes: 2 * SEGMENT });
  const [slow, fast] = [open("http://o.test/slow"), open("http://o.test/fast")];
  for (const fetch of origin.fetches) {
    await fetch.head(4 * SEGMENT);
    await fetch.push("a".repeat(SEGMENT));
  }
  clock.ms = 10_000;
  fast.lease.take(SEGMENT, SEGMENT);
  const young = open("http://o.test/young");
  await origin.fetches[2]!.head(4 * SEGMENT);
  expect(slow.reader.failure).toBeUndefined();
  await origin.fetches[2]!.push("a");
  expect(slow.reader.failure).toMatchObject({ kind: "proxyBusy", got: 3 * SEGMENT, limit: 2 * SEGMENT });
  expect(origin.fetches[0]!.aborted).toBe(true);
  expect([fast.reader.failure, young.reader.failure]).toEqual([undefined, undefined]);
});

test("chunks: who holds most goes first, and what others read too is spared", async () => {
  const { origin, store, open } = setup({ pinnedBytes: 4 * SEGMENT });
  const openAs = (name: string, path: string) => {
    const reader = new Reader();
    store.open({ url: `http://o.test/${path}`, client: clients.of(name) }, reader);
    return reader;
  };
  const greedy = ["shared", "2", "3", "4"].map((path) => openAs("greedy", path));
  const sharing = openAs("sharing", "shared");
  for (const fetch of origin.fetches) {
    await fetch.head(SEGMENT + 1);
    await fetch.push("a".repeat(SEGMENT));
  }
  const modest = open("http://o.test/modest");
  await origin.fetches[4]!.head(3);
  await origin.fetches[4]!.push("abc");
  expect(greedy.map(({ failure }) => failure?.kind)).toEqual([undefined, "proxyBusy", undefined, undefined]);
  expect([sharing.failure, modest.reader.failure, modest.reader.text]).toEqual([undefined, undefined, "abc"]);
});

test("chunks: chunks in the cache are read without counting, until they leave it", async () => {
  const at = setup({ cacheBytes: 2.5 * CHUNK_BYTES, pinnedBytes: 3 });
  await fetched(at, "http://o.test/1", "abc");
  await fetched(at, "http://o.test/2", "def");
  const readers = ["1", "2"].map((path) => at.open(`http://o.test/${path}`).reader);
  await settled();
  at.clock.ms = 1000;
  await fetched(at, "http://o.test/3", "ghi");
  expect(readers.map(({ failure }) => failure)).toEqual([undefined, undefined]);
  at.store.setLimits({ ...LIMITS, cacheBytes: 0, pinnedBytes: 3 });
  expect(readers.filter(({ failure }) => failure?.kind === "proxyBusy")).toHaveLength(1);
});

test("chunks: a fetch waits until its readers take what it has (ahead by 10 bytes)", async () => {
  const { origin, open, store } = setup({ readAheadBytes: 10 });
  const { lease } = open();
  await origin.fetches[0]!.head(100);
  for (let pieces = 0; pieces < 5; pieces++) await origin.fetches[0]!.push("12345678");
  expect(store.stats.originBytes).toBe(16);
  lease.take(3, 3);
  await settled();
  expect(store.stats.originBytes).toBe(16);
  lease.take(7, 7);
  await settled();
  expect(store.stats.originBytes).toBe(24);
  open().lease.take(0, 100);
  await settled();
  expect(store.stats.originBytes).toBe(24);
});

test("chunks: a client that takes nothing has no more fetched than its budget, and it returns (24 bytes)", async () => {
  const { origin, open, store, clock } = setup({ unreadBytes: 24 });
  const [first, second] = [open("http://o.test/1"), open("http://o.test/2")];
  for (const fetch of origin.fetches) {
    await fetch.head(100);
    for (let pieces = 0; pieces < 5; pieces++) await fetch.push("12345678");
  }
  expect(store.stats.originBytes).toBe(32);
  const refused = open("http://o.test/3");
  await settled();
  expect(refused.reader.failure).toMatchObject({ kind: "proxyBusy", got: 32, limit: 24 });
  // The second reader takes a part of the first 24 bytes, as a client of many proxies does.
  second.lease.take(1, 24);
  await settled();
  expect(store.stats.originBytes).toBe(48);
  clock.ms = 20_000;
  first.lease.take(0, 1);
  await settled();
  expect(store.stats.originBytes).toBe(56);
});

test("chunks: bytes that a client takes after its fetch has ended do not count as unread (24 bytes)", async () => {
  const { origin, open, store } = setup({ unreadBytes: 24 });
  for (let chunk = 0; chunk < 5; chunk++) {
    const { lease } = open(`http://o.test/${chunk}`);
    await origin.fetches[chunk]!.head(16);
    await origin.fetches[chunk]!.push("0123456789abcdef");
    await origin.fetches[chunk]!.push(null);
    lease.take(4, 16);
    lease.close();
  }
  expect(store.stats.originBytes).toBe(80);
});

test("chunks: a fetch that is given up costs its client what is on the way", async () => {
  const { origin, open } = setup({ unreadBytes: 100 });
  const { lease } = open();
  await origin.fetches[0]!.head(101);
  await origin.fetches[0]!.push("a");
  lease.close();
  const { reader } = open();
  await settled();
  expect(reader.failure).toMatchObject({ kind: "proxyBusy", got: 101, limit: 100 });
});

test("chunks: a failure before or in the body reaches every reader, once, and is not kept", async () => {
  const { origin, open } = setup();
  const [first, second] = [open(), open()];
  await origin.fetches[0]!.head(6);
  await origin.fetches[0]!.push("abc");
  await origin.fetches[0]!.push(new EgressError({ kind: "shortBody", message: "short", got: 3, limit: 6 }));
  expect(first.reader.failure).toMatchObject({ kind: "shortBody" });
  expect(second.reader.failure).toMatchObject({ kind: "shortBody" });
  const third = open();
  origin.fetches[1]!.reject(egressError("originUnreachable", "away"));
  await settled();
  expect(third.reader.failure).toMatchObject({ kind: "originUnreachable" });
});

test("chunks: an unexpected error fails the chunk and is logged, and the process continues", async () => {
  const { origin, open, logged } = setup();
  const [first, second] = [open(), open()];
  first.reader.onHead = () => {
    throw new RangeError("odd");
  };
  await origin.fetches[0]!.head(6);
  for (const { reader } of [first, second]) expect(reader.failure).toMatchObject({ kind: "internalError" });
  expect(logged).toEqual(['internalError {"message":"odd"}']);
  expect(origin.fetches[0]!.aborted).toBe(true);
  open();
  expect(origin.fetches).toHaveLength(2);
});

test("chunks: a body that cannot be shared goes to the one reader that can stream it", async () => {
  const { origin, store, open } = setup();
  const { reader } = open();
  const streamed: string[] = [];
  store.open(
    { url: URL_A },
    {
      ...new Reader(),
      onUnshareable: (head, response) =>
        void (async (): Promise<void> => {
          for await (const piece of response.body) streamed.push(`${head.status} ${String(piece)}`);
        })(),
    },
  );
  await origin.fetches[0]!.head(null);
  expect(reader.failure).toMatchObject({ kind: "lengthUnknown" });
  await origin.fetches[0]!.push("abc");
  await origin.fetches[0]!.push(null);
  expect(streamed).toEqual(["200 abc"]);
  expect(store.stats.originBytes).toBe(3);
});

test("chunks: one byte over the chunk limit is chunkTooLarge", async () => {
  const { origin, open } = setup({ pinnedBytes: 2 ** 30 });
  const [inside, outside] = [open("http://o.test/1"), open("http://o.test/2")];
  await origin.fetches[0]!.head(33_554_432);
  await origin.fetches[1]!.head(33_554_433);
  expect(inside.reader.head!.totalBytes).toBe(33_554_432);
  expect(outside.reader.failure).toMatchObject({ kind: "chunkTooLarge", got: 33_554_433, limit: 33_554_432 });
  expect(origin.fetches[1]!.cancelled).toBe(true);
});

test("chunks: a refused URL throws and leaves nothing behind", () => {
  const { origin, open } = setup();
  expect(() => open("http://refused.test/")).toThrow(EgressError);
  expect(origin.fetches).toHaveLength(0);
});
