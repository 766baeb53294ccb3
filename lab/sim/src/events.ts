/**
 * The clock of a simulation: a binary heap of events on typed arrays. Events happen in the order of their times; events
 * of one time happen in the order in which they were scheduled. An event is a registered handler and a number, so
 * nothing is allocated for it.
 */
type Handler = (arg: number) => void;

export class EventQueue {
  /** Milliseconds since the run began. */
  nowMs = 0;
  readonly #handlers: Handler[] = [];
  #times = new Float64Array(1024);
  #orders = new Float64Array(1024);
  #targets = new Int32Array(1024);
  #args = new Int32Array(1024);
  #count = 0;
  #made = 0;

  /** Returns the number by which `schedule` calls `handler`. */
  register(handler: Handler): number {
    return this.#handlers.push(handler) - 1;
  }

  get pending(): number {
    return this.#count;
  }

  /** An event in the past happens at the present time. */
  schedule(atMs: number, handler: number, arg: number): void {
    if (this.#count === this.#times.length) this.#grow();
    this.#sift(this.#count++, Math.max(atMs, this.nowMs), this.#made++, handler, arg);
  }

  /** Moves time to the next event and calls its handler. Returns false if the next event is later than `untilMs`. */
  step(untilMs: number): boolean {
    if (this.#count === 0 || this.#times[0]! > untilMs) return false;
    this.nowMs = this.#times[0]!;
    const handler = this.#targets[0]!;
    const arg = this.#args[0]!;
    this.#removeFirst();
    this.#handlers[handler]!(arg);
    return true;
  }

  /** Places an event at `hole` or above. */
  #sift(hole: number, time: number, order: number, handler: number, arg: number): void {
    const times = this.#times;
    const orders = this.#orders;
    while (hole > 0) {
      const parent = (hole - 1) >> 1;
      if (times[parent]! < time || (times[parent]! === time && orders[parent]! < order)) break;
      this.#move(parent, hole);
      hole = parent;
    }
    this.#put(hole, time, order, handler, arg);
  }

  #removeFirst(): void {
    const last = --this.#count;
    if (last === 0) return;
    const times = this.#times;
    const orders = this.#orders;
    const time = times[last]!;
    const order = orders[last]!;
    let hole = 0;
    for (let child = 1; child < last; child = 2 * hole + 1) {
      const right = child + 1;
      if (
        right < last &&
        (times[right]! < times[child]! || (times[right]! === times[child]! && orders[right]! < orders[child]!))
      )
        child = right;
      if (time < times[child]! || (time === times[child]! && order < orders[child]!)) break;
      this.#move(child, hole);
      hole = child;
    }
    this.#put(hole, time, order, this.#targets[last]!, this.#args[last]!);
  }

  #move(from: number, to: number): void {
    this.#put(to, this.#times[from]!, this.#orders[from]!, this.#targets[from]!, this.#args[from]!);
  }

  #put(at: number, time: number, order: number, handler: number, arg: number): void {
    this.#times[at] = time;
    this.#orders[at] = order;
    this.#targets[at] = handler;
    this.#args[at] = arg;
  }

  #grow(): void {
    const wider = <T extends Float64Array | Int32Array>(old: T, made: T): T => {
      made.set(old);
      return made;
    };
    const length = this.#times.length * 2;
    this.#times = wider(this.#times, new Float64Array(length));
    this.#orders = wider(this.#orders, new Float64Array(length));
    this.#targets = wider(this.#targets, new Int32Array(length));
    this.#args = wider(this.#args, new Int32Array(length));
  }
}
