/**
 * Kept chunks: the cache of complete chunks. A chunk counts with its body, its head and what it takes to remember it,
 * so many small ones are bounded too. When they are too many, those that are too old go first, and then the least
 * recently used one of the client for which most was kept. So one client does not push out what all others use.
 */
import { keptBytesOf, type StoredChunk } from "./chunk";

interface Share {
  bytes: number;
  /** What each chunk counted when it was added, the least recently used one first. */
  readonly chunks: Map<StoredChunk, number>;
}

export class KeptChunks {
  /** The bytes of the bodies. */
  bodyBytes = 0;
  /** The least recently used one first. */
  readonly #chunks = new Map<string, StoredChunk>();
  /** By the client that caused the fetch. */
  readonly #shares = new Map<string, Share>();
  #bytes = 0;

  get(key: string): StoredChunk | undefined {
    return this.#chunks.get(key);
  }

  /** Adds the chunk, or notes that it was used. */
  add(chunk: StoredChunk): void {
    this.delete(chunk);
    this.#chunks.set(chunk.key, chunk);
    const share = this.#shares.get(ownerOf(chunk)) ?? { bytes: 0, chunks: new Map() };
    this.#shares.set(ownerOf(chunk), share);
    const bytes = keptBytesOf(chunk);
    share.chunks.set(chunk, bytes);
    this.#count(chunk, share, bytes);
  }

  delete(chunk: StoredChunk): void {
    if (this.#chunks.get(chunk.key) !== chunk) return;
    this.#chunks.delete(chunk.key);
    const share = this.#shares.get(ownerOf(chunk))!;
    this.#count(chunk, share, -share.chunks.get(chunk)!);
    share.chunks.delete(chunk);
    if (share.chunks.size === 0) this.#shares.delete(ownerOf(chunk));
  }

  /** The chunk to drop, as long as they take more than `bytesMax`. Chunks that nobody reads go before others. */
  surplus(bytesMax: number, isTooOld: (chunk: StoredChunk) => boolean): StoredChunk | undefined {
    if (this.#bytes <= bytesMax) return undefined;
    const [oldest] = this.#chunks.values();
    if (isTooOld(oldest!)) return oldest;
    let largest: Share | undefined;
    for (const share of this.#shares.values()) if (share.bytes > (largest?.bytes ?? 0)) largest = share;
    for (const chunk of largest!.chunks.keys()) if (chunk.readers.size === 0) return chunk;
    return largest!.chunks.keys().next().value;
  }

  #count(chunk: StoredChunk, share: Share, bytes: number): void {
    share.bytes += bytes;
    this.#bytes += bytes;
    this.bodyBytes += Math.sign(bytes) * chunk.body!.totalBytes;
  }
}

const ownerOf = ({ request }: StoredChunk): string => request.client?.name ?? "";
