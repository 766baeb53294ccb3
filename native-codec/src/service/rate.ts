/**
 * Rate: how fast a coder is, from what it did while it was busy. Work is in multiplied bytes: output bytes times the
 * symbols of the generation. Pure: time arrives as `nowMs`.
 */

/** A stretch of work this long gives a sample. */
const SAMPLE_MS = 4;
const SAMPLE_WEIGHT = 1 / 4;

export class Rate {
  /** Multiplied bytes in a millisecond, by all slots together. Undefined before the first sample. */
  perMs: number | undefined;
  #running = 0;
  #runningWork = 0;
  #sinceMs = 0;
  #work = 0;

  /** Pieces that it has. */
  get running(): number {
    return this.#running;
  }

  /** How long the pieces that it has will take. Infinity while its rate is not known. */
  get busyMs(): number {
    return this.perMs === undefined ? Infinity : this.#runningWork / this.perMs;
  }

  handleStart(work: number, nowMs: number): void {
    this.#runningWork += work;
    if (this.#running++ > 0) return;
    this.#sinceMs = nowMs;
    this.#work = 0;
  }

  /** `isDone`: the work was done. Otherwise it says nothing about the rate. */
  handleEnd(work: number, isDone: boolean, nowMs: number): void {
    this.#running--;
    this.#runningWork -= work;
    if (isDone) this.#work += work;
    const spentMs = nowMs - this.#sinceMs;
    if (this.#work === 0 || spentMs <= 0 || (this.#running > 0 && spentMs < SAMPLE_MS)) return;
    const sample = this.#work / spentMs;
    this.perMs = this.perMs === undefined ? sample : this.perMs + SAMPLE_WEIGHT * (sample - this.perMs);
    this.#sinceMs = nowMs;
    this.#work = 0;
  }
}
