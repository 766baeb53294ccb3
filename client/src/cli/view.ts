/** Formats the live line and the final table of the command line. No I/O. */
import type { DownloadRecord } from "@tributary/contract/schema";

export function formatBytes(count: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let value = count;
  let unit = 0;
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : 1)} ${units[unit]}`;
}

/** Who sent how many bytes, or took them. */
export interface Sources {
  proxies: readonly { name: string; bytes: number }[];
  directBytes: number;
}

export interface ProgressView {
  deliveredBytes: number;
  totalBytes: number | null;
  bytesPerSec: number;
  live: Sources;
}

/** At most `columns` characters: the bar, the rate, the time left, and each source's share of the received bytes. */
export function progressLine(view: ProgressView, columns: number): string {
  const { deliveredBytes, totalBytes, bytesPerSec, live } = view;
  const total = totalBytes === null ? "" : ` of ${formatBytes(totalBytes)}`;
  const delivered = `${formatBytes(deliveredBytes)}${total}`;
  const left = totalBytes === null ? "" : `  ${timeLeft(totalBytes - deliveredBytes, bytesPerSec)}`;
  const line = `${bar(deliveredBytes, totalBytes)} ${delivered}  ${formatBytes(bytesPerSec)}/s${left}  ${shares(live)}`;
  return fitted(line, columns);
}

/** At most `columns` characters. What does not fit is left out as a whole. */
export function fitted(line: string, columns: number): string {
  if (line.length <= columns) return line.trimEnd();
  const end = line.slice(0, columns + 2).lastIndexOf("  ");
  return line.slice(0, end > 0 ? end : columns).trimEnd();
}

/** Each source's share of the received bytes. */
export function shares(live: Sources): string {
  const sources = [
    ...live.proxies.map(({ name, bytes }) => [name, bytes] as const),
    ...(live.directBytes > 0 ? [["origin", live.directBytes] as const] : []),
  ];
  const gross = sources.reduce((sum, [, bytes]) => sum + bytes, 0);
  return sources.map(([name, bytes]) => `${name} ${percent(bytes, gross)}`).join("  ");
}

function timeLeft(bytes: number, bytesPerSec: number): string {
  if (bytes <= 0) return "0:00 left";
  const seconds = Math.ceil(bytes / bytesPerSec);
  return seconds < 360_000 ? `${clock(seconds)} left` : "--:-- left";
}

/** `12:05`; the hours come first if there are any. */
export function clock(sec: number): string {
  const seconds = Math.ceil(sec);
  const [hours, minutes, rest] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (value: number): string => String(value).padStart(2, "0");
  return `${hours > 0 ? `${hours}:${two(minutes)}` : minutes}:${two(rest)}`;
}

const BAR_CELLS = 20;

export function bar(done: number, total: number | null): string {
  if (total === null) return `[${"?".repeat(BAR_CELLS)}]`;
  const cells = total === 0 ? BAR_CELLS : Math.min(BAR_CELLS, Math.floor((done / total) * BAR_CELLS));
  return `[${"#".repeat(cells)}${".".repeat(BAR_CELLS - cells)}]`;
}

function percent(part: number, whole: number): string {
  return whole === 0 ? "0 %" : `${Math.round((part * 100) / whole)} %`;
}

/** The final table: one row for each source, and the totals. */
export function summary(record: DownloadRecord): string {
  const rows = record.proxies.map((proxy) => [
    proxy.name ?? proxy.id,
    String(proxy.bytes),
    percent(proxy.bytes, record.grossBytes),
    String(proxy.packets),
    String(proxy.innovative),
    String(proxy.duplicate),
    String(proxy.late),
    String(proxy.lost),
    proxy.rttMs === null ? "-" : proxy.rttMs.toFixed(1),
    proxy.state === "failed" ? (proxy.error ? `${proxy.error.kind}: ${proxy.error.message}` : "failed") : "",
  ]);
  const throughProxies = record.proxies.reduce((sum, { bytes }) => sum + bytes, 0);
  const directBytes = record.grossBytes - throughProxies;
  if (directBytes > 0)
    rows.push(["origin", String(directBytes), percent(directBytes, record.grossBytes), ...Array<string>(7).fill("")]);
  const head = ["source", "bytes", "share", "packets", "innovative", "duplicate", "late", "lost", "rtt ms", ""];
  return `${rows.length > 0 ? `${table([head, ...rows])}\n` : ""}${totals(record)}\n`;
}

function totals(record: DownloadRecord): string {
  const seconds = (record.durationMs / 1000).toFixed(2);
  const ratio = record.normalizedGoodput.toFixed(3);
  const lines = [
    `${record.mode}: ${record.outcome}, HTTP ${record.status}, ${record.netBytes} bytes in ${seconds} s`,
    `goodput ${formatBytes(record.goodputBytesPerSec)}/s, throughput ${formatBytes(record.throughputBytesPerSec)}/s, ` +
      `normalized goodput ${ratio}, first byte ${record.firstByteMs.toFixed(0)} ms`,
  ];
  if (record.fallback)
    lines.push(
      `fallback to the origin: ${record.fallback.kind}: ${record.fallback.message} (${record.fallback.bytes} bytes)`,
    );
  if (record.sha256) lines.push(`sha256 ${record.sha256}`);
  return lines.join("\n");
}

/** Columns of text. All but the first and the last are set to the right. */
export function table(rows: string[][]): string {
  const widths = rows[0]!.map((_, column) => Math.max(...rows.map((row) => row[column]!.length)));
  const line = (row: string[]): string =>
    row
      .map((cell, column) =>
        column === 0 || column === row.length - 1 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!),
      )
      .join("  ");
  return rows.map((row) => line(row).trimEnd()).join("\n");
}
