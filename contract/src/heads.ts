/**
 * Heads of HTTP answers: what a client, a proxy and the extension know of an origin's answer before its body, and which
 * headers a proxy passes on. Two answers are of the same bytes only when their heads agree (RFC 9110 §8.8).
 */

/** What an origin answered. */
export interface ResponseHead {
  status: number;
  /** Names in lower case. */
  headers: Record<string, string>;
  /** Length of this body, not of the resource; null when the origin did not say. */
  totalBytes: number | null;
}

/** Headers that tell one version of a resource from another (RFC 9110 §8.8). */
export const VALIDATOR_HEADERS = ["etag", "last-modified"] as const;

/** A date is a strong validator once it was this old when the answer was made (RFC 9110 §8.8.2.2 asks for a second). */
const STRONG_DATE_MS = 60_000;

/**
 * The validator that is the same only for the same bytes (RFC 9110 §8.8.1): a strong ETag, or else a Last-Modified that
 * was old when the origin answered. Undefined if the head has none. Parts of two answers may be joined only if both
 * have the same one (RFC 9110 §15.3.7.3).
 */
export function strongValidator({ headers }: Pick<ResponseHead, "headers">): string | undefined {
  const { etag, date, "last-modified": modified } = headers;
  if (etag !== undefined) return /^"[^"]*"$/.test(etag) ? etag : undefined;
  if (modified === undefined || date === undefined) return undefined;
  return Date.parse(date) - Date.parse(modified) >= STRONG_DATE_MS ? modified : undefined;
}

/** Whether parts of the two answers may be joined. */
export function isSameVersion(first: Pick<ResponseHead, "headers">, now: Pick<ResponseHead, "headers">): boolean {
  const validator = strongValidator(first);
  return validator !== undefined && validator === strongValidator(now);
}

/**
 * How long the sender of the answer asks to wait: seconds or a date (RFC 9110 §10.2.3). Undefined without a readable
 * Retry-After.
 */
export function retryAfterMs({ headers }: Pick<ResponseHead, "headers">, nowMs: number): number | undefined {
  const text = headers["retry-after"]?.trim() ?? "";
  if (/^\d{1,9}$/.test(text)) return 1000 * Number(text);
  const atMs = Date.parse(text);
  return Number.isNaN(atMs) ? undefined : Math.max(0, atMs - nowMs);
}

const DESCRIBING_HEADERS = ["content-type", "content-range", ...VALIDATOR_HEADERS, "accept-ranges"];
const CORS_HEADERS = ["access-control-allow-origin", "access-control-expose-headers"];

/** Redirects that a proxy followed, in the head of its answer. No origin's own header of that name is passed on. */
export const HOPS_HEADER = "hops";

/** The headers of an answer that a client needs most. A proxy passes on the others as far as its limits allow. */
export const FIRST_HEADERS: readonly string[] = [
  ...DESCRIBING_HEADERS,
  "location",
  HOPS_HEADER,
  "cache-control",
  ...CORS_HEADERS,
  "set-cookie",
];

/** Headers of the origin that a proxy's HTTP answer repeats under their own names. */
export const KEPT_HEADERS: readonly string[] = [...DESCRIBING_HEADERS, "content-length"];

/** A proxy's HTTP answer sends the origin's other headers under such names, because they would mean something else. */
export const RENAMED_PREFIX = "x-origin-";

/** One redirect that a proxy followed. */
export interface Hop {
  /** Of the address that redirected. */
  origin: string;
  /** Its Access-Control-Allow-Origin. */
  allowedOrigin: string | null;
  setsCookie: boolean;
}

/** An origin is shorter. A longer value allows none. */
const ORIGIN_LENGTH_MAX = 300;

export function formatHops(hops: readonly Hop[]): string {
  return JSON.stringify(
    hops.map(({ origin, allowedOrigin, setsCookie }) => [
      origin,
      allowedOrigin !== null && allowedOrigin.length > ORIGIN_LENGTH_MAX ? "" : allowedOrigin,
      setsCookie,
    ]),
  );
}

/** Reads the header of an answer: no hops without a header, and undefined for a header that is not one. */
export function parseHops(header: string | undefined): Hop[] | undefined {
  if (header === undefined) return [];
  try {
    return (JSON.parse(header) as unknown[]).map((each) => {
      const [origin, allowedOrigin, setsCookie] = each as unknown[];
      if (typeof origin !== "string" || (allowedOrigin !== null && typeof allowedOrigin !== "string"))
        throw new Error();
      return { origin, allowedOrigin, setsCookie: setsCookie !== false };
    });
  } catch {
    return undefined;
  }
}

/** A proxy's HTTP answer that comes from the origin says in this header how long the origin took. */
export const ORIGIN_TIME_HEADER = "server-timing";
export const formatOriginTime = (ms: number): string => `origin;dur=${ms.toFixed(1)}`;

/** Milliseconds; undefined when the answer is not the origin's. */
export function parseOriginTime(header: string | null | undefined): number | undefined {
  const match = /(?:^|,)\s*origin\s*;\s*dur=([\d.]+)/.exec(header ?? "");
  return match ? Number(match[1]) : undefined;
}

/** One thing in which the head of an answer is not what it must be. */
export interface HeadDifference {
  what: string;
  got: unknown;
  expected: unknown;
}

/** The first of the headers `names` that both heads have and that differs. */
export function headerDifference(
  first: Pick<ResponseHead, "headers">,
  now: Pick<ResponseHead, "headers">,
  names: readonly string[],
): HeadDifference | undefined {
  for (const name of names) {
    const [expected, got] = [first.headers[name], now.headers[name]];
    if (expected !== undefined && got !== undefined && expected !== got) return { what: name, got, expected };
  }
  return undefined;
}

/** Why the two answers to one request cannot be of the same bytes; undefined when they can. */
export function headDifference(first: ResponseHead, now: ResponseHead): HeadDifference | undefined {
  if (first.status !== now.status) return { what: "status", got: now.status, expected: first.status };
  if (first.totalBytes !== null && now.totalBytes !== null && first.totalBytes !== now.totalBytes)
    return { what: "length", got: now.totalBytes, expected: first.totalBytes };
  return headerDifference(first, now, [...VALIDATOR_HEADERS, "content-range"]);
}
