/**
 * The scene for each test of the whole client: an origin, Origo, stand-in proxies and a client that uses them. After
 * each test, a file that imports this one closes the client and checks that nothing stays open.
 */
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Codec } from "@tributary/protocol";
import type { GetOptions, Mode } from "../src/api";
import { ProxyClient } from "../src/client";
import type { Settings } from "../src/settings";
import { testCodec } from "./codec";
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
} from "./support";

/** For proxies that stay silent. */
export const IMPATIENT: Partial<Settings> = { firstByteMs: 700, stallMs: 500 };

/** Failures show soon. The proxies have long for their bytes, because the machine may be busy. */
const FAST: Partial<Settings> = {
  firstByteMs: 20_000,
  stallMs: 20_000,
  connectTimeoutMs: 400,
  connectBackoffMs: 10,
  closeWaitMs: 400,
  retries: 0,
};

export interface Scene {
  origin: Origin;
  origo: Origo;
  proxies: StandInProxy[];
  bench: Bench;
  client: ProxyClient;
}

export let scene: Scene;
let codec: Codec;

beforeAll(async () => {
  codec = await testCodec();
});

/** Starts the origin, Origo and one stand-in proxy for each entry of `moods`, and makes a client for them. */
export async function build(moods: ProxyMoods[], bytes: number, settings: Partial<Settings> = {}): Promise<Scene> {
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

export interface Outcome {
  record: DownloadRecord;
  body: Uint8Array | undefined;
  error: unknown;
}

/** Downloads `path` from the origin and waits for the body and the record. */
export async function fetchAll(path: string, options: GetOptions): Promise<Outcome> {
  const download = scene.client.get(`${scene.origin.url}/${path}`, options);
  let body: Uint8Array | undefined;
  let error: unknown;
  await readAll(download.body).then(
    (bytes) => (body = bytes),
    (reason: unknown) => (error = reason),
  );
  return { record: await download.record, body, error };
}

/** Expects that the download ended well and delivered exactly `expected`. */
export function expectWhole({ record, body }: Outcome, expected: Uint8Array): void {
  expect(record).toMatchObject({ outcome: "complete", netBytes: expected.length, sha256: sha256Of(expected) });
  expect(Buffer.compare(body!, expected)).toBe(0);
  expectSums(record);
}

/** Expects that the record's counts add up. */
export function expectSums(record: DownloadRecord): void {
  for (const proxy of record.proxies) {
    expect(proxy.packets).toBe(proxy.innovative + proxy.duplicate + proxy.late + proxy.rejected);
  }
  expect(record.grossBytes).toBeGreaterThanOrEqual(record.netBytes);
  expect(record.normalizedGoodput).toBeCloseTo(record.grossBytes > 0 ? record.netBytes / record.grossBytes : 0, 10);
}

export const EVERY_MODE: Mode[] = ["direct", "parallel-http", "split-http", "uncoded-mutp", "coded-mutp"];
export const PROXIED_MODES: Mode[] = ["parallel-http", "split-http", "uncoded-mutp", "coded-mutp"];
