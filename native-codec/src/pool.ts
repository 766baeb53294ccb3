/**
 * CoderPool: coding in batches beside the event loop. The caller submits a batch, a thread codes it, and then its
 * promise settles. A batch uses the memory that it names until its promise settles. Without the addon, the same batches
 * run in turns of the event loop (inline.ts). The pool knows no protocol: the caller decides what to code.
 *
 * Memory: a batch reads and writes a view of a SharedArrayBuffer in place; `SharedBuffers` makes such views. A view of
 * an ArrayBuffer could be detached at any moment, so the pool copies it on the event loop: inputs when the batch is
 * submitted, `out` when it settles. Until a batch settles, do not write to a shared input, and do not read a shared
 * `out`.
 *
 * Misuse rejects with a CodecError that names the value it got and the limit:
 *
 *     batches          the pool already has `batchesMax` batches in flight
 *     bytesInFlight    a batch in flight writes memory that this batch uses, or the other way round. This holds for all
 *                      pools of the process.
 *     batchesInFlight  a coder's own method, for example `free`, was called while batches use the coder
 *     out              `out` has the wrong length, or it was detached or resized before the batch was done
 *     notDecoded       a symbol to read is not determined. It got the symbol's index; the limit is the rank.
 *     threads          the system gives the process no thread
 *     cancelled, closed, freed, memoryBytes, and every misuse of the codec itself
 */
import { CodecError, type Decoder, type Encoder } from "@tributary/protocol";
import { withTypedErrors } from "./errors";

export interface CoderPoolOptions {
  /** How many batches may run at once, 1..256. The default is the number of processors for this process. */
  threads?: number;
  /** How many batches may be in flight, waiting ones included, 1..65536. The default is 64, or two a thread. */
  batchesMax?: number;
  /** The pool shares its threads with no other pool, so that both can run at once. */
  ownThreads?: boolean;
}

/** Makes coded symbols of one generation. */
export interface EncodeBatch {
  encoder: Encoder;
  /** The batch makes one coded symbol for each seed. */
  seeds: Uint32Array;
  /** Receives the coded symbols, one after another: `seeds.length * symbolBytes` bytes. */
  out: Uint8Array;
  signal?: AbortSignal;
}

/** Adds received symbols of one generation to `decoder`, or to a decoder that lives only for this batch. */
export type DecodeBatch = DecodeWork & { signal?: AbortSignal };

/** What there is to do in a `DecodeBatch`. */
export type DecodeWork = ({ decoder: Decoder } | { symbolCount: number; symbolBytes: number }) & {
  /** The indices of systematic symbols. */
  indices?: Uint32Array;
  /** The seeds of coded symbols. */
  seeds?: Uint32Array;
  /** The vectors of coded symbols without a seed, `symbolCount` bytes each. */
  coefficients?: Uint8Array;
  /** `symbolBytes` bytes for each symbol: first those of `indices`, then of `seeds`, then of `coefficients`. */
  payloads?: Uint8Array;
  /** Receives source symbols; its length is a multiple of `symbolBytes`. Unchanged if one is not determined. */
  out?: Uint8Array;
  /** The index of the first symbol in `out`. The default is 0. */
  firstIndex?: number;
};

export interface DecodeResult {
  /** The decoder's rank after the batch. */
  rank: number;
  /** How many symbols of this batch raised the rank. */
  innovative: number;
}

/** Runs the batches: threads in C++ (src/addon_pool.cc), or turns of the event loop (inline.ts). */
export interface PoolBackend {
  encode(id: number, encoder: Encoder, seeds: Uint32Array, out: Uint8Array): Promise<Uint8Array>;
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
  /** Rejects the batch with CodecError `cancelled`: at once if it waits, at its next slice if it runs. */
  cancel(id: number): void;
  /** Gives the threads back. The caller makes sure that no batch is in flight. */
  close(): void;
}

export class CoderPool {
  readonly #flying = new Map<number, Promise<unknown>>();
  #closing: Promise<void> | undefined;
  #lastId = 0;

  readonly #backend: PoolBackend;

  /** Use `createCoderPool`, which knows the defaults. */
  constructor(
    /** The codec's engine. The pool takes only coders of this kind of codec. */
    readonly engine: string,
    readonly threads: number,
    readonly batchesMax: number,
    backend: PoolBackend,
  ) {
    this.#backend = backend;
  }

  /** How many batches are submitted and not yet settled. */
  get inFlight(): number {
    return this.#flying.size;
  }

  /** Resolves to `out` when it is written. Several batches may use one encoder. */
  encode({ encoder, seeds, out, signal }: EncodeBatch): Promise<Uint8Array> {
    return this.#submit(signal, (id) => this.#backend.encode(id, encoder, seeds, out));
  }

  /** Batches for one decoder run one after another, in the order of the calls. */
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
   * Cancels all batches in flight. A decoder keeps the symbols that a batch added before it stopped. The caller may
   * free coders at once, but the batches use their memory until their promises settle.
   */
  cancel(): void {
    for (const id of [...this.#flying.keys()]) this.#backend.cancel(id);
  }

  /** Refuses new batches. Resolves when the batches in flight have settled and the threads are given back. */
  close(): Promise<void> {
    this.#closing ??= this.#finish();
    return this.#closing;
  }

  async #finish(): Promise<void> {
    await Promise.allSettled(this.#flying.values());
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
    }
  }
}
