/**
 * SharedBuffers: reusable memory for a CoderPool. A batch uses it in place, and a worker receives it without a copy,
 * because it is shared memory (SharedArrayBuffer). A reused buffer still holds its old bytes.
 */
import { CodecError } from "@tributary/protocol";

const KEPT_BYTES_MAX = 64 * 1024 * 1024;
/** Pieces of a coder's memory have this size times a power of two, so that what comes back fits what comes next. */
const PIECE_BYTES_MIN = 4096;

/** A piece of a coder's memory. */
interface Place {
  start: number;
  bytes: number;
}

export class SharedBuffers {
  readonly #free = new Map<number, Uint8Array[]>();
  readonly #state = new WeakMap<Uint8Array, "taken" | "kept" | Place>();
  #keptBytes = 0;
  /** A coder's memory: what was never taken starts at `#next`, and places that came back are kept by their size. */
  #memory: Uint8Array = new Uint8Array(0);
  #next = 0;
  readonly #places = new Map<number, Place[]>();

  readonly #keptBytesMax: number;

  /** Keeps at most `keptBytesMax` bytes for later use. The garbage collector takes the rest. */
  constructor(keptBytesMax = KEPT_BYTES_MAX) {
    this.#keptBytesMax = keptBytesMax;
  }

  /** From now on, buffers come from `memory` while it has room. It must be shared memory. Call it once. */
  useFirst(memory: Uint8Array): void {
    this.#memory = memory;
  }

  /** Returns a view of exactly `bytes` bytes. */
  take(bytes: number): Uint8Array {
    const place = this.#placeOf(bytes);
    if (place) {
      const view = this.#memory.subarray(place.start, place.start + bytes);
      this.#state.set(view, place);
      return view;
    }
    const kept = this.#free.get(bytes)?.pop();
    if (kept) this.#keptBytes -= bytes;
    const view = kept ?? new Uint8Array(new SharedArrayBuffer(bytes));
    this.#state.set(view, "taken");
    return view;
  }

  #placeOf(bytes: number): Place | undefined {
    const size = PIECE_BYTES_MIN * 2 ** Math.max(0, Math.ceil(Math.log2(bytes / PIECE_BYTES_MIN)));
    const free = this.#places.get(size)?.pop();
    if (free) return free;
    const start = this.#next;
    if (start + size > this.#memory.length) return undefined;
    this.#next += size;
    return { start, bytes: size };
  }

  /**
   * Takes back a view that `take` returned and that no batch uses. Throws CodecError `buffer` for any other view, and
   * for the same view twice.
   */
  give(view: Uint8Array): void {
    const state = this.#state.get(view);
    if (state === undefined || state === "kept") {
      throw new CodecError(
        "buffer",
        view.length,
        0,
        `buffer: got ${view.length} bytes that were not taken from here or were already given back`,
      );
    }
    this.#state.delete(view);
    if (typeof state === "object") {
      keep(this.#places, state.bytes, state);
      return;
    }
    if (this.#keptBytes + view.length > this.#keptBytesMax) return;
    this.#state.set(view, "kept");
    this.#keptBytes += view.length;
    keep(this.#free, view.length, view);
  }
}

function keep<T>(kept: Map<number, T[]>, bytes: number, one: T): void {
  const same = kept.get(bytes);
  if (same) same.push(one);
  else kept.set(bytes, [one]);
}
