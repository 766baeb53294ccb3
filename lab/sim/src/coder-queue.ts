/**
 * The coders of a proxy as a queueing model: tasks of equal size arrive at random, and coders of different speed take
 * rows of them, first come, first served. It says what the queue of the product should reach, without its code and
 * without a clock. Not here: deadlines, and symbols that several viewers share.
 */
import { Random } from "./random";

export interface ModelCoder {
  /** How many pieces it makes at once. */
  slots: number;
  /** Of one slot. */
  rowsPerMs: number;
}

export interface CoderLoad {
  coders: readonly ModelCoder[];
  /** `even`: each coder has a queue of its own, and the tasks go to the coders in turns (the paper's rival). */
  policy: "self" | "even";
  taskRows: number;
  /** A coder takes as many rows at once as it makes in this time. */
  pieceMs: number;
  /** Poisson arrivals. Infinity: all tasks are there from the start. */
  tasksPerMs: number;
  tasks: number;
  seed: number;
}

interface Task {
  readonly arrivalMs: number;
  left: number;
  endMs: number;
}

interface Slot {
  readonly rowsPerMs: number;
  freeMs: number;
}

export interface CoderOutcome {
  /** From arrival to the last row, for each task in the order of arrival. */
  responseMs: number[];
  /** Until the last task ended. */
  allMs: number;
}

export function simulateCoders(load: CoderLoad): CoderOutcome {
  const random = new Random(load.seed);
  let nowMs = 0;
  const tasks = Array.from({ length: load.tasks }, (): Task => {
    nowMs += load.tasksPerMs === Infinity ? 0 : -Math.log(1 - random.unit()) / load.tasksPerMs;
    return { arrivalMs: nowMs, left: load.taskRows, endMs: nowMs };
  });
  const slotsOf = ({ slots, rowsPerMs }: ModelCoder): Slot[] =>
    Array.from({ length: slots }, () => ({ rowsPerMs, freeMs: 0 }));
  if (load.policy === "self") serve(tasks, load.coders.flatMap(slotsOf), load.pieceMs);
  else {
    const count = load.coders.length;
    load.coders.forEach((coder, own) =>
      serve(
        tasks.filter((_, index) => index % count === own),
        slotsOf(coder),
        load.pieceMs,
      ),
    );
  }
  return {
    responseMs: tasks.map(({ arrivalMs, endMs }) => endMs - arrivalMs),
    allMs: tasks.reduce((last, { endMs }) => Math.max(last, endMs), 0),
  };
}

/** One queue and its slots. */
function serve(tasks: readonly Task[], slots: readonly Slot[], pieceMs: number): void {
  for (const task of tasks) {
    while (task.left > 0) {
      const slot = firstFree(slots, task.arrivalMs);
      const rows = Math.min(task.left, Math.max(1, Math.round(slot.rowsPerMs * pieceMs)));
      slot.freeMs = Math.max(slot.freeMs, task.arrivalMs) + rows / slot.rowsPerMs;
      task.left -= rows;
      task.endMs = Math.max(task.endMs, slot.freeMs);
    }
  }
}

/** The slot that can begin first. Of several that are idle, the fastest one. */
function firstFree(slots: readonly Slot[], nowMs: number): Slot {
  const beginMs = ({ freeMs }: Slot): number => Math.max(freeMs, nowMs);
  return slots.reduce((best, slot) => {
    const later = beginMs(slot) - beginMs(best);
    return later < 0 || (later === 0 && slot.rowsPerMs > best.rowsPerMs) ? slot : best;
  });
}

/**
 * The highest rate of arrivals, in tasks a millisecond, at which `share` of the tasks end within `limitMs`. Correct to
 * half a percent.
 */
export function capacityOf(load: Omit<CoderLoad, "tasksPerMs">, limitMs: number, share: number): number {
  const isCarried = (tasksPerMs: number): boolean => {
    const { responseMs } = simulateCoders({ ...load, tasksPerMs });
    return responseMs.filter((ms) => ms <= limitMs).length >= share * responseMs.length;
  };
  const rows = load.coders.reduce((sum, { slots, rowsPerMs }) => sum + slots * rowsPerMs, 0);
  let [low, high] = [0, (1.5 * rows) / load.taskRows];
  while (high - low > 0.005 * high) {
    const middle = (low + high) / 2;
    if (isCarried(middle)) low = middle;
    else high = middle;
  }
  return low;
}
