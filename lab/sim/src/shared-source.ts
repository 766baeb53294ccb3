/** The body at a proxy that reads a part of the chunk from the origin and gets the rest when its client wants it. */
import {
  generationBytes,
  generationStart,
  partOf,
  type ChunkSource,
  type GenerationSpan,
  type Geometry,
  type RequestFrame,
} from "@tributary/protocol";

export interface Shared {
  readonly geometry: Geometry;
  readonly spans: readonly GenerationSpan[];
  /** The time from a client's wish for a generation to all of its bytes. */
  readonly fillMs: number;
}

interface Place {
  nowMs: () => number;
  /** Bytes that the origin has sent. */
  readBytes: () => number;
  /** The generation that was wanted is there at `dueMs`. */
  onWanted: (dueMs: number) => void;
}

/** Undefined if the request is not for a part. */
export function sharedOf(
  { sharing }: RequestFrame,
  geometry: Geometry,
  fillMs: number | undefined,
): Shared | undefined {
  if (!sharing || fillMs === undefined) return undefined;
  return { geometry, spans: partOf(sharing, sharing.ownIndex, geometry.generationCount), fillMs };
}

export function sharedSourceOf(
  original: Uint8Array,
  { geometry, spans, fillMs }: Shared,
  { nowMs, readBytes, onWanted }: Place,
): ChunkSource & { readonly partBytes: number } {
  const startOf = (index: number) => Math.min(generationStart(geometry, index), geometry.totalBytes);
  const generationAt = (at: number) => Math.floor(at / (geometry.generationSize * geometry.symbolBytes));
  /** When each wanted generation is there. */
  const dueMs = new Map<number, number>();
  /** How many bytes of the part come up to and with byte `end`. Undefined if it is of no part. */
  const placeOf = (end: number): number | undefined => {
    let before = 0;
    for (const span of spans) {
      const [from, upTo] = [startOf(span.from), startOf(span.end)];
      if (end > from && end <= upTo) return before + end - from;
      before += upTo - from;
    }
    return undefined;
  };
  const has = (start: number, end: number): boolean => {
    if (start === end) return true;
    const place = placeOf(end);
    return place !== undefined ? place <= readBytes() : (dueMs.get(generationAt(start)) ?? Infinity) <= nowMs();
  };
  return {
    totalBytes: original.length,
    availableBytes: original.length,
    partBytes: spans.reduce((sum, { from, end }) => sum + startOf(end) - startOf(from), 0),
    has,
    want(start, end) {
      const index = generationAt(start);
      if (placeOf(end) !== undefined || dueMs.has(index)) return;
      dueMs.set(index, nowMs() + fillMs);
      onWanted(nowMs() + fillMs);
    },
    view(start, end) {
      const index = generationAt(start);
      const isThere = has(start, end) && end <= startOf(index) + generationBytes(geometry, index);
      if (!isThere) throw new RangeError(`Bytes that are not there yet: got ${start}..${end}.`);
      return original.subarray(start, end);
    },
  };
}
