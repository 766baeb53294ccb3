/**
 * Accounts: the sums that the record of a download must satisfy. Pure. The page shows every gap as an alarm.
 */
import type { DownloadRecord, RecordProxy } from "@tributary/contract/schema";

export type PacketSums = Pick<
  RecordProxy,
  "bytes" | "packets" | "innovative" | "duplicate" | "late" | "rejected" | "lost"
>;

export interface Accounts {
  /** The sums over all proxies. */
  total: PacketSums;
  /** Bytes that did not come through a proxy: all bytes in mode direct, otherwise the bytes of the fallback. */
  directBytes: number;
  /** `grossBytes` minus the bytes of the proxies and minus `directBytes`. 0 when the sum is right. */
  gapBytes: number;
}

/** The packets minus those that are innovative, duplicate, late or rejected. 0 when the sum is right. */
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

/** Net bytes per second, without the time that the origin took to answer. Null when no other time is left. */
export function speedWithoutServer(record: DownloadRecord): number | null {
  const ms = record.durationMs - record.serverFetchMs;
  return ms > 0 ? (record.netBytes * 1000) / ms : null;
}
