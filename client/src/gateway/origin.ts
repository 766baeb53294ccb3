/** Direct requests to origins, with the player's own headers. Playlists among the answers are rewritten. */
import type { IncomingHttpHeaders } from "node:http";
import type { Readable } from "node:stream";
import type { Dispatcher } from "undici";
import { codingsOf, decoded, pathOf, requestOrigin } from "../origin-node";
import { formatOfContent, formatOfName, formatOfType } from "../video/recognise";
import { headersForOrigin, headersForPlayer } from "./headers";

/** A longer playlist is passed on as it is. */
const PLAYLIST_BYTES_MAX = 32 << 20;
/** An answer of another type may be a playlist: its first bytes decide. */
const OPAQUE_TYPE = /^(?:text\/|application\/(?:octet-stream|xml)|binary\/|$)/i;
/** These tell whether the rest is worth reading. */
const BEGINNING_BYTES = 64;
const OF_BYTES = new Set(["content-encoding", "content-length", "content-range", "accept-ranges"]);

export interface OriginRequest {
  url: URL;
  method: string;
  headers: IncomingHttpHeaders;
  /** The gateway's own address, without a slash at the end. */
  gateway: string;
  signal: AbortSignal;
}

export interface OriginAnswer {
  status: number;
  /** The origin's own headers. */
  origin: Headers;
  /** The headers for the player. */
  headers: Record<string, string | string[]>;
  body: AsyncIterable<Uint8Array>;
  /** The text of a playlist, in place of `body`. */
  playlist: string | undefined;
}

export async function askOrigin(request: OriginRequest): Promise<OriginAnswer> {
  const { url, method, gateway, signal } = request;
  const headers = headersForOrigin(request.headers, gateway);
  const isLikelyPlaylist = isNamedPlaylist(url);
  // A playlist is rewritten, so its parts are of no use.
  if (isLikelyPlaylist) delete headers.range;
  const encoding = isLikelyPlaylist ? "gzip, deflate, br" : "identity";
  const response = await requestOrigin({
    origin: url.origin,
    path: pathOf(url.href),
    method: method as "GET" | "HEAD",
    headers: { ...headers, "accept-encoding": encoding },
    signal,
  });
  const status = response.statusCode;
  const origin = headersOf(response.headers);
  const answer: OriginAnswer = {
    status,
    origin,
    headers: headersForPlayer(origin, url, gateway),
    body: response.body,
    playlist: undefined,
  };
  if (!mayBePlaylist(answer, url, method)) return answer;
  if (method === "HEAD") return { ...answer, headers: withoutLength(answer.headers) };
  const { text, body } = await readPlaylist(plain(response.body, origin.get("content-encoding")));
  if (text === undefined) return { ...answer, headers: withoutCoding(answer.headers), body };
  if (status === 206 && !isWhole(origin.get("content-range")))
    return askOrigin({ ...request, headers: { ...request.headers, range: undefined } });
  return { ...answer, status: 200, headers: withoutLength(answer.headers), playlist: text };
}

function headersOf(answered: Dispatcher.ResponseData["headers"]): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(answered))
    for (const each of [value ?? []].flat()) headers.append(name, each);
  return headers;
}

function mayBePlaylist({ status, origin }: OriginAnswer, url: URL, method: string): boolean {
  if (status !== 200 && status !== 206) return false;
  const type = origin.get("content-type");
  const isOpaque = method !== "HEAD" && OPAQUE_TYPE.test(type ?? "");
  return isOpaque || formatOfType(type) !== undefined || isNamedPlaylist(url);
}

/** A name of a playlist counts whatever the type is. The body's beginning decides. */
function isNamedPlaylist({ href }: URL): boolean {
  return formatOfName(href) !== undefined || /\.m3u$/i.test(new URL(href).pathname);
}

function isWhole(contentRange: string | null): boolean {
  const [, end, total] = /^bytes 0-(\d+)\/(\d+)$/.exec(contentRange ?? "") ?? [];
  return total !== undefined && Number(end) + 1 === Number(total);
}

/** Rewriting changes the length, and a live playlist changes all the time. */
function withoutLength(headers: OriginAnswer["headers"]): OriginAnswer["headers"] {
  const kept = Object.entries(headers).filter(([name]) => !OF_BYTES.has(name));
  return { ...Object.fromEntries(kept), "cache-control": "no-store" };
}

/** Reads the body if it begins like a playlist. Otherwise `body` has the bytes that were read and the others. */
async function readPlaylist(
  body: AsyncIterable<Uint8Array>,
): Promise<{ text: string | undefined; body: AsyncIterable<Uint8Array> }> {
  const pieces: Uint8Array[] = [];
  const iterator = body[Symbol.asyncIterator]();
  const replayed = async function* (): AsyncGenerator<Uint8Array> {
    yield* pieces;
    yield* { [Symbol.asyncIterator]: () => iterator };
  };
  let bytes = 0;
  for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
    pieces.push(next.value);
    const beforeBytes = bytes;
    bytes += next.value.length;
    const isBegun = beforeBytes < BEGINNING_BYTES && bytes >= BEGINNING_BYTES;
    if (bytes > PLAYLIST_BYTES_MAX || (isBegun && !beginsLikePlaylist(Buffer.concat(pieces))))
      return { text: undefined, body: replayed() };
  }
  const text = new TextDecoder("utf-8", { ignoreBOM: true }).decode(Buffer.concat(pieces));
  return { text: formatOfContent(text) === undefined ? undefined : text, body: replayed() };
}

function beginsLikePlaylist(bytes: Buffer): boolean {
  return /^\uFEFF?\s*(?:#EXTM3U|<)/.test(bytes.subarray(0, BEGINNING_BYTES).toString());
}

/** The body without its content coding. */
function plain(body: Readable, coding: string | null): AsyncIterable<Uint8Array> {
  const codings = codingsOf(coding ?? undefined);
  return codings.length === 0 ? body : decoded(body, codings);
}

/** The gateway has decoded the body, so its length is another one. */
function withoutCoding(headers: OriginAnswer["headers"]): OriginAnswer["headers"] {
  if (headers["content-encoding"] === undefined) return headers;
  const kept = Object.entries(headers).filter(([name]) => name !== "content-encoding" && name !== "content-length");
  return Object.fromEntries(kept);
}
