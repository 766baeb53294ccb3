/**
 * Runs a CoderPool's batches without threads, for codecs such as WebAssembly. Batches run one after another. Each turn
 * of the event loop runs one slice of a batch, so the loop never waits for longer than a slice.
 *
 * A batch checks its arguments in its first slice. It touches memory only during a slice, so no caller can detach a
 * buffer while a batch uses it.
 */
import { setImmediate } from "node:timers";
import { CodecError, type Codec, type Decoder, type Encoder } from "@tributary/protocol";
import type { DecodeResult, PoolBackend } from "./pool";

/** Symbols that one slice codes. src/addon_pool.cc has the same number. */
const SLICE_SYMBOLS = 16;

interface Job {
  id: number;
  /** Runs one slice. Returns true after the last one. */
  step(): boolean;
  reject(error: unknown): void;
}

function exactly(what: string, got: number, wanted: number): void {
  if (got !== wanted) throw new CodecError(what, got, wanted);
}

export class InlineBackend implements PoolBackend {
  readonly #jobs: Job[] = [];

  readonly #codec: Codec;
  readonly #batchesMax: number;

  constructor(codec: Codec, batchesMax: number) {
    this.#codec = codec;
    this.#batchesMax = batchesMax;
  }

  encode(id: number, encoder: Encoder, seeds: Uint32Array, out: Uint8Array): Promise<Uint8Array> {
    return this.#enqueue(id, encoding(encoder, seeds, out));
  }

  decode(
    id: number,
    decoder: Decoder | undefined,
    symbolCount: number | undefined,
    symbolBytes: number | undefined,
    indices = new Uint32Array(0),
    seeds = new Uint32Array(0),
    coefficients = new Uint8Array(0),
    payloads = new Uint8Array(0),
    out?: Uint8Array,
    firstIndex = 0,
  ): Promise<DecodeResult> {
    return this.#enqueue(
      id,
      this.#decoding(decoder, symbolCount, symbolBytes, indices, seeds, coefficients, payloads, out, firstIndex),
    );
  }

  cancel(id: number): void {
    const place = this.#jobs.findIndex((job) => job.id === id);
    if (place < 0) return;
    this.#jobs.splice(place, 1)[0]!.reject(new CodecError("cancelled", 0, 0, "the batch was cancelled"));
  }

  close(): void {}

  #enqueue<T>(id: number, slices: Generator<void, T>): Promise<T> {
    if (this.#jobs.length >= this.#batchesMax) throw new CodecError("batches", this.#jobs.length + 1, this.#batchesMax);
    return new Promise((resolve, reject) => {
      const step = (): boolean => {
        const slice = slices.next();
        if (slice.done) resolve(slice.value);
        return slice.done === true;
      };
      const close = (error: unknown): void => {
        slices.return(undefined as T);
        reject(error);
      };
      this.#jobs.push({ id, step, reject: close });
      if (this.#jobs.length === 1) setImmediate(() => this.#turn());
    });
  }

  #turn(): void {
    const job = this.#jobs[0];
    if (!job) return;
    let isDone = true;
    try {
      isDone = job.step();
    } catch (error) {
      job.reject(error);
    }
    if (isDone) this.#jobs.shift();
    if (this.#jobs.length > 0) setImmediate(() => this.#turn());
  }

  *#decoding(
    given: Decoder | undefined,
    count: number | undefined,
    bytes: number | undefined,
    indices: Uint32Array,
    seeds: Uint32Array,
    coefficients: Uint8Array,
    payloads: Uint8Array,
    out: Uint8Array | undefined,
    firstIndex: number,
  ): Generator<void, DecodeResult> {
    const decoder = given ?? this.#codec.createDecoder(count!, bytes!);
    try {
      const { symbolCount, symbolBytes } = decoder;
      const vectors = Math.ceil(coefficients.length / symbolCount);
      exactly("coefficients", coefficients.length, vectors * symbolCount);
      const symbols = indices.length + seeds.length + vectors;
      exactly("payloads", payloads.length, symbols * symbolBytes);
      if (symbols === 0 && !out) throw new CodecError("symbols", 0, 1);
      let innovative = 0;
      for (let i = 0; i < symbols; i++) {
        const payload = payloads.subarray(i * symbolBytes, (i + 1) * symbolBytes);
        if (addSymbol(decoder, i, indices, seeds, coefficients, payload)) innovative++;
        if (i % SLICE_SYMBOLS === SLICE_SYMBOLS - 1) yield;
      }
      const { rank } = decoder;
      if (out) yield* reading(decoder, rank, firstIndex, out);
      return { rank, innovative };
    } finally {
      if (!given) decoder.free();
    }
  }
}

function* encoding(encoder: Encoder, seeds: Uint32Array, out: Uint8Array): Generator<void, Uint8Array> {
  const { symbolBytes } = encoder;
  if (seeds.length === 0) throw new CodecError("seeds", 0, 1);
  exactly("out", out.length, seeds.length * symbolBytes);
  for (let first = 0; first < seeds.length; first += SLICE_SYMBOLS) {
    const end = Math.min(first + SLICE_SYMBOLS, seeds.length);
    encoder.encodeSeeds(seeds.subarray(first, end), out.subarray(first * symbolBytes, end * symbolBytes));
    yield;
  }
  return out;
}

function addSymbol(
  decoder: Decoder,
  i: number,
  indices: Uint32Array,
  seeds: Uint32Array,
  coefficients: Uint8Array,
  payload: Uint8Array,
): boolean {
  if (i < indices.length) return decoder.addSystematic(indices[i]!, payload);
  const seed = seeds[i - indices.length];
  if (seed !== undefined) return decoder.addSeeded(seed, payload);
  const start = (i - indices.length - seeds.length) * decoder.symbolCount;
  return decoder.addVector(coefficients.subarray(start, start + decoder.symbolCount), payload);
}

function* reading(decoder: Decoder, rank: number, firstIndex: number, out: Uint8Array): Generator<void, void> {
  const { symbolBytes } = decoder;
  const symbols = Math.ceil(out.length / symbolBytes);
  exactly("out", out.length, Math.max(1, symbols) * symbolBytes);
  for (let i = firstIndex; i < firstIndex + symbols; i++) {
    if (!decoder.isDecoded(i)) throw new CodecError("notDecoded", i, rank);
  }
  for (let i = 0; i < symbols; i += SLICE_SYMBOLS) {
    const count = Math.min(SLICE_SYMBOLS, symbols - i);
    decoder.read(firstIndex + i, count, out.subarray(i * symbolBytes, (i + count) * symbolBytes));
    yield;
  }
}
