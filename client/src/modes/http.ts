/** What the HTTP modes share: request headers, response heads, their comparison, and linked aborts. No I/O. */
import {
  type Rejection,
  formatContentRange,
  formatRange,
  parseContentRange,
  type ByteRange,
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
  return headFrom(response.status, Object.fromEntries(response.headers));
}

export function headFrom(status: number, headers: Record<string, string>): ResponseHead {
  const length = headers["content-length"];
  const isPlain = !headers["content-encoding"] || headers["content-encoding"] === "identity";
  const totalBytes = isPlain && length !== undefined && /^\d+$/.test(length) ? Number(length) : null;
  return { status, headers, totalBytes };
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
