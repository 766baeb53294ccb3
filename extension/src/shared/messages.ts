/**
 * Messages: the closed union of messages on the port between a page and the transport, and its parser. In Chromium
 * any script of the page can get such a port, so the transport parses each message as hostile. No message names an
 * origin, a method, or a header other than the range and the cache mode. Pure.
 */

import { CACHE_MODES, type ByteRange, type CacheMode, type ResponseHead } from "@tributary/contract";
import type { OUTCOMES } from "@tributary/contract/record-fields";

/** The head of an answer, as the page may see it: its headers are only those that the page may read. */
export interface PageResponseHead extends ResponseHead {
  statusText: string;
  responseType: ResponseType;
  /** The address that the answer came from, after redirects. */
  url: string;
  redirected: boolean;
}

/** What the page may see of the site's own answer. */
export interface SiteHead {
  status: number;
  /** The address that the answer came from, after redirects. */
  url: string;
  /** Names in lower case. */
  headers: Readonly<Record<string, string>>;
}

/** One end of the port between a page and the transport. */
export interface PortLike<Sent> {
  postMessage(message: Sent, transfer?: Transferable[]): void;
  onmessage: ((event: MessageEvent) => void) | null;
  close(): void;
}

/** Known players, by the name of the global variable that each one sets in the page. */
export const PLAYERS = { Hls: "hls.js", dashjs: "dash.js", shaka: "shaka", videojs: "video.js" } as const;
export type Player = (typeof PLAYERS)[keyof typeof PLAYERS];

/** What the proxies are asked for. */
interface Asked {
  url: string;
  range: ByteRange | null;
  cache?: CacheMode;
}

/**
 * Why a page ends a request: it needs no answer, the site itself answered before the proxies, or only the browser can
 * give the answer in the form that the page wants.
 */
const ABORT_REASONS = ["abandoned", "late", "form"] as const;
export type AbortReason = (typeof ABORT_REASONS)[number];

/** What a page got from the site in place of the proxies' answer or of its rest. */
export interface Fetched {
  /** The bytes of the answer that came before, through the proxies. */
  offset: number;
  bytes: number;
  /** Of the answer that the page sees; 0 if there is none. */
  status: number;
  /** From the page's request to the head of that answer. */
  headMs: number;
  outcome: (typeof OUTCOMES)[number];
}
const FETCHED_OUTCOMES: readonly Fetched["outcome"][] = ["complete", "failed", "aborted"];

/** From the page. The page chooses each `id`, unique on its port. */
export type ToTransport =
  /**
   * After `patienceMs` without a byte the page asks the site itself. `player` is the page's claim, for the record.
   */
  | ({
      type: "get";
      id: number;
      patienceMs: number;
      player?: Player;
      /** The origins, besides that of `url`, from which the answer may come after redirects. */
      targets: string[];
    } & Asked)
  /** The page took `bytes` of the body, so the transport may send as many more. */
  | { type: "credit"; id: number; bytes: number }
  | { type: "abort"; id: number; why: AbortReason }
  /** The page's own request has ended, after `abort`, `native` or `failed`. It is the page's claim, for the record. */
  | ({ type: "fetched"; id: number } & Fetched)
  | { type: "ping"; token: number }
  /** The page asked for a manifest, so media will follow. */
  | { type: "warm" }
  /** The page fetched `bytes` directly after the transport failed. Only the popup's totals use it. */
  | { type: "direct"; bytes: number }
  /** An element of the page got `bytes` of `url` from the browser. Only the popup's totals use it. */
  | { type: "unchecked"; url: string; bytes: number }
  /** The site answered the page itself: `head`, after `headMs`. Its body follows, up to COMPARED_BYTES_MAX. */
  | ({ type: "compare"; id: number; head: SiteHead; headMs: number } & Asked)
  | { type: "site-bytes"; id: number; buffer: ArrayBuffer }
  /** The body ended; `isWhole` is false if it broke off. */
  | { type: "site-end"; id: number; isWhole: boolean }
  /** The site told the page to ask less (429 or 503) soon after requests of the proxies. */
  | { type: "limited"; url: string };

/**
 * To the page. For one `get`: `wait`*, then either `native`, or `head` then `data`* then `end` or `failed`. A `wait`
 * after `head` says that bytes have come to the transport, which holds them until they are checked. After
 * `sealed` there is no `native`, and `failed` may come before `head`. The reason is not sent: it names proxies and
 * Origo, and only the popup shows it. For one `compare`: `enough`.
 */
export type ToPage =
  | { type: "hello" }
  /** The proxies are asked. The page asks the site beside them if no head comes within `hedgeMs`. */
  | { type: "wait"; id: number; hedgeMs: number }
  /** The page asks nobody else, whatever happens: only checked bytes of a published file may serve it. */
  | { type: "sealed"; id: number }
  /** The page asks the site itself. With `compare` the transport wants to see the site's answer. */
  | { type: "native"; id: number; compare: boolean }
  /** The transport needs no more of the site's body. */
  | { type: "enough"; id: number }
  | ({ type: "head"; id: number } & PageResponseHead)
  | { type: "data"; id: number; buffer: ArrayBuffer }
  | { type: "end"; id: number }
  | { type: "failed"; id: number }
  | { type: "pong"; token: number };

