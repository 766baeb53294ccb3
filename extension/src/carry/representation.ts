/**
 * Representation: whether two answers belong to one version of a file (RFC 9110 §8.8), and which part of the file to
 * ask for. A length that the page may not see counts as equal. Pure.
 */
import type { PageResponseHead } from "../shared/messages";
import type { ByteRange } from "@tributary/contract";
import { contentRange, fieldsOf, rangeText, strongValidator } from "../shared/fields";
import { options } from "../shared/primordials";
import { dateText } from "../shared/late-primordials";
import { headerOf, responseOf } from "../shared/platform";
import { headerTable } from "../shared/late-platform";

/** The Range header for what follows the first `offset` bytes of the answer `head`. */
export function restOf(asked: ByteRange | null, head: PageResponseHead, offset: number): string | undefined {
  if (head.status === 206 && asked !== null) return rangeText(asked.start + offset, asked.end);
  return head.status === 200 ? rangeText(offset) : undefined;
}

/**
 * The validator that proves that parts of two answers belong together; undefined if the page sees none. A page rarely
 * sees when another host answered, so the present stands for that.
 */
export function validatorOf(headers: PageResponseHead["headers"]): string | undefined {
  return strongValidator(options({ date: dateText(), ...headers }));
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
  const { status, headers } = responseOf(response);
  const now = validatorOf(headerTable(headers));
  if (now === undefined || now !== validatorOf(head.headers)) return undefined;
  const length = lengthOf(headers);
  if (status === 206) {
    const isRest = head.totalBytes === null || length === undefined || length === head.totalBytes - offset;
    return isRest && isSamePart(headerOf(headers, "content-range"), head, (asked?.start ?? 0) + offset) ? 0 : undefined;
  }
  if (status !== 200 || (head.status === 206 && asked !== null)) return undefined;
  return head.totalBytes === null || length === undefined || length === head.totalBytes ? offset : undefined;
}

/** Whether `response` is as long as the answer `head`, to the same request. Its validators may be others. */
export function isSameWhole(response: Response, { status, totalBytes }: PageResponseHead): boolean {
  const answer = responseOf(response);
  const length = lengthOf(answer.headers);
  return answer.status === status && (totalBytes === null || length === undefined || length === totalBytes);
}

/** undefined if the page may not see it. */
function lengthOf(headers: Headers): number | undefined {
  const length = +(headerOf(headers, "content-length") ?? NaN);
  return length >= 0 ? length : undefined;
}

/** Whether a Content-Range that the page may see begins at `start` and names the same total length as before. */
function isSamePart(field: string | null, head: PageResponseHead, start: number): boolean {
  if (field === null) return true;
  const now = contentRange(field);
  if (now === undefined || now.start !== start) return false;
  const before = contentRange(fieldsOf(head.headers)["content-range"])?.resourceBytes;
  const bytesBefore = before ?? (head.status === 200 ? head.totalBytes : null);
  return now.resourceBytes === null || bytesBefore === null || now.resourceBytes === bytesBefore;
}
