/**
 * The matrix's players and scenarios. A scenario says what the test does to a page and what the video must reach.
 * main.ts judges the outcome.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Browser, Frame, Page } from "puppeteer-core";
import { FIREFOX_UUID, samplePageState, type BrowserName } from "@tributary/lab-stack";

interface Player {
  name: string;
  path: string;
  /** Script that switches to the lowest quality. Missing if the player has one quality only. */
  lowest?: string;
}

const HLS_LOWEST = "samplePlayer.nextLevel = 0";
export const PLAYERS: readonly Player[] = [
  { name: "hls.js", path: "/hls.html", lowest: HLS_LOWEST },
  { name: "hls.js-fetch", path: "/hls.html?loader=fetch", lowest: HLS_LOWEST },
  { name: "hls.js-noworker", path: "/hls.html?worker=off", lowest: HLS_LOWEST },
  { name: "dash.js", path: "/dash.html", lowest: "samplePlayer.setRepresentationForTypeByIndex('video', 0)" },
  {
    name: "shaka",
    path: "/shaka.html",
    lowest:
      "samplePlayer.configure({abr: {enabled: false}}); " +
      "const tracks = samplePlayer.getVariantTracks().sort((a, b) => a.bandwidth - b.bandwidth); " +
      "samplePlayer.selectVariantTrack(tracks[0])",
  },
  {
    name: "video.js",
    path: "/videojs.html",
    lowest: "[...samplePlayer.qualityLevels()].forEach((level, index) => { level.enabled = index === 0; })",
  },
  { name: "plain", path: "/plain.html" },
];

export interface CellContext {
  browser: Browser;
  browserName: BrowserName;
  url: string;
  player: Player;
  deadlineMs: number;
  newPage(): Promise<Page>;
  /** Reinstalls the extension, as an update does. */
  update(): Promise<void>;
  /** Counts the downloads since `sinceMs` that proxies delivered bytes for. Waits for the first one. */
  carriedSince(sinceMs: number): Promise<number>;
}

export interface Scenario {
  name: string;
  /** The page to open, if it is not the player's own page. */
  path?: (playerPath: string) => string;
  /** The origin must also see requests from the page itself. */
  isDirectAfter?: boolean;
  /**
   * Runs in a private window, where the client may send no record. Proxies delivered the media if they asked the
   * origin or if the page asked for nothing directly.
   */
  isPrivate?: boolean;
  /** Says which players the scenario is for. If missing, it is for all of them. */
  only?: (player: string) => boolean;
  run(context: CellContext): Promise<void>;
}

export const SCENARIOS: readonly Scenario[] = [
  { name: "play", run: async (context) => reach(await opened(context), 4, context) },
  {
    name: "seek",
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 1, context);
      await page.evaluate("document.querySelector('video').currentTime = 16");
      await reach(page, 17, context);
    },
  },
  {
    name: "quality",
    // A plain video has one quality.
    only: (player) => player !== "plain",
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 1, context);
      await page.evaluate(`(() => { ${context.player.lowest ?? ""} })()`);
      await reach(page, 12, context, 3);
    },
  },
  {
    name: "pause",
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 1, context);
      await page.evaluate("document.querySelector('video').pause()");
      await pause(3000);
      await page.evaluate("document.querySelector('video').play()");
      await reach(page, 5, context);
    },
  },
  {
    name: "hidden",
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 1, context);
      // Browsers pause a muted video on a hidden page by themselves.
      await page.evaluate(
        "(() => { const video = document.querySelector('video'); video.muted = false; return video.play(); })()",
      );
      const other = await context.newPage();
      await other.bringToFront();
      await reach(page, 8, context);
    },
  },
  {
    name: "reload",
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 2, context);
      await page.reload({ waitUntil: "domcontentloaded" });
      await reach(page, 3, context);
    },
  },
  {
    name: "spa",
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 1, context);
      await page.evaluate("history.pushState({}, '', '/watch/2')");
      await reach(page, 6, context);
    },
  },
  {
    name: "two-tabs",
    run: async (context) => {
      const pages = [await opened(context), await opened(context)];
      for (const page of pages) await page.bringToFront().then(() => reach(page, 3, context));
    },
  },
  {
    name: "two-in-iframes",
    path: (playerPath) => `/frames.html?${new URLSearchParams({ page: playerPath }).toString()}`,
    run: async (context) => {
      const page = await opened(context);
      await until(context, async () => {
        const times = (await page.evaluate(
          "[...document.querySelectorAll('iframe.player')]" +
            ".map((frame) => frame.contentDocument?.querySelector('video')?.currentTime ?? 0)",
        )) as number[];
        return times.length === 2 && times.every((seconds) => seconds >= 3);
      });
    },
  },
  {
    name: "aes-128",
    path: (playerPath) => withSource(playerPath, "/aes/media.m3u8"),
    // The stream is HLS. The sample's pages play it with hls.js and video.js.
    only: (player) => player.startsWith("hls.js") || player === "video.js",
    run: async (context) => reach(await opened(context), 4, context),
  },
  {
    name: "peertube",
    path: (playerPath) =>
      withSource(playerPath, "/static/streaming-playlists/hls/8c5f2d1e-3b7a-4f60-9c1d-2a4e6b8d0f13/master.m3u8"),
    // The stream is HLS. The sample's pages play it with hls.js and video.js.
    only: (player) => player.startsWith("hls.js") || player === "video.js",
    run: async (context) => reach(await opened(context), 4, context),
  },
  {
    name: "ranges",
    path: (playerPath) => withSource(playerPath, "/ranges/stream.mpd"),
    // The stream is DASH. The scenario `peertube` covers byte ranges in HLS.
    only: (player) => player === "dash.js" || player === "shaka",
    run: async (context) => reach(await opened(context), 6, context),
  },
  {
    name: "live",
    path: (playerPath) =>
      withSource(playerPath, /dash|shaka/.test(playerPath) ? "/live/stream.mpd" : "/live/master.m3u8"),
    // A plain video is a file, so it cannot be live.
    only: (player) => player !== "plain",
    run: async (context) => advance(await opened(context), 5, context),
  },
  {
    name: "low-latency",
    path: (playerPath) => withSource(playerPath, "/live/low-latency.m3u8"),
    // The stream is low-latency HLS with parts of a quarter of a second. Only hls.js plays it.
    only: (player) => player.startsWith("hls.js"),
    isDirectAfter: true,
    run: async (context) => advance(await opened(context), 5, context),
  },
  {
    name: "turned-off",
    isDirectAfter: true,
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 2, context);
      const turn = await switchOf(page, context);
      await turn(false);
      try {
        await reach(page, 14, context, 3);
      } finally {
        await turn(true);
      }
    },
  },
  {
    name: "updated",
    isDirectAfter: true,
    run: async (context) => {
      const page = await opened(context);
      await reach(page, 2, context);
      await context.update();
      await reach(page, 14, context, 3);
      const updatedMs = Date.now();
      await reach(await opened(context), 2, context);
      if ((await context.carriedSince(updatedMs)) === 0)
        throw new Error("proxies delivered nothing to a page that was opened after the update");
    },
  },
  {
    name: "private",
    isPrivate: true,
    // The loader of a plain video always asks the origin. A proxy that has the file does not. The query makes the file
    // new to every proxy.
    path: (playerPath) =>
      playerPath === "/plain.html"
        ? withSource(playerPath, encodeURIComponent(`/media/progressive.mp4?at=${Date.now()}`))
        : playerPath,
    run: async (context) => reach(await opened(context), 4, context),
  },
];

