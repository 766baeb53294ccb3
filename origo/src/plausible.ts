/**
 * Plausible: says what is wrong with a record whose fields are right one by one (contract/src/schema.ts) but not
 * together, or not at this time. Intake refuses such a record, and an import leaves it out. So every record that is
 * taken can be exported and imported again, and no sender can stretch the charts of all others.
 */
import { recordFields, type SummedField } from "@tributary/contract/record-fields";
import type { ApiError, DownloadRecord, ErrorReport } from "@tributary/contract/schema";
import { ARM_SEPARATOR } from "./store/fields";

/** 2020-01-01: no client is older. A clock that was never set says 1970. */
export const STARTED_MS_MIN = Date.UTC(2020, 0, 1);
/** A client's clock may be this far ahead of Origo's. */
export const CLOCK_AHEAD_MS_MAX = 86_400_000;
/** The column of experiments uses both characters (store/record-row.ts). */
const isExperimentId = (id: string): boolean => !id.includes("=") && !id.includes(ARM_SEPARATOR);

export interface RecordFault extends Pick<ApiError, "got" | "limit"> {
  /** The path within the record. */
  field: string;
  message: string;
}

const over = (field: string, got: number, limit: number, meaning: string): RecordFault | undefined =>
  got <= limit ? undefined : { field, message: `must be at most ${limit} (${meaning}), got ${got}`, got, limit };

const perSecond = (bytes: number, ms: number): number => (ms > 0 ? (bytes * 1000) / ms : 0);

const SUMMED = recordFields.filter(([, { summed }]) => summed).map(([name]) => name as SummedField);

/** Undefined for a record that may be stored. `nowMs` is Origo's clock. */
export function recordFault(record: DownloadRecord, nowMs: number): RecordFault | undefined {
  return timesFault(record, nowMs) ?? bytesFault(record) ?? listsFault(record);
}

/** A report of an error comes from the same clocks as a record. */
export function reportFault({ atMs }: ErrorReport, nowMs: number): RecordFault | undefined {
  return momentFault("atMs", atMs, nowMs);
}

function momentFault(field: string, gotMs: number, nowMs: number): RecordFault | undefined {
  if (gotMs >= STARTED_MS_MIN) return over(field, gotMs, nowMs + CLOCK_AHEAD_MS_MAX, "a day after Origo's clock");
  const message = `must be at least ${STARTED_MS_MIN} (the year 2020), got ${gotMs}: set the client's clock`;
  return { field, message, got: gotMs, limit: STARTED_MS_MIN };
}

function timesFault({ startedAtMs, durationMs, firstByteMs }: DownloadRecord, nowMs: number): RecordFault | undefined {
  const latestMs = nowMs + CLOCK_AHEAD_MS_MAX;
  return (
    momentFault("startedAtMs", startedAtMs, nowMs) ??
    over("durationMs", durationMs, latestMs - startedAtMs, "the download would end a day after Origo's clock") ??
    over("firstByteMs", firstByteMs, durationMs, "durationMs")
  );
}

function bytesFault(record: DownloadRecord): RecordFault | undefined {
  const { netBytes, grossBytes, directBytes = 0, durationMs, serverFetchMs } = record;
  const rateMax = Number.MAX_SAFE_INTEGER;
  return (
    over("netBytes", netBytes, grossBytes, "grossBytes") ??
    over("directBytes", directBytes, grossBytes, "grossBytes") ??
    over("throughputBytesPerSec", perSecond(grossBytes, durationMs), rateMax, "grossBytes over durationMs") ??
    over(
      "goodputAfterFetchBytesPerSec",
      perSecond(netBytes, durationMs - serverFetchMs),
      rateMax,
      "netBytes over durationMs less serverFetchMs",
    )
  );
}

function listsFault({ proxies, experiments = [] }: DownloadRecord): RecordFault | undefined {
  for (const name of SUMMED) {
    const sum = proxies.reduce((before, proxy) => before + proxy[name], 0);
    const fault = over("proxies", sum, Number.MAX_SAFE_INTEGER, `the sum of ${name}`);
    if (fault) return fault;
  }
  const index = experiments.findIndex(({ id }) => !isExperimentId(id));
  if (index < 0) return undefined;
  const message = `must not hold "=" or U+001F, got ${JSON.stringify(experiments[index]?.id)}`;
  return { field: `experiments[${index}].id`, message };
}
