/**
 * SharedBuffers: memory for a CoderPool, used again and again. It is shared memory (SharedArrayBuffer), which a batch
 * can use in place, and which can be posted to other workers without a copy. Not cleared between uses.
 */
import { CodecError } from "@tributary/protocol";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;

export class SharedBuffers {
  readonly #free = new Map<number, Uint8Array[]>();
  readonly #state = new WeakMap<Uint8Array, "taken" | "kept">();
  #keptBytes = 0;

  readonly #keptBytesMax: number;

  /** Keeps at most `keptBytesMax` bytes for later; what is given back beyond that is left to the garbage collector. */
  constructor(keptBytesMax = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** A view of exactly `bytes` bytes. */
  take(bytes: number): Uint8Array {
    const kept = this.#free.get(bytes)?.pop();
    if (kept) this.#keptBytes -= bytes;
    const view = kept ?? new Uint8Array(new SharedArrayBuffer(bytes));
    this.#state.set(view, "taken");
    return view;
  }

  /** Gives back what `take` returned, once no batch uses it. Anything else, or the same one twice, is misuse. */
  give(view: Uint8Array): void {
    if (this.#state.get(view) !== "taken") {
      throw new CodecError(
        "buffer",
        view.length,
        0,
        `buffer: got ${view.length} bytes that were not taken from here, or given back already`,
      );
    }
    this.#state.delete(view);
    if (this.#keptBytes + view.length > this.#keptBytesMax) return;
    this.#state.set(view, "kept");
    this.#keptBytes += view.length;
    const same = this.#free.get(view.length);
    if (same) same.push(view);
    else this.#free.set(view.length, [view]);
  }
}
