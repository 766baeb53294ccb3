/**
 * Accounts: the sums that a download's record must satisfy, and what follows from them. Pure.
 * A gap is shown as an alarm, never smoothed over.
 */
import type { DownloadRecord, RecordProxy } from "../../src/schema";

export type PacketSums = Pick<RecordProxy, "bytes" | "packets" | "innovative" | "duplicate" | "late" | "rejected" | "lost">;

export interface Accounts {
  /** Sums over the proxies. */
  total: PacketSums;
  /** Bytes that did not come through a proxy: all of them in mode direct, those of the fallback otherwise. */
  directBytes: number;
  /** grossBytes less what the proxies and the direct download account for; 0 when the numbers close. */
  gapBytes: number;
}

/** packets less innovative + duplicate + late + rejected; 0 when the numbers close. */
export function gapPackets(sums: PacketSums): number {
  return sums.packets - sums.innovative - sums.duplicate - sums.late - sums.rejected;
}

export function accountsOf(record: DownloadRecord): Accounts {
  const total: PacketSums = { bytes: 0, packets: 0, innovative: 0, duplicate: 0, late: 0, rejected: 0, lost: 0 };
  for (const proxy of record.proxies) {
    for (const key of Object.keys(total) as (keyof PacketSums)[]) total[key] += proxy[key];
  }
  const directBytes = record.mode === "direct" ? record.grossBytes - total.bytes : (record.fallback?.bytes ?? 0);
  return { total, directBytes, gapBytes: record.grossBytes - total.bytes - directBytes };
}

/** Net bytes a second without the time that the server took to answer; null when that leaves no time. */
export function speedWithoutServer(record: DownloadRecord): number | null {
  const ms = record.durationMs - record.serverFetchMs;
  return ms > 0 ? (record.netBytes * 1000) / ms : null;
}

/** What went wrong, in a few words, or undefined. */
export function failureOf(record: DownloadRecord): string | undefined {
  if (record.outcome === "aborted") return "aborted";
  if (record.outcome === "failed") return record.error?.kind ?? "failed";
  const failed = record.proxies.filter((proxy) => proxy.state === "failed").length;
  return failed === 0 ? undefined : `${failed} of ${record.proxies.length} proxies`;
}

export interface Summary {
  downloads: number;
  complete: number;
  fallbacks: number;
  netBytes: number;
  /** Net over gross of all of them together; null when nothing was received. */
  normalizedGoodput: number | null;
}

export function summaryOf(records: readonly DownloadRecord[]): Summary {
  const sum = (of: (record: DownloadRecord) => number): number => records.reduce((total, record) => total + of(record), 0);
  const gross = sum((record) => record.grossBytes);
  const netBytes = sum((record) => record.netBytes);
  return {
    downloads: records.length,
    complete: records.filter((record) => record.outcome === "complete").length,
    fallbacks: records.filter((record) => record.fallback !== null).length,
    netBytes,
    normalizedGoodput: gross > 0 ? netBytes / gross : null,
  };
}
