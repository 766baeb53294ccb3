import { clients, FRESH, Reader, settled, setup } from "../test/fake-origin";
import { CHUNK_BYTES } from "./chunk";

function cacheOf(chunks: number) {
  const { store, origin } = setup({ cacheBytes: (chunks + 0.5) * CHUNK_BYTES, cacheKeepMs: 60_000 });
  /** True if the origin was asked. */
  const fetch = async (address: string, path: string, headers: Record<string, string> = {}): Promise<boolean> => {
    const asked = origin.fetches.length;
    const lease = store.open({ url: `http://o.test/${path}`, client: clients.of(address) }, new Reader());
    if (origin.fetches.length > asked) {
      await origin.fetches.at(-1)!.head(1, { ...FRESH, ...headers });
      await origin.fetches.at(-1)!.push("a");
      await origin.fetches.at(-1)!.push(null);
    }
    lease.close();
    await settled();
    return origin.fetches.length > asked;
  };
  return { store, fetch };
}

test("kept chunks: chunks of one byte are bounded by what remembering them takes (3 of 9)", async () => {
  const { store, fetch } = cacheOf(3);
  for (let path = 0; path < 9; path++) await fetch("203.0.113.8", String(path));
  expect(store.stats.cacheBytes).toBe(3);
});

test("kept chunks: long heads count", async () => {
  const { store, fetch } = cacheOf(3);
  for (let path = 0; path < 9; path++) await fetch("203.0.113.8", String(path), { "x-long": "a".repeat(CHUNK_BYTES) });
  expect(store.stats.cacheBytes).toBe(1);
});

test("kept chunks: a client that fills the cache pushes out its own chunks first (2 of 6 are another's)", async () => {
  const { fetch } = cacheOf(6);
  for (const path of ["a", "b"]) await fetch("203.0.113.7", path);
  for (let path = 0; path < 40; path++) await fetch("203.0.113.8", String(path));
  expect([await fetch("203.0.113.9", "a"), await fetch("203.0.113.9", "b")]).toEqual([false, false]);
});
