/**
 * What is on its way from one proxy and when it will come, looked at one generation at a time. The planner looks at all
 * of it every few ms: times lie in one array that is used again, and nothing is made for a packet. Pure.
 */
export class Coming {
  #order: readonly number[] = [];
  #first = 0;
  #end = 0;
  /** By sequence from `first` on. */
  #times = new Float64Array(64);
  #generation = 0;
  /** The next sequence of the generation looked at; `end` when there is none. */
  #at = 0;
  /** When its next packet comes; Infinity when none is left. */
  atMs = Infinity;

  /** What an order has from sequence `first` on; then `setTime` tells of each when it comes. */
  begin(order: readonly number[], first: number): void {
    this.#order = order;
    this.#first = first;
    this.#end = Math.max(first, order.length);
    if (this.#end - first > this.#times.length) this.#times = new Float64Array(2 * (this.#end - first));
  }

  setTime(sequence: number, atMs: number): void {
    this.#times[sequence - this.#first] = atMs;
  }

  /** Nothing comes. */
  clear(): void {
    this.#end = this.#first;
  }

  /** From here on `atMs` and `take` are about this generation. */
  select(generation: number): void {
    this.#generation = generation;
    this.#at = this.#first;
    this.#skip();
  }

  take(): void {
    this.#at++;
    this.#skip();
  }

  #skip(): void {
    while (this.#at < this.#end && this.#order[this.#at] !== this.#generation) this.#at++;
    this.atMs = this.#at < this.#end ? this.#times[this.#at - this.#first]! : Infinity;
  }
}
