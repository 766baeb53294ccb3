/** What is measured of the extension, a part a figure or a few: each in real browsers, against the same without the extension. */
import { statSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Browser, Page } from "puppeteer-core";
import { builtExtensionDir, openBrowser, samplePageState } from "../../browser";
import type { ExtensionDefaults } from "../../browser";
import { startFleet } from "../../fleet";
import type { Fleet } from "../../fleet";
import { recordsSince } from "../../records";
import { median, quantile } from "../statistics";
import { askWorker, memoryBytes, scriptMs } from "./browserCost";

export interface Row {
  what: string;
  got: number;
  unit: string;
  /** The figure to stay at or below; undefined: told for the others' sake. */
  limit?: number;
  /** How it was come by. */
  note: string;
}

export interface Part {
  name: string;
  run(quick: boolean): Promise<Row[]>;
}

const PROXIES = 4;
/** Of each proxy: the sample's best quality plays over four of them. */
const RATE_BYTES_PER_SEC = 150_000;
const SETTLED_SEC = 12;
const PLAY_MS_MAX = 60_000;
const ESTIMATES: readonly [player: string, path: string, bytesPerSec: string][] = [
  ["hls.js", "/hls.html", "samplePlayer.bandwidthEstimate / 8"],
  ["dash.js", "/dash.html", "samplePlayer.getAverageThroughput('video') * 1000 / 8"],
  ["shaka", "/shaka.html", "samplePlayer.getStats().estimatedBandwidth / 8"],
];

export const PARTS: readonly Part[] = [
  { name: "estimates", run: (quick) => withFleet(RATE_BYTES_PER_SEC, (fleet) => estimates(fleet, quick ? 1 : 3)) },
  { name: "path", run: (quick) => withFleet(0, (fleet) => pathLatency(fleet, quick ? 30 : 120)) },
  { name: "idle", run: () => withFleet(0, idle) },
  { name: "memory", run: (quick) => withFleet(RATE_BYTES_PER_SEC, (fleet) => memory(fleet, quick ? 1 : 3)) },
  { name: "scripts", run: (quick) => withFleet(0, (fleet) => scripts(fleet, quick ? 5 : 20)) },
];

async function withFleet(rateBytesPerSec: number, run: (fleet: Fleet) => Promise<Row[]>): Promise<Row[]> {
  const fleet = await startFleet({ proxyCount: PROXIES, ports: "any", rateBytesPerSec });
  try {
    return await run(fleet);
  } finally {
    await fleet.stop();
  }
}

const defaultsOf = (fleet: Fleet): ExtensionDefaults => ({ origoUrl: fleet.origo.url, mode: "coded", connections: PROXIES });

interface With {
  defaults?: ExtensionDefaults;
  build?: string;
}

async function inChromium<Value>({ defaults, build }: With, run: (browser: Browser) => Promise<Value>): Promise<Value> {
  const open = await openBrowser({ headless: true, ...(defaults ? { defaults } : {}), ...(build ? { build } : {}) });
  try {
    return await run(open.browser);
  } finally {
    await open.close();
  }
}

async function playTo(page: Page, seconds: number): Promise<void> {
  for (const deadlineMs = Date.now() + PLAY_MS_MAX; (await samplePageState(page)).currentTime < seconds; await pause(100)) {
    if (Date.now() > deadlineMs) throw new Error(`${page.url()} has not reached ${seconds} s in ${PLAY_MS_MAX / 1000} s`);
  }
}

/**
 * Each player's estimate over proxies, beside its estimate of a direct link that brings bytes at the rate at which the proxies
 * brought them (Chromium's own throttle).
 */
async function estimates(fleet: Fleet, runs: number): Promise<Row[]> {
  const rows: Row[] = [];
  for (const [player, pagePath, expression] of ESTIMATES) {
    const errors: number[] = [];
    for (let run = 0; run < runs; run++) {
      const startedMs = Date.now();
      const over = await inChromium({ defaults: defaultsOf(fleet) }, (browser) => estimateOf(browser, fleet.sample.url + pagePath, expression));
      const rate = await deliveredRate(fleet, startedMs);
      const direct = await inChromium({}, (browser) => estimateOf(browser, fleet.sample.url + pagePath, expression, rate));
      errors.push(100 * (over / direct - 1));
    }
    const error = median(errors);
    rows.push({ what: `${player}: bandwidth estimate, error`, got: Math.abs(error), unit: " %", limit: 10, note: `${error >= 0 ? "above" : "below"} that of a direct link of the same rate; runs: ${errors.map((each) => each.toFixed(1)).join(", ")}` });
  }
  return rows;
}

async function estimateOf(browser: Browser, url: string, expression: string, bytesPerSec?: number): Promise<number> {
  const page = await browser.newPage();
  await page.setCacheEnabled(false);
  if (bytesPerSec !== undefined) await page.emulateNetworkConditions({ download: bytesPerSec, upload: bytesPerSec, latency: 0 });
  await page.goto(url, { waitUntil: "domcontentloaded" });
  await playTo(page, SETTLED_SEC);
  return (await page.evaluate(expression)) as number;
}

/** Bytes a second of the downloads since then that are large enough to tell, by Origo's records. */
async function deliveredRate(fleet: Fleet, sinceMs: number): Promise<number> {
  await pause(1000);
  const large = (await recordsSince(fleet, sinceMs)).filter((record) => record.outcome === "complete" && record.netBytes > 100_000);
  if (large.length === 0) throw new Error("no large segment came through the proxies");
  return median(large.map(({ netBytes, durationMs }) => (1000 * netBytes) / durationMs));
}

