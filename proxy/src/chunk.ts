/**
 * Chunk: what the store knows of one chunk and its readers, and what an origin's answer means for it. The store
 * (chunks.ts) decides what becomes of it.
 */
import {
  CONNECTIONS_MAX,
  FIRST_HEADERS,
  formatRange,
  isPageOrigin,
  type CacheMode,
  type RangeRequest,
  type Rejection,
} from "@tributary/contract";
import { LIMITS, type ChunkSource, type PlanHead } from "@tributary/protocol";
import type { AnswerPolicy } from "./cache-policy";
import type { BodyPart, ChunkBody } from "./chunk-body";
import type { Reading } from "./chunk-shares";
import type { Client } from "./clients";
import { egressError } from "./egress/error";
import type { Egress, OriginResponse } from "./egress/fetch";

/** Where chunks come from. */
export interface Origins extends Pick<Egress, "fetch"> {
  /** The address in canonical form, and whose connections it needs. Throws an `EgressError` if that is refused. */
  vet(text: string): { readonly href: string; readonly origin: string; readonly object?: string };
  /** Bytes of an object were sent. */
  countSent?(object: string, bytes: number): void;
}

/** An origin's head as clients get it. Its body may have any length. */
export type OriginHead = Omit<PlanHead, "totalBytes"> & Pick<OriginResponse, "totalBytes">;

/** What a reader hears about its chunk. Called only after `open` has returned and before the lease is closed. */
export interface ChunkListener {
  onHead(head: PlanHead, source: ChunkSource): void;
  /** More bytes can be viewed. */
  onGrowth(): void;
  /** The last call. It may come before or after the head. */
  onFailure(rejection: Rejection): void;
  /**
   * The last call. The body is too long to be shared, or its length is unknown. `response` belongs to this reader,
   * which must read or cancel it. A reader without this method gets `chunkTooLarge` or `lengthUnknown` instead.
   */
  onUnshareable?(head: OriginHead, response: OriginResponse): void;
}

/** What a reader asks for. */
export interface ChunkRequest {
  url: string;
  range?: RangeRequest | undefined;
  cache?: CacheMode | undefined;
  /** The web page for which the client asks. Answers to pages of other origins may differ, so they are other chunks. */
  pageOrigin?: string | undefined;
  /** Who asks. */
  client?: Client | undefined;
  /** All requests of one client with the same name read the same answer of the origin while one of them is open. */
  download?: string | undefined;
}

/** A reader's hold on a chunk. */
export interface Lease {
  /**
   * The reader has sent `takenBytes` of the body in all, and it has use for the first `wantedBytes` of the body. The
   * fetch waits for readers that take nothing.
   */
  take(takenBytes: number, wantedBytes: number): void;
  /** Called once. The reader then hears nothing more. */
  close(): void;
}

export interface ChunkStats {
  /** Body bytes received from origins. */
  originBytes: number;
  /** Requests that needed no body from the origin. */
  cacheHits: number;
  cacheBytes: number;
}

/** Bounds of memory, time and waste. */
export interface ChunkLimits {
  /** For kept chunks. */
  cacheBytes: number;
  /** For other chunks that are being read. */
  pinnedBytes: number;
  /** For fetches that run at once. */
  originFetchesMax: number;
  /** The longest time to use a chunk without asking its origin. */
  cacheKeepMs: number;
  /** A fetch goes on up to this far ahead of the fastest reader. */
  readAheadBytes: number;
  /** One client may have this much fetched that it does not take. It comes back within a minute. */
  unreadBytes: number;
}

/** A chunk that is being fetched, read or kept. */
export interface StoredChunk {
  readonly key: string;
  readonly origin: string;
  /** The id of the object, if it comes from the library. */
  readonly object: string | undefined;
  readonly request: ChunkRequest;
  readonly readers: Set<Reader>;
  /** Ends the fetch. */
  cancel: AbortController;
  /** The fetch asks the origin whether this answer is still right. */
  candidate: Answer | undefined;
  head: PlanHead | undefined;
  body: ChunkBody | undefined;
  policy: AnswerPolicy | undefined;
  /** When the origin was last asked. */
  askedMs: number;
  isComplete: boolean;
  isKept: boolean;
  /** How far the readers have used the body. */
  usedBytes: number;
  /** Ends the wait for readers. */
  wake: () => void;
}

/** A chunk and, if the request is for less, the part of it. */
export interface Answer {
  readonly chunk: StoredChunk;
  readonly part: BodyPart | undefined;
}

export interface Reader extends Reading {
  chunk: StoredChunk;
  /** The part that it reads of a chunk that is kept whole. undefined: it reads the whole chunk. */
  part: BodyPart | undefined;
  readonly listener: ChunkListener;
  /** Readers with the same one read the same answer. */
  readonly download: string | undefined;
  wantedBytes: number;
  hasHead: boolean;
}

