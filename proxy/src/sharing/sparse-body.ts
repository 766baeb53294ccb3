/**
 * Sparse body: the bytes of a chunk that a proxy holds while others read the rest. It fills at any place. Memory is
 * taken in segments as the bytes come.
 */
import type { ChunkSource } from "@tributary/protocol";

const SEGMENT_BYTES = 64 * 1024;

/** Bytes `start` to before `end`. */
export interface ByteSpan {
  start: number;
  end: number;
}

/** Stretches of bytes in ascending order. Stretches that touch are one. */
export class ByteSpans {
  readonly list: ByteSpan[] = [];

  add({ start, end }: ByteSpan): void {
    if (start >= end) return;
    const first = this.list.findIndex((span) => span.end >= start);
    if (first < 0) return void this.list.push({ start, end });
    let [from, to, after] = [start, end, first];
    for (; after < this.list.length && this.list[after]!.start <= end; after++) {
      from = Math.min(from, this.list[after]!.start);
      to = Math.max(to, this.list[after]!.end);
    }
    this.list.splice(first, after - first, { start: from, end: to });
  }

  has(start: number, end: number): boolean {
    return start >= end || this.list.some((span) => span.start <= start && span.end >= end);
  }

  /** The stretches of `start` to before `end` that are missing. */
  gaps(start: number, end: number): ByteSpan[] {
    const gaps: ByteSpan[] = [];
    let at = start;
    for (const span of this.list) {
      if (span.end <= at) continue;
      if (span.start >= end) break;
      if (span.start > at) gaps.push({ start: at, end: span.start });
      at = span.end;
    }
    if (at < end) gaps.push({ start: at, end });
    return gaps;
  }
}

/** Names bodies. */
let bodyCount = 0;

export class SparseBody implements ChunkSource {
  readonly name = `shared ${++bodyCount}`;
  readonly held = new ByteSpans();
  /** The memory that it takes. */
  heldBytes = 0;
  readonly #segments = new Map<number, Uint8Array>();
  readonly #onWanted: (span: ByteSpan) => void;

  /** `onWanted`: a client wants bytes that are not here. It may be called again and again. */
  constructor(
    readonly totalBytes: number,
    onWanted: (span: ByteSpan) => void,
  ) {
    this.#onWanted = onWanted;
  }

  get availableBytes(): number {
    return this.totalBytes;
  }

  has(start: number, end: number): boolean {
    return this.held.has(start, end);
  }

  want(start: number, end: number): void {
    this.#onWanted({ start, end });
  }

  /** The bytes must lie within the body. */
  write(start: number, bytes: Uint8Array): void {
    if (start + bytes.length > this.totalBytes) throw new RangeError("bytes after the end of the body");
    for (let at = 0; at < bytes.length;) {
      const { segment, offset } = this.#segmentAt(start + at);
      const count = Math.min(bytes.length - at, segment.length - offset);
      segment.set(bytes.subarray(at, at + count), offset);
      at += count;
    }
    this.held.add({ start, end: start + bytes.length });
  }

  /** A copy if the bytes lie in several segments. Throws a RangeError for bytes that are not here. */
  view(start: number, end: number): Uint8Array {
    if (end > this.totalBytes || !this.held.has(start, end)) throw new RangeError(`view: got ${start}..${end}`);
    if (start >= end) return new Uint8Array(0);
    const { segment, offset } = this.#segmentAt(start);
    if (offset + end - start <= segment.length) return segment.subarray(offset, offset + end - start);
    const joined = new Uint8Array(end - start);
    for (let at = start; at < end;) {
      const piece = this.#segmentAt(at);
      const bytes = piece.segment.subarray(piece.offset, piece.offset + end - at);
      joined.set(bytes, at - start);
      at += bytes.length;
    }
    return joined;
  }

  #segmentAt(at: number): { segment: Uint8Array; offset: number } {
    const index = Math.floor(at / SEGMENT_BYTES);
    const from = index * SEGMENT_BYTES;
    let segment = this.#segments.get(index);
    if (!segment) {
      segment = new Uint8Array(Math.min(SEGMENT_BYTES, this.totalBytes - from));
      this.#segments.set(index, segment);
      this.heldBytes += segment.length;
    }
    return { segment, offset: at - from };
  }
}
