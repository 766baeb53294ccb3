/**
 * Checks after a page has played: are these the file's bytes, who fetched what, what did Origo record? Reads only files
 * and the data that it is given.
 */
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import path from "node:path";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { SamplePageState } from "./browser";
import type { AccessLogEntry } from "./sample/access-log";
import { mediaDir } from "./sample/origin";

/**
 * How many media files of a stream the browser may fetch itself after the first one that the proxies brought, while the
 * extension compares their answers with the site's: the first of each folder and kind (extension/src/page/permits.ts,
 * extension/src/transport/trust.ts). How many it fetches before that depends on how long the port and the verdict take.
 */
export const COMPARED_MAX = 8;

export type PlayedSegment = SamplePageState["segments"][number];

/** Why a segment differs from the file on disk, or undefined if every byte matches. */
export function segmentMismatch(segment: PlayedSegment, folder = mediaDir): string | undefined {
  const { pathname } = new URL(segment.url);
  const file = path.join(folder, decodeURIComponent(pathname).replace(/^\/media\//, ""));
  if (!pathname.startsWith("/media/") || !existsSync(file)) return `${pathname}: no such file in the sample's media`;
  const whole = readFileSync(file);
  const expected = segment.end === undefined ? whole : whole.subarray(segment.start ?? 0, segment.end + 1);
  if (segment.bytes !== expected.length) return `${pathname}: ${segment.bytes} bytes, the file has ${expected.length}`;
  const sha256 = createHash("sha256").update(expected).digest("hex");
  return sha256 === segment.sha256 ? undefined : `${pathname}: SHA-256 ${segment.sha256}, the file has ${sha256}`;
}

/** Whether a browser made the request itself. A proxy names itself. */
export const isByBrowser = ({ userAgent }: Pick<AccessLogEntry, "userAgent">): boolean => /mozilla/i.test(userAgent);

/** Requests for media files (not manifests or playlists) that a browser made itself. */
export function mediaFetchedByBrowser(log: readonly AccessLogEntry[]): AccessLogEntry[] {
  return log.filter((entry) => /^\/media\/.*\.(m4s|mp4)(\?|$)/.test(entry.path) && isByBrowser(entry));
}

/** The segments that the browser did not fetch itself. */
export function carriedSegments(
  segments: readonly PlayedSegment[],
  log: readonly AccessLogEntry[],
): readonly PlayedSegment[] {
  const own = new Set(mediaFetchedByBrowser(log).map(({ path: asked, range }) => `${asked} ${range}`));
  return segments.filter(({ url, start, end }) => {
    const { pathname, search } = new URL(url);
    return !own.has(`${pathname}${search} ${end === undefined ? null : `bytes=${start ?? 0}-${end}`}`);
  });
}

/** Why a stream did not come through the proxies in `mode` after its first segments. Empty: it did. */
export function carryFaults(
  segments: readonly PlayedSegment[],
  records: readonly DownloadRecord[],
  log: readonly AccessLogEntry[],
  mode: string,
): string[] {
  const carried = carriedSegments(segments, log);
  const faultsOf = (some: readonly PlayedSegment[]): string[] =>
    some.map((segment) => notThroughProxies(segment, records, mode)).filter((fault) => fault !== undefined);
  const since = segments.findIndex((segment) => carried.includes(segment));
  const direct = segments.filter((segment, at) => at > since && !carried.includes(segment));
  const few = `the proxies brought ${carried.length} of ${segments.length} segments, expected at least a third`;
  return [
    ...(carried.length * 3 < segments.length ? [few] : []),
    ...faultsOf(carried),
    ...faultsOf(direct).slice(COMPARED_MAX),
  ];
}

export interface ProxyTotals {
  name: string;
  bytes: number;
  packets: number;
  innovative: number;
  duplicate: number;
}

export interface Totals {
  proxies: ProxyTotals[];
  downloads: number;
  netBytes: number;
  grossBytes: number;
  /** Net and gross bytes over the sum of the downloads' durations: the mean speed of one download. */
  goodputBytesPerSec: number;
  throughputBytesPerSec: number;
  normalizedGoodput: number;
  /** Downloads that the proxies did not finish. The client or the page fetched the rest directly. */
  fallbacks: number;
}

export function totalsOf(records: readonly DownloadRecord[]): Totals {
  const proxies = new Map<string, ProxyTotals>();
  for (const used of records.flatMap((record) => record.proxies)) {
    const name = used.name ?? used.id;
    const sum = proxies.get(name) ?? { name, bytes: 0, packets: 0, innovative: 0, duplicate: 0 };
    for (const key of ["bytes", "packets", "innovative", "duplicate"] as const) sum[key] += used[key];
    proxies.set(name, sum);
  }
  const sumOf = (value: (record: DownloadRecord) => number): number =>
    records.reduce((sum, record) => sum + value(record), 0);
  const seconds = sumOf((record) => record.durationMs) / 1000;
  const [netBytes, grossBytes] = [sumOf((record) => record.netBytes), sumOf((record) => record.grossBytes)];
  return {
    proxies: [...proxies.values()].sort((a, b) => a.name.localeCompare(b.name, "en", { numeric: true })),
    downloads: records.length,
    netBytes,
    grossBytes,
    goodputBytesPerSec: seconds > 0 ? netBytes / seconds : 0,
    throughputBytesPerSec: seconds > 0 ? grossBytes / seconds : 0,
    normalizedGoodput: grossBytes > 0 ? netBytes / grossBytes : 0,
    fallbacks: records.filter((record) => record.fallback !== null || record.outcome === "failed").length,
  };
}

/** The bytes that proxies read from the origin for each byte that they delivered; 0 if they delivered none. */
export function originFactorOf(records: readonly DownloadRecord[], log: readonly AccessLogEntry[]): number {
  const netBytes = records.reduce((sum, record) => sum + record.netBytes, 0);
  const paths = new Set(records.map((record) => new URL(record.url).pathname));
  const reads = log.filter((entry) => !isByBrowser(entry) && paths.has(entry.path.split("?")[0]!));
  return netBytes > 0 ? reads.reduce((sum, { bytes: read }) => sum + read, 0) / netBytes : 0;
}

/** Why a segment did not come complete through the proxies in `mode`, by Origo's records. undefined: it did. */
function notThroughProxies(
  segment: PlayedSegment,
  records: readonly DownloadRecord[],
  mode: string,
): string | undefined {
  const ofUrl = records.filter(
    (record) =>
      record.url === segment.url && record.range?.start === segment.start && record.range?.end === segment.end,
  );
  if (ofUrl.length === 0) return `${segment.url}: Origo has no record of it`;
  const good = ofUrl.some(
    (record) =>
      record.outcome === "complete" &&
      record.mode === mode &&
      record.fallback === null &&
      record.sha256 === segment.sha256,
  );
  return good
    ? undefined
    : `${segment.url}: ` +
        `${ofUrl
          .map(
            (record) =>
              `${record.mode} ${record.outcome}` + `${record.fallback ? `, fallback: ${record.fallback.message}` : ""}`,
          )
          .join("; ")}`;
}

/** Plain text table: first column to the left, the others to the right. */
export function formatTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => (row[column] ?? "").length)));
  return rows
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0)))
        .join("  "),
    )
    .join("\n");
}