/** A page's fetch from a server on this machine, through a stand-in transport that fetches it in turn, less the same without. */
async function pathLatency(fleet: Fleet, runs: number): Promise<Row[]> {
  const sizes = [[65_536, 5], [2 * 1024 * 1024, 10]] as const;
  return inChromium({ defaults: defaultsOf(fleet), build: "transparency" }, (extended) => inChromium({}, async (plain) => {
    const pages = await Promise.all([extended, plain].map(async (browser) => {
      const page = await browser.newPage();
      await page.goto(fleet.sample.url);
      return page;
    }));
    const rows: Row[] = [];
    for (const [bytes, limit] of sizes) {
      const times: [number[], number[]] = [[], []];
      for (let round = 0; round < 6; round++) for (const [index, page] of pages.entries()) times[index]?.push(...(await fetchTimes(page, bytes, Math.ceil(runs / 6))));
      const [over, without] = times.map((each) => each.slice(Math.ceil(runs / 6)));
      const added = median(over ?? []) - median(without ?? []);
      rows.push({ what: `added latency, ${bytes.toLocaleString("en")} B`, got: added, unit: " ms", limit, note: `${median(over ?? []).toFixed(1)} ms with, ${median(without ?? []).toFixed(1)} ms without; 95 %: ${quantile(over ?? [], 0.95).toFixed(1)} and ${quantile(without ?? [], 0.95).toFixed(1)} ms` });
    }
    return rows;
  }));
}

async function fetchTimes(page: Page, bytes: number, count: number): Promise<number[]> {
  return (await page.evaluate(`(async () => {
    const times = [];
    for (let run = 0; run < ${count}; run++) {
      const startedMs = performance.now();
      const body = await (await fetch("/__size/${bytes}.mp4?" + Math.random(), { cache: "no-store" })).arrayBuffer();
      if (body.byteLength !== ${bytes}) throw new Error("got " + body.byteLength + " bytes");
      times.push(performance.now() - startedMs);
    }
    return times;
  })()`)) as number[];
}

const IDLE_MS = 10_000;

/** A page without video: what of the extension is there, and what the page's threads do more than without it. */
async function idle(fleet: Fleet): Promise<Row[]> {
  const busyMs = async (browser: Browser): Promise<number> => {
    const page = await browser.newPage();
    await page.goto(fleet.sample.url);
    await pause(2000);
    const before = (await page.metrics()).TaskDuration ?? 0;
    await pause(IDLE_MS);
    return 1000 * (((await page.metrics()).TaskDuration ?? 0) - before);
  };
  const without = await inChromium({}, busyMs);
  return inChromium({ defaults: defaultsOf(fleet) }, async (browser) => {
    const withIt = await busyMs(browser);
    const documents = await askWorker<number>(browser, "chrome.runtime.getContexts({ contextTypes: ['OFFSCREEN_DOCUMENT'] }).then(({ length }) => length)");
    return [
      { what: "transports (and so connections) on a page without video", got: documents, unit: "", limit: 0, note: "offscreen documents; only they hold connections" },
      { what: "work of an idle page", got: withIt, unit: ` ms in ${IDLE_MS / 1000} s`, note: `${without.toFixed(1)} ms without the extension` },
    ];
  });
}

async function memory(fleet: Fleet, runs: number): Promise<Row[]> {
  const own: number[] = [];
  const playing = async (browser: Browser): Promise<number> => {
    const page = await browser.newPage();
    await page.goto(`${fleet.sample.url}/hls.html`);
    await playTo(page, SETTLED_SEC);
    own.push(memoryBytes(browser, "extensions"));
    return memoryBytes(browser);
  };
  const [over, without]: [number[], number[]] = [[], []];
  for (let run = 0; run < runs; run++) {
    over.push(await inChromium({ defaults: defaultsOf(fleet) }, playing));
    without.push(await inChromium({}, playing));
  }
  const added = (median(over) - median(without)) / 1e6;
  return [{ what: "memory added while playing", got: added, unit: " MB", limit: 60, note: `proportional set size of all processes: ${(median(over) / 1e6).toFixed(0)} MB with, ${(median(without) / 1e6).toFixed(0)} MB without; the extension's own processes: ${(median(own.filter((bytes) => bytes > 0)) / 1e6).toFixed(0)} MB` }];
}

async function scripts(fleet: Fleet, loads: number): Promise<Row[]> {
  const sizeOf = (name: string): number => statSync(path.join(builtExtensionDir("chromium"), name)).size;
  const times = await inChromium({ defaults: defaultsOf(fleet) }, async (browser) => {
    const page = await browser.newPage();
    const measured: number[] = [];
    for (let load = 0; load < loads; load++) measured.push(await scriptMs(page, fleet.sample.url));
    return measured;
  });
  return [
    { what: "script in every page", got: (sizeOf("page.js") + sizeOf("content.js")) / 1000, unit: " KB", limit: 15, note: `minified: page.js ${sizeOf("page.js")} B, content.js ${sizeOf("content.js")} B; carry.js ${sizeOf("carry.js")} B at the first media request, plain.js ${sizeOf("plain.js")} B only where a plain video loads` },
    { what: "time at document start", got: median(times), unit: " ms", limit: 5, note: `compiling and running both, of ${loads} loads; most ${Math.max(...times).toFixed(1)} ms` },
  ];
}
