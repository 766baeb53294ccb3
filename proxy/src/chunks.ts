/**
 * The store of chunks: shared fetches and their cache. All readers of the same URL and range read one buffer while it
 * fills. The store keeps a complete chunk for a short time when the origin allows it, and drops the least recently used
 * one first. It answers ranges from a chunk that it keeps whole (RFC 9110 section 14). Memory is bounded: `cacheBytes`
 * for the chunks that are kept, `pinnedBytes` for the chunks that are being read. A fetch ends when its last reader
 * leaves. Not here: what may be fetched (egress/), how bytes go out (session.ts, http-delivery.ts).
 */
import {
  type CacheMode,
  formatContentRange,
  formatRange,
  FIRST_HEADERS,
  resolveRange,
  type RangeRequest,
  type Rejection,
} from "@tributary/contract";
import { LIMITS, type ChunkSource, type PlanHead } from "@tributary/protocol";
import type { Client } from "./clients";
import { keepMsOf } from "./cache-control";
import { egressError, rejectionOf } from "./egress/error";
import { Digests } from "./digests";
import type { Egress, OriginResponse } from "./egress/fetch";
import type { Log } from "./log";

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
  /** Who asks. */
  client?: Client | undefined;
}

/** A reader's hold on a chunk. The reader closes it once and then hears nothing more. */
export interface Lease {
  close(): void;
}

export interface ChunkStats {
  /** Body bytes received from origins. */
  originBytes: number;
  /** Requests that needed no fetch of their own. */
  cacheHits: number;
  cacheBytes: number;
}

/** Bounds of memory and time. */
export interface ChunkLimits {
  /** For kept chunks. */
  cacheBytes: number;
  /** For chunks that are being read. */
  pinnedBytes: number;
  /** The longest time to keep a chunk. */
  cacheKeepMs: number;
}

export interface ChunkStoreOptions {
  egress: Pick<Egress, "fetch" | "vet">;
  log: Log;
  limits: ChunkLimits;
  nowMs?: () => number;
}

/** A chunk that is being fetched or kept. */
interface StoredChunk {
  readonly key: string;
  readonly readers: Set<Reader>;
  readonly cancel: AbortController;
  head: PlanHead | undefined;
  body: GrowingBody | undefined;
  /** How long to keep it after its last byte. 0: it is shared only while it is being fetched. */
  keepMs: number;
  /** undefined until the chunk is complete. */
  expiresMs: number | undefined;
}

interface Reader {
  readonly chunk: StoredChunk;
  readonly listener: ChunkListener;
  /** The part that it reads of a chunk that is kept whole. undefined: it reads the whole chunk. */
  readonly part: BodyPart | undefined;
  hasHead: boolean;
}

export class ChunkStore {
  /** By key, least recently used first. */
  readonly #chunks = new Map<string, StoredChunk>();
  readonly #counts = { originBytes: 0, cacheHits: 0 };
  #pinnedBytes = 0;
  #keptBytes = 0;
  #limits: ChunkLimits;
  readonly #nowMs: () => number;

  readonly #options: ChunkStoreOptions;

