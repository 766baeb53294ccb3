/**
 * CoderService: one bounded queue of coding tasks, and coders that take work from it when they are idle. The tasks of
 * the queue go to coders in the queue's order (queue.ts). A coder takes as many rows of a task as it makes in a short
 * time at its measured rate; when a task is alone, the idle coders divide its rows. When a coder is lost, its pieces go
 * back, and the others do them.
 *
 * Misuse rejects with a CodecError: `tasks` and `bytes` when the queue is full, `closed`, and what the coders reject
 * with. A task that its signal cancels rejects with the signal's reason, when no coder uses its memory any longer.
 */
import { CodecError, type Codec, type Encoder } from "@tributary/protocol";
import type { DecodeResult } from "../pool";
import { CoderLostError, encoderOver, type Coder } from "./coder";
import { TaskQueue, type Waiting } from "./queue";
import { Rate } from "./rate";
import { checkRows, receivedCount } from "./task";
import type { CoderTask, DecodeTask, EncodeTask, Piece, PieceResult, RecodeTask } from "./task";

export interface CoderServiceOptions {
  codec: Codec;
  coders: readonly Coder[];
  /** Makes the coder that goes on when the last of `coders` is lost. */
  reserve?: (() => Coder) | undefined;
  /** The most tasks that wait. */
  tasksMax?: () => number;
  /** The most bytes of memory that unfinished tasks read and write. */
  bytesMax?: () => number;
  nowMs?: () => number;
  /** A stage of a task is over. */
  onStage?: (stage: CoderStage, ms: number) => void;
  /** A coder is lost. It is called once for each. */
  onLost?: (name: string, reason: string) => void;
}

/** Waiting in the queue, making the input, and coding. */
export type CoderStage = "queueing" | "input" | "coding";

/** What the service counts from its start. */
export interface CoderCounts {
  doneTasks: number;
  /** Tasks that were refused because the queue was full. */
  shedTasks: number;
  cancelledTasks: number;
  failedTasks: number;
  lostCoders: number;
}

const TASKS_MAX = 4096;
const BYTES_MAX = 256 * 1024 * 1024;
/** A piece takes about this long. Shorter pieces cost more to hand over, and longer ones make others wait. */
const PIECE_MS = 2;
/** A piece is not made smaller than this to divide a task. */
const PIECE_MS_MIN = 0.1;
/**
 * A coder has work for this long, so that it goes on while the event loop hears of what is done. A wake-up of the loop
 * or of a coder takes 20 microseconds of a core, and the tasks of a millisecond share one (addon_executor.cc).
 */
const AHEAD_MS = 4;
const KINDS = ["encode", "decode"] as const;
/** An encoder makes this many symbols in one pass over its generation. */
const PASS_ROWS = 16;

interface TaskSize {
  /** Rows of an encoding; a decoding is one row. */
  readonly rowCount: number;
  readonly rowWork: number;
  readonly bytes: number;
}

interface Rows {
  from: number;
  to: number;
}

/** A task in the service. A class, because an object that is put together from others costs the loop 8 µs. */
class Entry implements Waiting {
  readonly task: EncodeTask | DecodeTask;
  readonly size: TaskSize;
  readonly deadlineMs: number;
  readonly queuedMs: number;
  lane: Waiting["lane"] = "none";
  takenMs: number | undefined = undefined;
  /** Rows that no coder has: first those that were given back. */
  readonly left: Rows[];
  running = 0;
  failure: unknown = undefined;
  isOver = false;
  result: PieceResult | undefined = undefined;
  readonly #resolve: (result: PieceResult) => void;
  readonly #reject: (reason: Error) => void;
  #cancel: (() => void) | undefined = undefined;

  constructor(
    task: EncodeTask | DecodeTask,
    size: TaskSize,
    nowMs: number,
    resolve: (result: PieceResult) => void,
    reject: (reason: Error) => void,
  ) {
    this.task = task;
    this.size = size;
    this.deadlineMs = task.deadlineMs ?? Infinity;
    this.queuedMs = nowMs;
    this.left = [{ from: 0, to: size.rowCount }];
    this.#resolve = resolve;
    this.#reject = reject;
  }

