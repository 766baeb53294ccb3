/**
 * Representation: whether two answers belong to one version of a file (RFC 9110 §8.8), and which part of the file to
 * ask for. A length that the page may not see counts as equal. Pure.
 */
import type { PageResponseHead } from "../shared/messages";
import { formatRange, parseContentRange, strongValidator, type ByteRange } from "@tributary/contract";

/** The Range header for what follows the first `offset` bytes of the answer `head`. */
export function restOf(asked: ByteRange | null, head: PageResponseHead, offset: number): string | undefined {
  if (head.status === 206 && asked !== null) return formatRange({ start: asked.start + offset, end: asked.end });
  return head.status === 200 ? formatRange({ start: offset }) : undefined;
}

/**
 * The validator that proves that parts of two answers belong together; undefined if the page sees none. A page rarely
 * sees when another host answered, so the present stands for that.
 */
export function validatorOf(headers: PageResponseHead["headers"]): string | undefined {
  return strongValidator({ headers: { date: new Date().toUTCString(), ...headers } });
}

/**
 * How many first bytes of `response` were already delivered; undefined if it does not continue the answer `head`.
 */
export function bytesToSkip(
  response: Response,
  head: PageResponseHead,
  offset: number,
  asked: ByteRange | null,
): number | undefined {
  const now = validatorOf(Object.fromEntries(response.headers));
  if (now === undefined || now !== validatorOf(head.headers)) return undefined;
  const length = Number(response.headers.get("content-length") ?? NaN);
  if (response.status === 206) {
    const isRest = head.totalBytes === null || Number.isNaN(length) || length === head.totalBytes - offset;
    return isRest && isSamePart(response.headers.get("content-range"), head, (asked?.start ?? 0) + offset)
      ? 0
      : undefined;
  }
  if (response.status !== 200 || (head.status === 206 && asked !== null)) return undefined;
  return head.totalBytes === null || Number.isNaN(length) || length === head.totalBytes ? offset : undefined;
}

/** Whether `response` is as long as the answer `head`, to the same request. Its validators may be others. */
export function isSameWhole(response: Response, { status, totalBytes }: PageResponseHead): boolean {
  const length = Number(response.headers.get("content-length") ?? NaN);
  return response.status === status && (totalBytes === null || Number.isNaN(length) || length === totalBytes);
}

/** Whether a Content-Range that the page may see begins at `start` and names the same total length as before. */
function isSamePart(contentRange: string | null, head: PageResponseHead, start: number): boolean {
  if (contentRange === null) return true;
  const now = parseContentRange(contentRange);
  if (now === undefined || now.start !== start) return false;
  const before = parseContentRange(head.headers["content-range"])?.resourceBytes;
  const bytesBefore = before ?? (head.status === 200 ? head.totalBytes : null);
  return now.resourceBytes === null || bytesBefore === null || now.resourceBytes === bytesBefore;
}
