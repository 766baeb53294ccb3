/**
 * Origin part: which bytes of an origin's answer continue a download. An answer with other bytes than were asked for is
 * refused by name. Bytes of two answers are joined only if both have the same strong validator, or if the second answer
 * begins with the bytes of the first. Pure.
 */
import {
  formatContentRange,
  isSameVersion,
  parseContentRange,
  strongValidator,
  type ByteRange,
  type ContentRange,
  type Rejection,
  type ResponseHead,
} from "@tributary/contract";
import type { Request } from "../request";
import { wholeHead } from "./http";

/**
 * Which bytes of the answer's body are ours. First `skip` bytes are dropped, then `compare` bytes must be the ones that
 * were delivered, then `take` bytes follow, or all if it is null.
 */
export interface Part {
  skip: number;
  compare: number;
  take: number | null;
  /** False if the origin gave only the beginning of what was asked for. */
  isLast: boolean;
  /** The head of the whole download. Only the first answer has it. */
  head?: ResponseHead;
}

/** The first answer to a request for `range`. `verbatim`: the origin may ignore the range. */
export function firstPart(range: ByteRange | undefined, now: ResponseHead, verbatim: boolean): Part | Rejection {
  if (now.status === 206) return partOf206(range, now);
  if (now.status === 200 && range && !verbatim) return partOfWhole(range, now);
  return { skip: 0, compare: 0, take: now.totalBytes, isLast: true, head: now };
}

function partOf206(range: ByteRange | undefined, now: ResponseHead): Part | Rejection {
  const told = parseContentRange(now.headers["content-range"]);
  const fault = rangeFault(range, now);
  if (fault || !told) return fault ?? otherRange(range, now);
  const whole = { start: told.start, end: lastByteOf(range, told) };
  const isLast = told.end >= whole.end;
  // The rest can be joined only by a validator, and only to a known end.
  if (!isLast && (whole.end === Infinity || strongValidator(now) === undefined)) return otherRange(range, now);
  const head = isLast ? now : wholeHead(now, whole, 206);
  return { skip: 0, compare: 0, take: told.end - told.start + 1, isLast, head };
}

/** The origin ignored the range. The answer is made as if it had not. */
function partOfWhole(range: ByteRange, now: ResponseHead): Part | Rejection {
  const { start } = range;
  const end = Math.min(range.end, (now.totalBytes ?? Infinity) - 1);
  if (end < start) return otherRange(range, now);
  const take = end - start + 1;
  const headers = { ...now.headers, "content-range": formatContentRange({ start, end }, now.totalBytes) };
  return { skip: start, compare: 0, take, isLast: true, head: { status: 206, headers, totalBytes: take } };
}

/** The answer to a request for what follows the first `offset` bytes of `head`, whose body begins at `base`. */
export function restPart(head: ResponseHead, now: ResponseHead, offset: number, base: number): Part | Rejection {
  if (now.status !== 200 && now.status !== 206) return refused(`status ${now.status}`);
  if (!isSameVersion(head, now))
    return { kind: "originChanged", message: "The rest does not have the strong validator of the delivered bytes." };
  const take = head.totalBytes === null ? null : head.totalBytes - offset;
  if (now.status === 200) return { skip: base + offset, take, compare: 0, isLast: true };
  const told = parseContentRange(now.headers["content-range"]);
  if (told?.start !== base + offset || (take !== null && told.end >= told.start + take))
    return otherRange({ start: base + offset, end: take === null ? undefined : base + offset + take - 1 }, now);
  const length = told.end - told.start + 1;
  return { skip: 0, take: length, compare: 0, isLast: take === null || length === take };
}

/**
 * The body from its start once more, to be compared with the delivered bytes. It may be a newer version with another
 * length: if it begins with the delivered bytes, it is delivered whole.
 */
export function wholePart(
  range: ByteRange | undefined,
  head: ResponseHead,
  now: ResponseHead,
  offset: number,
  base: number,
): Part | Rejection {
  if (now.status !== 200 && now.status !== 206) return refused(`status ${now.status}`);
  const told = now.status === 206 ? parseContentRange(now.headers["content-range"]) : undefined;
  const start = now.status === 206 ? told?.start : 0;
  if (start === undefined || start > base) return otherRange(range, now);
  const skip = base - start;
  const endMax = head.status === 206 && range ? range.end - base + 1 : Infinity;
  const bytes = now.totalBytes === null ? null : Math.min(now.totalBytes - skip, endMax);
  if (told && told.end < lastByteOf(range, told)) return otherRange(range, now);
  const take = bytes ?? (Number.isFinite(endMax) ? head.totalBytes : null);
  return { skip, take: take === null ? null : take - offset, compare: offset, isLast: true };
}

/**
 * Why an answer through proxies cannot serve the request for `range`. Proxies answer for the origin only with bytes.
 * Any other status could be one proxy's own, or be meant for the proxy alone, so the caller asks the origin itself.
 */
export function proxiedFault(
  { allowFallback, verbatim }: Pick<Request, "allowFallback" | "verbatim">,
  range: ByteRange | undefined,
  now: ResponseHead,
): Rejection | undefined {
  const { status } = now;
  if (status === 200) return range && !verbatim ? otherRange(range, now) : undefined;
  if (status !== 206) {
    const message = `Through the proxies the answer has status ${status}.`;
    return allowFallback === false ? undefined : { kind: "otherStatus", message, got: status };
  }
  const fault = rangeFault(range, now);
  const told = parseContentRange(now.headers["content-range"]);
  if (fault || verbatim || !told) return fault;
  return told.end < lastByteOf(range, told) ? otherRange(range, now) : undefined;
}

/** Why a 206 is not the answer to a request for `range`. A beginning of the range is one. */
function rangeFault(range: ByteRange | undefined, now: ResponseHead): Rejection | undefined {
  if (now.status !== 206) return undefined;
  const told = parseContentRange(now.headers["content-range"]);
  if (!told || told.start !== (range?.start ?? 0) || told.end > (range?.end ?? Infinity)) return otherRange(range, now);
  const bytes = told.end - told.start + 1;
  return now.totalBytes === null || now.totalBytes === bytes ? undefined : otherRange(range, now);
}

/** The last byte that an answer to a request for `range` can have. */
function lastByteOf(range: ByteRange | undefined, { end, resourceBytes }: ContentRange): number {
  // A part of a resource of unknown length may be all of the range that there is, but not all of the resource.
  if (resourceBytes === null) return range ? end : Infinity;
  return Math.min(range?.end ?? Infinity, resourceBytes - 1);
}

function otherRange(asked: { start: number; end?: number | undefined } | undefined, now: ResponseHead): Rejection {
  const wanted = asked === undefined ? "the whole" : `bytes ${asked.start}-${asked.end ?? ""}`;
  const length = now.totalBytes === null ? "" : ` in ${now.totalBytes} bytes`;
  const got =
    now.status === 206
      ? `${now.headers["content-range"] ?? "a part without Content-Range"}${length}`
      : `the whole${length}`;
  return { kind: "rangeRefused", message: `The origin answers with another range: asked for ${wanted}, got ${got}.` };
}

function refused(got: string): Rejection {
  return { kind: "originRefused", message: `The origin does not give the rest: got ${got}.` };
}
