/**
 * EncoderPool: the encoders of all senders that use it. An encoder holds a copy of one generation. Senders of the same
 * body share it, and the pool frees the least recently used ones when its copies take too much memory. To make an
 * encoder again costs less than to make one coded symbol with it.
 */
import type { Codec, Encoder } from "../codec";
import { generationBytes, generationStart, symbolsIn, type Geometry } from "../geometry";
import type { ChunkSource } from "../types";

const COPIED_BYTES_DEFAULT = 8 * 1024 * 1024;

export class EncoderPool {
  /** The least recently used first. */
  readonly #encoders = new Map<string, Encoder>();
  readonly #names = new WeakMap<ChunkSource, number>();
  #nameCount = 0;
  #copiedBytes = 0;
  #copiedBytesMax: number;

  readonly #codec: Codec;

  constructor(codec: Codec, copiedBytesMax = COPIED_BYTES_DEFAULT) {
    this.#codec = codec;
    this.#copiedBytesMax = copiedBytesMax;
  }

  get copiedBytes(): number {
    return this.#copiedBytes;
  }

  setLimit(copiedBytesMax: number): void {
    this.#copiedBytesMax = copiedBytesMax;
    this.#shrink(0);
  }

  /** `source` must hold all bytes of the generation. The encoder may be used until the next call. */
  encoderOf(source: ChunkSource, geometry: Geometry, generationIndex: number): Encoder {
    const { symbolBytes, generationSize } = geometry;
    const key = `${this.#nameOf(source)} ${symbolBytes} ${generationSize} ${generationIndex}`;
    const known = this.#encoders.get(key);
    if (known) this.#encoders.delete(key);
    const encoder = known ?? this.#make(source, geometry, generationIndex);
    this.#encoders.set(key, encoder);
    return encoder;
  }

  free(): void {
    this.#copiedBytesMax = 0;
    this.#shrink(0);
  }

  #make(source: ChunkSource, geometry: Geometry, generationIndex: number): Encoder {
    const symbolCount = symbolsIn(geometry, generationIndex);
    this.#shrink(symbolCount * geometry.symbolBytes);
    const encoder = this.#codec.createEncoder(symbolCount, geometry.symbolBytes);
    const start = generationStart(geometry, generationIndex);
    encoder.setSymbols(0, source.view(start, start + generationBytes(geometry, generationIndex)));
    this.#copiedBytes += symbolCount * geometry.symbolBytes;
    return encoder;
  }

  #shrink(byteCount: number): void {
    for (const [key, encoder] of this.#encoders) {
      if (this.#copiedBytes + byteCount <= this.#copiedBytesMax) return;
      this.#copiedBytes -= encoder.symbolCount * encoder.symbolBytes;
      encoder.free();
      this.#encoders.delete(key);
    }
  }

  #nameOf(source: ChunkSource): number {
    const name = this.#names.get(source) ?? this.#nameCount++;
    this.#names.set(source, name);
    return name;
  }
}
