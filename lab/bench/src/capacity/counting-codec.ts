/**
 * A codec that counts symbols and decodes nothing, for viewers whose bytes nobody looks at. Their receivers speak the
 * whole protocol. It takes each coded symbol as innovative until the rank is full: of 128 random vectors over GF(2^8)
 * 99.6 % have full rank, so a viewer asks for one symbol too few in 1 of 250 groups.
 */
import type { Codec, Decoder } from "@tributary/protocol";

class CountingDecoder implements Decoder {
  rank = 0;
  readonly #seen: Uint8Array;

  constructor(
    readonly symbolCount: number,
    readonly symbolBytes: number,
  ) {
    this.#seen = new Uint8Array(symbolCount);
  }

  addSystematic(index: number): boolean {
    if (this.#seen[index]) return false;
    this.#seen[index] = 1;
    return this.#count();
  }
  addSeeded(): boolean {
    return this.#count();
  }
  addVector(): boolean {
    return this.#count();
  }
  isDecoded(index: number): boolean {
    return this.rank === this.symbolCount || this.#seen[index] === 1;
  }
  read(): void {}
  free(): void {}

  #count(): boolean {
    if (this.rank === this.symbolCount) return false;
    this.rank++;
    return true;
  }
}

/** `real` does everything but decode. */
export const countingCodec = (real: Codec): Codec => ({
  ...real,
  engine: "counting",
  createDecoder: (symbolCount, symbolBytes) => new CountingDecoder(symbolCount, symbolBytes),
});
