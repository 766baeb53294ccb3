/**
 * Shared chunks: the chunks that this proxy reads together with its peers. The first request for a chunk decides which
 * part this proxy reads. Chunks that cannot be shared go to the store of whole chunks. Memory and the number of chunks
 * are bounded. A chunk stays after its last reader, for peers and for the next viewer, as long as it may be
 * used and the cache has room.
 */
import { dirname, extname } from "node:path/posix";
import type { ByteRange } from "@tributary/contract";
import { strongValidator } from "@tributary/contract";
import type { ProxyStatus } from "@tributary/contract/schema";
import { checkPageOrigin, keyOf, type ChunkListener, type ChunkRequest, type Lease, type Origins } from "../chunk";
import type { ChunkStore } from "../chunks";
import type { Log } from "../log";
import type { Peers } from "./peers";
import { SharedChunk, type SharedRequest, type SharingCounts } from "./shared-chunk";
import type { ByteSpan } from "./sparse-body";

export interface SharingLimits {
  /** All shared chunks together. */
  pinnedBytes: number;
  /** Those without readers. */
  cacheBytes: number;
  cacheKeepMs: number;
  sharedChunksMax: number;
  /** Requests of peers that wait for bytes of one chunk. */
  heldRequestsMax: number;
}

export interface SharedChunksOptions {
  origins: Origins;
  peers: Peers;
  /** Takes the requests for what cannot be shared. */
  whole: Pick<ChunkStore, "open">;
  limits: () => SharingLimits;
  log: Log;
  nowMs?: () => number;
}

/** A chunk that no new reader may use is held for this long after its last reader, because peers may ask for it. */
const PEERS_MS = 10_000;
const SWEEP_MS = 1000;
/** The parts of an answer could not be joined. For this long its origin is not asked for parts of such files. */
const WHOLE_MS = 600_000;
const WHOLE_KINDS_MAX = 1024;

export class SharedChunks {
  readonly counts: SharingCounts = { originBytes: 0, fromPeersBytes: 0, toPeersBytes: 0, readInstead: 0 };
  readonly #chunks = new Map<string, SharedChunk>();
  readonly #asking = new Map<SharedChunk, number>();
  /** What to do for a reader whose chunk cannot be shared. */
  readonly #toWhole = new Map<ChunkListener, () => void>();
  /** By kind: until when such files are read whole. The last one noted is the last. */
  readonly #wholeKinds = new Map<string, number>();
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
    const isDefault = (request.cache ?? "default") === "default";
    const kind = kindOf(href);
    const isWhole = object !== undefined || (this.#wholeKinds.get(kind) ?? -Infinity) > this.#nowMs();
    const mayShare = isDefault && !isWhole && shared.sharing.readers.length > 1;
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
        onUnshareable: (readers, why) => {
          this.#forget(key, chunk);
          if (why === "noParts") this.#noteWhole(kind);
          for (const each of readers) this.#leaveTo(each);
        },
        onIdle: () => this.#handleIdle(key, chunk),
        nowMs: this.#nowMs(),
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

  #noteWhole(kind: string): void {
    this.#wholeKinds.delete(kind);
    this.#wholeKinds.set(kind, this.#nowMs() + WHOLE_MS);
    if (this.#wholeKinds.size > WHOLE_KINDS_MAX) this.#wholeKinds.delete(this.#wholeKinds.keys().next().value!);
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
    if (!chunk || chunk.failure || asking >= this.#options.limits().heldRequestsMax) return undefined;
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
  #isUsable({ failure, policy, head, madeMs }: SharedChunk): boolean {
    const isKept = this.#nowMs() - madeMs < this.#options.limits().cacheKeepMs;
    return !failure && (!head || (isKept && policy!.isFresh(Date.now())));
  }

  /** Drops chunks without readers to make room for one more. The first to go is the one that was left first. */
  #hasRoom(): boolean {
    const { pinnedBytes, sharedChunksMax } = this.#options.limits();
    const idle = this.#idle();
    const isFull = () => this.#chunks.size >= sharedChunksMax || this.heldBytes >= pinnedBytes;
    while (isFull()) {
      const next = idle.shift();
      if (!next) return false;
      this.#forget(...next);
    }
    return true;
  }

  /** The chunks without readers. The one that was left first is the first. */
  #idle(): [string, SharedChunk][] {
    return [...this.#chunks]
      .filter(([, { readers }]) => readers.size === 0)
      .sort(([, a], [, b]) => a.leftMs - b.leftMs);
  }

  #handleIdle(key: string, chunk: SharedChunk): void {
    if (chunk.readers.size > 0) return;
    if (chunk.failure || !chunk.body) return this.#forget(key, chunk);
    this.#sweep ??= setInterval(() => this.#forgetOld(), SWEEP_MS).unref();
  }

  #forgetOld(): void {
    const nowMs = this.#nowMs();
    const idle = this.#idle();
    let idleBytes = idle.reduce((sum, [, { body }]) => sum + (body?.heldBytes ?? 0), 0);
    for (const [key, chunk] of idle) {
      const isWanted = nowMs - chunk.leftMs <= PEERS_MS || this.#isUsable(chunk);
      if (isWanted && idleBytes <= this.#options.limits().cacheBytes) continue;
      idleBytes -= chunk.body?.heldBytes ?? 0;
      this.#forget(key, chunk);
    }
    if (this.#chunks.size > 0) return;
    clearInterval(this.#sweep);
    this.#sweep = undefined;
  }

  #forget(key: string, chunk: SharedChunk): void {
    chunk.close();
    if (this.#chunks.get(key) === chunk) this.#chunks.delete(key);
  }
}

/** The files of one folder with one extension are of a kind. */
function kindOf(href: string): string {
  const [path] = href.split("?", 1);
  return `${dirname(path!)}/*${extname(path!)}`;
}
