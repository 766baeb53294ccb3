/**
 * The store of chunks: shared fetches and their cache. Readers of the same URL and range read one buffer while it
 * fills, if the answer may be shared (cache-policy.ts). The store keeps a complete chunk as long as the origin allows
 * it, asks the origin again when it must, and drops the least recently used one first. It answers ranges from a chunk
 * that it keeps whole (RFC 9110 §14). Memory is bounded: `cacheBytes` for kept chunks, `pinnedBytes` for others that
 * are read. When it runs out, the slowest readers of the clients that hold most are cut off. A fetch waits for its
 * readers. When the last one leaves, it ends, or it goes on for the cache (fetches.ts). Not here: egress/, session.ts.
 */
import type { RangeRequest, Rejection } from "@tributary/contract";
import type { PlanHead } from "@tributary/protocol";
import { AnswerPolicy, describing } from "./cache-policy";
import {
  checkPageOrigin,
  headOf,
  keyOf,
  isKeepable,
  leaderOf,
  newChunk,
  noteTaken,
  payerOf,
  unreadBytesOf,
  unshareableReason,
  type Answer,
  type ChunkLimits,
  type ChunkListener,
  type ChunkRequest,
  type ChunkStats,
  type Lease,
  type OriginHead,
  type Origins,
  type Reader,
  type StoredChunk,
} from "./chunk";
import { ChunkBody, partOf, type BodyPart } from "./chunk-body";
import { firstToGo, UnreadBudget } from "./chunk-shares";
import { DownloadReaders } from "./download-readers";
import { egressError, rejectionOf } from "./egress/error";
import type { OriginResponse } from "./egress/fetch";
import { Fetches, IN_SOCKETS_BYTES, tooManyFetches } from "./fetches";
import { KeptChunks } from "./kept-chunks";
import type { Log } from "./log";

export type { ChunkLimits, ChunkListener, ChunkRequest, Lease, OriginHead } from "./chunk";

export interface ChunkStoreOptions {
  egress: Origins;
  log: Log;
  limits: ChunkLimits;
  /** Milliseconds since 1970, by a clock that does not jump. */
  nowMs?: () => number;
}

/** A fetch is given up when no reader takes a byte for this long. */
const READERS_SILENT_MS = 60_000;
/** How often a fetch looks whether its readers' clients may have more fetched. */
const BUDGET_POLL_MS = 250;

export class ChunkStore {
  /** The newest fetch of each key, which others may join. */
  readonly #shared = new Map<string, StoredChunk>();
  readonly #kept = new KeptChunks();
  /** The chunks with readers that are not kept. `pinnedBytes` bounds them. */
  readonly #pinned = new Set<StoredChunk>();
  readonly #fetching = new Fetches((chunk) => this.#abandon(chunk));
  readonly #downloads = new DownloadReaders((standIn) => this.#leave(standIn));
  readonly #unread = new UnreadBudget();
  readonly #counts = { originBytes: 0, cacheHits: 0 };
  #pinnedBytes = 0;
  #limits: ChunkLimits;
  readonly #nowMs: () => number;
  readonly #options: ChunkStoreOptions;

  constructor(options: ChunkStoreOptions) {
    this.#options = options;
    this.#limits = options.limits;
    this.#nowMs = options.nowMs ?? (() => performance.timeOrigin + performance.now());
  }

