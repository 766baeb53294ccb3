/**
 * Shared chunk: a chunk of which this proxy reads a part. A client may want another part. The proxy then gets that part
 * from the peer that reads it. If the peer is late, is gone or has another version, the proxy asks the origin. Bytes of
 * two versions are never joined. Rules: protocol.md §11.
 */
import type { ByteRange, Rejection } from "@tributary/contract";
import { strongValidator } from "@tributary/contract";
import {
  generationBytes,
  generationStart,
  geometryOf,
  partOf,
  type GenerationSpan,
  type Geometry,
  type PlanHead,
  type Sharing,
} from "@tributary/protocol";
import type { AnswerPolicy } from "../cache-policy";
import type { ChunkListener, ChunkRequest, Origins } from "../chunk";
import { rejectionOf } from "../egress/error";
import type { Log } from "../log";
import { PartFetch, type Part, type Unshareable } from "./part-fetch";
import type { Peers } from "./peers";
import { ByteSpans, SparseBody, type ByteSpan } from "./sparse-body";

/** What a client's request says of the sharing. */
export interface SharedRequest {
  sharing: Sharing;
  symbolBytes: number;
  generationSize: number;
  token: string | undefined;
}

export interface SharingCounts {
  /** Body bytes from origins. */
  originBytes: number;
  /** Body bytes from peers and to them. */
  fromPeersBytes: number;
  toPeersBytes: number;
  /** Stretches that were read at the origin in place of a peer. */
  readInstead: number;
}

interface SharedReader extends SharedRequest {
  listener: ChunkListener;
  hasHead: boolean;
}

export interface SharedChunkOptions {
  request: ChunkRequest;
  first: SharedRequest;
  origins: Origins;
  peers: Peers;
  counts: SharingCounts;
  log: Log;
  /** The parts of this resource cannot be joined. The readers are then the caller's. */
  onUnshareable: (readers: readonly ChunkListener[], why: Unshareable) => void;
  /** Nothing is being read any more, for the readers or for peers. */
  onIdle: () => void;
  nowMs: number;
}

/** So many stretches are got at once. */
const FILLS_MAX = 4;

export class SharedChunk {
  readonly readers = new Map<ChunkListener, SharedReader>();
  body: SparseBody | undefined;
  policy: AnswerPolicy | undefined;
  head: PlanHead | undefined;
  failure: Rejection | undefined;
  /** When the last reader left. */
  leftMs = 0;
  readonly madeMs: number;
  /** Called when there are more bytes, or when the chunk has failed. */
  readonly #waiting = new Set<() => void>();
  /** What is being read, or is there. */
  readonly #coming = new ByteSpans();
  /** What clients want and nobody has been asked for. */
  readonly #wanted: ByteSpan[] = [];
  /** What clients want or wanted. */
  readonly #noted = new ByteSpans();
  #fills = 0;
  readonly #cancel = new AbortController();
  readonly #fetch: PartFetch;
  readonly #options: SharedChunkOptions;
  readonly #range: ByteRange | undefined;

  constructor(options: SharedChunkOptions) {
    this.#options = options;
    this.madeMs = options.nowMs;
    const { request, origins, first } = options;
    this.#range = request.range as ByteRange | undefined;
    this.#fetch = new PartFetch(origins, request, this.#range, this.#cancel.signal);
    void this.#read(first).catch((error: unknown) => this.#fail(rejectionOf(error, options.log)));
  }

