/**
 * The sample's player pages in a real Chromium with the extension, with four proxies and in every mode. Every byte is
 * compared with the files.
 */
import { setTimeout as pause } from "node:timers/promises";
import { carryFaults, isByBrowser, openBrowser, segmentMismatch, startFleet, type Fleet } from "@tributary/lab-stack";
import { loadNativeTransport } from "@tributary/native-transport";
import { accessLog, eventually, faults, getJson, past, playPage } from "./support";

/**
 * The proxies' coders. A slowed CPU coder stands in for a GPU. With the plain engine, coders are cheaper for a proxy's
 * event loop than coding on it.
 */
const CODERS: readonly Record<string, string>[] = [
  { TRIBUTARY_CODER: "auto" },
  { TRIBUTARY_CODER: "cpu" },
  { TRIBUTARY_CODER: "gpu", TRIBUTARY_GPU: "stand-in", TRIBUTARY_ENGINE: "scalar" },
  { TRIBUTARY_CODER: "both", TRIBUTARY_GPU: "stand-in", TRIBUTARY_ENGINE: "scalar" },
];

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 4, ports: "any", proxyEnv: (index) => CODERS[index]! });
});
afterAll(() => fleet.stop());

/**
 * On a slow machine the site may answer before the proxies, which is no fault. `carryFaults` still wants a third of the
 * segments from the proxies.
 */
async function faultsOf(played: Awaited<ReturnType<typeof playPage>>, mode: string): Promise<string[]> {
  const { state, startedMs, records } = played;
  const all = carryFaults(state.segments, records, await accessLog(fleet, startedMs), mode);
  return all.filter((fault) => !fault.endsWith("the site answered before the proxies"));
}

/** The first test, because sessions of the others stay open for a while. */
test("a page with a video gets its port before it plays, and sessions once it asks for a manifest", async () => {
  const sessions = async (): Promise<number> => {
    const health = await Promise.all(fleet.proxies.map(({ url }) => getJson<{ sessions: number }>(`${url}/healthz`)));
    return health.reduce((sum, { sessions: own }) => sum + own, 0);
  };
  const open = await openBrowser({
    headless: true,
    defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 4 },
  });
  try {
    const page = await open.browser.newPage();
    await page.setRequestInterception(true);
    page.on(
      "request",
      (request) =>
        void (request.url().endsWith("/still.html")
          ? request.respond({ contentType: "text/html", body: "<!doctype html><video></video>" })
          : request.continue()),
    );
    const isThere = (): boolean => open.browser.targets().some((target) => target.url().endsWith("/transport.html"));
    await page.goto(fleet.sample.url);
    await pause(1000);
    expect(isThere()).toBe(false);
    await page.goto(`${fleet.sample.url}/still.html`);
    await eventually(isThere, Boolean);
    await pause(1000);
    expect([isThere(), await sessions()]).toEqual([true, 0]);
    await page.evaluate("fetch('/none.m3u8').then(() => undefined)");
    expect(await eventually(sessions, (count) => count === 4)).toBe(4);
  } finally {
    await open.close();
  }
});

describe.each(["hls", "dash", "shaka"])("%s page", (name) => {
  test("plays to its end in coded-mutp with right bytes, after a comparison through the proxies", async () => {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded-mutp", connections: 4 };
    const { state, startedMs, records } = await playPage({
      url: `${fleet.sample.url}/${name}.html`,
      defaults,
      playbackRate: 4,
      recordsAt: fleet,
    });
    expect(state.errors).toEqual([]);
    expect(state.ended).toBe(true);
    expect(state.segments.length).toBeGreaterThanOrEqual(26);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    expect(await faultsOf({ state, startedMs, records }, "coded-mutp")).toEqual([]);
    expect(
      new Set(records.flatMap((record) => record.proxies.filter((proxy) => proxy.bytes > 0).map((proxy) => proxy.name)))
        .size,
    ).toBe(4);
  });
});

describe.each(["webtransport", "webrtc"] as const)("transport %s", (transport) => {
  const isThere = transport === "webrtc" || loadNativeTransport().native !== undefined;
  (isThere ? test : test.skip)("hls page: segments come through the proxies over it, byte for byte right", async () => {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 4, transport };
    const { state, startedMs, records } = await playPage({
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      playbackRate: 4,
      until: past(10),
      recordsAt: fleet,
    });
    expect(state.errors).toEqual([]);
    expect(state.currentTime).toBeGreaterThanOrEqual(10);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    expect(await faultsOf({ state, startedMs, records }, "coded")).toEqual([]);
    expect(
      new Set(
        records.flatMap((record) => record.proxies.filter(({ bytes }) => bytes > 0).map((proxy) => proxy.transport)),
      ),
    ).toEqual(new Set([transport]));
  });
});

test("the plain page plays to its end", async () => {
  const defaults = { origoUrl: fleet.origo.url, mode: "coded-mutp", connections: 4 };
  const { state } = await playPage({ url: `${fleet.sample.url}/plain.html`, defaults, playbackRate: 4 });
  expect(state.errors).toEqual([]);
  expect(state.ended).toBe(true);
  expect(state.currentTime).toBeCloseTo(24, 0);
});

describe.each(["uncoded-mutp", "parallel-http"])("mode %s", (mode) => {
  test("segments of the hls page come through the proxies with right bytes", async () => {
    const defaults = { origoUrl: fleet.origo.url, mode, connections: 4 };
    const { state, startedMs, records } = await playPage({
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      playbackRate: 4,
      until: past(10),
      recordsAt: fleet,
    });
    expect(state.errors).toEqual([]);
    expect(state.currentTime).toBeGreaterThanOrEqual(10);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    expect(await faultsOf({ state, startedMs, records }, mode)).toEqual([]);
  });
});

test("in mode direct the hls page plays without a proxy", async () => {
  const defaults = { origoUrl: fleet.origo.url, mode: "direct", connections: 4 };
  const { state, startedMs } = await playPage({
    url: `${fleet.sample.url}/hls.html`,
    defaults,
    playbackRate: 4,
    until: past(6),
  });
  expect(state.errors).toEqual([]);
  expect(state.currentTime).toBeGreaterThanOrEqual(6);
  expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
  const media = (await accessLog(fleet, startedMs)).filter((entry) => entry.path.endsWith(".m4s"));
  expect(media.length).toBeGreaterThan(0);
  expect(media.filter((entry) => !isByBrowser(entry))).toEqual([]);
});

/** The last test: what the proxies coded for all pages before. */
test("the pages' coded packets came from each setting of the coders", async () => {
  const seen = await Promise.all(
    fleet.proxies.map(async ({ url }) => {
      const metrics = await (await fetch(`${url}/metrics`)).text();
      const value = (name: string): number => Number(metrics.split(`\n${name} `)[1]?.split("\n")[0]);
      const symbols = (what: string): number => value(`tributary_coder_symbols_total{what="${what}"}`);
      return {
        coders: value("tributary_coders"),
        isSent: symbols("sent") > 0,
        byCoders: symbols("service") > 0,
        failed: value('tributary_coder_tasks_total{outcome="failed"}'),
      };
    }),
  );
  const sound = { isSent: true, failed: 0 };
  expect(seen).toMatchObject([
    { ...sound, coders: 1 },
    { ...sound, coders: 1 },
    { ...sound, coders: 2, byCoders: true },
    { ...sound, coders: 2, byCoders: true },
  ]);
});
