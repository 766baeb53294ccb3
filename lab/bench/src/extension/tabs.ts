/** Ten tabs that begin to play at once: how long the first segment takes with the extension and without it. */
import type { Page } from "puppeteer-core";
import { openBrowser, type BrowserName, type ExtensionDefaults, type Fleet } from "@tributary/lab-stack";
import { median } from "../kit/figures";
import { atMost, type Figure } from "../kit/verdict";

const TABS = 10;
/** From the order to all tabs until they begin. */
const LEAD_MS = 1500;

export async function tabs(
  fleet: Fleet,
  defaults: ExtensionDefaults,
  name: BrowserName,
  runs: number,
): Promise<Figure[]> {
  const [over, without]: [number[], number[]] = [[], []];
  for (let run = 0; run < runs; run++) {
    over.push(...(await firstSegmentMs(fleet, name, defaults)));
    without.push(...(await firstSegmentMs(fleet, name, undefined)));
  }
  const figureOf = (word: string, of: (ms: number[]) => number): Figure =>
    atMost(`${word} first segment of ${TABS} tabs at once, ${name}`, of(over) / of(without), [2], {
      unit: " times the one without",
      note: `${of(over).toFixed(0)} ms with, ${of(without).toFixed(0)} ms without`,
    });
  return [figureOf("median", median), figureOf("slowest", (ms) => Math.max(...ms))];
}

async function firstSegmentMs(fleet: Fleet, name: BrowserName, defaults?: ExtensionDefaults): Promise<number[]> {
  const open = await openBrowser({ name, headless: true, ...(defaults ? { defaults } : {}) });
  try {
    const pages = await Promise.all(Array.from({ length: TABS }, () => open.newPage()));
    await Promise.all(pages.map((page) => page.goto(fleet.sample.url, { waitUntil: "domcontentloaded" })));
    const atMs = Date.now() + LEAD_MS;
    return await Promise.all(pages.map((page, index) => askAt(page, atMs, index)));
  } finally {
    await open.close();
  }
}

/** The page asks for a list of segments and then for the first one, as a player does. */
async function askAt(page: Page, atMs: number, index: number): Promise<number> {
  return (await page.evaluate(`(async () => {
    await new Promise((resolve) => setTimeout(resolve, ${atMs} - Date.now()));
    const startedMs = performance.now();
    await (await fetch("/media/cmaf/master.m3u8?tab=${index}")).text();
    await (await fetch("/media/cmaf/segment-1-001.m4s?tab=${index}")).arrayBuffer();
    return performance.now() - startedMs;
  })()`)) as number;
}
