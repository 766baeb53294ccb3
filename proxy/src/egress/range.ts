/** Byte ranges as HTTP writes them (RFC 9110 §14): one range only, both ends inclusive. */
import { egressError } from "./error";

/** From `start` to `end` (to the end of the resource when missing), or its last `suffixBytes`. */
export type RangeRequest = { start: number; end?: number } | { suffixBytes: number };

/** Undefined when the header is not a single, well-formed byte range. */
export function parseRangeHeader(value: string): RangeRequest | undefined {
  const match = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(value.trim());
  const [, first, last] = match ?? [];
  if (first === undefined || last === undefined) return undefined;
  if (first === "") return last === "" ? undefined : { suffixBytes: Number(last) };
  if (last === "") return { start: Number(first) };
  return Number(last) < Number(first) ? undefined : { start: Number(first), end: Number(last) };
}

export function rangeHeader(range: RangeRequest): string {
  return "suffixBytes" in range ? `bytes=-${range.suffixBytes}` : `bytes=${range.start}-${range.end ?? ""}`;
}

/**
 * The length that a 206's Content-Range gives. Throws an `EgressError` when it is missing or unreadable, is not
 * (a beginning of) what was asked for, or contradicts Content-Length: such bytes would end up in the wrong place.
 */
export function checkContentRange(
  header: string | undefined,
  range: RangeRequest | undefined,
  announcedBytes: number | undefined,
): number {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(header?.trim() ?? "");
  if (!match || !range)
    throw egressError("rangeMismatch", "The origin sent a part of the resource that was not asked for.");
  const [start, end] = [Number(match[1]), Number(match[2])];
  const bytes = end - start + 1;
  const startsWrong = "start" in range && start !== range.start;
  const endsWrong = "start" in range && range.end !== undefined && end > range.end;
  if (bytes < 1 || startsWrong || endsWrong)
    throw egressError("rangeMismatch", "The origin sent another range than the one asked for.");
  if (announcedBytes !== undefined && announcedBytes !== bytes) {
    const message = `Content-Length and Content-Range differ: got ${announcedBytes}, the range has ${bytes}.`;
    throw egressError("rangeMismatch", message, { got: announcedBytes, limit: bytes });
  }
  return bytes;
}
