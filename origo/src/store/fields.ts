/**
 * Fields: what can be shown, filtered, charted and exported of a download, each with its SQL. A basic field is a
 * column. A derived one is computed from columns, so the two never disagree. The table is
 * contract/src/record-fields.ts.
 */
import type { Field } from "@tributary/contract/query-schema";
import { recordFields, type FieldType, type RecordField } from "@tributary/contract/record-fields";
import { EPOCH_MS_MAX } from "@tributary/contract/schema";
import type { Column } from "./database";

export interface StoredField extends Field {
  /** Over the columns of `downloads`. It never contains text of a request. */
  sql: string;
  /** What a value must look like. */
  pattern?: { regex: RegExp; meaning: string };
  /** No stored value is outside. */
  bounds?: { least: number; most: number };
}

const PATTERNS: { [Type in FieldType]?: StoredField["pattern"] } = {
  uuid: { regex: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/, meaning: "a UUID in lower case" },
  sha256: { regex: /^[0-9a-f]{64}$/, meaning: "64 lower-case hex digits" },
};

function boundsOf({ type, sql, min = 0, max }: RecordField): StoredField["bounds"] {
  if (sql !== undefined) return undefined;
  if (type === "time") return { least: 0, most: EPOCH_MS_MAX };
  return type === "count" || type === "number" ? { least: min, most: max ?? Number.MAX_SAFE_INTEGER } : undefined;
}

const COLUMN_KINDS: Record<FieldType, Column["kind"]> = {
  text: "text",
  label: "text",
  url: "text",
  uuid: "uuid",
  sha256: "text",
  choice: "text",
  count: "whole",
  number: "real",
  time: "time",
};
const QUERY_TYPES = { text: "text", uuid: "text", whole: "number", real: "number", time: "time" } as const;

const columnOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

/** Queries need these fields. */
const REQUIRED = new Set<string>(["id", "clientId", "receivedAtMs", "startedAtMs", "proxies"]);

/** The columns of the table `downloads`. */
export const COLUMNS: readonly Column[] = recordFields
  .filter(([, { sql }]) => sql === undefined)
  .map(([name, { type }]) => ({
    name,
    column: columnOf(name),
    kind: COLUMN_KINDS[type],
    required: REQUIRED.has(name),
  }));

/** Files that an older Origo exported lack these. */
export const LATER_COLUMNS: ReadonlySet<string> = new Set(["vouchedBy"]);

const ERRORS_REQUIRED = new Set(["id", "receivedAtMs", "atMs"]);

/** The columns of the table `errors`. */
export const ERROR_COLUMNS: readonly Column[] = (
  [
    "id:uuid",
    "receivedAtMs:real",
    "clientId:uuid",
    "atMs:real",
    "source:text",
    "kind:text",
    "message:text",
    "url:text",
    "ledTo:text",
  ] as const
)
  .map((each) => each.split(":") as [string, Column["kind"]])
  .map(([name, kind]) => ({ name, column: columnOf(name), kind, required: ERRORS_REQUIRED.has(name) }));

export const FIELDS: readonly StoredField[] = recordFields.map(([name, field]): StoredField => {
  const { label, type, unit = null, help, values, sql } = field;
  const column = columnOf(name);
  const [pattern, bounds] = [PATTERNS[type], boundsOf(field)];
  return {
    ...(pattern ? { pattern } : {}),
    ...(bounds ? { bounds } : {}),
    name,
    label,
    type: QUERY_TYPES[COLUMN_KINDS[type]],
    unit,
    origin: sql === undefined ? "basic" : "derived",
    help,
    ...(values ? { values: [...values] } : {}),
    sql: sql === undefined ? (type === "uuid" ? `${column}::VARCHAR` : column) : `(${sql})`,
  };
});

const BY_NAME = new Map(FIELDS.map((field) => [field.name, field]));

/** Stands before, between and after the experiments in their column. No name needs this character. */
export const ARM_SEPARATOR = "\u001f";
const ARM_FIELD = /^arm:([A-Za-z0-9_-]{1,64})$/;

/** The ID of `arm:ID`; undefined for another field. */
export const experimentOf = (name: string): string | undefined => ARM_FIELD.exec(name)?.[1];

/** A field of the list, or `arm:ID`: the arm that a download drew of the experiment ID, empty if it took no part. */
export function fieldOf(name: string): StoredField | undefined {
  const id = experimentOf(name);
  if (id === undefined) return BY_NAME.get(name);
  const sql = `NULLIF(split_part(split_part(experiments, chr(31) || '${id}=', 2), chr(31), 1), '')`;
  return {
    name,
    label: "Arm",
    type: "text",
    unit: null,
    origin: "basic",
    help: "The arm that the download drew of this experiment.",
    sql,
  };
}