  get stats(): ChunkStats {
    return { ...this.#counts, cacheBytes: this.#kept.bodyBytes };
  }

  /** Finds or fetches the chunk. Throws an `EgressError` when the policy refuses the URL. */
  open(request: ChunkRequest, listener: ChunkListener): Lease {
    checkPageOrigin(request);
    const { href, origin, object } = this.#options.egress.vet(request.url);
    const { range, cache = "default", client, download } = request;
    const pageOrigin = object ? undefined : request.pageOrigin; // An object is the same for every page.
    const key = keyOf(href, range, pageOrigin);
    const reader: Reader = {
      chunk: newChunk({ key, origin, object }, request),
      part: undefined,
      listener,
      download: download === undefined ? undefined : `${client?.name ?? ""} ${download} ${key}`,
      client: client?.name ?? "",
      sinceMs: this.#nowMs(),
      takenBytes: 0,
      wantedBytes: 0,
      hasHead: false,
    };
    const lease: Lease = {
      take: (takenBytes, wantedBytes) => this.#take(reader, takenBytes, wantedBytes),
      close: () => this.#close(reader),
    };
    if (this.#joinDownload(reader)) return lease;
    const answers = cache === "no-store" ? [] : this.#answersTo(key, keyOf(href, undefined, pageOrigin), range);
    const usable = cache === "default" ? this.#usable(key, answers) : undefined;
    if (usable) this.#use(reader, usable);
    else {
      reader.chunk.candidate = answers.find(({ chunk }) => chunk.policy?.conditions(range !== undefined));
      this.#ask(reader);
    }
    return lease;
  }

  /** True if another reader of the same download is open. Its answer is then the one for this reader, too. */
  #joinDownload(reader: Reader): boolean {
    const peer = this.#downloads.enter(reader);
    if (!peer) return false;
    this.#join(reader, peer.chunk, peer.part);
    const { chunk } = reader;
    if (chunk.body) setImmediate(() => this.#giveHead(reader, chunk.head!));
    return true;
  }

  /** Drops kept chunks beyond the new limits at once. */
  setLimits(limits: ChunkLimits): void {
    this.#limits = limits;
    this.#evict();
  }

  /** Ends all fetches. Their readers get a failure. */
  close(): void {
    for (const chunk of this.#fetching) {
      chunk.cancel.abort();
      chunk.wake();
    }
  }

  /** The known answers that the origin has given to this request, or to one for the whole. They may be stale. */
  #answersTo(key: string, keyOfWhole: string, range: RangeRequest | undefined): Answer[] {
    const answers = [this.#shared.get(key), this.#keptAt(key)].flatMap((chunk) =>
      chunk?.body ? [{ chunk, part: undefined }] : [],
    );
    const whole = range && this.#keptAt(keyOfWhole);
    const part = whole?.head?.status === 200 ? partOf(whole.body!, range!) : undefined;
    return part ? [...answers, { chunk: whole!, part }] : answers;
  }

  /** A fetch that has no answer yet can be joined: its answer will be from after this request. */
  #usable(key: string, answers: Answer[]): Answer | undefined {
    const asked = this.#shared.get(key);
    if (asked && !asked.body) return { chunk: asked, part: undefined };
    return answers.find(({ chunk }) => chunk.policy!.isFresh(this.#nowMs()));
  }

  #keptAt(key: string): StoredChunk | undefined {
    const chunk = this.#kept.get(key);
    if (!chunk || !this.#isTooOld(chunk)) return chunk;
    this.#drop(chunk);
    return undefined;
  }

  readonly #isTooOld = ({ askedMs }: StoredChunk): boolean => this.#nowMs() - askedMs >= this.#limits.cacheKeepMs;

  #use(reader: Reader, { chunk, part }: Answer): void {
    this.#counts.cacheHits++;
    this.#join(reader, chunk, part);
    if (chunk.body) setImmediate(() => this.#giveHead(reader, this.#storedHead(chunk, 0)));
  }

  #storedHead({ head, policy }: StoredChunk, serverFetchMs: number): PlanHead {
    const age = String(policy!.ageSec(this.#nowMs()));
    return { ...head!, headers: { ...head!.headers, age }, serverFetchMs };
  }

  #join(reader: Reader, chunk: StoredChunk, part: BodyPart | undefined): void {
    reader.chunk = chunk;
    reader.part = part;
    chunk.readers.add(reader);
    this.#fetching.noteReader(chunk);
    if (chunk.isKept) this.#kept.add(chunk);
    else this.#pin(chunk);
  }

  /** Starts the fetch of the reader's own chunk. */
  #ask(reader: Reader): void {
    const { chunk } = reader;
    const rival = this.#fetching.rivalAtOrigin(reader, this.#nowMs());
    if (rival) this.#cutOff(rival.chunk, "connections to this origin", rival.got, rival.limit);
    const other = this.#fetching.rivalAmongAll(reader, this.#nowMs(), this.#limits.originFetchesMax);
    this.#join(reader, chunk, undefined);
    if (other && !other.chunk) return void setImmediate(() => this.#fail(chunk, tooManyFetches(other)));
    if (other?.chunk) this.#cutOff(other.chunk, "requests to origins", other.got, other.limit);
    if (chunk.request.cache !== "no-store") this.#shared.set(chunk.key, chunk);
    this.#fetching.add(chunk);
    void this.#fill(chunk);
  }

  async #fill(chunk: StoredChunk): Promise<void> {
    let isHandedOver = false;
    try {
      const response = await this.#answerOf(chunk);
      if (response) isHandedOver = await this.#receive(chunk, response);
    } catch (error) {
      this.#fail(chunk, rejectionOf(error, this.#options.log));
    } finally {
      if (!isHandedOver) this.#fetching.delete(chunk);
    }
  }

  /** The origin's answer. Undefined when the origin has confirmed the candidate, which the readers then have. */
  async #answerOf(chunk: StoredChunk): Promise<OriginResponse | undefined> {
    const { candidate, request, cancel } = chunk;
    this.#unread.check(payerOf(chunk), this.#limits.unreadBytes, this.#nowMs());
    const conditions = candidate?.chunk.policy?.conditions(request.range !== undefined);
    chunk.askedMs = this.#nowMs();
    const { url, range, client, pageOrigin } = request;
    const response = await this.#options.egress.fetch(url, range, cancel.signal, client, { conditions, pageOrigin });
    if (!candidate || response.status !== 304) return response;
    response.cancel();
    chunk.candidate = undefined;
    if (this.#confirm(chunk, candidate, response)) return undefined;
    return this.#answerOf(chunk);
  }

  /** Gives the readers of `chunk` the candidate that the origin's 304 is about. False if it is about another answer. */
  #confirm(chunk: StoredChunk, { chunk: known, part }: Answer, response: OriginResponse): boolean {
    const { headers, serverFetchMs } = headOf(response);
    const policy = known.policy!.confirmed(response, chunk.askedMs, this.#nowMs());
    const isGone = !known.isComplete && known.cancel.signal.aborted;
    if (!policy || isGone || headers["location"] !== known.head!.headers["location"]) return false;
    known.policy = policy;
    known.askedMs = chunk.askedMs;
    known.head = { ...known.head!, headers: { ...known.head!.headers, ...describing(headers) } };
    const readers = [...chunk.readers];
    chunk.readers.clear();
    this.#unpin(chunk);
    if (this.#shared.get(chunk.key) === chunk) {
      if (known.isComplete || part) this.#shared.delete(chunk.key);
      else this.#shared.set(chunk.key, known);
    }
    this.#counts.cacheHits += readers.length;
    for (const reader of readers) this.#join(reader, known, part);
    if (known.isComplete && !known.isKept) this.#keep(known);
    this.#makeRoom(0, known);
    for (const reader of readers) this.#giveHead(reader, this.#storedHead(known, serverFetchMs));
    return true;
  }

  /** Reads the body for the readers. True if one of them has taken over the response. */
  async #receive(chunk: StoredChunk, response: OriginResponse): Promise<boolean> {
    if (chunk.cancel.signal.aborted) {
      response.cancel();
      return false;
    }
    const head = headOf(response);
    const reason = unshareableReason(response);
    if (reason) return this.#handOver(chunk, head, response, reason);
    chunk.policy = new AnswerPolicy(response, chunk.askedMs, this.#nowMs());
    if (!chunk.policy.isShareable) {
      const [first, ...others] = chunk.readers;
      const isAnother = ({ download }: Reader) => download === undefined || download !== first!.download;
      this.#separate(chunk, others.filter(isAnother));
    }
    chunk.head = { ...head, totalBytes: response.totalBytes! };
    chunk.body = new ChunkBody(response.totalBytes!, response.proof);
    if (chunk.readers.size === 0 && !this.#isWorthFinishing(chunk)) {
      this.#abandon(chunk);
      response.cancel();
      return false;
    }
    for (const reader of [...chunk.readers]) this.#giveHead(reader, chunk.head);
    for await (const bytes of response.body) {
      this.#grow(chunk, chunk.body, bytes);
      await this.#demand(chunk, chunk.body);
    }
    this.#complete(chunk);
    return false;
  }

  /** Lets the readers ask for themselves, because nobody may get this answer but the reader that caused the fetch. */
  #separate(chunk: StoredChunk, others: Reader[]): void {
    const made = new Map<string, StoredChunk>();
    for (const reader of others) {
      chunk.readers.delete(reader);
      const own = made.get(reader.download ?? "");
      if (own) {
        this.#join(reader, own, undefined);
        continue;
      }
      reader.chunk = newChunk(chunk, { ...chunk.request, cache: "no-store" });
      if (reader.download !== undefined) made.set(reader.download, reader.chunk);
      this.#ask(reader);
    }
  }

