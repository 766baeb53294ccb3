/**
 * `npm start -- --once`: plays the hls.js page for 15 s in mode coded, in a headless Chromium with the extension.
 * Prints what Origo recorded and judges it by three independent sources: the page's digests, the origin's log and
 * Origo's records.
 */
import type { DownloadRecord } from "@tributary/contract/schema";
import { openBrowser, samplePageState } from "./browser";
import type { SamplePageState } from "./browser";
import type { Fleet } from "./fleet";
import { recordsOf } from "./records";
import type { AccessLogEntry } from "./sample/access-log";
import { carriedSegments, carryFaults, formatTable, originFactorOf, segmentMismatch, totalsOf } from "./verify";
import type { Totals } from "./verify";

const MODE = "coded";
const PLAY_SECONDS = 15;
/** The rest of the time is the page's start. */
const ADVANCE_SECONDS_MIN = 10;
const SEGMENTS_MIN = 8;

export interface Check {
  name: string;
  /** Empty: the check passed. */
  faults: string[];
}

export interface OnceOptions {
  fleet: Fleet;
  connections: number;
  print: (line: string) => void;
  /** Ends the play early. */
  interrupted: Promise<void>;
}

/** Resolves to true when every check passed. */
export async function runOnce(options: OnceOptions): Promise<boolean> {
  const { fleet, connections, print } = options;
  print(`once: playing ${fleet.sample.url}/hls.html for ${PLAY_SECONDS} s, mode ${MODE}, ${connections} connections`);
  const startedMs = Date.now();
  const { page, records, log } = await play(options, startedMs);
  const totals = totalsOf(records);
  print(`\n${describeTotals(totals, page, originFactorOf(records, log))}\n`);
  const checks = judge(page, records, log);
  for (const { name, faults } of checks)
    print(
      `${faults.length === 0 ? "ok    " : "FAILED"}  ${name}${faults.map((fault) => `\n        ${fault}`).join("")}`,
    );
  return checks.every((check) => check.faults.length === 0);
}

/** The page at the end, and since `startedMs` Origo's records of the sample's media and the origin's log. */
async function play(
  { fleet, connections, interrupted }: OnceOptions,
  startedMs: number,
): Promise<{ page: SamplePageState; records: DownloadRecord[]; log: AccessLogEntry[] }> {
  const open = await openBrowser({ headless: true, defaults: { origoUrl: fleet.origo.url, mode: MODE, connections } });
  try {
    const page = await open.browser.newPage();
    await page.goto(`${fleet.sample.url}/hls.html`, { waitUntil: "domcontentloaded" });
    await Promise.race([interrupted, new Promise((resolve) => setTimeout(resolve, PLAY_SECONDS * 1000))]);
    const state = await samplePageState(page);
    const log = await getJson<AccessLogEntry[]>(`${fleet.sample.url}/__log?since=${startedMs}`);
    const carried = carriedSegments(state.segments, log).map(({ url }) => url);
    const records = await recordsOf(fleet, startedMs, carried);
    return { page: state, records: records.filter(({ url }) => url.startsWith(fleet.sample.url)), log };
  } finally {
    await open.close();
  }
}

async function getJson<T>(url: string): Promise<T> {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url} answered ${response.status}`);
  return (await response.json()) as T;
}

function describeTotals(totals: Totals, page: SamplePageState, originFactor: number): string {
  const number = (value: number): string => Math.round(value).toLocaleString("en-US");
  const table = formatTable([
    ["proxy", "bytes", "packets", "innovative", "duplicate"],
    ...totals.proxies.map((proxy) => [
      proxy.name,
      number(proxy.bytes),
      number(proxy.packets),
      number(proxy.innovative),
      number(proxy.duplicate),
    ]),
  ]);
  return [
    table,
    "",
    `goodput             ${number(totals.goodputBytesPerSec)} bytes/s (mean of a download)`,
    `throughput          ${number(totals.throughputBytesPerSec)} bytes/s`,
    `normalized goodput  ${totals.normalizedGoodput.toFixed(3)}`,
    `segments delivered  ${page.segments.length} (` +
      `${number(page.segments.reduce((sum, segment) => sum + segment.bytes, 0))} bytes)`,
    `fallbacks           ${totals.fallbacks}`,
    `origin factor       ${originFactor.toFixed(2)} (bytes that the proxies read from the origin for each byte)`,
  ].join("\n");
}

export function judge(
  page: SamplePageState,
  records: readonly DownloadRecord[],
  log: readonly AccessLogEntry[],
): Check[] {
  const present = (faults: (string | undefined)[]): string[] => faults.filter((fault) => fault !== undefined);
  const advanced = page.currentTime >= ADVANCE_SECONDS_MIN;
  return [
    {
      name: `the video advanced to ${page.currentTime.toFixed(1)} s`,
      faults: advanced ? [] : [`expected at least ${ADVANCE_SECONDS_MIN} s`],
    },
    { name: "the player reported no error", faults: page.errors },
    {
      name: `the player got ${page.segments.length} segments`,
      faults: page.segments.length >= SEGMENTS_MIN ? [] : [`expected at least ${SEGMENTS_MIN}`],
    },
    {
      name: "every segment has the bytes of the origin's file",
      faults: present(page.segments.map((segment) => segmentMismatch(segment))),
    },
    {
      name: `after the compared ones, every segment came through the proxies in mode ${MODE} (Origo, origin's log)`,
      faults: carryFaults(page.segments, records, log, MODE),
    },
  ];
}
