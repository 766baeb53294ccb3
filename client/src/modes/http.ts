/** What the HTTP modes share: request headers, response heads, their comparison, and linked aborts. No I/O. */
import {
  type Rejection,
  formatContentRange,
  formatRange,
  headDifference,
  parseContentRange,
  type ByteRange,
  type HeadDifference,
  type RangeRequest,
  type ResponseHead,
} from "@tributary/contract";

/** Request headers for the whole resource or a range of it, without content encoding. */
export function headersFor(range: RangeRequest | undefined): Record<string, string> {
  const headers: Record<string, string> = { "accept-encoding": "identity" };
  if (range) headers.range = formatRange(range);
  return headers;
}

export function headOf(response: Response): ResponseHead {
  const headers = Object.fromEntries(response.headers);
  const length = headers["content-length"];
  const isPlain = !headers["content-encoding"] || headers["content-encoding"] === "identity";
  const totalBytes = isPlain && length !== undefined && /^\d+$/.test(length) ? Number(length) : null;
  return { status: response.status, headers, totalBytes };
}

/** The length of the whole resource in bytes. null if the head does not give it. */
export function resourceBytes(head: ResponseHead): number | null {
  if (head.status === 200) return head.totalBytes;
  return parseContentRange(head.headers["content-range"])?.resourceBytes ?? null;
}

/** A sentence that says why the two answers cannot have the same bytes. Undefined if they can. */
export function differenceOf(ours: ResponseHead, theirs: ResponseHead): string | undefined {
  return sentenceOf(headDifference(ours, theirs));
}

/**
 * Proxies answer for the origin only with bytes. Any other status could be one proxy's own, or be meant for the proxy
 * alone, so the caller asks the origin itself, if it may.
 */
export function statusFault(allowFallback: boolean | "proxies", { status }: ResponseHead): Rejection | undefined {
  if (allowFallback === false || status === 200 || status === 206) return undefined;
  return { kind: "otherStatus", message: `Through the proxies the answer has status ${status}.`, got: status };
}

function sentenceOf(difference: HeadDifference | undefined): string | undefined {
  if (!difference) return undefined;
  const { what, got, expected } = difference;
  return `The answer's ${what} differs from the first one: got ${String(got)}, expected ${String(expected)}.`;
}

/** The head with which the origin would answer a request for `whole`. `first` is its answer to one part of that. */
export function wholeHead(first: ResponseHead, whole: ByteRange, status: 200 | 206): ResponseHead {
  const { "content-range": told, ...headers } = first.headers;
  const resourceBytes = parseContentRange(told)?.resourceBytes ?? null;
  const totalBytes = whole.end - whole.start + 1;
  if (status === 206)
    return { status, totalBytes, headers: { ...headers, "content-range": formatContentRange(whole, resourceBytes) } };
  return { status, totalBytes, headers };
}

/** Makes an AbortController that aborts when `signal` does. `unlink` ends that. */
export function linkedAbort(signal: AbortSignal): { controller: AbortController; unlink(): void } {
  const controller = new AbortController();
  const stop = (): void => controller.abort(signal.reason);
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop);
  return { controller, unlink: () => signal.removeEventListener("abort", stop) };
}
