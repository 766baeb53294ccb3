import { build, expectWhole, fetchAll } from "../../test/scene";
import { readAll, sha256Of } from "../../test/support";

describe("split-http", () => {
  const mode = "split-http";

  test("client: every proxy brings different bytes, and few bytes come twice", async () => {
    const { origin } = await build([{ packetEveryMs: 2 }, { packetEveryMs: 2 }, { packetEveryMs: 2 }], 1_000_000);
    const outcome = await fetchAll("file", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    for (const { bytes } of outcome.record.proxies) expect(bytes).toBeGreaterThan(20_000);
    expect(outcome.record.normalizedGoodput).toBeGreaterThan(0.5);
  });

  test("client: a slow proxy brings little, and the download does not wait for it", async () => {
    const { origin, proxies } = await build([{ packetEveryMs: 300 }, {}, {}], 2_000_000);
    const outcome = await fetchAll("file", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    const slow = outcome.record.proxies.find(({ id }) => id === proxies[0]!.id)!;
    expect(slow.bytes).toBeLessThan(500_000);
  });

  test.each([
    ["another length", { totalBytes: 150_000 }, "planMismatch"],
    ["other bytes", { liesFromByte: 0 }, "bodyDiffers"],
  ])("client: drops a proxy whose body has %s", async (_, mood, kind) => {
    const { origin } = await build([mood, { packetEveryMs: 1 }, { packetEveryMs: 1 }], 200_000);
    const outcome = await fetchAll("file", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    expect(outcome.record.proxies.map(({ error }) => error?.kind)).toEqual([kind, undefined, undefined]);
  });

  test("client: asks the origin if two proxies contradict each other", async () => {
    const { origin } = await build([{ packetEveryMs: 1 }, { totalBytes: 150_000 }], 200_000);
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback?.kind).toBe("planMismatch");
  });

  test("client: compares what was delivered with the origin's if two proxies contradict each other later", async () => {
    const { origin } = await build([{ packetEveryMs: 1 }, { packetEveryMs: 1, liesFromByte: 150_000 }], 200_000);
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback?.kind).toBe("bodyDiffers");
    // A range would trust the delivered bytes, since the validators are the same.
    expect(origin.requests.map(({ range }) => range)).toEqual([...Array<undefined>(origin.requests.length)]);
  });

  test("client: reads the whole body through one proxy if the origin does not support ranges", async () => {
    const { origin } = await build([{}, {}, {}], 300_000);
    const outcome = await fetchAll("no-range", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record).toMatchObject({ status: 200, fallback: null });
  });

  test("client: a slow reader slows the download down and gets every byte", async () => {
    const settings = { queuedBytesMax: 80_000, chunkBytesMax: 320_000, firstByteMs: 20_000, stallMs: 1500 };
    const { client, origin } = await build([{}, {}], 1_500_000, settings);
    const download = client.get(`${origin.url}/file`, { mode, connections: 2 });
    await download.head;
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(client.live.deliveredBytes).toBeLessThan(1_000_000);
    expect(sha256Of(await readAll(download.body))).toBe(sha256Of(origin.body));
    expect((await download.record).fallback).toBeNull();
  });
});

describe.each(["parallel-http", "split-http"] as const)("%s", (mode) => {
  test.each([200, 502])(
    "client: does not take the page of a captive portal (status %i) for the origin's answer",
    async (portalStatus) => {
      const { origin, proxies } = await build([{ portalStatus }, { packetEveryMs: 5 }], 300_000);
      const outcome = await fetchAll("file", { mode, connections: 2 });
      expectWhole(outcome, origin.body);
      expect(outcome.record.fallback).toBeNull();
      const portal = outcome.record.proxies.find(({ id }) => id === proxies[0]!.id);
      expect(portal).toMatchObject({
        bytes: 0,
        state: "failed",
        error: { kind: "proxyFailed", message: expect.stringMatching(`^The proxy answered ${portalStatus}`) },
      });
    },
  );
});
