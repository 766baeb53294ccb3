/**
 * Support for the end-to-end tests: plays a page up to a point, reads Origo and the origin's log, and runs the CLI.
 * Everything is real and seen from outside: processes, HTTP, a browser.
 */
import { execFile, spawn } from "node:child_process";
import path from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import {
  carriedSegments,
  isByBrowser,
  openBrowser,
  recordsOf,
  repoRoot,
  samplePageState,
  type AccessLogEntry,
  type BrowserName,
  type ExtensionDefaults,
  type Fleet,
  type OpenBrowser,
  type SamplePageState,
} from "@tributary/lab-stack";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Browser, Page } from "puppeteer-core";

export async function getJson<T>(url: string): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}: ${await response.text()}`);
  return (await response.json()) as T;
}

/** Reads every 100 ms until `isSo` accepts the value. After `secondsMax` it returns the last value. */
export async function eventually<T>(
  read: () => T | Promise<T>,
  isSo: (value: T) => boolean | Promise<boolean>,
  secondsMax = 15,
): Promise<T> {
  for (const deadlineMs = Date.now() + 1000 * secondsMax; ; await sleep(100)) {
    const value = await read();
    if ((await isSo(value)) || Date.now() > deadlineMs) return value;
  }
}

export const accessLog = (fleet: Fleet, sinceMs: number): Promise<AccessLogEntry[]> =>
  getJson(`${fleet.sample.url}/__log?since=${sinceMs}`);

/** Fetches a segment in the page, each time under another address, until only the proxies ask for one. */
export async function untilCarried(page: Page, fleet: Fleet): Promise<boolean> {
  let count = 0;
  const isCarried = async (): Promise<boolean> => {
    const startedMs = Date.now();
    const address = `/media/cmaf/segment-1-001.m4s?n=${startedMs}-${count++}`;
    await page.evaluate(`fetch("${address}", { cache: "no-store" }).then((answer) => answer.arrayBuffer())`);
    const asked = (await accessLog(fleet, startedMs)).filter(({ path }) => path === address);
    return asked.length > 0 && !asked.some(isByBrowser);
  };
  return eventually(isCarried, Boolean, 40);
}

/** The faults among `values`; undefined means no fault. */
export const faults = (values: (string | undefined)[]): string[] => values.filter((value) => value !== undefined);

/** A slow machine plays 24 s in about a minute. */
const PLAY_SECONDS_MAX = 120;

/** Whether the playhead has passed `second`; for `PlayOptions.until`. */
export const past =
  (second: number) =>
  ({ currentTime }: SamplePageState): boolean =>
    currentTime >= second;

export interface Played {
  state: SamplePageState;
  startedMs: number;
  /** Origo's records of the downloads of this play; empty without `recordsAt`. */
  records: readonly DownloadRecord[];
}

export interface PlayOptions {
  url: string;
  defaults: ExtensionDefaults;
  browser?: BrowserName;
  /** 1 is normal speed; more saves time. */
  playbackRate?: number;
  /** Play until this holds instead of to the end. */
  until?: (state: SamplePageState) => boolean | Promise<boolean>;
  /** Wait, with the browser open, until this fleet's Origo has a record of every carried segment. */
  recordsAt?: Fleet;
  /** Calls `act` once when the playhead passes `atSecond`. */
  during?: { atSecond: number; act: (browser: Browser) => Promise<void> };
}

/** Plays a sample page in a fresh browser with the extension: to its end, or until a condition holds. */
export async function playPage(options: PlayOptions): Promise<Played> {
  const startedMs = Date.now();
  const open = await openBrowser({ name: options.browser ?? "chromium", headless: true, defaults: options.defaults });
  try {
    const page = await open.browser.newPage();
    await page.goto(options.url, { waitUntil: "domcontentloaded" });
    const state = await playOn(page, options);
    const records = options.recordsAt ? await carriedRecords(options.recordsAt, startedMs, state) : [];
    return { state, startedMs, records };
  } finally {
    await open.close();
  }
}

/** Waits for the records of the segments that the browser did not fetch itself. */
async function carriedRecords(fleet: Fleet, startedMs: number, state: SamplePageState): Promise<DownloadRecord[]> {
  const carried = carriedSegments(state.segments, await accessLog(fleet, startedMs));
  return recordsOf(
    fleet,
    startedMs,
    carried.map(({ url }) => url),
  );
}

async function playOn(page: Page, options: PlayOptions): Promise<SamplePageState> {
  const rate = options.playbackRate ?? 1;
  const rates = JSON.stringify({ playbackRate: rate, defaultPlaybackRate: rate });
  await page.evaluate(`Object.assign(document.querySelector("video"), ${rates}).playbackRate`);
  let pending = options.during;
  const readAndAct = async (): Promise<SamplePageState> => {
    const state = await samplePageState(page);
    if (pending && state.currentTime >= pending.atSecond) {
      const { act } = pending;
      pending = undefined;
      await act(page.browser());
    }
    return state;
  };
  return eventually(
    readAndAct,
    async (state) => state.ended || (await options.until?.(state)) === true,
    PLAY_SECONDS_MAX,
  );
}

export interface CliRun {
  status: number;
  stdout: Buffer;
  stderr: string;
}

/** Runs the command line with `words` from the repository's root. */
export function cli(...words: string[]): Promise<CliRun> {
  return runToEnd(process.execPath, ["client/dist/cli.js", ...words]);
}

/** Runs a program from the repository's root. */
export function runToEnd(program: string, words: readonly string[]): Promise<CliRun> {
  return new Promise((resolve) => {
    execFile(
      program,
      words,
      { cwd: repoRoot, encoding: "buffer", maxBuffer: 64 << 20, timeout: 120_000 },
      (error, stdout, stderr) => {
        resolve({
          status: error ? (typeof error.code === "number" ? error.code : 1) : 0,
          stdout,
          stderr: stderr.toString(),
        });
      },
    );
  });
}

/**
 * Publishes a folder with the command line and this key. Resolves to its address when all proxies hold it: Origo
 * releases it when one holds each file.
 */
export async function publish(fleet: Fleet, source: string, key: string, ...more: string[]): Promise<string> {
  const words = ["publish", source, "--origo", fleet.origo.url, "--key", key, "--json", ...more];
  const { stdout, stderr } = await cli(...words);
  const [address] = /http[^"]+\/v\/[^/"]+\/[^/"]+\//.exec(stdout.toString()) ?? [];
  if (address === undefined) throw new Error(`the command printed no address: ${stdout.toString()}${stderr}`);
  const publication = address.replace("/v/", "/v1/publications/").replace(/\/$/, "");
  const read = () => getJson<{ holders: number }>(publication);
  const { holders } = await eventually(read, (now) => now.holders === fleet.proxies.length);
  if (holders < fleet.proxies.length) throw new Error(`${holders} of ${fleet.proxies.length} proxies hold ${address}`);
  return address;
}

/** Opens the extension's popup as a tab of Chromium. */
export async function openPopup({ browser, newPage }: OpenBrowser): Promise<Page> {
  const worker = await browser.waitForTarget(
    (target) => target.type() === "service_worker" && target.url().startsWith("chrome-extension://"),
  );
  const popup = await newPage();
  await popup.goto(`chrome-extension://${new URL(worker.url()).host}/popup.html`);
  return popup;
}

