/**
 * Sends one request to a proxy over HTTP (`GET /v1/fetch` or `/v1/digests`), and tells the origin's answer from the
 * proxy's own. It decides nothing else.
 */
import {
  CLIENT_HEADER,
  KEPT_HEADERS,
  ORIGIN_TIME_HEADER,
  parseOriginTime,
  RENAMED_PREFIX,
  type ByteRange,
  type ResponseHead,
  type Rejection,
  rejectionOf,
} from "@tributary/contract";
import type { ProxyInfo } from "../api";
import { DownloadError } from "../errors";
import type { ActiveDownload } from "../active-download";
import { headersFor, headFrom, headOf } from "./http";

export interface ProxyFailure {
  (proxy: ProxyInfo, rejection: Rejection): void;
}

export interface ProxiedAnswer {
  response: Response;
  head: ResponseHead;
  /** How long the proxy waited for the origin. */
  serverFetchMs: number;
}

/** What to ask of a proxy. */
export interface Wish {
  /** What of the origin's answer: its body, a part of the body, or the digests of its blocks (protocol.md §9.8). */
  gives: "body" | "digests" | ByteRange;
  /** The range of the request to the origin. */
  range: ByteRange | undefined;
  /** All wishes with the same name are about one answer of the origin. */
  name: string;
}

/** A proxy's error is shorter than this. A longer body does not come from the proxy. */
const ERROR_BODY_CHARS_MAX = 4096;

/** Returns the origin's answer as the proxy passes it on. Throws if the request fails or the proxy answers itself. */
export async function fetchThrough(
  download: ActiveDownload,
  proxy: ProxyInfo,
  { gives, range, name }: Wish,
  signal: AbortSignal,
): Promise<ProxiedAnswer> {
  const { url, cache, pageOrigin } = download.asked;
  const wanted = new URLSearchParams({ url, download: name, ...(cache === "default" ? {} : { cache }) });
  if (typeof gives === "object") wanted.set("part", `${gives.start}-${gives.end}`);
  if (pageOrigin !== undefined) wanted.set("pageOrigin", pageOrigin);
  const { token } = download;
  if (token !== undefined) wanted.set("token", token);
  const response = await download.platform.fetch(
    `${proxy.url}/v1/${gives === "digests" ? "digests" : "fetch"}?${wanted}`,
    { headers: { ...headersFor(range), [CLIENT_HEADER]: "1" }, credentials: "omit", cache: "no-store", signal },
  );
  const serverFetchMs = parseOriginTime(response.headers.get(ORIGIN_TIME_HEADER));
  if (serverFetchMs === undefined) throw await ownAnswer(response);
  const { headers, ...rest } = headOf(response);
  const own = originHeaders(headers);
  const head = gives === "body" ? { ...rest, headers: own } : headFrom(response.status, own);
  return { response, head, serverFetchMs };
}

/** A reader that ends with the signal. An aborted fetch may leave a read of its body pending. */
export function readerOf(
  { body }: Response,
  signal: AbortSignal,
): ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>> | undefined {
  const reader = body?.getReader();
  signal.addEventListener("abort", () => void reader?.cancel().catch(() => undefined));
  return reader;
}

/** Keeps the origin's headers and leaves out the proxy's own. */
function originHeaders(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(headers).flatMap(([name, value]) => {
      if (name.startsWith(RENAMED_PREFIX)) return [[name.slice(RENAMED_PREFIX.length), value]];
      return KEPT_HEADERS.includes(name) ? [[name, value]] : [];
    }),
  );
}

/**
 * Says why the answer is not the origin's. Either it is the proxy's error, or something on the way to the proxy has
 * answered in its place.
 */
async function ownAnswer(response: Response): Promise<DownloadError> {
  const text = response.status < 400 ? "" : await beginningOf(response);
  await response.body?.cancel();
  try {
    const { error } = JSON.parse(text) as { error: { kind: unknown; message: unknown; got?: unknown } };
    const { kind, message } = rejectionOf(String(error.kind), String(error.message));
    return new DownloadError(kind, message, Number.isSafeInteger(error.got) ? (error.got as number) : undefined);
  } catch {
    return new DownloadError(
      "proxyFailed",
      `The proxy answered ${response.status}, and that is not the origin's answer.`,
    );
  }
}

/** Reads the first characters of a body, because a body may be endless. */
async function beginningOf({ body }: Response): Promise<string> {
  const reader = body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  while (reader && text.length < ERROR_BODY_CHARS_MAX) {
    const { done, value } = await reader.read();
    if (done) break;
    text += decoder.decode(value, { stream: true });
  }
  reader?.releaseLock();
  return text;
}
