/**
 * A download record as the one row that holds it, and back. Sums over proxies are columns, the proxies themselves JSON
 * in one.
 */
import type { DownloadRecord, DrawnArm, RecordProxy } from "@tributary/contract/schema";
import type { Cell, Row } from "./database";
import { ARM_SEPARATOR } from "./fields";

/** Same name and same value in record and row. */
const PLAIN = [
  "id",
  "clientId",
  "startedAtMs",
  "source",
  "url",
  "mode",
  "connections",
  "status",
  "netBytes",
  "grossBytes",
  "durationMs",
  "firstByteMs",
  "serverFetchMs",
  "outcome",
  "sha256",
] as const;
/** The same, absent in the record where null in the row. */
const OPTIONAL = [
  "clientVersion",
  "agent",
  "os",
  "player",
  "configVersion",
  "contentType",
  "totalBytes",
  "directBytes",
  "connectMs",
  "headMs",
  "firstPacketMs",
  "closeMs",
  "generationSize",
  "windowPackets",
  "symbolBytes",
  "feedbackEveryPackets",
  "feedbackEveryMs",
  "engine",
  "generationCount",
  "symbolCount",
  "feedbackFrames",
  "comment",
  "userComment",
] as const;
const SUMMED = ["packets", "innovative", "duplicate", "late", "rejected", "lost"] as const;

/** By names of fields (fields.ts), `receivedAtMs` included. */
export function rowOf(record: DownloadRecord, receivedAtMs: number): Row {
  const row: Row = { receivedAtMs };
  for (const name of PLAIN) row[name] = record[name];
  for (const name of OPTIONAL) row[name] = record[name] ?? null;
  row["experiments"] = record.experiments ? joinArms(record.experiments) : null;
  row["rangeStart"] = record.range?.start ?? null;
  row["rangeEnd"] = record.range?.end ?? null;
  row["errorKind"] = record.error?.kind ?? null;
  row["errorMessage"] = record.error?.message ?? null;
  row["fallbackKind"] = record.fallback?.kind ?? null;
  row["fallbackMessage"] = record.fallback?.message ?? null;
  row["fallbackBytes"] = record.fallback?.bytes ?? null;
  return Object.assign(row, rowOfProxies(record.proxies));
}

function rowOfProxies(proxies: readonly RecordProxy[]): Row {
  const row: Row = {
    proxiesUsed: proxies.length,
    proxiesFailed: proxies.filter((proxy) => proxy.state === "failed").length,
  };
  for (const name of SUMMED) row[name] = proxies.reduce((sum, proxy) => sum + proxy[name], 0);
  const trips = proxies.flatMap((proxy) => proxy.rttMs ?? []);
  row["rttMsMin"] = trips.length === 0 ? null : Math.min(...trips);
  const transports = new Set(proxies.map((proxy) => proxy.transport ?? "http"));
  row["transport"] = transports.size > 1 ? "mixed" : ([...transports][0] ?? null);
  row["proxies"] = JSON.stringify(proxies);
  return row;
}

/** `row` has the columns of COLUMNS by field name. */
export function recordOf(row: Row): DownloadRecord {
  const record: Record<string, unknown> = {};
  for (const name of PLAIN) record[name] = row[name];
  for (const name of OPTIONAL) if (has(row[name])) record[name] = row[name];
  if (has(row["experiments"])) record["experiments"] = splitArms(String(row["experiments"]));
  if (has(row["rangeStart"])) record["range"] = { start: row["rangeStart"], end: row["rangeEnd"] };
  if (has(row["errorKind"])) record["error"] = { kind: row["errorKind"], message: row["errorMessage"] };
  record["fallback"] = has(row["fallbackKind"])
    ? { kind: row["fallbackKind"], message: row["fallbackMessage"], bytes: row["fallbackBytes"] }
    : null;
  record["proxies"] = (JSON.parse(String(row["proxies"])) as RecordProxy[]).map(withoutNulls);
  return {
    ...(record as unknown as DownloadRecord),
    ...ratesOf(Number(row["netBytes"]), Number(row["grossBytes"]), Number(row["durationMs"])),
  };
}

/** E.g. `|a1b2=small window|c3d4=control|`, with ARM_SEPARATOR for the bars. */
const joinArms = (arms: readonly DrawnArm[]): string =>
  ARM_SEPARATOR + arms.map(({ id, arm }) => `${id}=${arm}`.replaceAll(ARM_SEPARATOR, " ") + ARM_SEPARATOR).join("");

const splitArms = (joined: string): DrawnArm[] =>
  joined
    .split(ARM_SEPARATOR)
    .filter((part) => part !== "")
    .map((part) => ({ id: part.slice(0, part.indexOf("=")), arm: part.slice(part.indexOf("=") + 1) }));

/** What came from a file of version 2 spells absent fields as null; `rttMs` alone may be null. */
const withoutNulls = (proxy: RecordProxy): RecordProxy =>
  Object.fromEntries(
    Object.entries(proxy).filter(([name, value]) => name === "rttMs" || value !== null),
  ) as RecordProxy;

/** Equation 2 of the paper. */
function ratesOf(
  netBytes: number,
  grossBytes: number,
  durationMs: number,
): Pick<DownloadRecord, "throughputBytesPerSec" | "goodputBytesPerSec" | "normalizedGoodput"> {
  const perSecond = (bytes: number): number => (durationMs > 0 ? (bytes * 1000) / durationMs : 0);
  return {
    throughputBytesPerSec: perSecond(grossBytes),
    goodputBytesPerSec: perSecond(netBytes),
    normalizedGoodput: grossBytes > 0 ? netBytes / grossBytes : 0,
  };
}

const has = (cell: Cell | undefined): boolean => cell !== null && cell !== undefined;
