/**
 * A download record as the one row that holds it, and back. The table of fields (contract/src/record-fields.ts) says
 * where each cell comes from. Origo computes the cells of COMPUTED, and the proxies are JSON in one cell.
 */
import {
  recordFields,
  type ComputedField,
  type RecordField,
  type SummedField,
} from "@tributary/contract/record-fields";
import { SCHEMA_LIMITS, type DownloadRecord, type DrawnArm } from "@tributary/contract/schema";
import type { Cell, Row } from "./database";
import { ARM_SEPARATOR } from "./fields";

const COMPUTED: Record<ComputedField, (record: DownloadRecord, receivedAtMs: number) => Cell> = {
  receivedAtMs: (_record, receivedAtMs) => receivedAtMs,
  experiments: ({ experiments }) => (experiments ? joinArms(experiments) : null),
  proxiesUsed: ({ proxies }) => proxies.length,
  proxiesFailed: ({ proxies }) => proxies.filter((proxy) => proxy.state === "failed").length,
  rttMsMin: ({ proxies }) => {
    const trips = proxies.flatMap((proxy) => proxy.rttMs ?? []);
    return trips.length === 0 ? null : Math.min(...trips);
  },
  transport: ({ proxies }) => {
    const transports = new Set(proxies.map((proxy) => proxy.transport ?? "http"));
    return transports.size > 1 ? "mixed" : ([...transports][0] ?? null);
  },
  proxies: ({ proxies }) => JSON.stringify(proxies),
};

const STORED = recordFields.filter(([, { sql }]) => sql === undefined);

type Cells = Record<string, Cell | undefined>;

/** By names of fields, `receivedAtMs` included. */
export function rowOf(record: DownloadRecord, receivedAtMs: number): Row {
  return Object.fromEntries(
    STORED.map(([name, field]) => [name, withoutSign(cellOf(name, field, record, receivedAtMs) ?? null)]),
  );
}

/** Negative zero becomes zero: some columns keep its sign and others do not. */
const withoutSign = (cell: Cell): Cell => (cell === 0 ? 0 : cell);

function cellOf(
  name: string,
  { record: presence, path, summed }: RecordField,
  record: DownloadRecord,
  receivedAtMs: number,
): Cell | undefined {
  if (presence !== undefined) return (record as unknown as Cells)[name];
  if (path !== undefined) return (record[path[0]] as unknown as Cells | null | undefined)?.[path[1]];
  if (summed) return record.proxies.reduce((sum, proxy) => sum + proxy[name as SummedField], 0);
  return COMPUTED[name as ComputedField](record, receivedAtMs);
}

/** `row` has the columns of COLUMNS by field name. */
export function recordOf(row: Row): DownloadRecord {
  const record: Record<string, unknown> = { fallback: null };
  for (const [name, { record: presence, path, type }] of STORED) {
    // A database can have dropped the only character of a label.
    const cell = type === "label" && row[name] === "" ? null : row[name];
    if (presence !== undefined && (has(cell) || presence !== "optional")) record[name] = cell;
    if (path !== undefined && has(cell)) record[path[0]] = { ...(record[path[0]] as object | null), [path[1]]: cell };
  }
  if (has(row["experiments"])) record["experiments"] = splitArms(String(row["experiments"]));
  record["proxies"] = JSON.parse(String(row["proxies"]));
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
    .map((part) => {
      const end = part.indexOf("=", 1);
      return { id: part.slice(0, end), arm: part.slice(end + 1).slice(0, SCHEMA_LIMITS.nameChars) };
    });

/** Equation 2 of the paper. */
function ratesOf(
  netBytes: number,
  grossBytes: number,
  durationMs: number,
): Pick<DownloadRecord, "throughputBytesPerSec" | "goodputBytesPerSec" | "normalizedGoodput"> {
  // A record that an older Origo took may exceed the limit of the schema.
  const perSecond = (bytes: number): number =>
    durationMs > 0 ? Math.min((bytes * 1000) / durationMs, Number.MAX_SAFE_INTEGER) : 0;
  return {
    throughputBytesPerSec: perSecond(grossBytes),
    goodputBytesPerSec: perSecond(netBytes),
    normalizedGoodput: grossBytes > 0 ? netBytes / grossBytes : 0,
  };
}

const has = (cell: Cell | undefined): boolean => cell !== null && cell !== undefined;
