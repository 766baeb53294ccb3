/** Tells when nothing has come for too long. Time spent waiting for the reader does not count. */
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

  /** Until the next `progress`. */
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