/** The reader that is furthest. There must be one. */
export function leaderOf({ readers }: StoredChunk): Reader {
  return [...readers].reduce((first, reader) => (reader.wantedBytes > first.wantedBytes ? reader : first));
}

/** The client that the fetched bytes are counted for. */
export const payerOf = (chunk: StoredChunk): string =>
  chunk.readers.size > 0 ? leaderOf(chunk).client : (chunk.request.client?.name ?? "");

/** What a kept chunk takes besides its body and the texts of its head: about 6 KB were measured. */
export const CHUNK_BYTES = 8192;

/** What the cache counts for the chunk. Its address is in its key and in its request. */
export function keptBytesOf({ key, policy, body }: StoredChunk): number {
  return CHUNK_BYTES + 2 * (key.length + (policy?.headerChars ?? 0)) + (body?.totalBytes ?? 0);
}

/** Whether the cache may hold the answer, once it is complete. */
export function isKeepable(chunk: StoredChunk, limits: ChunkLimits): boolean {
  const { head, policy, request } = chunk;
  const isFull = head!.status === 200 || head!.status === 206;
  const fits = keptBytesOf(chunk) <= limits.cacheBytes && limits.cacheKeepMs > 0;
  return isFull && fits && policy!.isReusable(request.range !== undefined);
}

/** The bytes that were fetched and that no reader has used. */
export const unreadBytesOf = ({ body, usedBytes }: StoredChunk): number =>
  Math.max(0, (body?.availableBytes ?? 0) - usedBytes);

/**
 * Returns how many unread bytes the reader has used with this. A client that uses 32 proxies takes a 32nd of a chunk
 * from each, and has used the whole.
 */
export function noteTaken(reader: Reader, takenBytes: number, wantedBytes: number): number {
  const { chunk } = reader;
  const unreadBefore = unreadBytesOf(chunk);
  reader.takenBytes = takenBytes;
  reader.wantedBytes = Math.max(reader.wantedBytes, wantedBytes);
  chunk.usedBytes = Math.max(chunk.usedBytes, Math.min(reader.wantedBytes, CONNECTIONS_MAX * takenBytes));
  return unreadBefore - unreadBytesOf(chunk);
}

export const keyOf = (href: string, range: RangeRequest | undefined, pageOrigin: string | undefined): string =>
  `${range ? formatRange(range) : ""} ${pageOrigin ?? ""} ${href}`;

/** Throws when the client names something else than an origin. */
export function checkPageOrigin({ pageOrigin }: ChunkRequest): void {
  if (pageOrigin === undefined || (isPageOrigin(pageOrigin) && pageOrigin.length <= LIMITS.pageOriginBytesMax)) return;
  const got = JSON.stringify(pageOrigin.slice(0, LIMITS.pageOriginBytesMax));
  throw egressError("badRequest", `pageOrigin must be an origin as in https://page.example; got ${got}.`);
}

export function newChunk(source: Pick<StoredChunk, "key" | "origin" | "object">, request: ChunkRequest): StoredChunk {
  const { key, origin, object } = source;
  return {
    key,
    origin,
    object,
    request,
    readers: new Set(),
    cancel: new AbortController(),
    candidate: undefined,
    head: undefined,
    body: undefined,
    policy: undefined,
    askedMs: 0,
    isComplete: false,
    isKept: false,
    usedBytes: 0,
    wake: () => undefined,
  };
}

export function headOf({ status, headers, totalBytes, serverFetchMs }: OriginResponse): OriginHead {
  const passed: Record<string, string> = {};
  let [count, bytes] = [0, 0];
  for (const name of new Set([...FIRST_HEADERS, ...Object.keys(headers)])) {
    // The cookie is the proxy's, so only the fact counts.
    const value = name === "set-cookie" && headers[name] !== undefined ? "" : headers[name];
    // The plan itself states the length.
    if (value === undefined || name === "content-length" || name.length > LIMITS.headerNameBytesMax) continue;
    const size = name.length + Buffer.byteLength(value);
    if (Buffer.byteLength(value) > LIMITS.headerValueBytesMax || bytes + size > LIMITS.planHeaderBytesMax) continue;
    if (++count > LIMITS.planHeadersMax) break;
    bytes += size;
    passed[name] = value;
  }
  return { status, headers: passed, totalBytes, serverFetchMs };
}

export function unshareableReason({ totalBytes }: OriginResponse): Rejection | undefined {
  const limit = LIMITS.chunkBytesMax;
  if (totalBytes === null)
    return egressError("lengthUnknown", "The origin does not state the body's length.").rejection;
  if (totalBytes <= limit) return undefined;
  const message = `The body is too long for one chunk: got ${totalBytes} bytes, limit ${limit}.`;
  return { kind: "chunkTooLarge", message, got: totalBytes, limit };
}
