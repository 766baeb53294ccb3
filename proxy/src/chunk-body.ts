/**
 * Chunk body: the bytes of a chunk while they arrive from the origin, and a part of a complete body. Memory is taken in
 * segments as the bytes come, so a body that was announced and does not come holds none.
 */
import { formatContentRange, resolveRange, type RangeRequest } from "@tributary/contract";
import type { ChunkSource, PlanHead } from "@tributary/protocol";
import { Digests } from "./digests";

/** A coder copies a generation of 139 KB at a time, so most generations lie within one segment. */
export const SEGMENT_BYTES = 256 * 1024;

/** Names bodies. */
let bodyCount = 0;

/** A body of the announced length that fills from its start. */
export class ChunkBody implements ChunkSource {
  availableBytes = 0;
  /** The memory that it holds. */
  heldBytes = 0;
  readonly name = String(++bodyCount);
  readonly proof?: (piece: number) => Uint8Array;
  readonly #segments: Uint8Array[] = [];
  readonly #digests: Digests;

  /** `proof`: the object's, if the body is an object or a part of it. */
  constructor(
    readonly totalBytes: number,
    proof?: (piece: number) => Uint8Array,
  ) {
    if (proof) this.proof = proof;
    this.#digests = new Digests(totalBytes, (start, end) => this.view(start, end));
  }

  /** The memory that the next `byteCount` bytes will take. */
  growthFor(byteCount: number): number {
    const segmentCount = Math.ceil((this.availableBytes + byteCount) / SEGMENT_BYTES);
    return Math.min(segmentCount * SEGMENT_BYTES, this.totalBytes) - this.heldBytes;
  }

  digest(start: number, end: number): Uint8Array {
    return this.#digests.of(start, end);
  }

  /** Takes bytes over that are just one segment, with memory of their own. Copies others. */
  append(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const offset = this.availableBytes % SEGMENT_BYTES;
      const segmentBytes = Math.min(SEGMENT_BYTES, this.totalBytes - this.availableBytes + offset);
      if (offset === 0 && bytes.length === segmentBytes && bytes.buffer.byteLength === segmentBytes)
        this.#addSegment(bytes);
      else {
        if (offset === 0) this.#addSegment(Buffer.allocUnsafeSlow(segmentBytes));
        this.#segments.at(-1)!.set(bytes.subarray(at, at + segmentBytes - offset), offset);
      }
      const count = Math.min(bytes.length - at, segmentBytes - offset);
      this.availableBytes += count;
      at += count;
    }
  }

  #addSegment(segment: Uint8Array): void {
    this.#segments.push(segment);
    this.heldBytes += segment.length;
  }

  /** A copy if the bytes lie in several segments. */
  view(start: number, end: number): Uint8Array {
    if (start < 0 || end > this.availableBytes || start > end)
      throw new RangeError(`view: got ${start}..${end}, available ${this.availableBytes}`);
    const index = Math.floor(start / SEGMENT_BYTES);
    const from = index * SEGMENT_BYTES;
    if (end <= from + SEGMENT_BYTES) return this.#segments[index]?.subarray(start - from, end - from) ?? EMPTY;
    const joined = Buffer.allocUnsafeSlow(end - start);
    for (let at = start; at < end;) {
      const offset = at % SEGMENT_BYTES;
      const piece = this.#segments[Math.floor(at / SEGMENT_BYTES)]!.subarray(offset, offset + end - at);
      joined.set(piece, at - start);
      at += piece.length;
    }
    return joined;
  }
}

const EMPTY = new Uint8Array(0);

/** A part of a complete body, from `start` on. */
export class BodyPart implements ChunkSource {
  readonly availableBytes: number;
  readonly name: string;
  readonly proof?: (piece: number) => Uint8Array;
  readonly #body: ChunkBody;

  constructor(
    body: ChunkBody,
    readonly start: number,
    readonly totalBytes: number,
  ) {
    this.#body = body;
    if (body.proof) this.proof = body.proof;
    this.availableBytes = totalBytes;
    this.name = `${body.name} ${start} ${totalBytes}`;
  }

  view(start: number, end: number): Uint8Array {
    if (start < 0 || end > this.totalBytes || start > end)
      throw new RangeError(`view: got ${start}..${end}, available ${this.totalBytes}`);
    return this.#body.view(this.start + start, this.start + end);
  }

  digest(start: number, end: number): Uint8Array {
    return this.#body.digest(this.start + start, this.start + end);
  }

  /** The head of the whole answer as the head of this part. */
  headOf(whole: PlanHead): PlanHead {
    const range = { start: this.start, end: this.start + this.totalBytes - 1 };
    const contentRange = formatContentRange(range, this.#body.totalBytes);
    const headers = { ...whole.headers, "content-range": contentRange };
    return { ...whole, status: 206, headers, totalBytes: this.totalBytes };
  }
}

/** Undefined when the body holds no byte of the range. The origin then decides the answer. */
export function partOf(body: ChunkBody, range: RangeRequest): BodyPart | undefined {
  const part = resolveRange(range, body.totalBytes);
  return part && new BodyPart(body, part.start, part.end - part.start + 1);
}