  #giveHead(reader: Reader, head: PlanHead): void {
    if (reader.hasHead || !reader.chunk.readers.has(reader)) return;
    reader.hasHead = true;
    const { part } = reader;
    if (part) reader.listener.onHead(part.headOf(head), part);
    else reader.listener.onHead(head, reader.chunk.body!);
    if (reader.chunk.readers.has(reader)) reader.listener.onGrowth();
  }

  /** Throws when the chunk is cut off, because others need the memory more. */
  #grow(chunk: StoredChunk, body: ChunkBody, bytes: Uint8Array): void {
    const growth = body.growthFor(bytes.length);
    this.#makeRoom(growth, chunk);
    if (chunk.cancel.signal.aborted) throw egressError("aborted", "The request was given up.");
    body.append(bytes);
    if (!chunk.object) this.#counts.originBytes += bytes.length;
    this.#pinnedBytes += growth;
    this.#countUnread(payerOf(chunk), Math.min(bytes.length, unreadBytesOf(chunk)));
    for (const reader of [...chunk.readers])
      if (chunk.readers.has(reader) && reader.hasHead) reader.listener.onGrowth();
  }

  #countUnread(client: string, bytes: number): void {
    if (bytes !== 0) this.#unread.add(client, bytes, this.#limits.unreadBytes, this.#nowMs());
  }

  /** Resolves when the readers have use for more of the body than there is. */
  async #demand(chunk: StoredChunk, body: ChunkBody): Promise<void> {
    const untilMs = this.#nowMs() + READERS_SILENT_MS;
    while (body.availableBytes < body.totalBytes && !chunk.cancel.signal.aborted) {
      const { readAheadBytes, unreadBytes } = this.#limits;
      const isAhead = chunk.readers.size > 0 && body.availableBytes >= leaderOf(chunk).wantedBytes + readAheadBytes;
      const mayRead = this.#unread.spentBy(payerOf(chunk), unreadBytes, this.#nowMs()) < unreadBytes;
      if (!isAhead && (mayRead || body.availableBytes < chunk.usedBytes)) return;
      if (this.#nowMs() >= untilMs)
        throw egressError("aborted", `No reader took a byte of the chunk for ${READERS_SILENT_MS} ms.`);
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, isAhead ? READERS_SILENT_MS : BUDGET_POLL_MS);
        chunk.wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
  }

  #take(reader: Reader, takenBytes: number, wantedBytes: number): void {
    if (!reader.chunk.readers.has(reader)) return;
    if (reader.chunk.object) this.#options.egress.countSent?.(reader.chunk.object, takenBytes - reader.takenBytes);
    this.#countUnread(reader.client, -noteTaken(reader, takenBytes, wantedBytes));
    reader.chunk.wake();
  }

  #complete(chunk: StoredChunk): void {
    chunk.isComplete = true;
    // The controller of the fetch holds all that the fetch needed.
    chunk.cancel = new AbortController();
    if (this.#shared.get(chunk.key) === chunk) {
      this.#shared.delete(chunk.key);
      this.#keep(chunk);
    }
    if (chunk.readers.size === 0) this.#unpin(chunk);
  }

  /** Keeps a complete chunk if its answer may be used again and there is room. */
  #keep(chunk: StoredChunk): void {
    if (!isKeepable(chunk, this.#limits)) return;
    const older = this.#kept.get(chunk.key);
    if (older) this.#drop(older);
    this.#unpin(chunk);
    chunk.isKept = true;
    this.#kept.add(chunk);
    this.#evict();
  }

  #evict(): void {
    for (;;) {
      const chunk = this.#kept.surplus(this.#limits.cacheBytes, this.#isTooOld);
      if (!chunk) return;
      this.#drop(chunk);
    }
  }

  /** Hides a kept chunk from new readers. Its present readers continue, as far as there is memory for them. */
  #drop(chunk: StoredChunk): void {
    this.#kept.delete(chunk);
    chunk.isKept = false;
    if (chunk.readers.size === 0) return;
    this.#pin(chunk);
    this.#makeRoom(0, chunk);
  }

  #pin(chunk: StoredChunk): void {
    if (this.#pinned.has(chunk)) return;
    this.#pinned.add(chunk);
    this.#pinnedBytes += chunk.body?.heldBytes ?? 0;
  }

  #unpin(chunk: StoredChunk): void {
    if (this.#pinned.delete(chunk)) this.#pinnedBytes -= chunk.body?.heldBytes ?? 0;
  }

  /** Cuts off slow readers until `byteCount` more bytes fit. `chunk` itself may be the one that has to go. */
  #makeRoom(byteCount: number, chunk: StoredChunk): void {
    const limit = this.#limits.pinnedBytes;
    for (;;) {
      const wanted = this.#pinnedBytes + byteCount;
      if (wanted <= limit || chunk.cancel.signal.aborted) return;
      if (this.#fetching.giveUpLeft() || this.#downloads.giveUpOldest()) continue;
      const sizeOf = (each: StoredChunk) => (each.body?.heldBytes ?? 0) + (each === chunk ? byteCount : 0);
      const slowest = firstToGo(this.#pinned, sizeOf, this.#nowMs());
      if (!slowest) return;
      this.#cutOff(slowest, "bytes", wanted, limit);
      if (slowest === chunk) return;
    }
  }

  #cutOff(chunk: StoredChunk, what: string, got: number, limit: number): void {
    const message = `The proxy is busy, and this chunk was read too slowly: ${got} ${what}, limit ${limit}. Try again.`;
    this.#fail(chunk, { kind: "proxyBusy", message, got, limit });
  }

  #close(reader: Reader): void {
    const standIn = this.#downloads.standInFor(reader);
    if (standIn) this.#join(standIn, standIn.chunk, standIn.part);
    this.#leave(reader);
  }

  #leave(reader: Reader): void {
    const { chunk } = reader;
    this.#downloads.leave(reader);
    if (!chunk.readers.delete(reader)) return;
    if (chunk.readers.size === 0) this.#handleNoReader(chunk);
    chunk.wake();
  }

  #handleNoReader(chunk: StoredChunk): void {
    if (chunk.isComplete) this.#unpin(chunk);
    else if (this.#isWorthFinishing(chunk)) this.#fetching.noteLeft(chunk);
    else this.#abandon(chunk);
  }

  /** Whether the answer, as far as it is known, is a fresh one for the cache that is nearly there. */
  #isWorthFinishing(chunk: StoredChunk): boolean {
    if (this.#shared.get(chunk.key) !== chunk || chunk.cancel.signal.aborted) return false;
    const { body, policy } = chunk;
    if (!body) return true;
    const missingBytes = body.totalBytes - body.availableBytes;
    return missingBytes <= IN_SOCKETS_BYTES && isKeepable(chunk, this.#limits) && policy!.isFresh(this.#nowMs());
  }

  #abandon(chunk: StoredChunk): void {
    this.#fetching.noteReader(chunk);
    if (chunk.readers.size === 0) this.#unpin(chunk);
    if (this.#shared.get(chunk.key) === chunk) this.#shared.delete(chunk.key);
    if (chunk.cancel.signal.aborted) return;
    chunk.cancel.abort();
    chunk.wake();
    const { body, request } = chunk;
    const lostBytes = body ? Math.min(body.totalBytes - body.availableBytes, IN_SOCKETS_BYTES) : 0;
    this.#countUnread(request.client?.name ?? "", lostBytes);
  }

  #fail(chunk: StoredChunk, rejection: Rejection): void {
    this.#abandon(chunk);
    for (const reader of [...chunk.readers]) {
      this.#leave(reader);
      reader.listener.onFailure(rejection);
    }
  }

  /** Gives the response to the first reader that can stream it. The others need the body from its start. */
  #handOver(chunk: StoredChunk, head: OriginHead, response: OriginResponse, reason: Rejection): boolean {
    const [taker, ...streamers] = [...chunk.readers].filter(({ listener }) => listener.onUnshareable);
    for (const reader of [...chunk.readers]) {
      if (reader.listener.onUnshareable) continue;
      chunk.readers.delete(reader);
      this.#downloads.leave(reader);
      reader.listener.onFailure(reason);
    }
    this.#separate(chunk, streamers);
    if (!taker) {
      this.#abandon(chunk);
      response.cancel();
      return false;
    }
    if (this.#shared.get(chunk.key) === chunk) this.#shared.delete(chunk.key);
    taker.listener.onUnshareable!(head, { ...response, body: this.#counted(chunk, response.body) });
    return true;
  }

  async *#counted(chunk: StoredChunk, body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    try {
      for await (const bytes of body) {
        if (chunk.object) this.#options.egress.countSent?.(chunk.object, bytes.length);
        else this.#counts.originBytes += bytes.length;
        yield bytes;
      }
    } finally {
      this.#fetching.delete(chunk);
    }
  }
}
