/** The chunk of a simulation, and a sender's view of it. The bytes are random and always the same. */
import { createHash } from "node:crypto";
import { LIMITS, type ChunkSource } from "@tributary/protocol";
import { Random } from "./random";

const CONTENT_SEED = 4;
const CONTENT_BYTES_MIN = 2_000_000;

let content = new Uint8Array(0);

/** The first `bytes` of the content. Callers share the memory, so they must not write to it. */
export function contentOf(bytes: number): Uint8Array {
  if (content.length < bytes) {
    const random = new Random(CONTENT_SEED);
    content = Uint8Array.from({ length: Math.max(bytes, CONTENT_BYTES_MIN) }, () => random.u32() >>> 24);
  }
  return content.subarray(0, bytes);
}

export function sha256(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(bytes).digest();
}

/** Makes a source with `available()` readable bytes. `proof` is that of an object. */
export function sourceOf(
  original: Uint8Array,
  available: () => number,
  proof?: (piece: number) => Uint8Array,
): ChunkSource {
  return {
    ...(proof ? { proof } : {}),
    totalBytes: original.length,
    get availableBytes() {
      return available();
    },
    view(start, end) {
      if (end > available()) throw new RangeError(`Bytes that are not there yet: got ${end}, limit ${available()}.`);
      return original.subarray(start, end);
    },
    digest: (start, end) => sha256(original.subarray(start, end)).subarray(0, LIMITS.digestBytes),
  };
}
