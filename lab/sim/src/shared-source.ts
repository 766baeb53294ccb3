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
import type { OriginLeg } from "./world";

export interface Shared {
  readonly geometry: Geometry;
  readonly spans: readonly GenerationSpan[];
  /** The time from a client's wish for a generation to all of its bytes. */
  readonly fillMs: number;
}

interface Place {
  nowMs: () => number;
  /** Time since the head came. */
  sinceMs: () => number;
  /** The way to the origin. Undefined if the proxy has its part. */
  leg: OriginLeg | undefined;
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
  { nowMs, sinceMs, leg, onWanted }: Place,
): ChunkSource & { readonly readMs: number } {
  const startOf = (index: number) => Math.min(generationStart(geometry, index), geometry.totalBytes);
  const generationAt = (at: number) => Math.floor(at / (geometry.generationSize * geometry.symbolBytes));
  /** When each wanted generation is there. */
  const dueMs = new Map<number, number>();
  const msOf = (bytes: number) => (leg ? (bytes * 1000) / leg.bytesPerSec : 0);
  /** When byte `end` is there, after the head. A later stretch is asked for when the head is there. */
  const partMs = (end: number): number | undefined => {
    let fromMs = 0;
    for (const span of spans) {
      const [from, upTo] = [startOf(span.from), startOf(span.end)];
      if (end > from && end <= upTo) return fromMs + msOf(end - from);
      fromMs = Math.max(leg?.rttMs ?? 0, fromMs + msOf(upTo - from));
    }
    return undefined;
  };
  const has = (start: number, end: number): boolean => {
    if (start === end) return true;
    const readMs = partMs(end);
    return readMs !== undefined ? readMs <= sinceMs() : (dueMs.get(generationAt(start)) ?? Infinity) <= nowMs();
  };
  return {
    totalBytes: original.length,
    availableBytes: original.length,
    readMs: partMs(startOf(spans.at(-1)?.end ?? 0)) ?? 0,
    has,
    want(start, end) {
      const index = generationAt(start);
      if (partMs(end) !== undefined || dueMs.has(index)) return;
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
