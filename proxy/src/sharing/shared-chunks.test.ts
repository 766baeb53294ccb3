import type { ChunkSource, PlanHead } from "@tributary/protocol";
import type { RangeRequest } from "@tributary/contract";
import type { ChunkListener, Origins } from "../chunk";
import type { OriginResponse } from "../egress/fetch";
import { Peers } from "./peers";
import { SharedChunks } from "./shared-chunks";

const BODY = Uint8Array.from({ length: 1000 }, (_, at) => at % 251);
const GENERATION = 100;
const readers = ["a", "b"].map((id) => ({ id, weight: 1 }));

const LIMITS = { pinnedBytes: 1e6, cacheBytes: 1e6, cacheKeepMs: 60_000, sharedChunksMax: 10, heldRequestsMax: 64 };

/** An origin in memory. `etagOf`: by the number of the request. */
function worldOf(etagOf: (count: number) => string | undefined = () => '"1"', given: Partial<typeof LIMITS> = {}) {
  let atMs = 0;
  const [limits, nowMs] = [{ ...LIMITS, ...given }, () => atMs];
  const ranges: (RangeRequest | undefined)[] = [];
  const origins: Origins = {
    vet: (text) => ({ href: text, origin: "http://o" }),
    fetch: (_url, range) => {
      const etag = etagOf(ranges.push(range));
      const { start, end = BODY.length - 1 } = range as { start: number; end?: number };
      if (start >= BODY.length) return Promise.resolve(responseOf(416, {}, new Uint8Array(0)));
      const part = BODY.subarray(start, end + 1);
      const told = `bytes ${start}-${start + part.length - 1}/${BODY.length}`;
      const headers = { "content-range": told, "cache-control": "max-age=60", ...(etag ? { etag } : {}) };
      return Promise.resolve(responseOf(206, headers, part));
    },
  };
  const wholes: string[] = [];
  const whole = {
    open: ({ url }: { url: string }) => {
      wholes.push(url);
      return { take: () => undefined, close: () => undefined };
    },
  };
  const peers = new Peers(() => Promise.resolve({}));
  const shared = new SharedChunks({ origins, peers, whole, limits: () => limits, log: () => undefined, nowMs });
  return { shared, ranges, wholes, passMs: (ms: number) => (atMs += ms) };
}

function responseOf(status: number, headers: Record<string, string>, bytes: Uint8Array): OriginResponse {
  const body = (async function* () {
    await Promise.resolve();
    yield bytes;
  })();
  return { status, headers, totalBytes: bytes.length, serverFetchMs: 1, body, cancel: () => undefined };
}

function readerOf(shared: SharedChunks, ownIndex = 1, url = "http://o/f") {
  const seen: { head?: PlanHead; source?: ChunkSource; failure?: string } = {};
  const listener: ChunkListener = {
    onHead: (head, source) => Object.assign(seen, { head, source }),
    onGrowth: () => undefined,
    onFailure: ({ kind }) => Object.assign(seen, { failure: kind }),
  };
  const sharing = { ownIndex, firstGenerations: 1, readers };
  const own = { sharing, symbolBytes: GENERATION, generationSize: 1, token: undefined };
  const lease = shared.open({ url }, own, listener);
  return { seen, lease };
}

const settled = () => new Promise((resolve) => setTimeout(resolve, 30));

async function heldBytes(
  shared: SharedChunks,
  start: number,
  end: number,
  version = '"1"',
): Promise<number | undefined> {
  const held = shared.held({ url: "http://o/f", range: undefined }, { start, end }, version);
  if (!held) return undefined;
  let count = 0;
  for await (const bytes of held) count += bytes.length;
  return count;
}

test("shared chunks: a proxy reads its own part alone, and says which generations that are", async () => {
  const { shared, ranges } = worldOf();
  const { seen } = readerOf(shared);
  await settled();
  expect(ranges).toEqual([
    { start: 100, end: 199 },
    { start: 600, end: 999 },
  ]);
  expect(seen.head).toMatchObject({ status: 200, totalBytes: 1000, headers: { etag: '"1"' } });
  expect(seen.head!.headers["content-range"]).toBeUndefined();
  expect(seen.head!.reads).toEqual([
    { from: 1, end: 2 },
    { from: 6, end: 10 },
  ]);
  expect(shared.stats).toEqual({ originBytes: 500, sharing: undefined });
  shared.close();
});

