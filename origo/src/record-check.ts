/**
 * A quick look at batches of records: true for what schema.ts would take as it is, in a twentieth of the time. False
 * says nothing: schema.ts decides then, and names the fault. The rules are those of RecordsRequest;
 * record-check.test.ts holds the two against each other.
 */
import { REJECTION_KINDS } from "@tributary/contract";
import { Mode, SCHEMA_LIMITS, TransportName } from "@tributary/contract/schema";

type Check = (value: unknown) => boolean;

/** NUL and surrogates are schema.ts's to judge. */
const PLAIN = /^[^\0\uD800-\uDFFF]*$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const SHA256 = /^[0-9a-f]{64}$/;
/** Origin and path; user names, query strings and fragments do not match. */
const URL_PARTS = /^(https?:\/\/[a-z0-9.:-]+)(?:\/[\w.~%!$&'()*+,;=:@/-]*)?$/;
const EPOCH_MS_MAX = 8.64e15;
const ORIGINS_MAX = 1000;
const TRANSPORTS = new Set<unknown>(TransportName.options);
const MODES = new Set<unknown>(Mode.options);
const SOURCES = new Set<unknown>(["extension", "cli", "library"]);
const OUTCOMES = new Set<unknown>(["complete", "failed", "aborted"]);

const isNumber =
  (max: number): Check =>
  (value) =>
    typeof value === "number" && value >= 0 && value <= max;
const isWhole =
  (min: number, max: number): Check =>
  (value) =>
    Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max;
const isText =
  (min: number, max: number): Check =>
  (value) =>
    typeof value === "string" && value.length >= min && value.length <= max && PLAIN.test(value);
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const isListOf =
  (max: number, check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.length <= max && value.every(check);
const isIn =
  (values: ReadonlySet<unknown>): Check =>
  (value) =>
    values.has(value);
const matches =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === "string" && pattern.test(value);

/** An object with all of `required`, any of `optional`, and nothing else. */
function isObject(required: Record<string, Check>, optional: Record<string, Check> = {}): Check {
  const checks = new Map(Object.entries({ ...optional, ...required }));
  const needed = new Set(Object.keys(required));
  return (value) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
    let missing = needed.size;
    for (const name in value) {
      const check = checks.get(name);
      if (check === undefined || !check((value as Record<string, unknown>)[name])) return false;
      if (needed.has(name)) missing--;
    }
    return missing === 0;
  };
}

const origins = new Set<string>();

/** Hosts are few and judged by URL itself; a path cannot make an address invalid. */
const isUrl: Check = (value) => {
  const origin =
    typeof value === "string" && value.length <= SCHEMA_LIMITS.urlChars ? URL_PARTS.exec(value)?.[1] : undefined;
  if (origin === undefined) return false;
  if (origins.has(origin)) return true;
  if (!URL.canParse(origin)) return false;
  if (origins.size >= ORIGINS_MAX) origins.clear();
  origins.add(origin);
  return true;
};

const count = isWhole(0, Number.MAX_SAFE_INTEGER);
const finite = isNumber(Number.MAX_SAFE_INTEGER);
const label = (charsMax: number): Check => isText(1, charsMax);
const text = (charsMax: number): Check => isText(0, charsMax);
const { nameChars, idChars, messageChars, commentChars } = SCHEMA_LIMITS;

const rejectionShape = { kind: isIn(new Set<unknown>(REJECTION_KINDS)), message: text(messageChars) };
const isRejection = isObject(rejectionShape);

const hasProxyShape = isObject(
  {
    id: label(idChars),
    bytes: count,
    packets: count,
    innovative: count,
    duplicate: count,
    late: count,
    rejected: count,
    lost: count,
    rttMs: orNull(finite),
    state: isIn(new Set(["used", "failed"])),
  },
  { name: label(nameChars), transport: isIn(TRANSPORTS), error: isRejection },
);

const isProxy: Check = (value) => {
  if (!hasProxyShape(value)) return false;
  const { packets, innovative, duplicate, late, rejected } = value as Record<string, number>;
  return packets === innovative! + duplicate! + late! + rejected!;
};

const hasRangeShape = isObject({ start: count, end: count });
const isRange: Check = (value) =>
  hasRangeShape(value) && (value as { start: number }).start <= (value as { end: number }).end;

const isRecord = isObject(
  {
    id: matches(UUID),
    clientId: matches(UUID),
    startedAtMs: isNumber(EPOCH_MS_MAX),
    source: isIn(SOURCES),
    url: isUrl,
    mode: isIn(MODES),
    connections: isWhole(0, SCHEMA_LIMITS.connections),
    status: isWhole(0, 599),
    netBytes: count,
    grossBytes: count,
    durationMs: finite,
    firstByteMs: finite,
    serverFetchMs: finite,
    throughputBytesPerSec: finite,
    goodputBytesPerSec: finite,
    normalizedGoodput: finite,
    outcome: isIn(OUTCOMES),
    fallback: orNull(isObject({ ...rejectionShape, bytes: count })),
    sha256: orNull(matches(SHA256)),
    proxies: isListOf(SCHEMA_LIMITS.proxiesPerRecord, isProxy),
  },
  {
    clientVersion: label(64),
    agent: label(64),
    player: label(64),
    os: label(64),
    contentType: text(128),
    range: isRange,
    totalBytes: count,
    directBytes: count,
    connectMs: finite,
    headMs: finite,
    firstPacketMs: finite,
    closeMs: finite,
    error: isRejection,
    generationSize: isWhole(1, 256),
    windowPackets: isWhole(1, 65_536),
    symbolBytes: isWhole(1, 65_536),
    feedbackEveryPackets: isWhole(1, 65_536),
    feedbackEveryMs: finite,
    engine: label(64),
    generationCount: count,
    symbolCount: count,
    feedbackFrames: count,
    comment: text(commentChars),
    userComment: text(commentChars),
    configVersion: count,
    experiments: isListOf(SCHEMA_LIMITS.experimentsPerRecord, isObject({ id: label(idChars), arm: label(nameChars) })),
  },
);

const hasRecords = isObject({ records: isListOf(SCHEMA_LIMITS.recordsPerRequest, isRecord) });

/** Is it a body of POST /v1/records that needs no change? */
export const isRecordsRequest: Check = (value) =>
  hasRecords(value) && (value as { records: unknown[] }).records.length > 0;
