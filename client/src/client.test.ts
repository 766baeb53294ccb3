import {
  bytesOf,
  createBench,
  Origin,
  Origo,
  readAll,
  sha256Of,
  StandInProxy,
  type Bench,
  type ProxyMoods,
} from "../test/support";
import type { DownloadRecord } from "@tributary/contract/schema";
import { LIMITS, type Codec } from "@tributary/protocol";
import type { GetOptions, Mode } from "./api";
import { ProxyClient } from "./client";
import type { Settings } from "./settings";
import { testCodec } from "../test/codec";

const FAST: Partial<Settings> = {
  firstByteMs: 700,
  stallMs: 500,
  connectTimeoutMs: 400,
  connectBackoffMs: 10,
  closeWaitMs: 400,
};

interface Scene {
  origin: Origin;
  origo: Origo;
  proxies: StandInProxy[];
  bench: Bench;
  client: ProxyClient;
}

let scene: Scene;
let codec: Codec;

beforeAll(async () => {
  codec = await testCodec();
});

async function build(moods: ProxyMoods[], bytes: number, settings: Partial<Settings> = {}): Promise<Scene> {
  const origin = await new Origin(bytesOf(bytes)).start();
  const origo = await new Origo().start();
  const proxies = await Promise.all(moods.map((mood, index) => new StandInProxy(`p${index}`, codec, mood).start()));
  origo.proxies = proxies.map(({ info }) => info);
  const bench = createBench(proxies, codec);
  const client = new ProxyClient({
    origoUrl: origo.url,
    platform: bench.platform,
    source: "library",
    settings: { ...FAST, ...settings },
  });
  scene = { origin, origo, proxies, bench, client };
  return scene;
}

afterEach(async () => {
  await scene.client.close();
  expect(scene.bench.openChannels.size).toBe(0);
  expect(scene.bench.engines.size).toBe(0);
  await Promise.all([scene.origin.stop(), scene.origo.stop(), ...scene.proxies.map((proxy) => proxy.stop())]);
});

interface Outcome {
  record: DownloadRecord;
  body: Uint8Array | undefined;
  error: unknown;
}

async function fetchAll(path: string, options: GetOptions): Promise<Outcome> {
  const download = scene.client.get(`${scene.origin.url}/${path}`, options);
  let body: Uint8Array | undefined;
  let error: unknown;
  await readAll(download.body).then(
    (bytes) => (body = bytes),
    (reason: unknown) => (error = reason),
  );
  return { record: await download.record, body, error };
}

function expectWhole({ record, body }: Outcome, expected: Uint8Array): void {
  expect(record).toMatchObject({ outcome: "complete", netBytes: expected.length, sha256: sha256Of(expected) });
  expect(Buffer.compare(body!, expected)).toBe(0);
  expectSums(record);
}

function expectSums(record: DownloadRecord): void {
  for (const proxy of record.proxies) {
    expect(proxy.packets).toBe(proxy.innovative + proxy.duplicate + proxy.late + proxy.rejected);
  }
  expect(record.grossBytes).toBeGreaterThanOrEqual(record.netBytes);
  expect(record.normalizedGoodput).toBeCloseTo(record.grossBytes > 0 ? record.netBytes / record.grossBytes : 0, 10);
}

const MODES: Mode[] = ["direct", "parallel-http", "split-http", "uncoded-mutp", "coded-mutp"];
const PROXIED: Mode[] = ["parallel-http", "split-http", "uncoded-mutp", "coded-mutp"];

