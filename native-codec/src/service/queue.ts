/**
 * TaskQueue: tasks that wait for a coder. First come, first served. A task that is near its deadline moves to a lane
 * that goes first, and that lane is first come, first served, too. Bounded by its user. Pure: time arrives as `nowMs`.
 */

/** What the queue needs of a task. Only the queue writes `lane`. */
export interface Waiting {
  /** Infinity if nothing waits for the result. */
  readonly deadlineMs: number;
  lane: "none" | "normal" | "urgent";
}

/** A task is near its deadline when less than this is left. */
export const URGENT_MS = 20;

export class TaskQueue<T extends Waiting> {
  readonly #normal = new Fifo<T>("normal");
  readonly #urgent = new Fifo<T>("urgent");
  readonly #byDeadline = new Heap<T>();
  #size = 0;

  get size(): number {
    return this.#size;
  }

  add(task: T): void {
    this.#size++;
    this.#normal.push(task);
    if (task.deadlineMs < Infinity) this.#byDeadline.push(task);
  }

  /** Puts back what a coder had taken. It comes before all others. */
  putBack(task: T): void {
    this.#size++;
    this.#urgent.unshift(task);
  }

  remove(task: T): void {
    if (task.lane === "none") return;
    task.lane = "none";
    this.#size--;
  }

  /** The task whose turn it is. It stays in the queue. */
  first(nowMs: number): T | undefined {
    for (let task = this.#byDeadline.first; task; task = this.#byDeadline.first) {
      if (task.lane === "normal" && task.deadlineMs - URGENT_MS > nowMs) break;
      this.#byDeadline.pop();
      if (task.lane === "normal") this.#urgent.push(task);
    }
    return this.#urgent.first() ?? this.#normal.first();
  }
}

/** A lane. It forgets a task when it finds that the task has left for another lane or for good. */
class Fifo<T extends Waiting> {
  #tasks: T[] = [];
  #at = 0;
  readonly #lane: T["lane"];

  constructor(lane: T["lane"]) {
    this.#lane = lane;
  }

  push(task: T): void {
    task.lane = this.#lane;
    this.#tasks.push(task);
  }

  unshift(task: T): void {
    task.lane = this.#lane;
    if (this.#at > 0) this.#tasks[--this.#at] = task;
    else this.#tasks.unshift(task);
  }

  first(): T | undefined {
    while (this.#at < this.#tasks.length && this.#tasks[this.#at]!.lane !== this.#lane) this.#at++;
    if (this.#at === this.#tasks.length || 2 * this.#at > this.#tasks.length + KEPT_PLACES) {
      this.#tasks = this.#tasks.slice(this.#at);
      this.#at = 0;
    }
    return this.#tasks[this.#at];
  }
}

/** So many empty places may stay in a lane's array. */
const KEPT_PLACES = 1024;

/** A binary heap of tasks, the earliest deadline first. */
class Heap<T extends Waiting> {
  readonly #tasks: T[] = [];

  get first(): T | undefined {
    return this.#tasks[0];
  }

  push(task: T): void {
    const tasks = this.#tasks;
    let at = tasks.push(task) - 1;
    while (at > 0) {
      const parent = (at - 1) >> 1;
      if (tasks[parent]!.deadlineMs <= task.deadlineMs) break;
      tasks[at] = tasks[parent]!;
      at = parent;
    }
    tasks[at] = task;
  }

  pop(): void {
    const tasks = this.#tasks;
    const last = tasks.pop();
    if (!last || tasks.length === 0) return;
    let at = 0;
    for (let child = 1; child < tasks.length; child = 2 * at + 1) {
      if (child + 1 < tasks.length && tasks[child + 1]!.deadlineMs < tasks[child]!.deadlineMs) child++;
      if (tasks[child]!.deadlineMs >= last.deadlineMs) break;
      tasks[at] = tasks[child]!;
      at = child;
    }
    tasks[at] = last;
  }
}