/** The most body bytes that may be sent before the page takes them. */
export const CREDIT_BYTES = 4 * 1024 * 1024;
export const PIECE_BYTES_MAX = 64 * 1024;
/** A page remembers this many origins that redirects led to. */
export const TARGETS_MAX = 32;
/** A longer body is compared up to here. */
export const COMPARED_BYTES_MAX = 8 * 1024 * 1024;
const STATUS_MAX = 599;
const FETCHED_BYTES_MAX = 2 ** 48;
const SITE_HEADERS_MAX = 100;
const HEADER_CHARS_MAX = 8192;

export type InvalidMessage = { type: "invalid"; what: string };

/** Parses what a page sent. Never throws, for any input. Unknown fields are dropped. */
export function parseToTransport(data: unknown): ToTransport | InvalidMessage {
  if (typeof data !== "object" || data === null) return invalid("not an object");
  const { type, id, url, bytes, token, why, isWhole, buffer } = data as Record<string, unknown>;
  switch (type) {
    case "ping":
      return isCount(token) ? { type, token } : invalid("token");
    case "warm":
      return { type };
    case "direct":
      return isCount(bytes) ? { type, bytes } : invalid("bytes");
    case "unchecked":
      return typeof url === "string" && isCount(bytes) ? { type, url, bytes } : invalid("url or bytes");
    case "limited":
      return typeof url === "string" ? { type, url } : invalid("url");
    case "abort":
      return isCount(id) ? { type, id, why: ABORT_REASONS.find((each) => each === why) ?? "abandoned" } : invalid("id");
    case "fetched":
      return parseFetched(data as Record<string, unknown>);
    case "credit":
      return isCount(id) && isCount(bytes) ? { type, id, bytes } : invalid("id or bytes");
    case "get":
      return parseGet(data as Record<string, unknown>);
    case "compare":
      return parseCompare(data as Record<string, unknown>);
    case "site-bytes":
      return isCount(id) && isPiece(buffer) ? { type, id, buffer } : invalid("id or buffer");
    case "site-end":
      return isCount(id) ? { type, id, isWhole: isWhole === true } : invalid("id");
    default:
      return invalid("type");
  }
}

function parseFetched({
  id,
  offset,
  bytes,
  status,
  headMs,
  outcome,
}: Record<string, unknown>): ToTransport | InvalidMessage {
  if (![id, offset, bytes, status, headMs].every(isCount)) return invalid("id or figures");
  const told = FETCHED_OUTCOMES.find((each) => each === outcome);
  if (told === undefined || (status as number) > STATUS_MAX) return invalid("outcome or status");
  if (Math.max(offset as number, bytes as number) > FETCHED_BYTES_MAX) return invalid("bytes");
  return { type: "fetched", id, offset, bytes, status, headMs, outcome: told } as ToTransport;
}

function parseGet(data: Record<string, unknown>): ToTransport | InvalidMessage {
  const { id, patienceMs, player, targets } = data;
  if (!isCount(id)) return invalid("id");
  if (!isCount(patienceMs)) return invalid("patienceMs");
  if (!isTextList(targets)) return invalid("targets");
  const asked = parseAsked(data);
  if ("type" in asked) return asked;
  const known = Object.values(PLAYERS).find((each) => each === player);
  return { type: "get", id, ...asked, patienceMs, ...(known === undefined ? {} : { player: known }), targets };
}

function parseCompare(data: Record<string, unknown>): ToTransport | InvalidMessage {
  const { id, headMs } = data;
  if (!isCount(id)) return invalid("id");
  if (!isCount(headMs)) return invalid("headMs");
  const [asked, head] = [parseAsked(data), parseSiteHead(data.head)];
  if ("type" in asked) return asked;
  return head === undefined ? invalid("head") : { type: "compare", id, ...asked, head, headMs };
}

function parseAsked({ url, range, cache }: Record<string, unknown>): Asked | InvalidMessage {
  if (typeof url !== "string") return invalid("url");
  if (cache !== undefined && !CACHE_MODES.includes(cache as CacheMode)) return invalid("cache");
  const parsed = range === null ? null : parseByteRange(range);
  if (parsed === undefined) return invalid("range");
  return { url, range: parsed, ...(cache === undefined ? {} : { cache: cache as CacheMode }) };
}

function parseSiteHead(value: unknown): SiteHead | undefined {
  const { status, url, headers } = (value ?? {}) as Record<string, unknown>;
  if (!isCount(status) || typeof url !== "string" || !URL.canParse(url)) return undefined;
  if (typeof headers !== "object" || headers === null) return undefined;
  const entries = Object.entries(headers);
  const isShort = (text: unknown): boolean => typeof text === "string" && text.length <= HEADER_CHARS_MAX;
  if (entries.length > SITE_HEADERS_MAX || !entries.flat().every(isShort)) return undefined;
  return { status, url, headers: Object.fromEntries(entries) as Record<string, string> };
}

function parseByteRange(range: unknown): ByteRange | undefined {
  const { start, end } = (range ?? {}) as Record<string, unknown>;
  return isCount(start) && isCount(end) && end >= start ? { start, end } : undefined;
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= TARGETS_MAX && value.every((each) => typeof each === "string");
}

function isPiece(value: unknown): value is ArrayBuffer {
  return value instanceof ArrayBuffer && value.byteLength <= COMPARED_BYTES_MAX;
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function invalid(what: string): InvalidMessage {
  return { type: "invalid", what };
}
