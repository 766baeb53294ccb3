/**
 * SharedBuffers: reusable memory for a CoderPool. A batch uses it in place, and a worker receives it without a copy,
 * because it is shared memory (SharedArrayBuffer). A reused buffer still holds its old bytes.
 */
import { CodecError } from "@tributary/protocol";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;

export class SharedBuffers {
  readonly #free = new Map<number, Uint8Array[]>();
  readonly #state = new WeakMap<Uint8Array, "taken" | "kept">();
  #keptBytes = 0;

  readonly #keptBytesMax: number;

  /** Keeps at most `keptBytesMax` bytes for later use. The garbage collector takes the rest. */
  constructor(keptBytesMax = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** Returns a view of exactly `bytes` bytes. */
  take(bytes: number): Uint8Array {
    const kept = this.#free.get(bytes)?.pop();
    if (kept) this.#keptBytes -= bytes;
    const view = kept ?? new Uint8Array(new SharedArrayBuffer(bytes));
    this.#state.set(view, "taken");
    return view;
  }

  /**
   * Takes back a view that `take` returned and that no batch uses. Throws CodecError `buffer` for any other view, and
   * for the same view twice.
   */
  give(view: Uint8Array): void {
    if (this.#state.get(view) !== "taken") {
      throw new CodecError(
        "buffer",
        view.length,
        0,
        `buffer: got ${view.length} bytes that were not taken from here or were already given back`,
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
