/**
 * CoderPool: batches of coding beside the event loop. A batch is submitted, coded on a thread, and its promise settles;
 * meanwhile the memory it names is in use. Without the addon the same batches run in turns of the event loop
 * (inline.ts). Knows no protocol: what to code and when to send is the caller's.
 *
 * Memory: views of a SharedArrayBuffer, such as `SharedBuffers` hands out, are read and written in place. Views of an
 * ArrayBuffer, which could be detached at any moment, cost a copy on the event loop: inputs when submitted, `out` when
 * settled. Until then nothing may be written to a shared input, and a shared `out` holds bytes half done.
 *
 * Misuse rejects with a CodecError that names what was got and the limit:
 *   batches          more in flight than `batchesMax`: `await pool.ready`
 *   bytesInFlight    memory that a batch in flight, of any pool of the process, writes or that this one would
 *   batchesInFlight  thrown by a coder's own methods, `free` among them, while batches use it
 *   out              detached or resized before the batch was done, or of the wrong length
 *   notDecoded       a symbol to be read is not determined: got its index, limit the rank
 *   cancelled, closed, freed, threads, memoryBytes, and the codec's own
 */
import { setImmediate } from "node:timers";
import { CodecError, type Decoder, type Encoder } from "@tributary/protocol";
import { withTypedErrors } from "./errors";

export interface CoderPoolOptions {
  /** Batches that run at once, 1..256; by default as many as the process may use processors. */
  threads?: number;
  /** Batches in flight, waiting ones included, 1..65536; by default 64. */
  batchesMax?: number;
}

/** Coded symbols of one generation: an encoder's, or of `source` cut into symbols, the last padded with zeros. */
export type EncodeBatch = ({ encoder: Encoder } | { source: Uint8Array; symbolBytes: number }) & {
  /** One coded symbol each. */
  seeds: Uint32Array;
  /** `seeds.length * symbolBytes` bytes: the coded symbols, one after another. */
  out: Uint8Array;
  signal?: AbortSignal;
};

/** Received symbols of one generation, for a decoder or for one that lives as long as the batch. */
export type DecodeBatch = ({ decoder: Decoder } | { symbolCount: number; symbolBytes: number }) & {
  /** Source symbols received as they are, by index. */
  indices?: Uint32Array;
  seeds?: Uint32Array;
  /** Coding coefficients, `symbolCount` bytes for each symbol. */
  coefficients?: Uint8Array;
  /** `symbolBytes` bytes for each symbol: those of `indices`, then those of `seeds`, then those of `coefficients`. */
  payloads?: Uint8Array;
  /** Where source symbols go, a multiple of `symbolBytes`; when one is not determined none is written. */
  out?: Uint8Array;
  /** The first symbol in `out`, by default 0. */
  firstIndex?: number;
  signal?: AbortSignal;
};

export interface DecodeResult {
  /** Degrees of freedom that the decoder has now. */
  rank: number;
  /** Symbols of this batch that raised it. */
  innovative: number;
}

/** What runs the batches; positional, as it is mostly C++ (src/addon_pool.cc). */
export interface PoolBackend {
  encode(
    id: number,
    encoder: Encoder | undefined,
    source: Uint8Array | undefined,
    symbolBytes: number | undefined,
    seeds: Uint32Array,
    out: Uint8Array,
  ): Promise<Uint8Array>;
  decode(
    id: number,
    decoder: Decoder | undefined,
    symbolCount: number | undefined,
    symbolBytes: number | undefined,
    indices: Uint32Array | undefined,
    seeds: Uint32Array | undefined,
    coefficients: Uint8Array | undefined,
    payloads: Uint8Array | undefined,
    out: Uint8Array | undefined,
    firstIndex: number | undefined,
  ): Promise<DecodeResult>;
  /** Its promise rejects with CodecError `cancelled`: at once when it waits, at the next slice when it runs. */
  cancel(id: number): void;
  /** Nothing is in flight any more. */
  close(): void;
}

