/**
 * The sink of a download's bytes in every mode. It cuts them into pieces, hashes them, counts them, queues them for the
 * reader, and says when the reader is behind. Bytes must come in order. After a failure the reader gets what is queued,
 * and then the error. An abort drops the queue.
 */
import { piecesOf } from "./bytes";
import type { Hasher } from "./platform";

export interface SinkOptions {
  hasher: Hasher;
  queuedBytesMax: number;
  /** Called with the change of `deliveredBytes`. */
  onBytes(count: number): void;
  /** Called when the reader cancels the stream. */
  onCancel(reason: unknown): void;
}

/** A full queue waits this long for a caller that waits for the end and has not taken the stream. */
const UNTAKEN_MS = 5000;

export class BodySink {
  readonly #stream: ReadableStream<Uint8Array>;
  /** The bytes that the reader has or can read. */
  deliveredBytes = 0;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  readonly #queue: Uint8Array[] = [];
  #queuedBytes = 0;
  /** Ends the stream when the queue is empty. */
  #finish: (() => void) | undefined;
  #wantsPiece: (() => void) | undefined;
  #waiters: (() => void)[] = [];
  /** `awaited`: the caller waits for the end and has not taken the stream. `thrownAway`: nobody gets the bytes. */
  #use: "open" | "awaited" | "taken" | "thrownAway" = "open";
  #untakenTimer: ReturnType<typeof setTimeout> | undefined;
  /** The sink has ended, and the reader has taken all. */
  isDrained = false;
  #noteDrained!: () => void;
  /** Resolves when the sink has ended and nothing waits for the reader, or when the reader has cancelled. */
  readonly drained = new Promise<void>((resolve) => (this.#noteDrained = resolve));

  readonly #options: SinkOptions;

  constructor(options: SinkOptions) {
    this.#options = options;

    this.#stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#pull(),
        cancel: (reason: unknown) => {
          this.#drop();
          options.onCancel(reason);
          this.#end(() => undefined);
          this.#noteDrained();
        },
      },
      { highWaterMark: 0 },
    );
  }

  /** True while at least `queuedBytesMax` bytes wait for the reader. */
  get isFull(): boolean {
    return !this.#finish && this.#queuedBytes >= this.#options.queuedBytesMax;
  }

  /** The stream of the body, for a caller that reads it. */
  takeStream(): ReadableStream<Uint8Array> {
    clearTimeout(this.#untakenTimer);
    if (this.#use !== "thrownAway") this.#use = "taken";
    return this.#stream;
  }

  /** The caller waits for the end of the download. If it does not take the stream, the bytes are thrown away. */
  expectReader(): void {
    if (this.#use === "open") this.#use = "awaited";
    this.#watchUse();
  }

  /** Takes ownership of `bytes`. Does nothing after the sink has ended. */
  write(bytes: Uint8Array): void {
    if (this.#finish || bytes.length === 0) return;
    this.#options.hasher.update(bytes);
    this.#count(bytes.length);
    if (this.#use === "thrownAway") return;
    for (const piece of piecesOf(bytes)) this.#queue.push(piece);
    this.#queuedBytes += bytes.length;
    this.#wantsPiece?.();
    this.#watchUse();
  }

  /** Resolves when the reader has room or the sink has ended. */
  async ready(): Promise<void> {
    while (this.isFull) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  close(): void {
    this.#end(() => this.#controller.close());
  }

  fail(error: Error): void {
    this.#end(() => this.#controller.error(error));
  }

  /** The reader gets the error at once, also if the end waits behind the queue. */
  abort(error: Error): void {
    if (this.#finish && this.#queue.length === 0) return;
    this.#drop();
    this.#finish = undefined;
    this.fail(error);
  }

  #watchUse(): void {
    if (this.#use === "awaited" && this.isFull) this.#untakenTimer ??= setTimeout(() => this.#throwAway(), UNTAKEN_MS);
  }

  #throwAway(): void {
    if (this.#finish) return;
    this.#use = "thrownAway";
    this.#queue.length = 0;
    this.#queuedBytes = 0;
    this.#controller.error(new Error(`The body was thrown away, because nobody took it within ${UNTAKEN_MS} ms.`));
    this.#wake();
  }

  #count(bytes: number): void {
    this.deliveredBytes += bytes;
    this.#options.onBytes(bytes);
  }

  #drop(): void {
    if (this.#queuedBytes > 0) this.#count(-this.#queuedBytes);
    this.#queue.length = 0;
    this.#queuedBytes = 0;
  }

  #end(finish: () => void): void {
    if (this.#finish) return;
    clearTimeout(this.#untakenTimer);
    this.#finish = this.#use === "thrownAway" ? () => undefined : finish;
    if (this.#queue.length === 0) this.#finishNow();
    this.#wantsPiece?.();
    this.#wake();
  }

  #finishNow(): void {
    if (!this.#finish) return;
    this.#finish();
    this.isDrained = true;
    this.#noteDrained();
  }

  /** Called when the reader waits for a piece. */
  async #pull(): Promise<void> {
    while (this.#queue.length === 0 && !this.#finish)
      await new Promise<void>((resolve) => (this.#wantsPiece = resolve));
    this.#wantsPiece = undefined;
    const piece = this.#queue.shift();
    if (!piece) return;
    this.#queuedBytes -= piece.length;
    this.#controller.enqueue(piece);
    if (this.#queue.length === 0) this.#finishNow();
    if (!this.isFull) this.#wake();
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }
}
