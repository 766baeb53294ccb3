/** The extension in Firefox, where the transport is in the page's frame. Every byte is compared with the files. */
import { FIREFOX_UUID, mediaFetchedByBrowser, segmentMismatch, startFleet } from "@tributary/lab-stack";
import type { Browser, Page } from "puppeteer-core";
import { accessLog, eventually, faults, past, playPage } from "./support";

/** How many proxies the popup shows as connected. */
const CONNECTED =
  '[...document.querySelectorAll(".stream .state")].filter(({ textContent }) => textContent === "connected").length';

test("Firefox: the hls page plays to its end through four proxies with right bytes", async () => {
  const fleet = await startFleet({ proxyCount: 4, ports: "any" });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 4 };
    const { state, startedMs } = await playPage({
      browser: "firefox",
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      playbackRate: 4,
    });
    expect(state.errors).toEqual([]);
    expect(state.ended).toBe(true);
    expect(state.segments.length).toBeGreaterThanOrEqual(26);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
    const direct = mediaFetchedByBrowser(await accessLog(fleet, startedMs));
    expect(direct.length).toBeLessThan(state.segments.length / 2);
  } finally {
    await fleet.stop();
  }
});

test("Firefox: the page plays on directly when all proxies are killed, and the popup tells it", async () => {
  const fleet = await startFleet({ proxyCount: 2, ports: "any", rateBytesPerSec: 300_000 });
  try {
    const defaults = { origoUrl: fleet.origo.url, mode: "coded", connections: 2 };
    let popup: Page | undefined;
    let [killedMs, goneMs] = [Infinity, Infinity];
    const connected = async (): Promise<unknown> => popup?.evaluate(CONNECTED);
    const act = async (browser: Browser): Promise<void> => {
      const [page] = await browser.pages();
      popup = await browser.newPage();
      // No end of loading is told of such a page.
      void popup.goto(`moz-extension://${FIREFOX_UUID}/popup.html`).catch(() => undefined);
      await eventually(connected, (count) => count === 2, 30);
      await page?.bringToFront();
      await Promise.all(fleet.proxies.map((proxy) => proxy.kill()));
      killedMs = Date.now();
    };
    const isGone = async (): Promise<boolean> => {
      if (goneMs === Infinity && (await connected()) === 0) goneMs = Date.now();
      return goneMs < Infinity;
    };
    const { state } = await playPage({
      browser: "firefox",
      url: `${fleet.sample.url}/hls.html`,
      defaults,
      playbackRate: 4,
      during: { atSecond: 2, act },
      // The player held 10 s and whole segments.
      until: async (now) => (await isGone()) && past(16)(now),
    });
    // Firefox itself notices a dead proxy after 30 s.
    expect(goneMs - killedMs).toBeLessThan(20_000);
    expect(past(16)(state)).toBe(true);
    expect(faults(state.segments.map((segment) => segmentMismatch(segment)))).toEqual([]);
  } finally {
    await fleet.stop();
  }
});
