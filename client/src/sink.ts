/**
 * The sink of a download's bytes in every mode. It cuts them into pieces, hashes them, counts them, queues them for the
 * reader, and says when the reader is behind. Bytes must come in order.
 */
import { piecesOf } from "./bytes";
import type { Hasher } from "./platform";

export interface SinkOptions {
  hasher: Hasher;
  queuedBytesMax: number;
  onBytes(count: number): void;
  /** Called when the reader cancels the stream. */
  onCancel(reason: unknown): void;
}

export class BodySink {
  readonly stream: ReadableStream<Uint8Array>;
  deliveredBytes = 0;
  #controller!: ReadableStreamDefaultController<Uint8Array>;
  #ended = false;
  #waiters: (() => void)[] = [];

  readonly #options: SinkOptions;

  constructor(options: SinkOptions) {
    this.#options = options;

    this.stream = new ReadableStream<Uint8Array>(
      {
        start: (controller) => void (this.#controller = controller),
        pull: () => this.#wake(),
        cancel: (reason: unknown) => {
          this.#end();
          options.onCancel(reason);
        },
      },
      { highWaterMark: options.queuedBytesMax, size: (piece) => piece.byteLength },
    );
  }

  /** True while at least `queuedBytesMax` bytes wait for the reader. */
  get isFull(): boolean {
    return !this.#ended && (this.#controller.desiredSize ?? 0) <= 0;
  }

  /** Takes ownership of `bytes`. Does nothing after the sink has ended. */
  write(bytes: Uint8Array): void {
    if (this.#ended || bytes.length === 0) return;
    this.#options.hasher.update(bytes);
    this.deliveredBytes += bytes.length;
    this.#options.onBytes(bytes.length);
    for (const piece of piecesOf(bytes)) this.#controller.enqueue(piece);
  }

  /** Resolves when the reader has room or the sink has ended. */
  async ready(): Promise<void> {
    while (this.isFull) await new Promise<void>((resolve) => this.#waiters.push(resolve));
  }

  close(): void {
    if (this.#ended) return;
    this.#end();
    this.#controller.close();
  }

  fail(error: Error): void {
    if (this.#ended) return;
    this.#end();
    this.#controller.error(error);
  }

  #end(): void {
    this.#ended = true;
    this.#wake();
  }

  #wake(): void {
    const waiters = this.#waiters;
    this.#waiters = [];
    for (const waiter of waiters) waiter();
  }
}
