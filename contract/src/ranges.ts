/**
 * Byte ranges as HTTP writes them (RFC 9110 §14): one range, both ends inclusive. Parsers return undefined for anything
 * else: several ranges, another unit, an end before its start, a number of more than 15 digits.
 */

/** Bytes `start` to `end` of a resource, both inclusive. */
export interface ByteRange {
  start: number;
  end: number;
}

/** What a Range header asks for: from `start` to `end` or to the end of the resource, or its last `suffixBytes`. */
export type RangeRequest = { start: number; end?: number } | { suffixBytes: number };

/** What a 206 answers. `resourceBytes` counts the whole resource; null when the origin does not know it. */
export interface ContentRange extends ByteRange {
  resourceBytes: number | null;
}

/** Parses a Range header, e.g. `bytes=0-99`, `bytes=100-` or `bytes=-50`. */
export function parseRange(header: string | null | undefined): RangeRequest | undefined {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header?.trim() ?? "") ?? [];
  if (first === undefined || last === undefined) return undefined;
  if (first === "") return last === "" ? undefined : { suffixBytes: Number(last) };
  if (last === "") return { start: Number(first) };
  return Number(last) < Number(first) ? undefined : { start: Number(first), end: Number(last) };
}

export function formatRange(range: RangeRequest): string {
  return "suffixBytes" in range ? `bytes=-${range.suffixBytes}` : `bytes=${range.start}-${range.end ?? ""}`;
}

/**
 * Resolves `range` against a resource of `resourceBytes` bytes. Undefined when the resource has none of these bytes:
 * the answer's status is then 416.
 */
export function resolveRange(range: RangeRequest, resourceBytes: number): ByteRange | undefined {
  const last = resourceBytes - 1;
  const start = "start" in range ? range.start : Math.max(0, resourceBytes - range.suffixBytes);
  const end = "start" in range ? Math.min(range.end ?? last, last) : last;
  return start > end ? undefined : { start, end };
}

/** Parses a Content-Range header, e.g. `bytes 0-99/1234` or `bytes 0-99/*`. */
export function parseContentRange(header: string | null | undefined): ContentRange | undefined {
  const match = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/.exec(header?.trim() ?? "");
  if (!match) return undefined;
  const [start, end] = [Number(match[1]), Number(match[2])];
  const resourceBytes = match[3] === "*" ? null : Number(match[3]);
  if (end < start || (resourceBytes !== null && end >= resourceBytes)) return undefined;
  return { start, end, resourceBytes };
}

export function formatContentRange({ start, end }: ByteRange, resourceBytes: number | null): string {
  return `bytes ${start}-${end}/${resourceBytes ?? "*"}`;
}