describe.each(MODES)("%s", (mode) => {
  test.each([0, 1, 1100, 300_000])("client: delivers %i bytes as the origin has them", async (bytes) => {
    const { origin } = await build([{}, {}, {}, {}], bytes);
    const outcome = await fetchAll("file", { mode });
    expectWhole(outcome, origin.body);
    expect(outcome.record).toMatchObject({ mode, status: 200, fallback: null, connections: 4 });
    expect(outcome.record.proxies).toHaveLength(mode === "direct" ? 0 : 4);
  });

  test("client: delivers a range, both ends included", async () => {
    const { origin } = await build([{}, {}], 50_000);
    const outcome = await fetchAll("file", { mode, range: { start: 100, end: 20_099 }, connections: 2 });
    expectWhole(outcome, origin.body.subarray(100, 20_100));
    expect(outcome.record).toMatchObject({ status: 206, range: { start: 100, end: 20_099 }, fallback: null });
  });

  test.each([404, 416, 500])("client: hands the origin's status %i on as a result", async (status) => {
    await build([{}, {}], 10);
    const outcome = await fetchAll(`status-${status}`, { mode });
    expectWhole(outcome, Buffer.from(`status ${status}`));
    expect(outcome.record).toMatchObject({ status, fallback: null });
    expect(outcome.record.proxies.filter(({ state }) => state === "failed")).toEqual([]);
  });

  test("client: an abort in the middle ends the body with its reason and leaves nothing open", async () => {
    const { client, origin, proxies, bench } = await build([{ packetEveryMs: 5 }, { packetEveryMs: 5 }], 2_000_000);
    const controller = new AbortController();
    const download = client.get(`${origin.url}/${mode === "direct" ? "stall" : "file"}`, {
      mode,
      signal: controller.signal,
    });
    const reader = download.body.getReader();
    await reader.read();
    controller.abort(new Error("enough seen"));
    await expect(reader.read().then(() => reader.closed)).rejects.toThrow("enough seen");
    const record = await download.record;
    expect(record).toMatchObject({
      outcome: "aborted",
      sha256: null,
      error: { kind: "aborted", message: "enough seen" },
    });
    expectSums(record);
    if (mode.endsWith("mutp")) expect(proxies.map(({ outcomes }) => outcomes)).toEqual([["aborted"], ["aborted"]]);
    for (const engine of bench.engines) expect(engine.openCount).toBe(0);
  });

  test("client: cancelling the body aborts the download", async () => {
    const { client, origin } = await build([{ packetEveryMs: 5 }], 2_000_000);
    const download = client.get(`${origin.url}/${mode === "direct" ? "stall" : "file"}`, { mode });
    const reader = download.body.getReader();
    await reader.read();
    await reader.cancel("seen enough");
    expect(await download.record).toMatchObject({ outcome: "aborted" });
  });

  test("client: an abort before anything has come is an abort", async () => {
    const { client, origin } = await build([{}], 100_000);
    const download = client.get(`${origin.url}/file`, { mode });
    download.abort();
    await expect(download.head).rejects.toMatchObject({ name: "AbortError" });
    expect(await download.record).toMatchObject({ outcome: "aborted", netBytes: 0 });
  });
});

