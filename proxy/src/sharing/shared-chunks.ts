/**
 * Shared chunks: the chunks that this proxy reads together with its peers. The first request for a chunk decides which
 * part this proxy reads. Chunks that cannot be shared go to the store of whole chunks. Memory and the number of chunks
 * are bounded. A chunk stays for a moment after its last reader, for peers and for the next viewer.
 */
import type { ByteRange } from "@tributary/contract";
import { strongValidator } from "@tributary/contract";
import type { ProxyStatus } from "@tributary/contract/schema";
import { checkPageOrigin, keyOf, type ChunkListener, type ChunkRequest, type Lease, type Origins } from "../chunk";
import type { ChunkStore } from "../chunks";
import type { Log } from "../log";
import type { Peers } from "./peers";
import { SharedChunk, type SharedRequest, type SharingCounts } from "./shared-chunk";
import type { ByteSpan } from "./sparse-body";

export interface SharedChunksOptions {
  origins: Origins;
  peers: Peers;
  /** Takes the requests for what cannot be shared. */
  whole: Pick<ChunkStore, "open">;
  /** The most bytes that all shared chunks hold. */
  bytesMax: () => number;
  log: Log;
  nowMs?: () => number;
}

const CHUNKS_MAX = 256;
/** A chunk without readers is held for this long. */
const KEEP_MS = 10_000;
const SWEEP_MS = 1000;
/** Requests of peers that wait for bytes of one chunk. */
const PEERS_MAX = 64;

export class SharedChunks {
  readonly counts: SharingCounts = { originBytes: 0, fromPeersBytes: 0, toPeersBytes: 0, readInstead: 0 };
  readonly #chunks = new Map<string, SharedChunk>();
  readonly #asking = new Map<SharedChunk, number>();
  /** What to do for a reader whose chunk cannot be shared. */
  readonly #toWhole = new Map<ChunkListener, () => void>();
  #sweep: NodeJS.Timeout | undefined;
  readonly #options: SharedChunksOptions;
  readonly #nowMs: () => number;

  constructor(options: SharedChunksOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Finds the chunk or reads this proxy's part of it. Throws an `EgressError` when the policy refuses the URL. */
  open(request: ChunkRequest, shared: SharedRequest, listener: ChunkListener): Lease {
    const { origins, whole, peers, log } = this.#options;
    checkPageOrigin(request);
    const { href, object } = origins.vet(request.url);
    const mayShare =
      object === undefined && (request.cache ?? "default") === "default" && shared.sharing.readers.length > 1;
    const key = keyOf(href, request.range, request.pageOrigin);
    const known = this.#chunks.get(key);
    const usable = known && this.#isUsable(known) ? known : undefined;
    if (!mayShare || (!usable && !this.#hasRoom())) return whole.open(request, listener);
    void peers.learn(shared.sharing.readers.map(({ id }) => id));
    let lease: Lease | undefined;
    let isOver = false;
    const chunk =
      usable ??
      new SharedChunk({
        request,
        first: shared,
        origins,
        peers,
        counts: this.counts,
        log,
        onUnshareable: (readers) => {
          this.#forget(key, chunk);
          for (const each of readers) this.#leaveTo(each);
        },
        onIdle: () => this.#handleIdle(key, chunk),
      });
    if (!usable) {
      if (known) this.#forget(key, known);
      this.#chunks.set(key, chunk);
    }
    chunk.join(listener, shared);
    this.#toWhole.set(listener, () => {
      if (!isOver) lease = whole.open(request, listener);
    });
    return {
      take: (takenBytes, wantedBytes) => lease?.take(takenBytes, wantedBytes),
      close: () => {
        isOver = true;
        lease?.close();
        this.#toWhole.delete(listener);
        chunk.leave(listener);
        chunk.leftMs = this.#nowMs();
        this.#handleIdle(key, chunk);
      },
    };
  }

  #leaveTo(listener: ChunkListener): void {
    const go = this.#toWhole.get(listener);
    this.#toWhole.delete(listener);
    go?.();
  }

  /**
   * For a peer: bytes of a chunk that this proxy holds or reads. Undefined if it has no such chunk, or another version
   * of it. Nothing is fetched.
   */
  held(
    { url, range, pageOrigin }: Pick<ChunkRequest, "url" | "pageOrigin"> & { range: ByteRange | undefined },
    span: ByteSpan,
    version: string,
  ): AsyncGenerator<Uint8Array> | undefined {
    const { href } = this.#options.origins.vet(url);
    const chunk = this.#chunks.get(keyOf(href, range, pageOrigin));
    const asking = chunk ? (this.#asking.get(chunk) ?? 0) : 0;
    if (!chunk || chunk.failure || asking >= PEERS_MAX) return undefined;
    if (chunk.head && strongValidator(chunk.head) !== version) return undefined;
    return this.#counted(chunk, span, version);
  }

  async *#counted(chunk: SharedChunk, span: ByteSpan, version: string): AsyncGenerator<Uint8Array> {
    this.#asking.set(chunk, (this.#asking.get(chunk) ?? 0) + 1);
    try {
      for await (const bytes of chunk.held(span)) {
        if (strongValidator(chunk.head!) !== version) return;
        yield bytes;
      }
    } finally {
      const left = (this.#asking.get(chunk) ?? 1) - 1;
      if (left > 0) this.#asking.set(chunk, left);
      else this.#asking.delete(chunk);
    }
  }

  /** `sharing` is undefined until a peer was needed. */
  get stats(): { originBytes: number; sharing: ProxyStatus["sharing"] } {
    const { originBytes, ...counts } = this.counts;
    const sharing = { ...counts, refusedPeers: this.#options.peers.counts.refused };
    return { originBytes, sharing: Object.values(sharing).some((count) => count > 0) ? sharing : undefined };
  }

  get heldBytes(): number {
    let bytes = 0;
    for (const { body } of this.#chunks.values()) bytes += body?.heldBytes ?? 0;
    return bytes;
  }

  close(): void {
    clearInterval(this.#sweep);
    for (const [key, chunk] of [...this.#chunks]) this.#forget(key, chunk);
  }

  /** An answer that has not come yet is from after this request. An older one must be fresh (RFC 9111 §4.2). */
  #isUsable({ failure, policy, head }: SharedChunk): boolean {
    return !failure && (!head || policy!.isFresh(Date.now()));
  }

  #hasRoom(): boolean {
    if (this.#chunks.size < CHUNKS_MAX && this.heldBytes < this.#options.bytesMax()) return true;
    for (const [key, chunk] of this.#chunks) if (chunk.readers.size === 0) this.#forget(key, chunk);
    return this.#chunks.size < CHUNKS_MAX && this.heldBytes < this.#options.bytesMax();
  }

  #handleIdle(key: string, chunk: SharedChunk): void {
    if (chunk.readers.size > 0) return;
    if (chunk.failure || !chunk.body) return this.#forget(key, chunk);
    this.#sweep ??= setInterval(() => this.#forgetOld(), SWEEP_MS).unref();
  }

  #forgetOld(): void {
    const nowMs = this.#nowMs();
    for (const [key, chunk] of [...this.#chunks])
      if (chunk.readers.size === 0 && nowMs - chunk.leftMs > KEEP_MS) this.#forget(key, chunk);
    if (this.#chunks.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  #forget(key: string, chunk: SharedChunk): void {
    chunk.close();
    if (this.#chunks.get(key) === chunk) this.#chunks.delete(key);
  }
}
