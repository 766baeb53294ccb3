/**
 * A quick check of batches of records. True means that the schema RecordsRequest takes the batch without a change; this
 * check needs a twentieth of its time. False means nothing: the schema then decides and names the fault.
 * record-check.test.ts compares the two.
 */
import { REJECTION_KINDS } from "@tributary/contract";
import { recordFields, type RecordField } from "@tributary/contract/record-fields";
import { EPOCH_MS_MAX, SCHEMA_LIMITS, TransportName } from "@tributary/contract/schema";

type Check = (value: unknown) => boolean;

/** The schema decides about NUL, surrogates and a U+FEFF at the start. */
const PLAIN = /^(?!\uFEFF)[^\0\uD800-\uDFFF]*$/;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const SHA256 = /^[0-9a-f]{64}$/;
/** Origin and path; user names, query strings and fragments do not match. */
const URL_PARTS = /^(https?:\/\/[a-z0-9.:-]+)(?:\/[\w.~%!$&'()*+,;=:@/-]*)?$/;
const ORIGINS_MAX = 1000;
const TRANSPORTS = new Set<unknown>(TransportName.options);

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

/** Hosts are few, and URL checks each once. A path cannot make an address invalid. */
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
const { nameChars, idChars, messageChars } = SCHEMA_LIMITS;

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

function checkOf({ type, min = 0, max = Number.MAX_SAFE_INTEGER, values = [] }: RecordField): Check {
  switch (type) {
    case "uuid":
      return matches(UUID);
    case "sha256":
      return matches(SHA256);
    case "url":
      return isUrl;
    case "text":
      return text(max);
    case "label":
      return label(max);
    case "choice":
      return isIn(new Set<unknown>(values));
    case "count":
      return isWhole(min, max);
    case "number":
      return finite;
    case "time":
      return isNumber(EPOCH_MS_MAX);
  }
}

/** The checks of the fields that the record has under their names. */
function checksOf(...presences: RecordField["record"][]): Record<string, Check> {
  const fields = recordFields.filter(([, { record }]) => record !== undefined && presences.includes(record));
  return Object.fromEntries(
    fields.map(([name, field]) => [name, field.record === "nullable" ? orNull(checkOf(field)) : checkOf(field)]),
  );
}

const isRecord = isObject(
  {
    ...checksOf("required", "nullable"),
    fallback: orNull(isObject({ ...rejectionShape, bytes: count })),
    proxies: isListOf(SCHEMA_LIMITS.proxiesPerRecord, isProxy),
  },
  {
    ...checksOf("optional"),
    range: isRange,
    error: isRejection,
    experiments: isListOf(SCHEMA_LIMITS.experimentsPerRecord, isObject({ id: label(idChars), arm: label(nameChars) })),
  },
);

const hasRecords = isObject({ records: isListOf(SCHEMA_LIMITS.recordsPerRequest, isRecord) });

/** True for a body of POST /v1/records that needs no change. */
export const isRecordsRequest: Check = (value) =>
  hasRecords(value) && (value as { records: unknown[] }).records.length > 0;