  constructor(options: ChunkStoreOptions) {
    this.#options = options;

    this.#limits = options.limits;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  get stats(): ChunkStats {
    return { ...this.#counts, cacheBytes: this.#keptBytes };
  }

  /** Joins the chunk or starts its fetch for `client`. Throws an `EgressError` when the policy refuses the URL. */
  open({ url, range, cache = "default", client }: ChunkRequest, listener: ChunkListener): Lease {
    const { href } = this.#options.egress.vet(url);
    const key = keyOf(href, range);
    const isShared = cache === "default";
    const same = isShared ? this.#find(key) : undefined;
    const part = same || !range || !isShared ? undefined : this.#findPart(keyOf(href, undefined), range);
    const known = same ?? part?.whole;
    const chunk = known ?? newChunk(key);
    const reader: Reader = { chunk, listener, part: part?.part, hasHead: false };
    if (known) this.#counts.cacheHits++;
    this.#join(reader);
    if (!known) {
      if (isShared) this.#chunks.set(key, chunk);
      void this.#fill(chunk, url, range, client);
    } else if (chunk.body) setImmediate(() => this.#giveHead(reader, { ...chunk.head!, serverFetchMs: 0 }));
    return { close: () => this.#leave(reader) };
  }

  /** Drops kept chunks beyond the new limits at once. Chunks that are being read stay for their readers. */
  setLimits(limits: ChunkLimits): void {
    this.#limits = limits;
    this.#evict();
  }

  /** Ends all fetches. Their readers get a failure. */
  close(): void {
    for (const chunk of [...this.#chunks.values()]) chunk.cancel.abort();
  }

  #find(key: string): StoredChunk | undefined {
    const chunk = this.#chunks.get(key);
    if (!chunk) return undefined;
    if (chunk.expiresMs !== undefined && chunk.expiresMs <= this.#nowMs()) {
      this.#forget(chunk);
      return undefined;
    }
    this.#chunks.delete(key);
    this.#chunks.set(key, chunk);
    return chunk;
  }

  #findPart(key: string, range: RangeRequest): { whole: StoredChunk; part: BodyPart } | undefined {
    const whole = this.#find(key);
    if (whole?.expiresMs === undefined || whole.head?.status !== 200) return undefined;
    const part = partOf(whole.body!, range);
    return part && { whole, part };
  }

  #join(reader: Reader): void {
    const { chunk } = reader;
    if (chunk.readers.size === 0 && chunk.body) this.#pinnedBytes += chunk.body.totalBytes;
    chunk.readers.add(reader);
  }

  #leave(reader: Reader): void {
    const { chunk } = reader;
    if (!chunk.readers.delete(reader) || chunk.readers.size > 0) return;
    if (chunk.body) this.#pinnedBytes -= chunk.body.totalBytes;
    if (chunk.expiresMs !== undefined) return;
    this.#forget(chunk);
    chunk.cancel.abort();
  }

  #giveHead(reader: Reader, head: PlanHead): void {
    if (reader.hasHead || !reader.chunk.readers.has(reader)) return;
    reader.hasHead = true;
    if (reader.part) reader.listener.onHead(partialHead(head, reader.part), reader.part);
    else reader.listener.onHead(head, reader.chunk.body!);
    if (reader.chunk.readers.has(reader)) reader.listener.onGrowth();
  }

  async #fill(
    chunk: StoredChunk,
    url: string,
    range: RangeRequest | undefined,
    client: Client | undefined,
  ): Promise<void> {
    try {
      const response = await this.#options.egress.fetch(url, range, chunk.cancel.signal, client);
      if (chunk.readers.size === 0) return response.cancel();
      const head = headOf(response);
      const unshareable = unshareableReason(response);
      if (unshareable) return this.#handOver(chunk, head, response, unshareable);
      if (!this.#makeRoom(chunk, { ...head, totalBytes: response.totalBytes! })) return response.cancel();
      chunk.keepMs = Math.min(keepMsOf(response.status, response.headers), this.#limits.cacheKeepMs);
      for await (const bytes of response.body) this.#grow(chunk, bytes);
      this.#complete(chunk);
    } catch (error) {
      this.#fail(chunk, rejectionOf(error, this.#options.log));
    }
  }

  /** Allocates the body and gives the head to the readers. Returns false when the memory is full. */
  #makeRoom(chunk: StoredChunk, head: PlanHead): boolean {
    const wanted = this.#pinnedBytes + head.totalBytes;
    if (wanted > this.#limits.pinnedBytes) {
      const message =
        `The proxy is busy with other chunks. They would fill ${wanted} bytes, ` +
        `limit ${this.#limits.pinnedBytes}. Try again.`;
      this.#fail(chunk, { kind: "proxyBusy", message, got: wanted, limit: this.#limits.pinnedBytes });
      return false;
    }
    chunk.head = head;
    chunk.body = new GrowingBody(head.totalBytes);
    this.#pinnedBytes += head.totalBytes;
    for (const reader of [...chunk.readers]) this.#giveHead(reader, head);
    return true;
  }

  #grow(chunk: StoredChunk, bytes: Uint8Array): void {
    this.#counts.originBytes += bytes.length;
    chunk.body!.append(bytes);
    for (const reader of [...chunk.readers])
      if (chunk.readers.has(reader) && reader.hasHead) reader.listener.onGrowth();
  }

  #complete(chunk: StoredChunk): void {
    const bytes = chunk.body!.totalBytes;
    if (this.#chunks.get(chunk.key) !== chunk) return;
    if (chunk.keepMs <= 0 || bytes > this.#limits.cacheBytes) {
      this.#chunks.delete(chunk.key);
    } else {
      chunk.expiresMs = this.#nowMs() + chunk.keepMs;
      this.#keptBytes += bytes;
      this.#evict();
    }
  }

  #evict(): void {
    for (const chunk of this.#chunks.values()) {
      if (this.#keptBytes <= this.#limits.cacheBytes) return;
      if (chunk.expiresMs !== undefined) this.#forget(chunk);
    }
  }

  /** Hides the chunk from new readers. Its current readers continue. */
  #forget(chunk: StoredChunk): void {
    if (this.#chunks.get(chunk.key) !== chunk) return;
    this.#chunks.delete(chunk.key);
    if (chunk.expiresMs !== undefined) this.#keptBytes -= chunk.body!.totalBytes;
  }

  #fail(chunk: StoredChunk, rejection: Rejection, except?: Reader): void {
    this.#forget(chunk);
    for (const reader of [...chunk.readers]) {
      if (reader === except || !chunk.readers.has(reader)) continue;
      this.#leave(reader);
      reader.listener.onFailure(rejection);
    }
  }

  /**
   * Gives the response to the first reader that can stream it. The other readers fail, because they would need the body
   * from its start.
   */
  #handOver(chunk: StoredChunk, head: OriginHead, response: OriginResponse, reason: Rejection): void {
    const taker = [...chunk.readers].find((reader) => reader.listener.onUnshareable);
    this.#fail(chunk, reason, taker);
    if (!taker) return response.cancel();
    taker.listener.onUnshareable!(head, { ...response, body: this.#counted(response.body) });
  }

  async *#counted(body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const bytes of body) {
      this.#counts.originBytes += bytes.length;
      yield bytes;
    }
  }
}

