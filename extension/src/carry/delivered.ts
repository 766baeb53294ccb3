/**
 * Delivered: a copy of the bytes that a page has got of one answer. It proves that another answer begins with the same
 * bytes. The page's own bytes cannot serve for that, because a stream takes their buffers away.
 */

/** A longer answer has no proof. A chunk is no longer. */
export const PROOF_BYTES_MAX = 32 * 1024 * 1024;

/** Reads a body: undefined at its end. */
export type Read = () => Promise<Uint8Array<ArrayBuffer> | undefined>;

export class Delivered {
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  get isPossible(): boolean {
    return this.#bytes <= PROOF_BYTES_MAX;
  }

  note(bytes: Uint8Array<ArrayBuffer>): void {
    this.#bytes += bytes.length;
    if (this.isPossible) this.#pieces.push(bytes.slice());
    else this.#pieces = [];
  }

  /** Reads what follows the delivered bytes in a body; undefined if the body does not begin with them. */
  async restOf(read: Read): Promise<Read | undefined> {
    let left = new Uint8Array(0);
    // The page may get more while this reads.
    for (const piece of [...this.#pieces]) {
      for (let at = 0; at < piece.length;) {
        if (left.length === 0) {
          const next = await read();
          if (next === undefined) return undefined;
          left = next;
        }
        const count = Math.min(left.length, piece.length - at);
        if (!isEqual(left, piece, at, count)) return undefined;
        left = left.subarray(count);
        at += count;
      }
    }
    return async () => {
      const first = left;
      left = new Uint8Array(0);
      return first.length > 0 ? first : read();
    };
  }
}

function isEqual(bytes: Uint8Array, piece: Uint8Array, at: number, count: number): boolean {
  for (let index = 0; index < count; index++) if (bytes[index] !== piece[at + index]) return false;
  return true;
}
