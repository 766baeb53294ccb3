/** Fetches that their last reader has left: which of them go on for the cache, and when they give way. */
import { clients, FRESH, Reader, SEGMENT, settled, setup, URL_A } from "../test/fake-origin";
import { IN_SOCKETS_BYTES, LEFT_MAX, LEFT_MS_MAX } from "./fetches";

const NEARLY = IN_SOCKETS_BYTES;
const ROOM = { cacheBytes: 2 ** 30 };

test.each([
  ["a fresh answer that lacks little", "goes on", NEARLY + 1, FRESH, 200],
  ["a fresh answer that lacks a byte more", "ends", NEARLY + 2, FRESH, 200],
  ["a fresh part", "goes on", 10, FRESH, 206],
  ["an answer that is not fresh", "ends", 10, { etag: '"1"' }, 200],
  ["an answer that nobody else may get", "ends", 10, { "cache-control": "private, max-age=60" }, 200],
  ["an error", "ends", 10, FRESH, 404],
])("fetches: the last reader leaves %s, and the fetch %s", async (_name, outcome, totalBytes, headers, status) => {
  const { origin, open } = setup(ROOM);
  const range = status === 206 ? { start: 0, end: totalBytes - 1 } : undefined;
  const { lease } = open(URL_A, range);
  await origin.fetches[0]!.head(totalBytes, headers, status);
  await origin.fetches[0]!.push("a");
  lease.close();
  expect(origin.fetches[0]!.aborted).toBe(outcome === "ends");
});

test.each([
  ["fresh", "goes on", FRESH],
  ["not fresh", "ends", {}],
])(
  "fetches: the last reader leaves before the head, which is %s, and the fetch %s",
  async (_name, outcome, headers) => {
    const { origin, open } = setup();
    open().lease.close();
    expect(origin.fetches[0]!.aborted).toBe(false);
    await origin.fetches[0]!.head(3, headers);
    expect(origin.fetches[0]!.aborted).toBe(outcome === "ends");
  },
);

test("fetches: a left fetch reaches the cache, and a new reader can join it", async () => {
  const { origin, store, open } = setup({ unreadBytes: 3 });
  open().lease.close();
  await origin.fetches[0]!.head(4, FRESH);
  await origin.fetches[0]!.push("ab");
  const joined = open();
  await settled();
  expect(joined.reader.text).toBe("ab");
  joined.lease.close();
  await origin.fetches[0]!.push("cd");
  await origin.fetches[0]!.push(null);
  const { reader } = open();
  await settled();
  expect([reader.text, origin.fetches.length, store.stats.cacheBytes]).toEqual(["abcd", 1, 4]);
  // What was fetched for nobody counts for the client that asked.
  const refused = open("http://o.test/b");
  await settled();
  expect(refused.reader.failure).toMatchObject({ kind: "proxyBusy", got: 4, limit: 3 });
});

test("fetches: left fetches are the first to give way when memory runs out", async () => {
  const { origin, open } = setup({ ...ROOM, pinnedBytes: 2 * SEGMENT });
  const [slow, left] = [open("http://o.test/slow"), open("http://o.test/left")];
  for (const fetch of origin.fetches) {
    await fetch.head(2 * SEGMENT, FRESH);
    await fetch.push("a".repeat(SEGMENT));
  }
  left.lease.close();
  expect(origin.fetches[1]!.aborted).toBe(false);
  await origin.fetches[0]!.push("a".repeat(SEGMENT));
  expect([origin.fetches[1]!.aborted, slow.reader.failure]).toEqual([true, undefined]);
});

test("fetches: left fetches are the first to give way when the connections to an origin are taken", () => {
  const { origin, open } = setup();
  open("http://other.test/left").lease.close();
  open("http://o.test/left").lease.close();
  for (let at = 0; at < 127; at++) open(`http://o.test/${at}`);
  const isEnded = (): boolean[] => origin.fetches.slice(0, 2).map(({ aborted }) => aborted);
  expect(isEnded()).toEqual([false, false]);
  open("http://o.test/last");
  expect(isEnded()).toEqual([false, true]);
});

test(`fetches: of more than ${LEFT_MAX} left fetches the oldest ends`, () => {
  const { origin, open } = setup();
  for (let at = 0; at <= LEFT_MAX; at++) open(`http://o.test/${at}`).lease.close();
  expect(origin.fetches.map(({ aborted }) => aborted)).toEqual([true, ...Array<boolean>(LEFT_MAX).fill(false)]);
});

test(`fetches: a left fetch ends after ${LEFT_MS_MAX} ms`, () => {
  jest.useFakeTimers();
  const { origin, open } = setup();
  open().lease.close();
  jest.advanceTimersByTime(LEFT_MS_MAX - 1);
  expect(origin.fetches[0]!.aborted).toBe(false);
  jest.advanceTimersByTime(1);
  expect(origin.fetches[0]!.aborted).toBe(true);
  jest.useRealTimers();
});

test("fetches: when a proxy fetches as much as it may, a newcomer gets the place of who has most (4)", async () => {
  const { origin, store } = setup({ originFetchesMax: 4 });
  const ask = (address: string, path: string): Reader => {
    const reader = new Reader();
    store.open({ url: `http://${path}.test/`, client: clients.of(address) }, reader);
    return reader;
  };
  const greedy = [1, 2, 3, 4].map((host) => ask("203.0.113.8", `greedy${host}`));
  const again = ask("203.0.113.8", "again");
  await settled();
  expect(again.failure).toMatchObject({ kind: "proxyBusy", got: 5, limit: 4 });
  const viewer = [ask("203.0.113.7", "a"), ask("203.0.113.7", "b"), ask("203.0.113.7", "c")];
  await settled();
  expect(viewer.map(({ failure }) => failure?.kind)).toEqual([undefined, undefined, "proxyBusy"]);
  expect(greedy.filter(({ failure }) => failure?.kind === "proxyBusy")).toHaveLength(2);
  expect(origin.fetches.filter(({ aborted }) => !aborted)).toHaveLength(4);
});