  onAbort(cancel: () => void): void {
    this.#cancel = cancel;
    this.task.signal?.addEventListener("abort", cancel, { once: true });
  }

  workOf({ from, to }: Rows): number {
    return (to - from) * this.size.rowWork;
  }

  settle(): void {
    if (this.#cancel) this.task.signal?.removeEventListener("abort", this.#cancel);
    if (this.isOver) this.#reject(this.failure as Error);
    else this.#resolve(this.result!);
  }
}

interface Worker {
  readonly coder: Coder;
  readonly rate: Rate;
}

export class CoderService {
  readonly counts: CoderCounts = { doneTasks: 0, shedTasks: 0, cancelledTasks: 0, failedTasks: 0, lostCoders: 0 };
  readonly #queue = new TaskQueue<Entry>();
  readonly #entries = new Set<Entry>();
  #workers: Worker[];
  #bytes = 0;
  #closing: Promise<void> | undefined;
  readonly #nowMs: () => number;
  readonly #options: CoderServiceOptions;

  constructor(options: CoderServiceOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
    this.#workers = options.coders.map((coder) => ({ coder, rate: new Rate() }));
    this.#checkWorkers();
  }

  /** The coders by name. `mbPerMs`: how many million multiplied bytes each makes in a millisecond, if that is known. */
  get coders(): { name: string; mbPerMs: number | undefined }[] {
    return this.#workers.map(({ coder: { name }, rate: { perMs } }) => ({ name, mbPerMs: perMs && perMs / 1e6 }));
  }

  /** Shared memory that a coder writes to faster than to other memory. */
  get memory(): Uint8Array | undefined {
    return this.#workers.find(({ coder }) => coder.memory)?.coder.memory;
  }

  /** Tasks that no coder has begun, or that have rows left. */
  get waitingTasks(): number {
    return this.#queue.size;
  }

  /** The memory of unfinished tasks. */
  get bytes(): number {
    return this.#bytes;
  }

  /** Resolves to `out` when it is written. */
  encode(task: Omit<EncodeTask, "kind">): Promise<Uint8Array> {
    return this.#submit({ kind: "encode", ...task }) as Promise<Uint8Array>;
  }

  /** Resolves to `out` when it is written. */
  recode(task: Omit<RecodeTask, "kind">): Promise<Uint8Array> {
    return this.#submit({ kind: "recode", ...task }) as Promise<Uint8Array>;
  }

  decode(task: Omit<DecodeTask, "kind">): Promise<DecodeResult> {
    return this.#submit({ kind: "decode", ...task }) as Promise<DecodeResult>;
  }