export class CoderPool {
  readonly #flying = new Map<number, Promise<unknown>>();
  readonly #waiters: (() => void)[] = [];
  #closing: Promise<void> | undefined;
  #isAdmitting = false;
  #lastId = 0;

  readonly #backend: PoolBackend;

  /** For `createCoderPool`, which also says what `threads` and `batchesMax` are by default. */
  constructor(
    /** As `Codec.engine`. Only coders of a codec with the same kind of engine can be used. */
    readonly engine: string,
    readonly threads: number,
    readonly batchesMax: number,
    backend: PoolBackend,
  ) {
    this.#backend = backend;
  }

  /** Batches submitted and not settled. */
  get inFlight(): number {
    return this.#flying.size;
  }

  /** Resolves when one more batch, submitted in that turn, would be taken; first come, first served. */
  get ready(): Promise<void> {
    if (this.#flying.size < this.batchesMax || this.#closing) return Promise.resolve();
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** Resolves to `out` once it is written. Batches may share an encoder. */
  encode(batch: EncodeBatch): Promise<Uint8Array> {
    const { seeds, out } = batch;
    const [encoder, source, symbolBytes] =
      "encoder" in batch ? [batch.encoder] : [undefined, batch.source, batch.symbolBytes];
    return this.#submit(batch.signal, (id) => this.#backend.encode(id, encoder, source, symbolBytes, seeds, out));
  }

  /** Batches for the same decoder run one after another, in the order they came. */
  decode(batch: DecodeBatch): Promise<DecodeResult> {
    const { indices, seeds, coefficients, payloads, out, firstIndex } = batch;
    const [decoder, symbolCount, symbolBytes] =
      "decoder" in batch ? [batch.decoder] : [undefined, batch.symbolCount, batch.symbolBytes];
    return this.#submit(batch.signal, (id) =>
      this.#backend.decode(
        id,
        decoder,
        symbolCount,
        symbolBytes,
        indices,
        seeds,
        coefficients,
        payloads,
        out,
        firstIndex,
      ),
    );
  }

  /**
   * Cancels all that is in flight. A decoder keeps the symbols that a batch had added before it stopped. Coders can be
   * freed at once; memory is in use until the promises have settled.
   */
  cancel(): void {
    for (const id of [...this.#flying.keys()]) this.#backend.cancel(id);
  }

  /** Takes no more batches; resolves when those in flight are settled and the threads are given back. */
  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    await Promise.allSettled(this.#flying.values());
    for (const wake of this.#waiters.splice(0)) wake();
    this.#backend.close();
  }

  async #submit<T>(signal: AbortSignal | undefined, start: (id: number) => Promise<T>): Promise<T> {
    if (this.#closing) throw new CodecError("closed", 0, 0, "used after close()");
    signal?.throwIfAborted();
    const id = (this.#lastId = (this.#lastId + 1) >>> 0);
    const settled = withTypedErrors(() => start(id));
    const flight = this.#fly(id, signal, settled);
    this.#flying.set(id, flight);
    return flight;
  }

  async #fly<T>(id: number, signal: AbortSignal | undefined, settled: Promise<T>): Promise<T> {
    const cancel = (): void => this.#backend.cancel(id);
    signal?.addEventListener("abort", cancel, { once: true });
    try {
      return await settled;
    } catch (error) {
      if (signal?.aborted && error instanceof CodecError && error.what === "cancelled") throw signal.reason;
      throw error;
    } finally {
      signal?.removeEventListener("abort", cancel);
      this.#flying.delete(id);
      if (!this.#isAdmitting) void this.#admit();
    }
  }

  /** Wakes who waits for room, one to a turn of the event loop, so that each can submit before the next is asked. */
  async #admit(): Promise<void> {
    this.#isAdmitting = true;
    while (this.#waiters.length > 0 && this.#flying.size < this.batchesMax) {
      this.#waiters.shift()!();
      await new Promise((resolve) => setImmediate(resolve));
    }
    this.#isAdmitting = false;
  }
}
