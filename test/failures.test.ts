/** Playback goes on when parts of the system fail. Pages play at four times the normal speed. */
import path from "node:path";
import { isByBrowser, recordsSince, segmentMismatch, startFleet, type Fleet } from "@tributary/lab-stack";
import type { Browser } from "puppeteer-core";
import { accessLog, eventually, faults, getJson, past, playPage, type Played, type PlayOptions } from "./support";

let fleet: Fleet;
afterEach(() => fleet.stop());

/** The failure comes at second 2. The player holds 10 s and loads whole segments, so it loads this later. */
const isLongAfter = past(16);

async function play(
  defaults: Omit<PlayOptions["defaults"], "origoUrl"> & { origoUrl?: string },
  options: Pick<PlayOptions, "until" | "during" | "recordsAt">,
): Promise<Played> {
  const url = `${fleet.sample.url}/hls.html`;
  const withOrigo = { origoUrl: fleet.origo.url, ...defaults };
  const played = await playPage({ url, defaults: withOrigo, playbackRate: 4, ...options });
  expect(faults(played.state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
  return played;
}

/** Whether a proxy asked the origin for a segment since `sinceMs`. */
const isProxied = async (sinceMs: number): Promise<boolean> =>
  (await accessLog(fleet, sinceMs)).some((entry) => entry.path.endsWith(".m4s") && !isByBrowser(entry));

test("playback goes on with three proxies and right bytes when one of four is killed", async () => {
  fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: 150_000 });
  let killedMs = Infinity;
  const act = async (): Promise<void> => {
    await fleet.proxies[1]?.kill();
    killedMs = Date.now();
  };
  const carriedLater = async (): Promise<number> =>
    (await recordsSince(fleet, killedMs)).filter(({ proxies }) => proxies.some(({ bytes }) => bytes > 0)).length;
  const { state, records } = await play(
    { mode: "coded-mutp", connections: 4 },
    {
      during: { atSecond: 2, act },
      until: async (now) => isLongAfter(now) && (await carriedLater()) > 1,
      recordsAt: fleet,
    },
  );
  expect(state.errors).toEqual([]);
  expect(isLongAfter(state)).toBe(true);
  expect(await carriedLater()).toBeGreaterThan(1);
  // On a slow machine the site may answer first.
  const later = records.filter((record) => record.startedAtMs >= killedMs);
  expect(later.filter(({ fallback }) => fallback !== null && fallback.kind !== "siteFirst")).toEqual([]);
});

test("the page plays directly when Origo is dead from the start", async () => {
  fleet = await startFleet({ proxyCount: 0, ports: "any" });
  await fleet.origo.kill();
  const { state, startedMs } = await play({ mode: "coded-mutp", connections: 4 }, { until: past(6) });
  expect(state.errors).toEqual([]);
  expect(past(6)(state)).toBe(true);
  expect(await isProxied(startedMs)).toBe(false);
});

test("the page plays on directly when all proxies are killed", async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any", rateBytesPerSec: 300_000 });
  const act = async (): Promise<void> => void (await Promise.all(fleet.proxies.map((proxy) => proxy.kill())));
  const { state } = await play(
    { mode: "coded-mutp", connections: 2 },
    { during: { atSecond: 2, act }, until: isLongAfter },
  );
  expect(isLongAfter(state)).toBe(true);
});

test.each([
  ["Origo dies, through the known proxies", () => fleet.origo.kill()],
  ["the browser stops the extension's contexts, and through proxies again", stopContexts],
])("playback goes on when %s", async (_name, stop) => {
  fleet = await startFleet({ proxyCount: 2, ports: "any", rateBytesPerSec: 300_000 });
  let stoppedMs = Infinity;
  const act = async (browser: Browser): Promise<void> => {
    await stop(browser);
    stoppedMs = Date.now();
  };
  const { state } = await play(
    { mode: "coded", connections: 2 },
    { during: { atSecond: 2, act }, until: async (now) => isLongAfter(now) && (await isProxied(stoppedMs)) },
  );
  expect(state.errors).toEqual([]);
  expect(isLongAfter(state)).toBe(true);
  expect(await isProxied(stoppedMs)).toBe(true);
});

async function stopContexts(browser: Browser): Promise<void> {
  const target = await browser.waitForTarget((candidate) => candidate.type() === "service_worker");
  const worker = await target.worker();
  await worker?.evaluate("chrome.offscreen.closeDocument()");
  await worker?.close();
}

test("the second Origo names the proxies when the first one does not answer", async () => {
  fleet = await startFleet({ proxyCount: 2, ports: "any" });
  const origos = { origoUrl: "http://127.0.0.1:9", otherOrigoUrls: [fleet.origo.url] };
  const beganMs = Date.now();
  const { state } = await play(
    { ...origos, mode: "coded", connections: 2 },
    { until: async (now) => past(6)(now) && (await isProxied(beganMs)) },
  );
  expect(state.errors).toEqual([]);
  expect(past(6)(state)).toBe(true);
  expect(await isProxied(beganMs)).toBe(true);
});

test("wrong bytes from the proxies are not played, the site plays directly, and Origo hears of it", async () => {
  const lying = { NODE_OPTIONS: `--import ${path.join(__dirname, "lying-proxy.mjs")}` };
  fleet = await startFleet({ proxyCount: 2, ports: "any", proxyEnv: () => lying });
  const kinds = async (): Promise<string[]> =>
    (await getJson<{ errors: { kind: string }[] }>(`${fleet.origo.url}/v1/errors`)).errors.map(({ kind }) => kind);
  const { state, startedMs } = await play(
    { mode: "coded", connections: 2 },
    { until: async (now) => past(12)(now) && (await kinds()).includes("wrongBytes") },
  );
  expect(past(12)(state)).toBe(true);
  expect(state.segments.length).toBeGreaterThan(4);
  expect(await isProxied(startedMs)).toBe(true);
  expect(await eventually(kinds, (all) => all.includes("wrongBytes"))).toContain("wrongBytes");
});
