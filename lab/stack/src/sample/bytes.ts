import { parseRange, resolveRange } from "@tributary/contract";

/**
 * Deterministic test bytes. Byte i of a file depends only on i, so any range can be made and checked without the file.
 * A shifted, dropped or repeated packet changes the digest.
 */
export function sizeBytes(start: number, endExclusive: number): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(Math.max(0, endExclusive - start));
  for (let index = 0; index < bytes.length; index++) {
    let mixed = Math.imul(start + index + 1, 0x9e3779b1);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x85ebca6b);
    bytes[index] = mixed >>> 24;
  }
  return bytes;
}

const PIECE_BYTES = 65_536;
/** 16 MiB are made once and kept, so that a measured download does not wait for the origin's processor. */
const KEPT_PIECES = 256;
const kept: Uint8Array<ArrayBuffer>[] = [];

/** Bytes start..endExclusive-1 in pieces of at most 64 KiB. The caller must not change them. */
export function* sizeBytesPieces(start: number, endExclusive: number): Generator<Uint8Array<ArrayBuffer>> {
  for (let index = Math.floor(start / PIECE_BYTES); index * PIECE_BYTES < endExclusive; index++) {
    const base = index * PIECE_BYTES;
    yield pieceAt(index).subarray(Math.max(0, start - base), endExclusive - base);
  }
}

function pieceAt(index: number): Uint8Array<ArrayBuffer> {
  const make = (): Uint8Array<ArrayBuffer> => sizeBytes(index * PIECE_BYTES, (index + 1) * PIECE_BYTES);
  return index < KEPT_PIECES ? (kept[index] ??= make()) : make();
}

export type RangeOutcome =
  { kind: "whole" } | { kind: "range"; start: number; end: number } | { kind: "unsatisfiable" };

/**
 * Applies one `Range` header to a file of `totalBytes`. `end` is inclusive. Several ranges or a malformed header mean
 * the whole file (RFC 9110 §14.2).
 */
export function rangeOf(header: string | undefined, totalBytes: number): RangeOutcome {
  const range = parseRange(header);
  if (!range) return { kind: "whole" };
  const part = resolveRange(range, totalBytes);
  return part ? { kind: "range", ...part } : { kind: "unsatisfiable" };
}
