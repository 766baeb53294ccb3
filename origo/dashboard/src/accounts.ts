/**
 * Accounts: the sums that a download's record must satisfy. Pure. A gap is shown as an alarm, never smoothed over.
 */
import type { DownloadRecord, RecordProxy } from "@tributary/contract/schema";

export type PacketSums = Pick<
  RecordProxy,
  "bytes" | "packets" | "innovative" | "duplicate" | "late" | "rejected" | "lost"
>;

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
