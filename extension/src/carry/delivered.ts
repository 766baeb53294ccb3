/**
 * Delivered: a copy of the bytes that a page has got of one answer. It proves that another answer begins with the same
 * bytes. The page's own bytes cannot serve for that, because a stream takes their buffers away.
 */
import { add } from "../shared/primordials";
import { bytes as part, min, OwnBytes } from "../shared/late-primordials";
import type { Read } from "../shared/late-platform";

/** A longer answer has no proof. A chunk is no longer. */
export const PROOF_BYTES_MAX = 32 * 1024 * 1024;

type Bytes = Uint8Array<ArrayBuffer>;
const NONE = new OwnBytes(0);

export class Delivered {
  #pieces: Bytes[] = [];
  #bytes = 0;

  get isPossible(): boolean {
    return this.#bytes <= PROOF_BYTES_MAX;
  }

  note(bytes: Bytes): void {
    this.#bytes += part.count(bytes);
    if (this.isPossible) add(this.#pieces, part.copy(bytes));
    else this.#pieces = [];
  }

  /** Reads what follows the delivered bytes in a body; undefined if the body does not begin with them. */
  async restOf(read: Read): Promise<Read | undefined> {
    let left = NONE;
    // The page may get more while this reads.
    const pieceCount = this.#pieces.length;
    for (let index = 0; index < pieceCount; index++) {
      const piece = this.#pieces[index]!;
      const bytes = part.count(piece);
      for (let at = 0; at < bytes;) {
        if (part.count(left) === 0) {
          const next = await read();
          if (next === undefined) return undefined;
          left = next;
        }
        const count = min(part.count(left), bytes - at);
        if (!isEqual(left, piece, at, count)) return undefined;
        left = part.part(left, count);
        at += count;
      }
    }
    return async () => {
      const first = left;
      left = NONE;
      return part.count(first) > 0 ? first : await read();
    };
  }
}

function isEqual(bytes: Uint8Array, piece: Uint8Array, at: number, count: number): boolean {
  for (let index = 0; index < count; index++) if (bytes[index] !== piece[at + index]) return false;
  return true;
}