  get isReading(): boolean {
    return (
      !this.#cancel.signal.aborted &&
      (this.body === undefined || this.#coming.list.some(({ start, end }) => !this.body!.has(start, end)))
    );
  }

  close(): void {
    this.#cancel.abort();
    for (const wake of this.#waiting) wake();
  }

  join(listener: ChunkListener, request: SharedRequest): void {
    const reader: SharedReader = { ...request, listener, hasHead: false };
    this.readers.set(listener, reader);
    if (this.head) setImmediate(() => this.#giveHead(reader));
  }

  leave(listener: ChunkListener): void {
    this.readers.delete(listener);
  }

  /** The bytes of a span as they come. Ends early if they are neither here nor on their way. For peers. */
  async *held({ start, end }: ByteSpan): AsyncGenerator<Uint8Array> {
    for (let at = start; at < end;) {
      const span = this.body?.held.list.find((each) => each.start <= at && each.end > at);
      if (span) {
        const bytes = this.body!.view(at, Math.min(span.end, end));
        at += bytes.length;
        this.#options.counts.toPeersBytes += bytes.length;
        yield bytes;
      } else if (this.failure || this.#cancel.signal.aborted || (this.body && !this.#coming.has(at, at + 1))) return;
      else await new Promise<void>((resolve) => this.#waitFor(resolve));
    }
  }

  #waitFor(resolve: () => void): void {
    const wake = (): void => {
      this.#waiting.delete(wake);
      resolve();
    };
    this.#waiting.add(wake);
  }

  /** Reads this proxy's part. The first request for the chunk says which one that is. */
  async #read(first: SharedRequest): Promise<void> {
    const { sharing } = first;
    const generation = first.symbolBytes * first.generationSize;
    const guess = this.#range
      ? this.#spansOf(first, this.#range.end - this.#range.start + 1)[0]
      : {
          start: sharing.ownIndex * sharing.firstGenerations * generation,
          end: (sharing.ownIndex + 1) * sharing.firstGenerations * generation,
        };
    const isEmpty = !guess || guess.start >= guess.end;
    const opened = await this.#fetch.open(isEmpty ? { start: 0, end: 1 } : guess);
    if (this.#cancel.signal.aborted) return typeof opened === "string" ? undefined : opened.part?.response.cancel();
    if (typeof opened === "string") {
      this.close();
      this.#options.onUnshareable([...this.readers.keys()], opened);
      return;
    }
    const { head, policy, part } = opened;
    this.head = head;
    this.policy = policy;
    this.body = new SparseBody(head.totalBytes, (span) => this.#want(span));
    const own = this.#spansOf(first, head.totalBytes);
    const rest = own.flatMap((span) => (part ? minus(span, part.span) : [span]));
    if (part) this.#coming.add({ start: part.span.start, end: Math.min(part.span.end, head.totalBytes) });
    for (const span of rest) this.#coming.add(span);
    for (const reader of [...this.readers.values()]) this.#giveHead(reader);
    const others = rest.map((span) => this.#fetch.next(span).then((next) => this.#take(next)));
    await Promise.all([...(part ? [this.#take(part)] : []), ...others]);
    this.#noteIdle();
  }

  /** The bytes that the request's own reader reads of a body of this length. */
  #spansOf({ sharing, symbolBytes, generationSize }: SharedRequest, totalBytes: number): ByteSpan[] {
    const geometry = geometryOf(totalBytes, symbolBytes, generationSize);
    if ("kind" in geometry) return [];
    return partOf(sharing, sharing.ownIndex, geometry.generationCount).map((span) => bytesOf(geometry, span));
  }

  async #take({ span, response }: Part): Promise<void> {
    let at = span.start;
    for await (const bytes of response.body) {
      const kept = bytes.subarray(0, Math.max(0, this.body!.totalBytes - at));
      this.#options.counts.originBytes += bytes.length;
      this.#write(at, kept);
      at += bytes.length;
    }
  }

  #write(at: number, bytes: Uint8Array): void {
    this.body!.write(at, bytes);
    for (const wake of [...this.#waiting]) wake();
    for (const { listener, hasHead } of [...this.readers.values()]) if (hasHead) listener.onGrowth();
  }

  #giveHead(reader: SharedReader): void {
    if (reader.hasHead || this.readers.get(reader.listener) !== reader) return;
    reader.hasHead = true;
    reader.listener.onHead({ ...this.head!, reads: this.#readsFor(reader) }, this.body!);
    reader.listener.onGrowth();
  }

  /** The generations of this reader that are here or on their way. */
  #readsFor({ symbolBytes, generationSize }: SharedRequest): GenerationSpan[] {
    const geometry = geometryOf(this.head!.totalBytes, symbolBytes, generationSize) as Geometry;
    const bytes = symbolBytes * generationSize;
    return this.#coming.list
      .map(({ start, end }) => ({
        from: Math.ceil(start / bytes),
        end: end === geometry.totalBytes ? geometry.generationCount : Math.floor(end / bytes),
      }))
      .filter(({ from, end }) => from < end);
  }

  #want({ start, end }: ByteSpan): void {
    if (this.#coming.has(start, end) || this.#noted.has(start, end)) return;
    this.#noted.add({ start, end });
    this.#wanted.push(...this.#coming.gaps(start, end));
    this.#fillMore();
  }

  #fillMore(): void {
    while (this.#fills < FILLS_MAX && !this.#cancel.signal.aborted) {
      const span = this.#wanted.shift();
      if (!span) return;
      this.#fills++;
      void this.#fill(span)
        .catch((error: unknown) => this.#fail(rejectionOf(error, this.#options.log)))
        .finally(() => {
          this.#fills--;
          this.#fillMore();
          this.#noteIdle();
        });
    }
  }

  /** Gets bytes that others read: from the peer that the request names for them, then from the origin. */
  async #fill({ start, end }: ByteSpan): Promise<void> {
    let at = start;
    const { peers, counts, request } = this.#options;
    const asker = [...this.readers.values()].find(({ hasHead }) => hasHead);
    const id = asker && this.#readerOf(asker, start);
    const version = strongValidator(this.head!)!;
    if (id !== undefined) {
      await peers.learn(asker!.sharing.readers.map((reader) => reader.id));
      const { token } = asker!;
      const bytes = peers.held(id, { request, token, range: this.#range, span: { start, end }, version });
      for await (const piece of bytes) {
        if (this.#cancel.signal.aborted) return;
        counts.fromPeersBytes += piece.length;
        this.#write(at, piece);
        at += piece.length;
      }
    }
    this.#coming.add({ start, end: at });
    if (at === end) return;
    counts.readInstead++;
    this.#coming.add({ start, end });
    await this.#take(await this.#fetch.next({ start: at, end }));
  }

  /** The id of the peer that reads these bytes, if it is not this proxy. */
  #readerOf({ sharing, symbolBytes, generationSize }: SharedRequest, at: number): string | undefined {
    const geometry = geometryOf(this.head!.totalBytes, symbolBytes, generationSize) as Geometry;
    const index = Math.floor(at / (symbolBytes * generationSize));
    const owner = sharing.readers.findIndex((_, reader) =>
      partOf(sharing, reader, geometry.generationCount).some(({ from, end }) => index >= from && index < end),
    );
    return owner < 0 || owner === sharing.ownIndex ? undefined : sharing.readers[owner]!.id;
  }

  #fail(rejection: Rejection): void {
    if (this.failure || this.#cancel.signal.aborted) return;
    this.failure = rejection;
    this.close();
    for (const { listener } of [...this.readers.values()]) listener.onFailure(rejection);
    this.#options.onIdle();
  }

  #noteIdle(): void {
    if (!this.isReading && this.#fills === 0) this.#options.onIdle();
  }
}

function bytesOf(geometry: Geometry, { from, end }: GenerationSpan): ByteSpan {
  const last = end - 1;
  return {
    start: generationStart(geometry, from),
    end: generationStart(geometry, last) + generationBytes(geometry, last),
  };
}

/** What of the first span is not in the second. */
function minus({ start, end }: ByteSpan, without: ByteSpan): ByteSpan[] {
  const covered = new ByteSpans();
  covered.add(without);
  return covered.gaps(start, end);
}
