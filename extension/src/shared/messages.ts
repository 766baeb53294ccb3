/**
 * Messages: the closed union of messages on the port between a page and the transport, and its parser. Any script of
 * the page can take the page's end of the port, so the transport parses each message as hostile. No message names an
 * origin, a method, or a header other than the range and the cache mode. Pure.
 */

import { CACHE_MODES, type ByteRange, type CacheMode, type ResponseHead } from "@tributary/contract";

/** The head of an answer, as the page may see it: its headers are only those that the page may read. */
export interface PageResponseHead extends ResponseHead {
  statusText: string;
  responseType: ResponseType;
  /** The address that the answer came from, after redirects. */
  url: string;
  redirected: boolean;
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

/** From the page. The page chooses each `id`, unique on its port. */
export type ToTransport =
  /**
   * After `patienceMs` without a byte the page asks the site itself. `player` is the page's claim, for the record.
   */
  | {
      type: "get";
      id: number;
      url: string;
      range: ByteRange | null;
      cache?: CacheMode;
      patienceMs: number;
      player?: Player;
      /** The origins, besides that of `url`, from which the answer may come after redirects. */
      targets: string[];
    }
  /** The page took `bytes` of the body, so the transport may send as many more. */
  | { type: "credit"; id: number; bytes: number }
  | { type: "abort"; id: number }
  | { type: "ping"; token: number }
  /** The page asked for a manifest, so media will follow. */
  | { type: "warm" }
  /** The page fetched `bytes` directly after the transport failed. Only the popup's totals use it. */
  | { type: "direct"; bytes: number }
  /** The page found that the proxies sent wrong bytes for `url`. */
  | { type: "wrong"; url: string };

/**
 * To the page. For one `id`: either `native`, or `head` then `data`* then `end` or `failed`. The reason is not sent: it
 * names proxies and Origo, and only the popup shows it.
 */
export type ToPage =
  | { type: "hello" }
  | { type: "native"; id: number }
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

export type InvalidMessage = { type: "invalid"; what: string };

/** Parses what a page sent. Never throws, for any input. Unknown fields are dropped. */
export function parseToTransport(data: unknown): ToTransport | InvalidMessage {
  if (typeof data !== "object" || data === null) return invalid("not an object");
  const { type, id, url, bytes, token } = data as Record<string, unknown>;
  switch (type) {
    case "ping":
      return isCount(token) ? { type, token } : invalid("token");
    case "warm":
      return { type };
    case "direct":
      return isCount(bytes) ? { type, bytes } : invalid("bytes");
    case "wrong":
      return typeof url === "string" ? { type, url } : invalid("url");
    case "abort":
      return isCount(id) ? { type, id } : invalid("id");
    case "credit":
      return isCount(id) && isCount(bytes) ? { type, id, bytes } : invalid("id or bytes");
    case "get":
      return parseGet(data as Record<string, unknown>);
    default:
      return invalid("type");
  }
}

function parseGet({
  id,
  url,
  range,
  cache,
  patienceMs,
  player,
  targets,
}: Record<string, unknown>): ToTransport | InvalidMessage {
  if (!isCount(id)) return invalid("id");
  if (typeof url !== "string") return invalid("url");
  if (!isCount(patienceMs)) return invalid("patienceMs");
  if (cache !== undefined && !CACHE_MODES.includes(cache as CacheMode)) return invalid("cache");
  if (!isTextList(targets)) return invalid("targets");
  const parsed = range === null ? null : parseByteRange(range);
  if (parsed === undefined) return invalid("range");
  const known = Object.values(PLAYERS).find((each) => each === player);
  return {
    type: "get",
    id,
    url,
    range: parsed,
    ...(cache === undefined ? {} : { cache: cache as CacheMode }),
    patienceMs,
    ...(known === undefined ? {} : { player: known }),
    targets,
  };
}

function parseByteRange(range: unknown): ByteRange | undefined {
  const { start, end } = (range ?? {}) as Record<string, unknown>;
  return isCount(start) && isCount(end) && end >= start ? { start, end } : undefined;
}

function isTextList(value: unknown): value is string[] {
  return Array.isArray(value) && value.length <= TARGETS_MAX && value.every((each) => typeof each === "string");
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0;
}

function invalid(what: string): InvalidMessage {
  return { type: "invalid", what };
}
