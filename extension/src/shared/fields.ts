/**
 * Fields: the HTTP fields that the scripts in the page's world read and write. The contract has the same for other
 * contexts (ranges.ts, heads.ts), with functions that a page can replace. Pure.
 */
import type { ByteRange } from "@tributary/contract";
import { exec, matches, options, staticOf, trim, type Table } from "./primordials";
import { max } from "./late-primordials";

/** By name in lower case. Nothing is inherited. */
export type Fields = Readonly<Table<string>>;

/** A head's fields. The head of a message is an object that inherits what a page gives all objects. */
export const fieldsOf = (headers: Readonly<Record<string, string>>): Fields => options(headers);

const CONTENT_RANGE = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/;
/** A Last-Modified that is so much older than its answer is a strong validator (RFC 9110 §8.8.2.2). */
const STRONG_DATE_MS = 60_000;
const parseDate = staticOf("Date", "parse") as typeof Date.parse;

/** A Range field. Without `end` to the end of the file. */
export const rangeText = (start: number, end?: number): string => `bytes=${start}-${end ?? ""}`;

/** What a Content-Range tells (RFC 9110 §14.4). `resourceBytes` is null if the server does not know it. */
export function contentRange(
  field: string | null | undefined,
): (ByteRange & { resourceBytes: number | null }) | undefined {
  const match = exec(CONTENT_RANGE, trim(field ?? ""));
  if (match === null) return undefined;
  const start = +match[1]!;
  const end = +match[2]!;
  const resourceBytes = match[3] === "*" ? null : +match[3]!;
  return end < start || (resourceBytes !== null && end >= resourceBytes) ? undefined : { start, end, resourceBytes };
}

/** The validator that is the same only for the same bytes (RFC 9110 §8.8.1); undefined if there is none. */
export function strongValidator(fields: Fields): string | undefined {
  const { etag, date, "last-modified": modified } = fields;
  if (etag !== undefined) return matches(/^"[^"]*"$/, etag) ? etag : undefined;
  if (modified === undefined || date === undefined) return undefined;
  return parseDate(date) - parseDate(modified) >= STRONG_DATE_MS ? modified : undefined;
}

/** How long the sender of an answer asks to wait (RFC 9110 §10.2.3); undefined without a readable Retry-After. */
export function retryAfterMs(fields: Fields, nowMs: number): number | undefined {
  const text = trim(fields["retry-after"] ?? "");
  const ms = matches(/^\d{1,9}$/, text) ? 1000 * +text : parseDate(text) - nowMs;
  return ms === ms ? max(0, ms) : undefined;
}
