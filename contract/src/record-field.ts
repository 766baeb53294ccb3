/** The description of one field in the table of record fields. */

/** `count` is a whole number; `label` is text of at least one character; `time` is ms since 1970. */
export type FieldType = "text" | "label" | "url" | "uuid" | "sha256" | "choice" | "count" | "number" | "time";

export interface RecordField {
  label: string;
  type: FieldType;
  unit?: string;
  /** Bounds of a count. `max` bounds the characters of a text. */
  min?: number;
  max?: number;
  /** The allowed values of a `choice`. */
  values?: readonly string[];
  /** The record has the field under its name. An optional one may be absent, a nullable one null. */
  record?: "required" | "optional" | "nullable";
  /** The record has it within an object: [object, name]. */
  path?: readonly [object: "range" | "error" | "fallback", name: string];
  /** Origo adds up the field of this name of all proxies. */
  summed?: true;
  /** Origo computes it when the record arrives. */
  computed?: true;
  /** No column holds it. Queries compute it from columns, by SQL that both databases understand. */
  sql?: string;
  help: string;
}
