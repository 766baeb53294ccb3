/**
 * One set of links with the services on them. Each play has a new Chromium with the extension, and a video that nobody
 * has fetched before. bench.ts has the order of plays, rows.ts the statistics.
 */
import { createHash } from "node:crypto";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Page } from "puppeteer-core";
import { recordsOnLinks, startLinks, type Links } from "@tributary/lab-links";
import {
  findChromium,
  LONG_LEVELS,
  LongVideo,
  mediaDir,
  openBrowser,
  samplePageState,
  type SamplePageState,
} from "@tributary/lab-stack";
import { LoadWatch, watchIdleShare, type Load } from "../kit/machine";
import type { Sitting } from "../kit/sitting";
import { videoScenario } from "./boxes";
import type { VideoBox, VideoLinks } from "./boxes";
import { seenOf } from "./events";
import type { PlayEvent, Seen } from "./events";
import { READ_WATCH, WATCH } from "./watch";

/** One play as it is kept. */
export interface Play extends Seen {
  sitting: Sitting;
  box: string;
  play: number;
  seconds: number;
  /** Played to its end, and every segment had the right bytes. */
  ok: boolean;
  /** What was wrong, in the player's words or ours. */
  problems: readonly string[];
  segments: Segments;
  /** Sizes of all segments that the player got, with init segments. */
  segmentBytes: readonly number[];
  /** How long the page waited for the first init segment and the first media segment. */
  initMs: number | null;
  firstSegmentMs: number | null;
  /** Bytes of the video over bytes that came from proxies. null: none came. */
  normalizedGoodput: number | null;
  kills: number;
  /** Idle share of all cores' time, in the whole play and from the player's start to the first frame. */
  idleShare: number;
  startIdleShare: number;
  /** Share of the start-up in which a program waited for a processor. null: the kernel does not count it. */
  startWaitShare: number | null;
  /** How late the emulator handed packets over (99 %). */
  lateUs: number;
}

/** Counts of the player's segments. It gave up `aborted` ones and got them again in another quality. */
export interface Segments {
  got: number;
  carried: number;
  fellBack: number;
  direct: number;
  aborted: number;
  wrong: number;
}

const POLL_MS = 250;
/** After this time the browser has started and the extension has read its settings. */
const SETTLE_MS = 1500;
/** A play may take this much longer than its video. */
const LONGER_MS_MAX = 60_000;
const RECORDS_MS_MAX = 6000;
const SEGMENT = /\/segment-(\d)-(\d+)\.m4s$/;

export async function startStage(spec: VideoLinks): Promise<Stage> {
  return new Stage(await startLinks(videoScenario(spec)), spec);
}

export class Stage {
  readonly #video = new LongVideo(path.join(mediaDir, "cmaf"));
  readonly #digests = new Map<string, string>();

  readonly #links: Links;
  readonly #spec: VideoLinks;

  constructor(links: Links, spec: VideoLinks) {
    this.#links = links;
    this.#spec = spec;
  }

  close(): Promise<void> {
    return this.#links.close();
  }

