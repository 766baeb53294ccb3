/**
 * Outlet: what one HTTP answer gives of a chunk: its body, a part of it, or the digests of its blocks. It shows as much
 * as the chunk holds so far. No I/O.
 */
import type { ByteRange } from "@tributary/contract";
import { LIMITS, type ChunkSource } from "@tributary/protocol";

/** `part` counts from the start of the chunk's body. */
export type Yield = { kind: "whole" } | { kind: "part"; part: ByteRange } | { kind: "digests" };

export interface Outlet {
  readonly totalBytes: number;
  readonly availableBytes: number;
  /** One turn of the shaper takes at most this. */
  readonly turnBytesMax: number;
  view(start: number, end: number): Uint8Array;
  /** So much of the chunk's body the answer has use for once it has sent `sentBytes`. */
  wantedBytes(sentBytes: number): number;
}

/** A turn hashes at most so many blocks. */
const BLOCKS_PER_TURN = 8;

export function outletOf(source: ChunkSource, gives: Yield): Outlet {
  if (gives.kind === "digests") return new DigestOutlet(source);
  return new PartOutlet(source, gives.kind === "part" ? gives.part : { start: 0, end: source.totalBytes - 1 });
}

class PartOutlet implements Outlet {
  readonly turnBytesMax = Infinity;
  readonly totalBytes: number;
  readonly #source: ChunkSource;
  readonly #start: number;

  constructor(source: ChunkSource, { start, end }: ByteRange) {
    this.#source = source;
    this.#start = Math.min(start, source.totalBytes);
    this.totalBytes = Math.max(0, Math.min(end + 1, source.totalBytes) - this.#start);
  }

  get availableBytes(): number {
    return Math.min(this.totalBytes, Math.max(0, this.#source.availableBytes - this.#start));
  }
  view(start: number, end: number): Uint8Array {
    return start >= end ? new Uint8Array(0) : this.#source.view(this.#start + start, this.#start + end);
  }
  wantedBytes(sentBytes: number): number {
    return this.#start + sentBytes;
  }
}

class DigestOutlet implements Outlet {
  readonly turnBytesMax = BLOCKS_PER_TURN * LIMITS.digestBytes;
  readonly totalBytes: number;
  readonly #source: ChunkSource;

  constructor(source: ChunkSource) {
    this.#source = source;
    this.totalBytes = LIMITS.digestBytes * Math.ceil(source.totalBytes / LIMITS.httpBlockBytes);
  }

  get availableBytes(): number {
    const { availableBytes, totalBytes } = this.#source;
    if (availableBytes === totalBytes) return this.totalBytes;
    return LIMITS.digestBytes * Math.floor(availableBytes / LIMITS.httpBlockBytes);
  }
  view(start: number, end: number): Uint8Array {
    const { digestBytes } = LIMITS;
    const digests: Uint8Array[] = [];
    const first = Math.floor(start / digestBytes);
    for (let index = first; index * digestBytes < end; index++) digests.push(this.#digest(index));
    const offset = first * digestBytes;
    return Buffer.concat(digests).subarray(start - offset, end - offset);
  }
  wantedBytes(sentBytes: number): number {
    return Math.min(this.#source.totalBytes, (sentBytes / LIMITS.digestBytes) * LIMITS.httpBlockBytes);
  }

  #digest(index: number): Uint8Array {
    const start = index * LIMITS.httpBlockBytes;
    return this.#source.digest!(start, Math.min(start + LIMITS.httpBlockBytes, this.#source.totalBytes));
  }
}
