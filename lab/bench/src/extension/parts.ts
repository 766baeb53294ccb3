/** The parts of the extension bench. Each measures real browsers with the extension and without it. */
import { statSync } from "node:fs";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { Browser, Page } from "puppeteer-core";
import { builtExtensionDir, startFleet, type ExtensionDefaults, type Fleet } from "@tributary/lab-stack";
import { median, quantile } from "../kit/figures";
import { atMost, type Figure } from "../kit/verdict";
import { askWorker, memoryBytes, scriptMs } from "./browser-cost";
import { estimates, PLAYERS } from "./estimates";
import { inChromium, playTo } from "./play";
import { tabs } from "./tabs";

export interface Part {
  name: string;
  /** Whether it runs unless other parts are named. */
  isUsual: boolean;
  run(quick: boolean): Promise<Figure[]>;
}

const PROXIES = 4;
/** Of each proxy: the sample's best quality plays over four of them. */
const RATE_BYTES_PER_SEC = 150_000;
const SETTLED_SEC = 12;

export const PARTS: readonly Part[] = [
  ...PLAYERS.map((player) => ({
    name: `estimates ${player.name}`,
    isUsual: false,
    run: (quick: boolean) => estimates(player, quick ? 1 : 3),
  })),
  { name: "path", isUsual: true, run: (quick) => withFleet(0, (fleet) => pathLatency(fleet, quick ? 30 : 120)) },
  { name: "idle", isUsual: false, run: () => withFleet(0, idle) },
  {
    name: "memory",
    isUsual: true,
    run: (quick) => withFleet(RATE_BYTES_PER_SEC, (fleet) => memory(fleet, quick ? 1 : 3)),
  },
  ...(["chromium", "firefox"] as const).map((name) => ({
    name: `tabs ${name}`,
    isUsual: true,
    run: (quick: boolean) => withFleet(0, (fleet) => tabs(fleet, defaultsOf(fleet), name, quick ? 1 : 2)),
  })),
  { name: "scripts", isUsual: true, run: (quick) => withFleet(0, (fleet) => scripts(fleet, quick ? 5 : 20)) },
];

async function withFleet(rateBytesPerSec: number, run: (fleet: Fleet) => Promise<Figure[]>): Promise<Figure[]> {
  const fleet = await startFleet({ proxyCount: PROXIES, ports: "any", rateBytesPerSec });
  try {
    return await run(fleet);
  } finally {
    await fleet.stop();
  }
}

const defaultsOf = ({ origo }: Fleet): ExtensionDefaults => ({
  origoUrl: origo.url,
  mode: "coded",
  connections: PROXIES,
});

/**
 * A page's fetch from a server on this machine, through a stand-in transport that fetches it in turn, less the same
 * without.
 */
async function pathLatency(fleet: Fleet, runs: number): Promise<Figure[]> {
  const sizes = [
    [65_536, 5],
    [2 * 1024 * 1024, 10],
  ] as const;
  return inChromium({ defaults: defaultsOf(fleet), build: "transparency" }, (extended) =>
    inChromium({}, async (plain) => {
      const pages = await Promise.all(
        [extended, plain].map(async (browser) => {
          const page = await browser.newPage();
          await page.goto(fleet.sample.url);
          return page;
        }),
      );
      const rows: Figure[] = [];
      for (const [bytes, limit] of sizes) {
        const times: [number[], number[]] = [[], []];
        for (let round = 0; round < 6; round++)
          for (const [index, page] of pages.entries())
            times[index]?.push(...(await fetchTimes(page, bytes, Math.ceil(runs / 6))));
        const [over, without] = times.map((each) => each.slice(Math.ceil(runs / 6)));
        const added = median(over ?? []) - median(without ?? []);
        rows.push(
          atMost(`added latency, ${bytes.toLocaleString("en")} B`, added, [limit], {
            unit: " ms",
            note:
              `${median(over ?? []).toFixed(1)} ms with, ${median(without ?? []).toFixed(1)} ms without; 95 ` +
              `%: ${quantile(over ?? [], 0.95).toFixed(1)} and ${quantile(without ?? [], 0.95).toFixed(1)} ms`,
          }),
        );
      }
      return rows;
    }),
  );
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
async function idle(fleet: Fleet): Promise<Figure[]> {
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
    const documents = await askWorker<number>(
      browser,
      "chrome.runtime.getContexts({ contextTypes: ['OFFSCREEN_DOCUMENT'] }).then(({ length }) => length)",
    );
    return [
      atMost("transports (and so connections) on a page without video", documents, [0], {
        note: "offscreen documents; only they hold connections",
      }),
      atMost("work of an idle page", withIt, [], {
        unit: ` ms in ${IDLE_MS / 1000} s`,
        note: `${without.toFixed(1)} ms without the extension`,
      }),
    ];
  });
}

async function memory(fleet: Fleet, runs: number): Promise<Figure[]> {
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
  return [
    atMost("memory added while playing", added, [60], {
      unit: " MB",
      note:
        `proportional set size of all processes: ${(median(over) / 1e6).toFixed(0)} MB with, ` +
        `${(median(without) / 1e6).toFixed(0)} MB without; the extension's own processes: ` +
        `${(median(own.filter((bytes) => bytes > 0)) / 1e6).toFixed(0)} MB`,
    }),
  ];
}

async function scripts(fleet: Fleet, loads: number): Promise<Figure[]> {
  const sizeOf = (name: string): number => statSync(path.join(builtExtensionDir("chromium"), name)).size;
  const times = await inChromium({ defaults: defaultsOf(fleet) }, async (browser) => {
    const page = await browser.newPage();
    const measured: number[] = [];
    for (let load = 0; load < loads; load++) measured.push(await scriptMs(page, fleet.sample.url));
    return measured;
  });
  return [
    atMost("script in every page", (sizeOf("page.js") + sizeOf("content.js")) / 1000, [20], {
      unit: " KB",
      note:
        `minified: page.js ${sizeOf("page.js")} B, content.js ${sizeOf("content.js")} B; carry.js ` +
        `${sizeOf("carry.js")} B at the first media request, plain.js ${sizeOf("plain.js")} B only where a ` +
        "plain video loads",
    }),
    atMost("time at document start", median(times), [5], {
      unit: " ms",
      note: `compiling and running both, of ${loads} loads; most ${Math.max(...times).toFixed(1)} ms`,
    }),
  ];
}