  /** Refuses new tasks, cancels those that wait, and resolves when the coders have ended. */
  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    const closed = new CodecError("closed", 0, 0, "used after close()");
    for (const entry of [...this.#entries]) this.#cancel(entry, closed);
    await Promise.all(this.#workers.map(({ coder }) => coder.close()));
  }

  async #submit(task: CoderTask): Promise<PieceResult> {
    if (this.#closing) throw new CodecError("closed", 0, 0, "used after close()");
    task.signal?.throwIfAborted();
    if (task.kind !== "recode") return this.#enqueue(task);
    checkRows(task, task.symbolCount + task.symbolBytes);
    receivedCount(task);
    this.#checkRoom(task.received.length + task.out.length);
    const startedMs = this.#nowMs();
    const encoder = encoderOver(this.#options.codec, task.received, task.symbolCount + task.symbolBytes);
    this.#options.onStage?.("input", this.#nowMs() - startedMs);
    try {
      const { seeds, out, deadlineMs, signal } = task;
      return await this.#enqueue({ kind: "encode", encoder, seeds, out, deadlineMs, signal });
    } finally {
      encoder.free();
    }
  }

  #enqueue(task: EncodeTask | DecodeTask): Promise<PieceResult> {
    const size = sizeOf(task);
    this.#checkRoom(size.bytes);
    return new Promise((resolve, reject) => {
      const entry = new Entry(task, size, this.#nowMs(), resolve, reject);
      const { signal } = task;
      if (signal) entry.onAbort(() => this.#cancel(entry, signal.reason));
      this.#entries.add(entry);
      this.#bytes += size.bytes;
      this.#queue.add(entry);
      this.#pump();
    });
  }

  #checkRoom(bytes: number): void {
    const tasksMax = this.#options.tasksMax?.() ?? TASKS_MAX;
    const bytesMax = this.#options.bytesMax?.() ?? BYTES_MAX;
    const isFull = this.#queue.size >= tasksMax;
    if (!isFull && this.#bytes + bytes <= bytesMax) return;
    this.counts.shedTasks++;
    if (isFull) throw new CodecError("tasks", this.#queue.size + 1, tasksMax);
    throw new CodecError("bytes", this.#bytes + bytes, bytesMax);
  }

  #cancel(entry: Entry, reason: unknown): void {
    if (entry.isOver) return;
    this.counts.cancelledTasks++;
    this.#giveUp(entry, reason);
  }

  #giveUp(entry: Entry, failure: unknown): void {
    entry.isOver = true;
    entry.failure = failure;
    entry.left.length = 0;
    this.#queue.remove(entry);
    if (entry.running === 0) this.#settle(entry);
  }

  #settle(entry: Entry): void {
    this.#entries.delete(entry);
    this.#bytes -= entry.size.bytes;
    entry.settle();
  }

  /** Gives work to the coders that have room, the one with the most room first. */
  #pump(): void {
    const nowMs = this.#nowMs();
    for (let entry = this.#queue.first(nowMs); entry; entry = this.#queue.first(nowMs)) {
      const worker = this.#idlest(entry.task.kind);
      if (!worker) return;
      this.#give(worker, entry, nowMs);
    }
  }

  #idlest(kind: Piece["kind"]): Worker | undefined {
    let [best, most] = [undefined as Worker | undefined, 0];
    for (const worker of this.#workers) {
      const room = roomOf(worker);
      if (room > most && worker.coder.takes(kind)) [best, most] = [worker, room];
    }
    return best;
  }

  #give(worker: Worker, entry: Entry, nowMs: number): void {
    const rows = entry.left.at(-1)!;
    const to = Math.min(rows.to, rows.from + this.#rowsFor(worker, entry, rows.to - rows.from));
    const taken = { from: rows.from, to };
    rows.from = to;
    if (rows.from === rows.to) entry.left.pop();
    if (entry.left.length === 0) this.#queue.remove(entry);
    if (entry.takenMs === undefined) {
      entry.takenMs = nowMs;
      this.#options.onStage?.("queueing", nowMs - entry.queuedMs);
    }
    entry.running++;
    worker.rate.handleStart(entry.workOf(taken), nowMs);
    this.#run(worker, entry, taken).then(
      (result) => this.#handleDone(worker, entry, taken, result),
      (error: unknown) => this.#handleFailed(worker, entry, taken, error),
    );
  }

  /** Memory may have been detached and encoders freed while the task waited. That ends this task only. */
  #run({ coder }: Worker, { task }: Entry, rows: Rows): Promise<PieceResult> {
    try {
      return coder.run(pieceOf(task, rows), task.signal);
    } catch (error) {
      return Promise.reject(error as Error);
    }
  }

  /** How many of the next `left` rows the worker takes. */
  #rowsFor(worker: Worker, entry: Entry, left: number): number {
    const slotRate = rateOfSlot(worker);
    const { kind } = entry.task;
    const { rowWork } = entry.size;
    const others = this.#workers.filter(({ coder }) => coder.takes(kind));
    const freeSlots = ({ coder, rate }: Worker): number => Math.max(0, coder.slots - rate.running);
    if (slotRate === undefined) return upToPass(left / others.reduce((sum, other) => sum + freeSlots(other), 0));
    const most = upToPass((slotRate * PIECE_MS) / rowWork);
    if (this.#queue.size > 1 || left <= PASS_ROWS) return most;
    const all = others.reduce((sum, other) => sum + freeSlots(other) * (rateOfSlot(other) ?? slotRate), 0);
    const least = upToPass((slotRate * PIECE_MS_MIN) / rowWork);
    return Math.min(most, Math.max(least, upToPass((left * slotRate) / all)));
  }

