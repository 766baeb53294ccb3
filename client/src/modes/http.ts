/** What the HTTP modes share: answers as heads, ranges as headers, an abort that follows another. No I/O. */
import type { ByteRange } from "@tributary/protocol";
import type { DownloadHead } from "../api";

export interface ContentRange {
  start: number;
  end: number;
  /** Length of the whole resource; null when the origin does not know it. */
  total: number | null;
}

/** `bytes 0-99/1234` (RFC 9110 §14.4); undefined when it is not that. */
export function parseContentRange(value: string | undefined | null): ContentRange | undefined {
  const match = /^bytes (\d+)-(\d+)\/(\d+|\*)$/.exec(value ?? "");
  if (!match) return undefined;
  return { start: Number(match[1]), end: Number(match[2]), total: match[3] === "*" ? null : Number(match[3]) };
}

/** Request headers: the bytes of the resource as they are, all or a range of them. */
export function headersFor(range: ByteRange | { start: number } | undefined): Record<string, string> {
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  if (range) headers.range = `bytes=${range.start}-${"end" in range ? range.end : ""}`;
  return headers;
}

export function headOf(response: Response): DownloadHead {
  const headers = Object.fromEntries(response.headers);
  const length = headers["content-length"];
  const isPlain = !headers["content-encoding"] || headers["content-encoding"] === "identity";
  const totalBytes = isPlain && length !== undefined && /^\d+$/.test(length) ? Number(length) : null;
  return { status: response.status, headers, totalBytes };
}

/** Length of the whole resource, where the head tells it. */
export function resourceBytes(head: DownloadHead): number | null {
  if (head.status === 200) return head.totalBytes;
  return parseContentRange(head.headers["content-range"])?.total ?? null;
}

/** In what the two answers cannot be of the same bytes, as a sentence; undefined when they can. */
export function differenceOf(ours: DownloadHead, theirs: DownloadHead): string | undefined {
  if (ours.status !== theirs.status) return differs("status", theirs.status, ours.status);
  const lengths = [ours.totalBytes, theirs.totalBytes];
  if (lengths[0] !== null && lengths[1] !== null && lengths[0] !== lengths[1])
    return differs("length", lengths[1], lengths[0]);
  return validatorDifference(ours, theirs, ["etag", "last-modified", "content-range"]);
}

export function validatorDifference(
  ours: DownloadHead,
  theirs: DownloadHead,
  names: readonly string[],
): string | undefined {
  for (const name of names) {
    const [a, b] = [ours.headers[name], theirs.headers[name]];
    if (a !== undefined && b !== undefined && a !== b) return differs(name, b, a);
  }
  return undefined;
}

function differs(what: string, got: unknown, expected: unknown): string {
  return `The answer's ${what} differs from the first one: got ${String(got)}, expected ${String(expected)}.`;
}

/** What the origin would have said to the request for `whole`, of which `first` is the answer to a part. */
export function wholeHead(first: DownloadHead, whole: ByteRange, status: 200 | 206): DownloadHead {
  const { "content-range": told, ...headers } = first.headers;
  const total = parseContentRange(told)?.total;
  const totalBytes = whole.end - whole.start + 1;
  if (status === 206)
    return {
      status,
      totalBytes,
      headers: { ...headers, "content-range": `bytes ${whole.start}-${whole.end}/${total ?? "*"}` },
    };
  return { status, totalBytes, headers };
}

/** An AbortController that is aborted with `signal`, until `unlink`. */
export function linkedAbort(signal: AbortSignal): { controller: AbortController; unlink(): void } {
  const controller = new AbortController();
  const stop = (): void => controller.abort(signal.reason);
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop);
  return { controller, unlink: () => signal.removeEventListener("abort", stop) };
}