/** A buffer of the announced length that fills from its start. */
class GrowingBody implements ChunkSource {
  readonly #buffer: Uint8Array;
  readonly #digests: Digests;
  availableBytes = 0;

  constructor(readonly totalBytes: number) {
    this.#buffer = Buffer.allocUnsafeSlow(totalBytes);
    this.#digests = new Digests(totalBytes, (start, end) => this.view(start, end));
  }
  view(start: number, end: number): Uint8Array {
    if (start < 0 || end > this.availableBytes || start > end) {
      throw new RangeError(`view: got ${start}..${end}, available ${this.availableBytes}`);
    }
    return this.#buffer.subarray(start, end);
  }
  digest(start: number, end: number): Uint8Array {
    return this.#digests.of(start, end);
  }
  append(bytes: Uint8Array): void {
    this.#buffer.set(bytes, this.availableBytes);
    this.availableBytes += bytes.length;
  }
}

/** A part of a complete body, from `start` on. */
class BodyPart implements ChunkSource {
  readonly availableBytes: number;

  readonly #body: GrowingBody;

  constructor(
    body: GrowingBody,
    readonly start: number,
    readonly totalBytes: number,
  ) {
    this.#body = body;

    this.availableBytes = totalBytes;
  }
  get bodyBytes(): number {
    return this.#body.totalBytes;
  }
  view(start: number, end: number): Uint8Array {
    if (start < 0 || end > this.totalBytes || start > end)
      throw new RangeError(`view: got ${start}..${end}, available ${this.totalBytes}`);
    return this.#body.view(this.start + start, this.start + end);
  }
  digest(start: number, end: number): Uint8Array {
    return this.#body.digest(this.start + start, this.start + end);
  }
}

/** undefined when the body holds no byte of the range. The origin then decides the answer. */
function partOf(body: GrowingBody, range: RangeRequest): BodyPart | undefined {
  const part = resolveRange(range, body.totalBytes);
  return part && new BodyPart(body, part.start, part.end - part.start + 1);
}

function partialHead(head: PlanHead, { start, totalBytes, bodyBytes }: BodyPart): PlanHead {
  const contentRange = formatContentRange({ start, end: start + totalBytes - 1 }, bodyBytes);
  return { ...head, status: 206, headers: { ...head.headers, "content-range": contentRange }, totalBytes };
}

const keyOf = (href: string, range: RangeRequest | undefined): string => `${range ? formatRange(range) : ""} ${href}`;

function newChunk(key: string): StoredChunk {
  return {
    key,
    readers: new Set(),
    cancel: new AbortController(),
    head: undefined,
    body: undefined,
    keepMs: 0,
    expiresMs: undefined,
  };
}

function headOf({ status, headers, totalBytes, serverFetchMs }: OriginResponse): OriginHead {
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

function unshareableReason({ totalBytes }: OriginResponse): Rejection | undefined {
  const limit = LIMITS.chunkBytesMax;
  if (totalBytes === null)
    return egressError("lengthUnknown", "The origin does not state the body's length.").rejection;
  if (totalBytes <= limit) return undefined;
  const message = `The body is too long for one chunk: got ${totalBytes} bytes, limit ${limit}.`;
  return { kind: "chunkTooLarge", message, got: totalBytes, limit };
}
