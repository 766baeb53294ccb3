/** What the HTTP modes share: request headers, response heads and linked aborts. No I/O. */
import {
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
