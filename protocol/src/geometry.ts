/** How a chunk is cut into symbols and generations: docs/spec/protocol.md §5.1. Pure arithmetic. */
import type { Rejection, RejectionKind } from "@tributary/contract";
import { LIMITS } from "./limits";

export interface Geometry {
  readonly totalBytes: number;
  readonly symbolBytes: number;
  readonly generationSize: number;
  /** The paper's L. */
  readonly symbolCount: number;
  readonly generationCount: number;
}

export function geometryOf(totalBytes: number, symbolBytes: number, generationSize: number): Geometry | Rejection {
  if (totalBytes > LIMITS.chunkBytesMax) {
    return rejection("chunkTooLarge", "The chunk is larger than the limit", totalBytes, LIMITS.chunkBytesMax);
  }
  const symbolCount = Math.ceil(totalBytes / symbolBytes);
  const generationCount = Math.ceil(symbolCount / generationSize);
  if (generationCount > LIMITS.generationCountMax) {
    const text = "The chunk has more generations than the limit; ask for larger symbols or generations";
    return rejection("tooManyGenerations", text, generationCount, LIMITS.generationCountMax);
  }
  return { totalBytes, symbolBytes, generationSize, symbolCount, generationCount };
}

export function isRejection(value: object): value is Rejection {
  return "kind" in value && "message" in value;
}

/** Symbols of generation `index`: `generationSize`, or fewer in the last one. */
export function symbolsIn(geometry: Geometry, index: number): number {
  return Math.min(geometry.generationSize, geometry.symbolCount - index * geometry.generationSize);
}

/** First byte of generation `index` in the chunk. */
export function generationStart(geometry: Geometry, index: number): number {
  return index * geometry.generationSize * geometry.symbolBytes;
}

/** Bytes of the chunk in generation `index`, without padding. */
export function generationBytes(geometry: Geometry, index: number): number {
  const start = generationStart(geometry, index);
  return Math.min(geometry.totalBytes - start, geometry.generationSize * geometry.symbolBytes);
}

export function rejection(kind: RejectionKind, text: string, got: number, limit: number): Rejection {
  return { kind, message: `${text}: got ${got}, limit ${limit}.`, got, limit };
}