export interface RunningScript {
  /** Everything printed so far. */
  output(): string;
  /** Resolves with the matching line. */
  line(pattern: RegExp): Promise<string>;
  signal(name: NodeJS.Signals): void;
  readonly pid: number;
  readonly ended: Promise<number | null>;
}

const running = new Set<RunningScript>();

/** Stops every running script that startScript started; for afterEach. */
export async function stopScripts(): Promise<void> {
  for (const script of running) script.signal("SIGTERM");
  await Promise.all([...running].map((script) => script.ended));
}

/** Starts `node SCRIPT WORDS` without waiting for its end. */
export function startScript(script: string, ...words: string[]): RunningScript {
  const child = spawn(process.execPath, [path.join(repoRoot, script), ...words], {
    cwd: repoRoot,
    stdio: ["ignore", "pipe", "pipe"],
  });
  let text = "";
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk: Buffer) => (text += chunk.toString()));
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve));
  const line = async (pattern: RegExp): Promise<string> => {
    for (const deadlineMs = Date.now() + 120_000; ; await sleep(50)) {
      const found = text.split("\n").find((each) => pattern.test(each));
      if (found !== undefined) return found;
      if (Date.now() > deadlineMs || child.exitCode !== null)
        throw new Error(`${script} printed no line like ${pattern}:\n${text}`);
    }
  };
  const started: RunningScript = {
    output: () => text,
    line,
    signal: (name) => void child.kill(name),
    pid: child.pid ?? 0,
    ended,
  };
  running.add(started);
  void ended.then(() => running.delete(started));
  return started;
}