  /** Rejects if the links, a service or the browser is gone. A play that goes badly counts as a play. */
  async play(box: VideoBox, play: number, sitting: Sitting): Promise<Play> {
    const chromium = findChromium();
    if (!chromium) throw new Error("no Chromium found: install it, or name its path in the variable CHROMIUM");
    const { env } = this.#links;
    const executable = await this.#links.wrapper("client", chromium);
    const defaults = {
      origoUrl: env["ORIGO_URL"]!,
      mode: box.mode,
      connections: box.links.proxies.length,
      transport: box.transport,
    };
    // The page's digests of what it got need a secure context, which plain HTTP is on loopback alone.
    const flags = [`--unsafely-treat-insecure-origin-as-secure=${env["ORIGIN_URL"]}`];
    const { browser, close } = await openBrowser({ headless: true, executable, defaults, flags });
    try {
      const page = await browser.newPage();
      await page.evaluateOnNewDocument(WATCH);
      await pause(SETTLE_MS);
      const id = `${Date.now()}-${play}`;
      const watched = await this.#watch(
        page,
        `${env["ORIGIN_URL"]}/hls.html?source=/long/${id}/${box.seconds}/master.m3u8`,
        box.seconds,
      );
      const state = await samplePageState(page);
      const records = box.mode === "direct" ? [] : await this.#recordsOf(`/long/${id}/`, state);
      return {
        box: box.id,
        play,
        seconds: box.seconds,
        sitting,
        ...watched,
        ...this.#judged(box, watched, state, records),
      };
    } finally {
      await close();
    }
  }

  async #watch(
    page: Page,
    url: string,
    seconds: number,
  ): Promise<Seen & Pick<Play, "kills" | "idleShare" | "startIdleShare" | "startWaitShare" | "lateUs">> {
    await this.#links.begin();
    const idleShare = watchIdleShare();
    const load = new LoadWatch();
    const over = new AbortController();
    await page.goto(url, { waitUntil: "domcontentloaded", timeout: LONGER_MS_MAX });
    const killing = this.#killInTurn(over.signal);
    killing.catch(() => undefined);
    let start: Load | undefined;
    for (const deadlineMs = performance.now() + 1000 * seconds + LONGER_MS_MAX; ; await pause(POLL_MS)) {
      const { events, nowMs, openedAtMs } = (await page.evaluate(READ_WATCH)) as {
        events: PlayEvent[];
        nowMs: number;
        openedAtMs: number;
      };
      const seen = seenOf(
        events,
        LONG_LEVELS.map(({ bitsPerSec }) => bitsPerSec),
        nowMs,
      );
      if (!start && seen.startUpMs !== null && seen.openedMs !== null) {
        start = load.between(openedAtMs + seen.openedMs - seen.startUpMs, openedAtMs + seen.openedMs);
        load.stop();
      }
      if (!seen.finished && performance.now() < deadlineMs) continue;
      const idle = idleShare();
      const { lateUs } = await this.#links.stats();
      over.abort();
      load.stop();
      return {
        ...seen,
        kills: await killing,
        idleShare: idle,
        startIdleShare: start?.idleShare ?? idle,
        startWaitShare: start?.waitShare ?? null,
        lateUs: lateUs.p99,
      };
    }
  }

  /**
   * Cuts a link off and kills the proxy behind it, one after another, until the signal; all are back when it resolves
   * to how often.
   */
  async #killInTurn(signal: AbortSignal): Promise<number> {
    const { kills: plan, proxies } = this.#spec;
    const { services } = this.#links;
    if (!plan || !services) return 0;
    const beganMs = performance.now();
    const until = (sec: number): Promise<boolean> =>
      pause(Math.max(0, beganMs + 1000 * sec - performance.now()), true, { signal }).catch(() => false);
    let kills = 0;
    while (await until((kills + 1) * plan.everySec)) {
      const index = kills++ % proxies.length;
      await this.#links.set(`proxy${index + 1}`, { cut: true });
      await services.proxies[index]!.kill();
      await until(kills * plan.everySec + plan.awaySec);
      await this.#links.set(`proxy${index + 1}`, { cut: false });
      await services.restart(index);
    }
    return kills;
  }

  #judged(
    box: VideoBox,
    seen: Seen,
    { segments, errors }: SamplePageState,
    records: readonly DownloadRecord[],
  ): Pick<Play, "ok" | "problems" | "segments" | "segmentBytes" | "initMs" | "firstSegmentMs" | "normalizedGoodput"> {
    const got = segments.filter(({ url }) => SEGMENT.test(url));
    const media = records.filter(({ url }) => SEGMENT.test(url));
    const whole = media.filter(({ outcome }) => outcome === "complete");
    const fellBack = media.filter(({ fallback }) => fallback !== null);
    const carried = whole.filter(({ fallback, mode }) => fallback === null && mode === box.mode).length;
    const wrong = got.filter(({ url, sha256 }) => sha256 !== this.#digestOf(url)).length;
    const sum = (of: (record: DownloadRecord) => number): number =>
      whole.reduce((total, record) => total + of(record), 0);
    const problems = [
      ...(seen.finished ? [] : [`not over ${LONGER_MS_MAX / 1000} s after it should have been`]),
      ...(wrong > 0 ? [`${wrong} segments of wrong bytes`] : []),
      ...new Set(errors),
      ...new Set(fellBack.map(({ fallback }) => `fell back: ${fallback!.message}`)),
      ...new Set(
        media.flatMap(({ outcome, error }) =>
          outcome === "failed" && error ? [`${error.kind}: ${error.message}`] : [],
        ),
      ),
    ];
    return {
      ok: seen.finished && wrong === 0,
      problems,
      segments: {
        got: got.length,
        carried,
        fellBack: fellBack.length,
        direct: Math.max(0, got.length - whole.length),
        aborted: media.filter(({ outcome }) => outcome === "aborted").length,
        wrong,
      },
      segmentBytes: segments.map(({ bytes }) => bytes),
      initMs: segments.find(({ url }) => !SEGMENT.test(url))?.ms ?? null,
      firstSegmentMs: got[0]?.ms ?? null,
      normalizedGoodput:
        sum(({ grossBytes }) => grossBytes) > 0
          ? sum(({ netBytes }) => netBytes) / sum(({ grossBytes }) => grossBytes)
          : null,
    };
  }

  /** Waits until each segment has a record, for a limited time: direct segments have none. */
  async #recordsOf(part: string, { segments }: SamplePageState): Promise<DownloadRecord[]> {
    for (const deadlineMs = performance.now() + RECORDS_MS_MAX; ; await pause(2 * POLL_MS)) {
      const own = (await recordsOnLinks(this.#links)).filter(({ url }) => url.includes(part));
      const known = new Set(own.map(({ url }) => url));
      if (segments.every(({ url }) => !SEGMENT.test(url) || known.has(url)) || performance.now() > deadlineMs)
        return own;
    }
  }

  #digestOf(url: string): string | undefined {
    const [, track, number] = SEGMENT.exec(url)!;
    const key = `${track}-${number}`;
    if (!this.#digests.has(key))
      this.#digests.set(
        key,
        createHash("sha256")
          .update(this.#video.segment(Number(track), Number(number)))
          .digest("hex"),
      );
    return this.#digests.get(key);
  }
}
