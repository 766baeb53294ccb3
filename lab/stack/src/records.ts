/**
 * Reads a fleet's records from Origo. A browser sends records in batches, so it must stay open until they have arrived.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Fleet } from "./fleet";

const RECORDS_MS_MAX = 10_000;

/** Records of downloads that began at `sinceMs` or later. Throws if Origo does not answer, or answers with an error. */
export async function recordsSince(fleet: Fleet, sinceMs: number): Promise<DownloadRecord[]> {
  const response = await fetch(`${fleet.origo.url}/v1/records?limit=500`);
  if (!response.ok) throw new Error(`Origo answered ${response.status}: ${await response.text()}`);
  const { records } = (await response.json()) as { records: DownloadRecord[] };
  return records.filter(({ startedAtMs }) => startedAtMs >= sinceMs);
}

/** The same, after each of `urls` has a record. After 10 s it resolves to the records that are there. */
export async function recordsOf(fleet: Fleet, sinceMs: number, urls: readonly string[]): Promise<DownloadRecord[]> {
  for (const deadlineMs = Date.now() + RECORDS_MS_MAX; ; await pause(200)) {
    const records = await recordsSince(fleet, sinceMs);
    const seen = new Set(records.map(({ url }) => url));
    if (urls.every((url) => seen.has(url)) || Date.now() > deadlineMs) return records;
  }
}