describe.each(PROXIED)("%s", (mode) => {
  test("client: a proxy that dies in the middle costs nothing but its share", async () => {
    const { origin, proxies } = await build(
      [{ dieAfterBytes: mode === "split-http" ? 6000 : 40_000 }, { packetEveryMs: 1 }, { packetEveryMs: 1 }],
      400_000,
    );
    const outcome = await fetchAll("file", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    const dead = outcome.record.proxies.find(({ id }) => id === proxies[0]!.id);
    expect(dead).toMatchObject({ state: "failed" });
  });

  test("client: fetches the rest from the origin when every proxy dies, and says so", async () => {
    const dieAfterBytes = mode === "split-http" ? 6000 : 60_000;
    const { origin, client } = await build([{ dieAfterBytes }, { dieAfterBytes }], 400_000);
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expectWhole(outcome, origin.body);
    const { fallback } = outcome.record;
    expect(fallback!.bytes).toBeGreaterThan(0);
    expect(fallback!.bytes).toBeLessThanOrEqual(origin.body.length);
    expect(fallback!.kind).toMatch(/proxyLost|proxyFailed|bodyShort/);
    expect(client.live.fallbacks).toBe(1);
    expect(client.live.directBytes).toBe(fallback!.bytes);
  });

  test("client: skips what it has when the origin ignores the range of the rest", async () => {
    const { origin } = await build([{ dieAfterBytes: 60_000 }], 200_000);
    const outcome = await fetchAll("no-range", { mode, connections: 1 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback!.bytes).toBe(200_000);
  });

  test("client: does not mix two versions of a resource", async () => {
    const { client, origin } = await build([{ dieAfterBytes: 60_000, packetEveryMs: 1 }], 200_000);
    const download = client.get(`${origin.url}/file`, { mode, connections: 1 });
    await download.head;
    origin.etag = '"two"';
    await expect(readAll(download.body)).rejects.toMatchObject({ kind: "originChanged" });
    expect(await download.record).toMatchObject({ outcome: "failed", error: { kind: "originChanged" }, sha256: null });
  });

  test("client: falls back when nothing comes", async () => {
    const { origin } = await build([{ mute: true }, { mute: true }], 100_000);
    const outcome = await fetchAll("file", { mode });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toMatchObject({ kind: "stalled", bytes: 100_000 });
  });

  test("client: fails with the reason when the fallback is not allowed", async () => {
    await build([{ mute: true }], 100_000);
    const outcome = await fetchAll("file", { mode, allowFallback: false });
    expect(outcome.error).toMatchObject({ kind: "stalled" });
    expect(outcome.record).toMatchObject({ outcome: "failed", error: { kind: "stalled" }, fallback: null });
    expect((await fetchAll("file", { mode, allowFallback: "proxies" })).record).toMatchObject({
      outcome: "failed",
      error: { kind: "stalled" },
    });
  });

  test("client: fails as soon as its caller's patience is over", async () => {
    await build([{ mute: true }], 100_000, { firstByteMs: 60_000 });
    const outcome = await fetchAll("file", { mode, allowFallback: false, patienceMs: 300 });
    expect(outcome.error).toMatchObject({ kind: "stalled" });
  });

  test("client: a proxy with another version of the resource is dropped", async () => {
    const { origin } = await build([{ packetEveryMs: 1 }, { etag: '"other"', packetEveryMs: 1 }], 200_000);
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expect(outcome.record.outcome).toBe("complete");
    expect(Buffer.compare(outcome.body!, origin.body)).toBe(0);
    expect(outcome.record.proxies.filter(({ error }) => error?.kind === "planMismatch")).toHaveLength(1);
  });

  test("client: goes direct when Origo is dead or knows no proxy", async () => {
    const { origin, origo } = await build([], 5000);
    const none = await fetchAll("file", { mode });
    expectWhole(none, origin.body);
    expect(none.record.fallback).toMatchObject({
      kind: "noProxies",
      message: expect.stringMatching(/^Origo knows no live proxy/),
    });
    await origo.stop();
    const dead = await fetchAll("file", { mode });
    expectWhole(dead, origin.body);
    expect(dead.record.fallback).toMatchObject({
      kind: "origoUnreachable",
      message: expect.stringMatching(/^Origo at .* cannot be reached/),
    });
    await origo.start();
  });

  test("client: an origin that breaks its body off is an error, not a short file", async () => {
    await build([{}], 100_000);
    const outcome = await fetchAll("short", { mode });
    expect(outcome.record).toMatchObject({ outcome: "failed", sha256: null });
    expect(outcome.error).toBeInstanceOf(Error);
  });

  test("client: a redirect loop is an error", async () => {
    await build([{}], 100);
    expect((await fetchAll("loop", { mode })).record).toMatchObject({ outcome: "failed", status: 0 });
  });

  test("client: a body of unknown length arrives whole", async () => {
    const { origin } = await build([{}, {}], 100_000);
    const outcome = await fetchAll("no-length", { mode });
    expectWhole(outcome, origin.body);
    if (mode.endsWith("mutp")) expect(outcome.record.fallback!.kind).toBe("lengthUnknown");
  });
});

describe("split-http", () => {
  const mode = "split-http";

  test("client: every proxy brings other bytes, and hardly one twice", async () => {
    const { origin } = await build([{ packetEveryMs: 2 }, { packetEveryMs: 2 }, { packetEveryMs: 2 }], 1_000_000);
    const outcome = await fetchAll("file", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    for (const { bytes } of outcome.record.proxies) expect(bytes).toBeGreaterThan(100_000);
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

  test("client: a proxy that tells of another length is dropped", async () => {
    const { origin } = await build([{ packetEveryMs: 1 }, { totalBytes: 150_000, packetEveryMs: 5 }], 200_000);
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expect(outcome.record.outcome).toBe("complete");
    expect(outcome.record.proxies.filter(({ error }) => error?.kind === "planMismatch")).toHaveLength(1);
    expect([origin.body.length, 150_000]).toContain(outcome.body!.length);
  });

  test("client: an origin without ranges is read once, whole, through one proxy", async () => {
    const { origin } = await build([{}, {}, {}], 300_000);
    const outcome = await fetchAll("no-range", { mode, connections: 3 });
    expectWhole(outcome, origin.body);
    expect(outcome.record).toMatchObject({ status: 200, fallback: null });
  });

  test("client: a reader that takes its time holds the download back, and gets every byte", async () => {
    const settings = { queuedBytesMax: 80_000, chunkBytesMax: 320_000, firstByteMs: 5000, stallMs: 300 };
    const { client, origin } = await build([{}, {}], 1_500_000, settings);
    const download = client.get(`${origin.url}/file`, { mode, connections: 2 });
    await download.head;
    await new Promise((resolve) => setTimeout(resolve, 700));
    expect(client.live.deliveredBytes).toBeLessThan(1_000_000);
    expect(sha256Of(await readAll(download.body))).toBe(sha256Of(origin.body));
    expect((await download.record).fallback).toBeNull();
  });
});

describe.each(["parallel-http", "split-http"] as const)("%s", (mode) => {
  test.each([200, 502])(
    "client: a page with which something in between answers (status %i) is not taken for the origin's",
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

test.each([
  ["direct", "stall", "originSilent"],
  ["parallel-http", "file", "stalled"],
] as const)("client: %s, who falls silent is found out although the reader was behind", async (mode, path, kind) => {
  const settings = { queuedBytesMax: 64_000, directSilenceMs: 300, firstByteMs: 5000, stallMs: 300 };
  const { client, origin } = await build([{ stallAfterBytes: 64_000 }], 128_000, settings);
  const download = client.get(`${origin.url}/${path}`, { mode, connections: 1, allowFallback: false });
  await download.head;
  await new Promise((resolve) => setTimeout(resolve, 200));
  await expect(readAll(download.body)).rejects.toMatchObject({ kind });
});

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

  test("client: innovative packets are as many as the file has symbols", async () => {
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

  test("client: a session that was lost is made again", async () => {
    const { proxies, origin } = await build([{}, {}], 30_000);
    expectWhole(await fetchAll("file", { mode, connections: 2 }), origin.body);
    proxies[0]!.kill();
    const outcome = await fetchAll("file", { mode, connections: 2 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    expect(proxies.map(({ sessionsMade }) => sessionsMade)).toEqual([2, 1]);
  });

  test("client: a session lost in the middle is made again within the download, which keeps what it has", async () => {
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

  test("client: a proxy that falls silent to two downloads is connected to anew once, for both, and is not left alone afterwards", async () => {
    const { proxies, origin } = await build([{ muteFirst: true }], 30_000, { firstByteMs: 15_000, stallMs: 15_000 });
    const options = { mode, connections: 1, allowFallback: false };
    for (const outcome of await Promise.all([fetchAll("file", options), fetchAll("file", options)]))
      expectWhole(outcome, origin.body);
    expect(proxies[0]!.sessionsMade).toBe(2);
    expectWhole(await fetchAll("file", options), origin.body);
  });

  test.each([0, 1000])(
    "client: a proxy that finds a chunk of %i bytes too large fails alone",
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

  test("client: a connect that fails is tried again with a new connection", async () => {
    const { proxies, origin } = await build([{ refuseSessions: 2 }], 30_000);
    const outcome = await fetchAll("file", { mode, connections: 1 });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback).toBeNull();
    expect(proxies[0]!.sessionsMade).toBe(1);
  });

  test("client: where no session can be had the bytes come over HTTP through the same proxies, and the record says so", async () => {
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

  test("client: where no session can be had and no fallback is allowed the download fails and names that", async () => {
    await build([{ refuseSessions: 99 }], 30_000, { sessionMs: 200 });
    const { record } = await fetchAll("file", { mode, connections: 1, allowFallback: false });
    expect(record).toMatchObject({ outcome: "failed", error: { kind: "noTransport" } });
  });

  test("client: where no session can be had and only the proxies may stand in, they do over HTTP", async () => {
    const { origin } = await build([{ refuseSessions: 99 }], 30_000, { sessionMs: 200 });
    const outcome = await fetchAll("file", { mode, connections: 1, allowFallback: "proxies" });
    expectWhole(outcome, origin.body);
    expect(outcome.record.proxies[0]?.bytes).toBeGreaterThanOrEqual(30_000);
  });

  test("client: two hundred downloads at once all arrive", async () => {
    const { origin } = await build([{}, {}], 3000, { firstByteMs: 20_000 });
    const outcomes = await Promise.all(Array.from({ length: 200 }, () => fetchAll("file", { mode, connections: 2 })));
    for (const outcome of outcomes) {
      expectWhole(outcome, origin.body);
      expect(outcome.record.fallback).toBeNull();
    }
  });

  test("client: an engine that crashes costs a fallback, and the next download has a new one", async () => {
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

describe("requests longer than one chunk", () => {
  const SMALL = { chunkBytesMax: 320_000, cutBytes: 80_000, queuedBytesMax: 80_000, firstByteMs: 5000, stallMs: 5000 };
  const MOOD = { chunkBytesMax: 320_000 };

  test.each(["uncoded-mutp", "coded-mutp"] as const)(
    "client: %s cuts them into ranges and joins the bytes in order",
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

  test("client: an origin that gives no ranges is asked directly", async () => {
    const { origin } = await build([MOOD], 400_001, SMALL);
    const outcome = await fetchAll("no-range", { mode: "uncoded-mutp" });
    expectWhole(outcome, origin.body);
    expect(outcome.record.fallback!.kind).toBe("chunkTooLarge");
  });

  test("client: a proxy that tells of a shorter body than there is cuts nothing off", async () => {
    const { origin } = await build([{ ...MOOD, tooLargeBytes: 320_001 }], 400_001, SMALL);
    const outcome = await fetchAll("file", { mode: "uncoded-mutp", connections: 1 });
    expectWhole(outcome, origin.body);
    expect(outcome.record).toMatchObject({ status: 200, totalBytes: 400_001, fallback: null });
  });

  test("client: a slow reader holds the download back (two ranges ahead at most)", async () => {
    const { client, origin } = await build([MOOD], 1_000_000, SMALL);
    const download = client.get(`${origin.url}/file`, { mode: "uncoded-mutp", connections: 1 });
    await download.head;
    await new Promise((resolve) => setTimeout(resolve, 600));
    expect(client.live.deliveredBytes).toBeLessThanOrEqual(3 * 80_000);
    expect(sha256Of(await readAll(download.body))).toBe(sha256Of(origin.body));
  });

  test("client: proxies that die in a later range cost a fallback for the rest", async () => {
    const { origin } = await build([{ ...MOOD, dieAfterBytes: 250_000 }], 400_001, SMALL);
    const outcome = await fetchAll("file", { mode: "uncoded-mutp", connections: 1 });
    expectWhole(outcome, origin.body);
  });
});

describe("arguments and reports", () => {
  test.each([
    ["ftp://example.org/a", {}, /url is not valid: got "ftp:/],
    ["no url", {}, /url is not valid: got "no url"/],
    ["http://user:secret@example.org/", {}, /without user name/],
    ["http://example.org/", { mode: "fast" as Mode }, /mode is not valid: got "fast", allowed: direct, parallel-http/],
    ["http://example.org/", { connections: 0 }, /connections is not valid: got 0, allowed: a whole number 1..32/],
    ["http://example.org/", { connections: 33 }, /got 33/],
    ["http://example.org/", { range: { start: 5, end: 4 } }, /range is not valid: got "5-4"/],
    [
      "http://example.org/",
      { symbolBytes: 1141 },
      /symbolBytes is not valid: got 1141, allowed: a whole number 64..1140/,
    ],
  ])("client: get(%s, %j) throws before any network", async (url, options, message) => {
    const { client, origo } = await build([], 0);
    expect(() => client.get(url, options)).toThrow(TypeError);
    expect(() => client.get(url, options)).toThrow(message);
    expect(origo.requests).toHaveLength(0);
  });

  test("client: reports each download once, without the query of its URL", async () => {
    const { client, origo } = await build([{}], 1000);
    const outcome = await fetchAll("file?token=secret#part", { mode: "uncoded-mutp", comment: "a test" });
    await client.close();
    expect(origo.records).toEqual([JSON.parse(JSON.stringify(outcome.record))]);
    expect(origo.records[0]).toMatchObject({ url: `${scene.origin.url}/file`, comment: "a test" });
    expect(JSON.stringify(origo.records)).not.toContain("secret");
  });

  test("client: without records Origo's list is asked for under an id of this client's own", async () => {
    const { bench, origo } = await build([], 0);
    const clientId = "0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab";
    for (const reportRecords of [true, false]) {
      const client = new ProxyClient({
        origoUrl: origo.url,
        platform: bench.platform,
        source: "library",
        clientId,
        reportRecords,
      });
      await client.proxies();
      await client.close();
    }
    const lists = origo.requests.filter(({ path }) => path.startsWith("/v1/proxies?"));
    expect(lists.map(({ path }) => path.includes(clientId))).toEqual([true, false]);
  });

  test("client: without records nothing is hashed", async () => {
    const { bench, origo, origin } = await build([], 1000);
    const createHasher = (): never => {
      throw new Error("nobody compares the digest");
    };
    const client = new ProxyClient({
      origoUrl: origo.url,
      platform: { ...bench.platform, createHasher },
      source: "library",
      reportRecords: false,
    });
    const download = client.get(`${origin.url}/file`, { mode: "direct" });
    expect(Buffer.compare(await readAll(download.body), origin.body)).toBe(0);
    expect(await download.record).toMatchObject({ outcome: "complete", netBytes: 1000, sha256: null });
    await client.close();
  });

  test("client: live totals add up to the records", async () => {
    const { client } = await build([{}, {}], 50_000);
    const first = await fetchAll("file", { mode: "uncoded-mutp", connections: 2 });
    const second = await fetchAll("file", { mode: "parallel-http", connections: 2 });
    const { live } = client;
    for (const proxy of live.proxies) {
      const bytes = [first, second].flatMap(({ record }) => record.proxies).filter(({ id }) => id === proxy.id);
      expect(proxy.bytes).toBe(bytes.reduce((sum, each) => sum + each.bytes, 0));
    }
    expect(live).toMatchObject({ downloads: 2, deliveredBytes: 100_000, directBytes: 0, fallbacks: 0 });
  });
});
