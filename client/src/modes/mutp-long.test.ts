import { build, expectWhole, fetchAll } from "../../test/scene";
import { readAll, sha256Of } from "../../test/support";

describe("requests longer than one chunk", () => {
  const SMALL = { chunkBytesMax: 320_000, cutBytes: 80_000, queuedBytesMax: 80_000, firstByteMs: 5000, stallMs: 5000 };
  const MOOD = { chunkBytesMax: 320_000 };

  test.each(["uncoded-mutp", "coded-mutp"] as const)(
    "client: %s cuts a long request into ranges and joins the bytes in order",
    async (mode) => {
      const { origin, client } = await build([MOOD, MOOD], 400_001, SMALL);
      const download = client.get(`${origin.url}/file`, { mode, connections: 2 });
      expect(await download.head).toMatchObject({ status: 200, totalBytes: 400_001, headers: { etag: '"one"' } });
      const outcome = { body: await readAll(download.body), record: await download.record, error: undefined };
      expectWhole(outcome, origin.body);
      expect(outcome.record.fallback).toBeNull();
      const ranges = new Set(origin.requests.map(({ range }) => range));
      expect([...ranges].filter((range) => range !== undefined)).toHaveLength(6);
    },
  );

  test("client: a long range that goes past the end stops at the end", async () => {
    const { origin, client } = await build([MOOD], 100_000, SMALL);
    const download = client.get(`${origin.url}/file`, { mode: "uncoded-mutp", range: { start: 1000, end: 999_999 } });
    expect(await download.head).toMatchObject({
      status: 206,
      totalBytes: 99_000,
      headers: { "content-range": "bytes 1000-99999/100000" },
    });
    expectWhole(
      { body: await readAll(download.body), record: await download.record, error: undefined },
      origin.body.subarray(1000),
    );
  });

  test("client: fetches directly from an origin that does not support ranges", async () => {
    const { origin } = await build([MOOD], 400_001, SMALL);
    const outcome = await fetchAll("no-range", { mode: "uncoded-mutp" });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback!.kind).toBe("chunkTooLarge");
  });

  test("client: delivers the whole body if a proxy reports a length that is too short", async () => {
    const { origin } = await build([{ ...MOOD, tooLargeBytes: 320_001 }], 400_001, SMALL);
    const outcome = await fetchAll("file", { mode: "uncoded-mutp", connections: 1 });
    expectWhole(outcome, origin.body);
    expect(outcome.record).toMatchObject({ status: 200, totalBytes: 400_001, fallback: null });
  });

  test("client: downloads at most two ranges ahead of a slow reader", async () => {
    const { client, origin } = await build([MOOD], 1_000_000, SMALL);
    const download = client.get(`${origin.url}/file`, { mode: "uncoded-mutp", connections: 1 });
    await download.head;
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(client.live.deliveredBytes).toBeLessThanOrEqual(3 * 80_000);
    expect(sha256Of(await readAll(download.body))).toBe(sha256Of(origin.body));
  });

  test("client: falls back for the rest if the proxies die in a later range", async () => {
    const { origin } = await build([{ ...MOOD, dieAfterBytes: 250_000 }], 400_001, SMALL);
    const outcome = await fetchAll("file", { mode: "uncoded-mutp", connections: 1 });
    expectWhole(outcome, origin.body);
  });
});