/** CI plays these cells. They cover every player, every kind of stream and both browsers in two minutes at most. */
export const SHORT: readonly string[] = [
  "chromium hls.js-fetch play",
  "chromium hls.js-noworker seek",
  "chromium dash.js quality",
  "chromium video.js play",
  "chromium shaka two-in-iframes",
  "chromium hls.js aes-128",
  "chromium hls.js turned-off",
  "chromium hls.js updated",
  "firefox hls.js private",
  "chromium hls.js low-latency",
  "chromium shaka live",
  "chromium plain seek",
  "firefox hls.js peertube",
  "firefox shaka play",
  "firefox dash.js seek",
  "firefox plain play",
];

export function applies(player: string, scenario: string): boolean {
  return SCENARIOS.find(({ name }) => name === scenario)?.only?.(player) ?? true;
}

function withSource(playerPath: string, source: string): string {
  return `${playerPath}${playerPath.includes("?") ? "&" : "?"}source=${source}`;
}

async function opened(context: CellContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(context.url, { waitUntil: "domcontentloaded" });
  return page;
}

/** Waits until the playhead has passed `seconds`. */
async function reach(page: Page, seconds: number, context: CellContext, playbackRate = 1): Promise<void> {
  await page.evaluate(`document.querySelector("video").playbackRate = ${playbackRate}`);
  let last = "";
  await until(context, async () => {
    const { currentTime, errors } = await samplePageState(page);
    last = `at ${currentTime.toFixed(1)} s of ${seconds} s${errors.length > 0 ? `, ${errors[0]}` : ""}`;
    return currentTime >= seconds;
  }).catch(() => Promise.reject(new Error(last)));
}

/** Waits until a live stream has played for `seconds`, counted from the position where it began. */
async function advance(page: Page, seconds: number, context: CellContext): Promise<void> {
  let begun = 0;
  await until(context, async () => {
    begun = (await samplePageState(page)).currentTime;
    return begun > 0;
  });
  await reach(page, begun + seconds, context);
}

async function until(context: CellContext, isTrue: () => Promise<boolean>): Promise<void> {
  while (!(await isTrue())) {
    if (Date.now() > context.deadlineMs) throw new Error("the page was too slow");
    await pause(100);
  }
}

/** Turns the extension off and on as the popup does. */
async function switchOf(page: Page, context: CellContext): Promise<(enabled: boolean) => Promise<void>> {
  const { browser, browserName } = context;
  const place =
    browserName === "chromium"
      ? await (await browser.waitForTarget((target) => target.type() === "service_worker")).worker()
      : await ownFrame(page, context);
  return async (enabled) =>
    void (await place?.evaluate(`chrome.storage.local.set({ enabled: ${enabled} }).then(() => true)`));
}

/**
 * Adds a frame of the extension to the page, for Firefox. The extension removes its own frame when it is turned off, so
 * the test needs another one.
 */
async function ownFrame(page: Page, context: CellContext): Promise<Frame> {
  const before = new Set(page.frames());
  const src = `moz-extension://${FIREFOX_UUID}/frame.html`;
  await page.evaluate(
    `document.body.append(Object.assign(document.createElement("iframe"), { src: "${src}", hidden: true }))`,
  );
  let made: Frame | undefined;
  await until(context, async () => {
    made = page.frames().find((frame) => !before.has(frame));
    return (await made?.evaluate("typeof globalThis.chrome?.storage?.local").catch(() => "")) === "object";
  });
  return made!;
}
