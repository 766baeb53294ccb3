/**
 * Coming: which packets are on their way from one proxy and when they arrive, read one generation at a time. The
 * planner reads all of them every few ms, so the times lie in one reused array and no packet needs an object. Pure.
 * Rule: protocol.md §8.7.
 */
const TIMES_INITIAL = 64;

export class Coming {
  #order: readonly number[] = [];
  #first = 0;
  #end = 0;
  /** By sequence from `first` on. */
  #times = new Float64Array(TIMES_INITIAL);
  #generation = 0;
  /** The next sequence of the generation looked at, or `end` after the last one. */
  #at = 0;
  /** When the next packet of the generation looked at arrives; Infinity when none is left. */
  atMs = Infinity;

  /** Takes the part of an order from sequence `first` on. `setTime` must then give the time of each packet. */
  begin(order: readonly number[], first: number): void {
    this.#order = order;
    this.#first = first;
    this.#end = Math.max(first, order.length);
    if (this.#end - first > this.#times.length) this.#times = new Float64Array(2 * (this.#end - first));
  }

  setTime(sequence: number, atMs: number): void {
    this.#times[sequence - this.#first] = atMs;
  }

  /** Nothing is on its way. */
  clear(): void {
    this.#end = this.#first;
  }

  /** From here on `atMs` and `take` are about this generation. */
  select(generation: number): void {
    this.#generation = generation;
    this.#at = this.#first;
    this.#skip();
  }

  /** Goes on to the next packet of the generation. */
  take(): void {
    this.#at++;
    this.#skip();
  }

  #skip(): void {
    while (this.#at < this.#end && this.#order[this.#at] !== this.#generation) this.#at++;
    this.atMs = this.#at < this.#end ? this.#times[this.#at - this.#first]! : Infinity;
  }
}
