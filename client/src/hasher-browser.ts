/**
 * SHA-256 by the browser. It is many times faster than a hash in JavaScript, and it does not use the threads that carry
 * packets. It hashes only whole bodies, so a body that is longer than most segments uses another hasher.
 */
import { hexOf, joined } from "@tributary/contract/tree";
import type { Hasher } from "./platform";

export const AT_ONCE_BYTES_MAX = 4 * 1024 * 1024;

/** `inPieces` makes the hasher for longer bodies, and for pages over plain HTTP, where the browser offers no hash. */
export function createHasher(inPieces: () => Hasher): Hasher {
  const { subtle } = globalThis.crypto as { subtle?: SubtleCrypto };
  if (!subtle) return inPieces();
  const pieces: Uint8Array[] = [];
  let byteCount = 0;
  let longer: Hasher | undefined;
  return {
    update: (bytes) => {
      if (longer) return longer.update(bytes);
      pieces.push(bytes.slice());
      byteCount += bytes.length;
      if (byteCount <= AT_ONCE_BYTES_MAX) return;
      longer = inPieces();
      for (const piece of pieces.splice(0)) longer.update(piece);
    },
    digest: () =>
      longer?.digest() ?? subtle.digest("SHA-256", joined(pieces)).then((digest) => hexOf(new Uint8Array(digest))),
    discard: () => {
      pieces.length = 0;
      longer?.discard();
    },
  };
}
