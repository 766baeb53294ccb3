/**
 * Reports a stall: no progress for too long. `firstMs` limits the first wait, and `nextMs` limits every later one. The
 * caller pauses the watch while it waits for the reader.
 */
export class StallWatch {
  #timer: ReturnType<typeof setTimeout> | undefined;
  #begun = false;

  readonly #firstMs: number;
  readonly #nextMs: number;
  readonly #onStall: (silentMs: number) => void;

  constructor(firstMs: number, nextMs: number, onStall: (silentMs: number) => void) {
    this.#firstMs = firstMs;
    this.#nextMs = nextMs;
    this.#onStall = onStall;

    this.#arm();
  }

  progress(): void {
    this.#begun = true;
    this.#arm();
  }

  /** Stops the watch until the next `progress`. */
  pause(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #arm(): void {
    clearTimeout(this.#timer);
    const ms = this.#begun ? this.#nextMs : this.#firstMs;
    this.#timer = setTimeout(() => this.#onStall(ms), ms);
  }
}
