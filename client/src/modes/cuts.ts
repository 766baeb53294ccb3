/** Cuts: a request that is longer than a chunk is fetched as ranges. What is cut, and what may be joined. No I/O. */
import { parseContentRange, type ByteRange, type Rejection, type ResponseHead } from "@tributary/contract";
import { LIMITS } from "@tributary/protocol";
import type { ActiveDownload, ModeResult } from "../active-download";

/**
 * What is cut into ranges before anything is asked for: a caller may want shorter chunks than those that proxies
 * refuse. The end is Infinity if it is not known.
 */
export function cutBefore({ asked, object, settings: { chunkBytesMax } }: ActiveDownload): ByteRange | undefined {
  const { range } = asked;
  if (object) {
    const whole = range ?? { start: 0, end: object.object.bytes - 1 };
    return whole.end - whole.start >= chunkBytesMax ? whole : undefined;
  }
  if (chunkBytesMax >= LIMITS.chunkBytesMax) return undefined;
  if (!range) return { start: 0, end: Infinity };
  return range.end - range.start >= chunkBytesMax ? range : undefined;
}

/**
 * What is cut into ranges because the proxies found the answer too long for one chunk. They keep that answer open for
 * the ranges, so that the origin is asked once.
 */
export function cutAfter(
  { asked: { range }, object, head }: ActiveDownload,
  result: ModeResult,
): ByteRange | undefined {
  if (object || result.kind !== "failed" || result.rejection.kind !== "chunkTooLarge" || head) return undefined;
  const { got } = result.rejection;
  if (got === undefined || got <= LIMITS.chunkBytesMax) return undefined;
  if (!range) return { start: 0, end: got - 1 };
  if (range.end - range.start < LIMITS.chunkBytesMax) return undefined;
  return { start: range.start, end: Math.min(range.end, range.start + got - 1) };
}

/**
 * Up to where the ranges go: to the end of the resource, even if the proxies reported another length. A rejection if
 * the origin does not tell that end.
 */
export function cutEnd(end: number, { headers }: ResponseHead, isWhole: boolean): number | Rejection {
  const total = parseContentRange(headers["content-range"])?.resourceBytes ?? undefined;
  if (total !== undefined) return isWhole ? total - 1 : Math.min(end, total - 1);
  if (Number.isFinite(end)) return end;
  return { kind: "lengthUnknown", message: "The origin gives a range and does not say how long the whole is." };
}

/**
 * Says why the answer to a range cannot be part of the whole. Undefined if it can. Answers to several ranges are joined
 * only if they have the same strong validator (RFC 9110 §15.3.7.3).
 */
export function cutFault(
  first: ResponseHead & { version: string | undefined },
  head: ResponseHead & { version: string | undefined },
  range: ByteRange,
): Rejection | undefined {
  const told = parseContentRange(head.headers["content-range"]);
  if (head.status !== 206 || told?.start !== range.start) {
    const got = head.status === 206 ? `a range from ${told?.start}` : `status ${head.status}`;
    return {
      kind: "rangeRefused",
      message: `The origin does not give ranges as asked: asked for bytes from ${range.start}, got ${got}.`,
    };
  }
  const expected = parseContentRange(first.headers["content-range"])?.resourceBytes;
  if (first.version === undefined || first.version !== head.version) {
    const message =
      "The ranges of a body that is longer than a chunk do not share a strong validator, so they cannot be joined.";
    return { kind: "originChanged", message };
  }
  if (told.resourceBytes === expected) return undefined;
  return {
    kind: "originChanged",
    message: `The resource changed its length: got ${told.resourceBytes}, expected ${expected}.`,
  };
}
