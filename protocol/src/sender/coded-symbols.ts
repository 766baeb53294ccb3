/**
 * CodedSymbols: makes a sender's coded symbols. It makes several of one generation at once, because that is faster for
 * encoders (docs/adr/0007-coding-in-batches.md). A changed grant wastes at most one batch. It decides neither what to
 * send nor when. Rule: protocol.md §5.3.
 */
import type { Geometry } from "../geometry";
import type { ChunkSource, Rng } from "../types";
import type { EncoderPool } from "./encoder-pool";

/** An encoder makes this many in one pass over the generation. */
export const BATCH_SYMBOLS_MAX = 16;

export interface CodedSymbol {
  seed: number;
  /** Valid until the next symbol is asked for. */
  payload: Uint8Array;
}

/** Where a sender's coded symbols come from: from its own `CodedSymbols`, or from a store that senders share. */
export interface SymbolSupply {
  /**
   * A symbol of the generation that this receiver has not had. `following` tells how many more of it will be asked for
   * right after this one. Undefined: the symbol is being made. Ask for the same generation again later.
   */
  next(generationIndex: number, following: (limit: number) => number): CodedSymbol | undefined;
}

export class CodedSymbols implements SymbolSupply {
  readonly #seeds = new Uint32Array(BATCH_SYMBOLS_MAX);
  readonly #payloads: Uint8Array;
  /** The present batch: its generation, how many of its symbols were given, and how many it has. */
  #generationIndex = -1;
  #given = 0;
  #made = 0;

  readonly #encoders: EncoderPool;
  readonly #rng: Rng;
  readonly #geometry: Geometry;
  readonly #source: ChunkSource;

  /** `source` must hold all bytes of a generation before a symbol of it is asked for. */
  constructor(encoders: EncoderPool, rng: Rng, geometry: Geometry, source: ChunkSource) {
    this.#encoders = encoders;
    this.#rng = rng;
    this.#geometry = geometry;
    this.#source = source;

    this.#payloads = new Uint8Array(BATCH_SYMBOLS_MAX * geometry.symbolBytes);
  }

  next(generationIndex: number, following: (limit: number) => number): CodedSymbol {
    if (generationIndex !== this.#generationIndex || this.#given === this.#made) {
      this.#make(generationIndex, 1 + following(BATCH_SYMBOLS_MAX - 1));
    }
    const { symbolBytes } = this.#geometry;
    const start = this.#given * symbolBytes;
    return { seed: this.#seeds[this.#given++]!, payload: this.#payloads.subarray(start, start + symbolBytes) };
  }

  #make(generationIndex: number, count: number): void {
    const seeds = this.#seeds.subarray(0, count);
    for (let i = 0; i < count; i++) seeds[i] = this.#rng();
    const encoder = this.#encoders.encoderOf(this.#source, this.#geometry, generationIndex);
    encoder.encodeSeeds(seeds, this.#payloads.subarray(0, count * this.#geometry.symbolBytes));
    this.#generationIndex = generationIndex;
    this.#given = 0;
    this.#made = count;
  }
}
