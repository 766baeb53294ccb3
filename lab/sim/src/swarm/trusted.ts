/** Makes the trusted facts for the client of a run: the head of the answer, and the digest of each generation. */
import { createHash } from "node:crypto";
import { generationBytes, type Geometry, type Trusted } from "@tributary/protocol";
import type { SwarmDraw } from "./draw";

const DIGEST_BYTES = 16;
/** The length of the whole resource in a run with a byte range. */
const RESOURCE_BYTES = 9_000_000;

export function trustedFor(draw: SwarmDraw, original: Uint8Array, geometry: Geometry): Trusted {
  return { head: headOf(draw), digests: digestsOf(original, geometry), hash: digestOf };
}

function headOf({ chunkBytes, range }: SwarmDraw): Trusted["head"] {
  const etag = { etag: '"1"' };
  if (!range) return { status: 200, totalBytes: chunkBytes, headers: etag };
  return {
    status: 206,
    totalBytes: chunkBytes,
    headers: { ...etag, "content-range": `bytes ${range.start}-${range.end}/${RESOURCE_BYTES}` },
  };
}

function digestOf(bytes: Uint8Array): Uint8Array {
  return createHash("sha256").update(bytes).digest().subarray(0, DIGEST_BYTES);
}

function digestsOf(original: Uint8Array, geometry: Geometry): Uint8Array[] {
  let start = 0;
  return Array.from({ length: geometry.generationCount }, (_, index) =>
    digestOf(original.subarray(start, (start += generationBytes(geometry, index)))),
  );
}
