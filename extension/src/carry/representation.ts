/**
 * Representation: whether two answers belong to one version of a file (RFC 9110 §8.8), and which part of the file to
 * ask for. A header that the page may not see counts as equal. Pure.
 */
import type { ByteRange, PageResponseHead } from "../shared/messages";

const CONTENT_RANGE = /^bytes (\d+)-\d+\/(\d+)$/;

/** The Range header for what follows the first `offset` bytes of the answer `head`. */
export function restOf(asked: ByteRange | null, head: PageResponseHead, offset: number): string | undefined {
  if (head.status === 206 && asked !== null) return `bytes=${asked.start + offset}-${asked.end}`;
  return head.status === 200 ? `bytes=${offset}-` : undefined;
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
  if (!hasSameValidators(response.headers, head.headers)) return undefined;
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

/** Whether `response` is a part of the same file as `head` and begins at its offset `start`. */
export function isPartOf(response: Response, head: PageResponseHead, start: number): boolean {
  return (
    response.status === 206 &&
    hasSameValidators(response.headers, head.headers) &&
    isSamePart(response.headers.get("content-range"), head, start)
  );
}

/** Whether a Content-Range that the page may see begins at `start` and names the same total length as before. */
function isSamePart(contentRange: string | null, head: PageResponseHead, start: number): boolean {
  const now = CONTENT_RANGE.exec(contentRange ?? "");
  if (now === null) return true;
  const before = CONTENT_RANGE.exec(head.headers.find(([name]) => name === "content-range")?.[1] ?? "");
  const totalBefore =
    before?.[2] ?? (head.status === 200 && head.totalBytes !== null ? String(head.totalBytes) : now[2]);
  return Number(now[1]) === start && now[2] === totalBefore;
}

function hasSameValidators(now: Headers, before: readonly [string, string][]): boolean {
  return ["etag", "last-modified"].every((name) => {
    const was = before.find(([known]) => known === name)?.[1];
    const is = now.get(name);
    return was === undefined || is === null || was === is;
  });
}
