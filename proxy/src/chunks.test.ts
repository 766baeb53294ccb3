import { keepMsOf } from "./cache-control";
import { ChunkStore, type ChunkLimits, type ChunkListener } from "./chunks";
import { EgressError, egressError } from "./egress/error";
import type { OriginResponse } from "./egress/fetch";
import type { LogFields } from "./log";
import type { CacheMode, RangeRequest, Rejection } from "@tributary/contract";
import type { ChunkSource, PlanHead } from "@tributary/protocol";

/** An origin whose answers the test gives step by step. */
class FakeOrigin {
  fetches: FakeFetch[] = [];
  vet = (url: string): URL => {
    if (url.includes("refused")) throw egressError("egressRefused", "no");
    return new URL(url.replace(/#.*/, ""));
  };
  fetch = (_url: string, _range: unknown, signal: AbortSignal): Promise<OriginResponse> =>
    new Promise((resolve, reject) => {
      const made = new FakeFetch(resolve, reject);
      signal.addEventListener("abort", () => made.stop());
      this.fetches.push(made);
    });
}

class FakeFetch {
  aborted = false;
  cancelled = false;
  #pieces: (Uint8Array | Error | null)[] = [];
  #wake = (): void => undefined;
  readonly #resolve: (response: OriginResponse) => void;

  constructor(
    resolve: (response: OriginResponse) => void,
    readonly reject: (error: Error) => void,
  ) {
    this.#resolve = resolve;
  }

  head(totalBytes: number | null, headers: Record<string, string> = {}, status = 200): Promise<void> {
    const cancel = () => (this.cancelled = true);
    this.#resolve({ status, headers, totalBytes, serverFetchMs: 12, body: this.#body(), cancel });
    return settled();
  }
  async push(piece: string | Error | null): Promise<void> {
    this.#pieces.push(typeof piece === "string" ? Buffer.from(piece) : piece);
    this.#wake();
    await settled();
  }
  stop(): void {
    this.aborted = true;
    const error = egressError("aborted", "given up");
    this.reject(error);
    void this.push(error);
  }
  async *#body(): AsyncGenerator<Uint8Array> {
    for (;;) {
      const next = this.#pieces.shift();
      if (next === null) return;
      if (next instanceof Error) throw next;
      if (next) yield next;
      else await new Promise<void>((resolve) => (this.#wake = resolve));
    }
  }
}

class Reader implements ChunkListener {
  head: PlanHead | undefined;
  source: ChunkSource | undefined;
  growths = 0;
  failure: Rejection | undefined;
  onHead = (head: PlanHead, source: ChunkSource): void => void ((this.head = head), (this.source = source));
  onGrowth = (): void => void this.growths++;
  onFailure = (rejection: Rejection): void => void (this.failure = rejection);
  get text(): string {
    return Buffer.from(this.source!.view(0, this.source!.availableBytes)).toString();
  }
}

const settled = () => new Promise<void>((resolve) => setTimeout(resolve, 2));
const URL_A = "http://o.test/a";

function setup(limits: Partial<ChunkLimits> = {}) {
  const origin = new FakeOrigin();
  const clock = { ms: 0 };
  const logged: string[] = [];
  const log = (event: string, fields?: LogFields) => void logged.push(`${event} ${JSON.stringify(fields)}`);
  const store = new ChunkStore({
    egress: origin,
    log,
    limits: { cacheBytes: 1000, pinnedBytes: 2 ** 28, cacheKeepMs: Infinity, ...limits },
    nowMs: () => clock.ms,
  });
  const open = (url = URL_A, range?: RangeRequest, cache?: CacheMode) => {
    const reader = new Reader();
    return { reader, lease: store.open({ url, range, cache }, reader) };
  };
  return { origin, clock, store, open, logged };
}

/** Fetches a chunk to its end and closes the lease. */
async function fetched(
  at: ReturnType<typeof setup>,
  url: string,
  text: string,
  headers: Record<string, string> = {},
): Promise<void> {
  const { lease } = at.open(url);
  const fetch = at.origin.fetches.at(-1)!;
  await fetch.head(text.length, headers);
  await fetch.push(text);
  await fetch.push(null);
  lease.close();
}

test("chunks: three readers at different times share one fetch and one buffer", async () => {
  const { origin, store, open } = setup();
  const first = open();
  const second = open();
  await origin.fetches[0]!.head(6, { etag: '"e"', "set-cookie": "secret" });
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
    headers: { etag: '"e"', "set-cookie": "" },
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
  await fetched(at, URL_A, "abcdef", { etag: '"e"' });
  const { reader, lease } = at.open(URL_A, range);
  await settled();
  expect(reader.text).toBe(text);
  expect(reader.head).toEqual({
    status: 206,
    totalBytes: text.length,
    headers: { etag: '"e"', "content-range": contentRange },
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
  await at.origin.fetches[0]!.head(6);
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
  await at.origin.fetches[5]!.head(6, {}, 206);
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

test("chunks: the only reader ends the fetch, also before the head", async () => {
  const { origin, open } = setup();
  open().lease.close();
  expect(origin.fetches[0]!.aborted).toBe(true);
});

test.each([
  [{}, 59_999, 1],
  [{}, 60_000, 2],
  [{ "cache-control": "max-age=10" }, 9_999, 1],
  [{ "cache-control": "max-age=10" }, 10_000, 2],
  [{ "cache-control": "max-age=3600" }, 60_000, 2],
  [{ "cache-control": "no-store" }, 0, 2],
  [{ "cache-control": "private, max-age=9" }, 0, 2],
])("chunks: with %j and a second request after %i ms, the origin gets %i requests", async (headers, ms, times) => {
  const at = setup();
  await fetched(at, URL_A, "abc", headers as Record<string, string>);
  at.clock.ms = ms;
  at.open();
  expect(at.origin.fetches).toHaveLength(times);
});

test("chunks: a chunk that may not be kept is shared while it is being fetched", async () => {
  const { origin, open } = setup();
  open();
  await origin.fetches[0]!.head(3, { "cache-control": "no-store" });
  const joined = open();
  await origin.fetches[0]!.push("abc");
  await origin.fetches[0]!.push(null);
  expect(joined.reader.text).toBe("abc");
  open();
  expect(origin.fetches).toHaveLength(2);
});

test.each(["no-cache", "no-store"] as const)("chunks: cache mode %s asks the origin", async (cache) => {
  const at = setup();
  await fetched(at, URL_A, "abc");
  at.open(URL_A, undefined, cache);
  at.open(URL_A, { start: 0, end: 1 }, cache);
  expect(at.origin.fetches).toHaveLength(3);
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
  const at = setup({ cacheBytes: 6 });
  await fetched(at, "http://o.test/1", "abc");
  await fetched(at, "http://o.test/2", "def");
  at.open("http://o.test/1").lease.close();
  await fetched(at, "http://o.test/3", "ghi");
  expect(at.store.stats.cacheBytes).toBe(6);
  at.open("http://o.test/1").lease.close();
  expect(at.origin.fetches).toHaveLength(3);
  await fetched(at, "http://o.test/4", "1234567");
  expect(at.store.stats.cacheBytes).toBe(6);
  at.open("http://o.test/2");
  expect(at.origin.fetches).toHaveLength(5);
});

test("chunks: a chunk that leaves the cache while it is read stays whole for its reader", async () => {
  const at = setup({ cacheBytes: 3 });
  await fetched(at, "http://o.test/1", "abc");
  const { reader } = at.open("http://o.test/1");
  await settled();
  await fetched(at, "http://o.test/2", "def");
  expect(reader.text).toBe("abc");
});

test("chunks: bytes being read are limited (10 bytes) and count only until their reader leaves", async () => {
  const { origin, open } = setup({ pinnedBytes: 10 });
  const first = open("http://o.test/1");
  await origin.fetches[0]!.head(6);
  const second = open("http://o.test/2");
  await origin.fetches[1]!.head(5);
  expect(second.reader.failure).toMatchObject({ kind: "proxyBusy", got: 11, limit: 10 });
  expect(origin.fetches[1]!.cancelled).toBe(true);
  first.lease.close();
  const third = open("http://o.test/3");
  await origin.fetches[2]!.head(10);
  expect(third.reader.head!.totalBytes).toBe(10);
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

test.each([
  [200, {}, 60_000],
  [206, {}, 60_000],
  [404, {}, 0],
  [302, {}, 0],
  [200, { "cache-control": "public, MAX-AGE=5" }, 5000],
  [200, { "cache-control": 'max-age="7"' }, 7000],
  [200, { "cache-control": "max-age=5, s-maxage=9" }, 9000],
  [200, { "cache-control": "max-age=5", age: "3" }, 2000],
  [200, { "cache-control": "max-age=5", age: "9" }, 0],
  [200, { "cache-control": "max-age=x" }, 0],
  [200, { "cache-control": "no-cache" }, 0],
  [200, { vary: "*" }, 0],
  [200, { vary: "accept-encoding" }, 60_000],
  [200, { expires: "0" }, 0],
  [200, { expires: "Thu, 01 Jan 1970 00:00:00 GMT" }, 0],
] as [number, Record<string, string>, number][])(
  "cache-control: status %i with %j is kept for %i ms",
  (status, headers, ms) => {
    expect(keepMsOf(status, headers)).toBe(ms);
  },
);
