/** Playback goes on when parts of the system fail. */
import path from "node:path";
import { isByBrowser, segmentMismatch, startFleet, type Fleet } from "@tributary/lab-stack";
import type { Browser } from "puppeteer-core";
import { accessLog, eventually, faults, getJson, past, playPage } from "./support";

test("playback goes on with three proxies and right bytes when one of four is killed", async () => {
  const fleet: Fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: 150_000 });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded-mutp", connections: 4 };
    let killedMs = Infinity;
    const kill = async (): Promise<void> => {
      await fleet.proxies[1]?.kill();
      killedMs = Date.now();
    };
    const { state, records } = await playPage({
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      during: { atSecond: 3, act: kill },
      recordsAt: fleet,
    });
    expect(state.errors).toEqual([]);
    expect(state.ended).toBe(true);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    const later = records.filter((record) => record.startedAtMs >= killedMs);
    expect(later.length).toBeGreaterThan(3);
    // On a slow machine the site may answer first.
    const failed = later.filter(({ fallback }) => fallback !== null && fallback.kind !== "siteFirst");
    expect(failed).toEqual([]);
  } finally {
    await fleet.stop();
  }
});

test("the page plays directly when Origo is dead from the start", async () => {
  const fleet = await startFleet({ proxyCount: 0, ports: "any" });
  try {
    await fleet.origo.kill();
    const defaults = { origoUrl: fleet.origo.url, mode: "coded-mutp", connections: 4 };
    const { state, startedMs } = await playPage({ url: `${fleet.sample.url}/hls.html`, defaults, until: past(6) });
    expect(state.errors).toEqual([]);
    expect(state.currentTime).toBeGreaterThanOrEqual(6);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    const media = (await accessLog(fleet, startedMs)).filter((entry) => entry.path.endsWith(".m4s"));
    expect(media.filter((entry) => !isByBrowser(entry))).toEqual([]);
  } finally {
    await fleet.stop();
  }
});

test("the page plays on directly when all proxies are killed", async () => {
  const fleet = await startFleet({ proxyCount: 2, ports: "any", rateBytesPerSec: 300_000 });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded-mutp", connections: 2 };
    const act = async (): Promise<void> => void (await Promise.all(fleet.proxies.map((proxy) => proxy.kill())));
    const { state } = await playPage({ url: `${fleet.sample.url}/hls.html`, defaults, during: { atSecond: 2, act } });
    expect(state.ended).toBe(true);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
  } finally {
    await fleet.stop();
  }
});

test("playback goes on through the known proxies when Origo dies", async () => {
  const fleet = await startFleet({ proxyCount: 2, ports: "any", rateBytesPerSec: 300_000 });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    let killedMs = Infinity;
    const act = async (): Promise<void> => {
      await fleet.origo.kill();
      killedMs = Date.now();
    };
    const { state } = await playPage({ url: `${fleet.sample.url}/hls.html`, defaults, during: { atSecond: 2, act } });
    expect(state.errors).toEqual([]);
    expect(state.ended).toBe(true);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    const later = (await accessLog(fleet, killedMs)).filter((entry) => entry.path.endsWith(".m4s"));
    expect(later.some((entry) => !isByBrowser(entry))).toBe(true);
  } finally {
    await fleet.stop();
  }
});

test("playback goes on, and through proxies again, when the browser stops the extension's contexts", async () => {
  const fleet = await startFleet({ proxyCount: 2, ports: "any", rateBytesPerSec: 300_000 });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    let stoppedMs = Infinity;
    const act = async (browser: Browser): Promise<void> => {
      const target = await browser.waitForTarget((candidate) => candidate.type() === "service_worker");
      const worker = await target.worker();
      await worker?.evaluate("chrome.offscreen.closeDocument()");
      await worker?.close();
      stoppedMs = Date.now();
    };
    const { state } = await playPage({ url: `${fleet.sample.url}/hls.html`, defaults, during: { atSecond: 2, act } });
    expect(state.errors).toEqual([]);
    expect(state.ended).toBe(true);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    const later = (await accessLog(fleet, stoppedMs)).filter((entry) => entry.path.endsWith(".m4s"));
    expect(later.some((entry) => !isByBrowser(entry))).toBe(true);
  } finally {
    await fleet.stop();
  }
});

test("the second Origo names the proxies when the first one does not answer", async () => {
  const fleet = await startFleet({ proxyCount: 2, ports: "any" });
  try {
    const defaults = {
      origoUrl: "http://127.0.0.1:9",
      otherOrigoUrls: [fleet.origo.url],
      mode: "coded",
      connections: 2,
    };
    const { state, startedMs } = await playPage({
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      until: past(6),
      playbackRate: 2,
    });
    expect(state.errors).toEqual([]);
    expect(state.currentTime).toBeGreaterThanOrEqual(6);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    expect(
      (await accessLog(fleet, startedMs)).some((entry) => entry.path.endsWith(".m4s") && !isByBrowser(entry)),
    ).toBe(true);
  } finally {
    await fleet.stop();
  }
});

test("wrong bytes from the proxies are not played, the site plays directly, and Origo hears of it", async () => {
  const lying = { NODE_OPTIONS: `--import ${path.join(__dirname, "lying-proxy.mjs")}` };
  const fleet = await startFleet({ proxyCount: 2, ports: "any", proxyEnv: () => lying });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    const { state, startedMs } = await playPage({
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      until: past(12),
      playbackRate: 2,
    });
    expect(state.currentTime).toBeGreaterThanOrEqual(12);
    expect(state.segments.length).toBeGreaterThan(4);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    const media = await accessLog(fleet, startedMs);
    expect(media.some((entry) => /\.(m4s|mp4)$/.test(entry.path) && !isByBrowser(entry))).toBe(true);
    const kinds = async (): Promise<string[]> =>
      (await getJson<{ errors: { kind: string }[] }>(`${fleet.origo.url}/v1/errors`)).errors.map(({ kind }) => kind);
    expect(await eventually(kinds, (all) => all.includes("wrongBytes"))).toContain("wrongBytes");
  } finally {
    await fleet.stop();
  }
});
