import { LIMITS } from "@tributary/protocol";
import { build, expectWhole, fetchAll, scene } from "../../test/scene";
import { readAll, sha256Of } from "../../test/support";

describe.each(["uncoded-mutp", "coded-mutp"] as const)("%s", (mode) => {
  test.each([0.02, 0.1, 0.3])("client: delivers over links that lose %d of all packets", async (loss) => {
    const { origin } = await build(
      [
        { loss, seed: 1 },
        { loss, seed: 2 },
        { loss, seed: 3 },
      ],
      300_000,
      { firstByteMs: 8000, stallMs: 5000 },
    );
    const outcome = await fetchAll("file", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    expect(outcome.record.proxies.reduce((sum, { lost }) => sum + lost, 0)).toBeGreaterThan(0);
  });

  test("client: counts one innovative packet for each symbol of the file", async () => {
    await build([{}, {}, {}, {}], 110_000);
    const { record } = await fetchAll("file", { mode });
    expect(record.proxies.reduce((sum, { innovative }) => sum + innovative, 0)).toBe(
      Math.ceil(110_000 / LIMITS.symbolBytesDefault),
    );
    expect(record.firstPacketMs).toBeGreaterThan(0);
    expect(record.serverFetchMs).toBe(2);
  });

  test("client: sessions stay warm from one download to the next", async () => {
    const { proxies, origin, client } = await build([{}, {}], 30_000);
    for (let i = 0; i < 3; i++) expectWhole(await fetchAll("file", { mode, connections: 2 }), origin.body);
    expect(proxies.map(({ sessionsMade }) => sessionsMade)).toEqual([1, 1]);
    expect(client.live.proxies.map(({ state }) => state)).toEqual(["open", "open"]);
  });

  test("client: opens a lost session again for the next download", async () => {
    const { proxies, origin } = await build([{}, {}], 30_000);
    expectWhole(await fetchAll("file", { mode, connections: 2 }), origin.body);
    proxies[0]!.kill();
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    expect(proxies.map(({ sessionsMade }) => sessionsMade)).toEqual([2, 1]);
  });

  test("client: opens a session again that is lost during a download, and keeps the received packets", async () => {
    const { proxies, origin } = await build([{ packetEveryMs: 1 }], 200_000, { stallMs: 2000 });
    const download = scene.client.get(`${origin.url}/file`, { mode, connections: 1, allowFallback: false });
    const reader = download.body.getReader();
    const pieces = [];
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
      if (pieces.length === 0) proxies[0]!.kill();
      pieces.push(piece.value);
    }
    const record = await download.record;
    expectWhole({ record, body: Buffer.concat(pieces), error: undefined }, origin.body);
    expect(proxies[0]!.sessionsMade).toBe(2);
    expect(record.grossBytes).toBeLessThan(1.5 * 200_000);
    expect((await fetchAll("file", { mode, connections: 1 })).record.fallback).toBeNull();
  });

  test("client: connects again once to a proxy that is silent for two downloads, and gives it no penalty", async () => {
    const { proxies, origin } = await build([{ muteFirst: true }], 30_000, { firstByteMs: 15_000, stallMs: 15_000 });
    const options = { mode, connections: 1, allowFallback: false };
    for (const outcome of await Promise.all([fetchAll("file", options), fetchAll("file", options)]))
      expectWhole(outcome, origin.body);
    expect(proxies[0]!.sessionsMade).toBe(2);
    expectWhole(await fetchAll("file", options), origin.body);
  });

  test("client: closes the session of a proxy that is dead when its request is given up", async () => {
    const { client, proxies, origin } = await build([{ muteFirst: true }], 30_000, { firstByteMs: 15_000 });
    const download = client.get(`${origin.url}/file`, { mode, connections: 1, allowFallback: false });
    const isOpen = (): boolean => client.live.proxies[0]?.state === "open";
    while (!isOpen()) await new Promise((resolve) => setTimeout(resolve, 10));
    download.abort();
    await download.record;
    while (isOpen()) await new Promise((resolve) => setTimeout(resolve, 10));
    expect(client.live.proxies[0]?.state).toBe("closed");
    expectWhole(await fetchAll("file", { mode, connections: 1, allowFallback: false }), origin.body);
    expect(proxies[0]!.sessionsMade).toBe(2);
  });

  test.each([0, 1000])(
    "client: only the proxy fails that calls a chunk of %i bytes too large",
    async (tooLargeBytes) => {
      const { origin, proxies } = await build([{ tooLargeBytes }, { packetEveryMs: 1 }], 100_000);
      const outcome = await fetchAll("file", { mode, connections: 2 });
      expectWhole(outcome, origin.body);
      expect(outcome.record).toMatchObject({ status: 200, fallback: null });
      const liar = outcome.record.proxies.find(({ id }) => id === proxies[0]!.id);
      expect(liar).toMatchObject({
        state: "failed",
        error: { kind: "proxyFailed", message: expect.stringMatching(/^The proxy found a chunk too large/) },
      });
    },
  );

  test("client: tries again with a new connection if a connection fails", async () => {
    const { proxies, origin } = await build([{ refuseSessions: 2 }], 30_000);
    const outcome = await fetchAll("file", { mode, connections: 1 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    expect(proxies[0]!.sessionsMade).toBe(1);
  });

  test("client: uses HTTP through the same proxies if no session opens, and records that", async () => {
    const { origin, proxies, client } = await build([{ refuseSessions: 99 }, { refuseSessions: 99 }], 300_000, {
      sessionMs: 200,
      firstByteMs: 8000,
      stallMs: 5000,
    });
    const first = await fetchAll("file", { mode, connections: 2 });
    expectWhole(first, origin.body);
    expect(first.record.fallback).toEqual({
      kind: "noTransport",
      message: expect.stringMatching(/^No session to any of 2 proxies/),
      bytes: 0,
    });
    expect(first.record.proxies.reduce((sum, { bytes }) => sum + bytes, 0)).toBeGreaterThanOrEqual(300_000);
    const second = await fetchAll("file", { mode, connections: 2 });
    expectWhole(second, origin.body);
    expect(second.record.fallback).toEqual({
      kind: "noTransport",
      message: expect.stringMatching(/ as a moment ago/),
      bytes: 0,
    });
    expect(second.record.proxies).toHaveLength(2);
    expect(proxies.map(({ sessionsMade }) => sessionsMade)).toEqual([0, 0]);
    expect(client.live.fallbacks).toBe(2);
  });

  test("client: fails with noTransport if no session opens and no fallback is allowed", async () => {
    await build([{ refuseSessions: 99 }], 30_000, { sessionMs: 200 });
    const { record } = await fetchAll("file", { mode, connections: 1, allowFallback: false });
    expect(record).toMatchObject({ outcome: "failed", error: { kind: "noTransport" } });
  });

  test("client: without a fallback the sessions get as much time as the caller gives", async () => {
    const { origin } = await build([{ openAfterMs: 600 }], 30_000, { sessionMs: 100, connectTimeoutMs: 30_000 });
    const options = { mode, connections: 1, allowFallback: false, timeoutMs: 30_000 } as const;
    expectWhole(await fetchAll("file", options), origin.body);
  });

  test("client: uses HTTP through the proxies if no session opens and allowFallback is proxies", async () => {
    const { origin } = await build([{ refuseSessions: 99 }], 30_000, { sessionMs: 200 });
    const outcome = await fetchAll("file", { mode, connections: 1, allowFallback: "proxies" });
    expectWhole(outcome, origin.body);
    expect(outcome.record.proxies[0]?.bytes).toBeGreaterThanOrEqual(30_000);
  });

  test("client: completes two hundred downloads at once", async () => {
    const { origin } = await build([{}, {}], 3000, { firstByteMs: 20_000 });
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => fetchAll("file", { mode, connections: 2 })));
    for (const outcome of outcomes) {
      expectWhole(outcome, origin.body);
      expect(outcome.record.fallback).toBeNull();
    }
  });

  test("client: falls back if the engine crashes, and the next download gets a new engine", async () => {
    const { origin, client, bench } = await build([{ packetEveryMs: 2 }], 300_000);
    const download = client.get(`${origin.url}/file`, { mode, connections: 1 });
    const reader = download.body.getReader();
    const { value: first } = await reader.read();
    reader.releaseLock();
    bench.crashEngine();
    expect(Buffer.compare(Buffer.concat([first!, await readAll(download.body)]), origin.body)).toBe(0);
    const record = await download.record;
    expect(record).toMatchObject({ outcome: "complete", fallback: { kind: "engineFailed" } });
    expect([null, sha256Of(origin.body)]).toContain(record.sha256);
    expect((await fetchAll("file", { mode, connections: 1, range: { start: 0, end: 99 } })).record.fallback).toBeNull();
  });
});