test("shared chunks: what no peer gives is read at the origin once, however often it is wanted", async () => {
  const { shared, ranges } = worldOf();
  const { seen } = readerOf(shared);
  await settled();
  for (let count = 0; count < 5; count++) seen.source!.want!(200, 300);
  await settled();
  expect(ranges.slice(2)).toEqual([{ start: 200, end: 299 }]);
  expect(Buffer.compare(seen.source!.view(200, 300), BODY.subarray(200, 300))).toBe(0);
  expect(shared.stats.sharing).toMatchObject({ readInstead: 1, refusedPeers: 1 });
  shared.close();
});

test("shared chunks: a peer gets what is held of its version, and nothing is fetched for it", async () => {
  const { shared, ranges } = worldOf();
  expect(await heldBytes(shared, 100, 200)).toBeUndefined();
  readerOf(shared);
  await settled();
  expect(await heldBytes(shared, 600, 700)).toBe(100);
  expect(await heldBytes(shared, 150, 300)).toBe(50);
  expect(await heldBytes(shared, 0, 100)).toBe(0);
  expect(await heldBytes(shared, 600, 700, '"2"')).toBeUndefined();
  expect(ranges).toHaveLength(2);
  shared.close();
});

test("shared chunks: an answer without a strong validator is read whole", async () => {
  const { shared, wholes } = worldOf(() => undefined);
  const { seen } = readerOf(shared);
  await settled();
  expect([wholes, seen.head]).toEqual([["http://o/f"], undefined]);
  shared.close();
});

test("shared chunks: a part of another version fails the chunk", async () => {
  const { shared } = worldOf((count) => `"${count}"`);
  const { seen } = readerOf(shared);
  await settled();
  expect(seen.failure).toBe("bodyDiffers");
  expect(await heldBytes(shared, 100, 200)).toBeUndefined();
  shared.close();
});

test("shared chunks: a part after the end of the body is empty", async () => {
  const { shared, ranges } = worldOf();
  const { seen } = readerOf(shared, 0);
  const far = { ownIndex: 1, firstGenerations: 20, readers };
  const other = shared.open(
    { url: "http://o/far" },
    { sharing: far, symbolBytes: GENERATION, generationSize: 1, token: undefined },
    { onHead: (head) => Object.assign(seen, { head }), onGrowth: () => undefined, onFailure: () => undefined },
  );
  await settled();
  expect(ranges).toContainEqual({ start: 0, end: 0 });
  expect(seen.head!.reads).toEqual([]);
  other.close();
  shared.close();
});

test("shared chunks: a part stays for later viewers as long as the origin and the cache allow", async () => {
  const { shared, ranges, passMs } = worldOf();
  readerOf(shared).lease.close();
  await settled();
  const first = readerOf(shared);
  await settled();
  first.lease.close();
  const read = ranges.length;
  passMs(30_000);
  readerOf(shared).lease.close();
  expect(ranges).toHaveLength(read);
  passMs(31_000);
  readerOf(shared).lease.close();
  expect(ranges.length).toBeGreaterThan(read);
  shared.close();
});

test("shared chunks: the part that was left first makes room; if all have readers, chunks are read whole", async () => {
  const { shared, wholes } = worldOf(undefined, { sharedChunksMax: 2 });
  const open = (path: string) => readerOf(shared, 1, `http://o/${path}`).lease;
  const leases = [open("1"), open("2")];
  await settled();
  open("3");
  expect(wholes).toEqual(["http://o/3"]);
  leases[1]!.close();
  open("4");
  expect(wholes).toEqual(["http://o/3"]);
  expect(shared.held({ url: "http://o/2", range: undefined, pageOrigin: undefined }, { start: 0, end: 1 }, '"1"')).toBe(
    undefined,
  );
  shared.close();
});

test("shared chunks: an origin whose parts cannot be joined is not asked for parts again for a while", async () => {
  const { shared, ranges, wholes, passMs } = worldOf(() => undefined);
  readerOf(shared);
  await settled();
  const asked = ranges.length;
  readerOf(shared, 1, "http://o/g");
  await settled();
  expect([ranges.length, wholes]).toEqual([asked, ["http://o/f", "http://o/g"]]);
  passMs(601_000);
  readerOf(shared, 1, "http://o/h");
  await settled();
  expect(ranges.length).toBeGreaterThan(asked);
  shared.close();
});