  #handleDone(worker: Worker, entry: Entry, rows: Rows, result: PieceResult): void {
    const nowMs = this.#nowMs();
    worker.rate.handleEnd(entry.workOf(rows), true, nowMs);
    entry.running--;
    if (entry.running === 0 && (entry.isOver || entry.left.length === 0)) {
      if (!entry.isOver) {
        this.counts.doneTasks++;
        this.#options.onStage?.("coding", nowMs - entry.takenMs!);
        entry.result = entry.task.kind === "encode" ? entry.task.out : result;
      }
      this.#settle(entry);
    }
    this.#pump();
  }

  #handleFailed(worker: Worker, entry: Entry, rows: Rows, error: unknown): void {
    worker.rate.handleEnd(entry.workOf(rows), false, this.#nowMs());
    entry.running--;
    if (error instanceof CoderLostError) {
      this.#lose(worker, error.message);
      if (!entry.isOver) {
        entry.left.push(rows);
        if (entry.lane === "none") this.#queue.putBack(entry);
      } else if (entry.running === 0) this.#settle(entry);
    } else if (entry.isOver) {
      if (entry.running === 0) this.#settle(entry);
    } else {
      this.counts.failedTasks++;
      this.#giveUp(entry, error);
    }
    this.#pump();
  }

  #lose(worker: Worker, reason: string): void {
    if (!this.#workers.includes(worker)) return;
    this.#workers = this.#workers.filter((other) => other !== worker);
    this.counts.lostCoders++;
    void worker.coder.close().catch(() => undefined);
    this.#options.onLost?.(worker.coder.name, reason);
    this.#checkWorkers();
  }

  /** Some coder must be able to do every kind of task. */
  #checkWorkers(): void {
    const { reserve } = this.#options;
    const hasAll = KINDS.every((kind) => this.#workers.some(({ coder }) => coder.takes(kind)));
    if (this.#closing || hasAll) return;
    if (!reserve) throw new CodecError("coders", 0, 1, "no coder does every kind of task");
    this.#workers.push({ coder: reserve(), rate: new Rate() });
  }
}

function sizeOf(task: EncodeTask | DecodeTask): TaskSize {
  if (task.kind === "encode") {
    const { symbolCount, symbolBytes }: Encoder = task.encoder;
    checkRows(task, symbolBytes);
    return { rowCount: task.seeds.length, rowWork: symbolCount * symbolBytes, bytes: task.out.length };
  }
  const { work } = task;
  const { symbolCount } = "decoder" in work ? work.decoder : work;
  const bytes = (work.payloads?.length ?? 0) + (work.out?.length ?? 0);
  return { rowCount: 1, rowWork: Math.max(1, bytes * symbolCount), bytes };
}

function pieceOf(task: EncodeTask | DecodeTask, { from, to }: Rows): Piece {
  if (task.kind === "decode") return task;
  const { encoder, seeds, out } = task;
  const { symbolBytes } = encoder;
  checkRows(task, symbolBytes);
  return {
    kind: "encode",
    encoder,
    seeds: seeds.subarray(from, to),
    out: out.subarray(from * symbolBytes, to * symbolBytes),
  };
}

/** The share of a coder's time or slots that is free, whichever is more. 0 if it must take nothing more. */
function roomOf({ coder, rate }: Worker): number {
  if (rate.running >= coder.piecesMax) return 0;
  return Math.max(0, 1 - rate.running / coder.slots, 1 - rate.busyMs / AHEAD_MS);
}

const rateOfSlot = ({ coder, rate: { perMs } }: Worker): number | undefined => perMs && perMs / coder.slots;

/** A whole number of passes, at least one. */
const upToPass = (rows: number): number => Math.max(1, Math.ceil(rows / PASS_ROWS)) * PASS_ROWS;
