/** Soak: plays a live stream for many minutes. Every 30 s a proxy is killed, and it returns 10 s later. */
import { setTimeout as pause } from "node:timers/promises";
import type { Browser, Page } from "puppeteer-core";
import { openBrowser, samplePageState, startFleet } from "@tributary/lab-stack";
import { memoryBytes } from "./browser-cost";
import type { Row } from "./play";

const KILL_EVERY_MS = 30_000;
const AWAY_MS = 10_000;
/** Garbage between two readings. */
const NOISE_MB = 5;

const COUNT_STALLS = `(() => {
  const video = document.querySelector("video");
  window.stalls = 0;
  const begin = () => video.addEventListener("waiting", () => { window.stalls += 1; });
  video.addEventListener("playing", begin, { once: true });
})()`;

export async function soak(minutes: number, print: (line: string) => void): Promise<Row[]> {
  const fleet = await startFleet({ proxyCount: 4, ports: "any", rateBytesPerSec: 150_000 });
  const open = await openBrowser({
    headless: true,
    defaults: { origoUrl: fleet.origo.url, mode: "coded", connections: 4 },
  });
  const plain = await openBrowser({ headless: true });
  try {
    const pages = await Promise.all([open, plain].map(({ browser }) => playLive(browser, fleet.sample.url)));
    const untilMs = Date.now() + 60_000 * minutes;
    /** MB of the extension's own processes; of the page's there is more or less at any time, with and without it. */
    const memory: number[] = [];
    const all = (): number[] => [open, plain].map(({ browser }) => Math.round(memoryBytes(browser) / 1e6));
    for (let round = 0; Date.now() < untilMs; round++) {
      await pause(KILL_EVERY_MS - AWAY_MS);
      await fleet.proxies[round % fleet.proxies.length]?.kill();
      await pause(AWAY_MS);
      await fleet.restart(round % fleet.proxies.length);
      memory.push(memoryBytes(open.browser, "extensions") / 1e6);
      const states = await Promise.all(
        pages.map((page) => page.evaluate("[document.querySelector('video').currentTime, window.stalls]")),
      );
      print(
        `  ${((round + 1) * KILL_EVERY_MS) / 1000} s: at ${JSON.stringify(states)}, ` +
          `${memory.at(-1)?.toFixed(0)} MB of the extension, ${all().join(" and ")} MB in all`,
      );
    }
    const [over, without] = await Promise.all(pages.map((page) => page.evaluate("window.stalls") as Promise<number>));
    const { errors } = await samplePageState(pages[0] as Page);
    const half = Math.floor(memory.length / 2);
    const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
    return [
      {
        what: `stalls in ${minutes} min of live HLS, a proxy killed every 30 s`,
        got: over ?? NaN,
        unit: "",
        limit: without ?? 0,
        note:
          `${without} without the extension, beside it; player's errors: ` +
          `${errors.length === 0 ? "none" : errors.slice(0, 3).join(", ")}`,
      },
      {
        what: "growth of the extension's processes, second half over first",
        got: mean(memory.slice(half)) - mean(memory.slice(0, half)),
        unit: " MB",
        limit: NOISE_MB,
        note:
          `from ${memory[0]?.toFixed(0)} MB to ${memory.at(-1)?.toFixed(0)} MB; all processes at the end: ` +
          `${all().join(" MB with, ")} MB without`,
      },
    ];
  } finally {
    await Promise.all([open.close(), plain.close()]);
    await fleet.stop();
  }
}

async function playLive(browser: Browser, url: string): Promise<Page> {
  const page = await browser.newPage();
  await page.goto(`${url}/hls.html?source=/live/master.m3u8`, { waitUntil: "domcontentloaded" });
  await page.evaluate(COUNT_STALLS);
  return page;
}
