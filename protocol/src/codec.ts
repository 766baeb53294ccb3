/**
 * The codec as the protocol sees it: random linear network coding over GF(2^8), polynomial 0x11D
 * (x^8 + x^4 + x^3 + x^2 + 1). A generation has `symbolCount` symbols of `symbolBytes` bytes each. native-codec (Node
 * addon) and wasm-codec (WebAssembly) implement it. Words: RFC 8406.
 *
 * Misuse throws a `CodecError` that names the value and the limit, and it changes nothing. Misuse is a length that does
 * not match, an index out of range, a count over the limit, or an empty list of seeds, bytes or symbols. A `create` or
 * a call that grows its object throws `memoryBytes` when memory runs out, and it changes nothing either. A linearly
 * dependent symbol is not misuse, and neither is one that is all zeros. Lengths are in bytes. Buffers may have any
 * alignment and are not kept. Each object owns memory outside the JavaScript heap: call `free()` once. A later call
 * throws `freed`.
 */
export interface Codec {
  /** The engine in use, e.g. `native/gfni512`, `native/avx2`, `wasm/simd128`, `wasm/scalar`. */
  readonly engine: string;
  /** symbolCount 1..256, symbolBytes 1..65536. */
  createEncoder(symbolCount: number, symbolBytes: number): Encoder;
  createDecoder(symbolCount: number, symbolBytes: number): Decoder;
  createRecoder(symbolCount: number, symbolBytes: number): Recoder;
  /** The `symbolCount` (1..256) coding coefficients that `seed` (u32) stands for on the wire: protocol.md §5.3. */
  coefficients(seed: number, symbolCount: number): Uint8Array;
  /** Whole-chunk repair: symbolCount 1..65536, symbolBytes 1..65536. */
  createRepairEncoder(symbolCount: number, symbolBytes: number): RepairEncoder;
  createRepairDecoder(symbolCount: number, symbolBytes: number): RepairDecoder;
}

export interface Encoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  /**
   * Sets source symbols from `firstIndex` on. `bytes` is cut into symbols, and the last one is padded with zeros.
   * Empty `bytes` and bytes beyond the generation's end are errors. Symbols that were never set are zeros.
   */
  setSymbols(firstIndex: number, bytes: Uint8Array): void;
  /** Writes one coded symbol per seed (at least one) into `out` (`seeds.length * symbolBytes` bytes), in order. */
  encodeSeeds(seeds: Uint32Array, out: Uint8Array): void;
  /** Writes the coded symbol of `coefficients` (`symbolCount` bytes) into `out` (`symbolBytes` bytes). */
  encodeVector(coefficients: Uint8Array, out: Uint8Array): void;
  free(): void;
}

/** Each `add*` returns true when the symbol was innovative (raised the rank), false when it was redundant. */
export interface Decoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  /** Degrees of freedom received, 0..symbolCount. */
  readonly rank: number;
  /** Adds source symbol `index`. `payload` has `symbolBytes` bytes. */
  addSystematic(index: number, payload: Uint8Array): boolean;
  /** Adds the coded symbol of `seed` (u32). */
  addSeeded(seed: number, payload: Uint8Array): boolean;
  /** Adds the coded symbol of `coefficients` (`symbolCount` bytes). */
  addVector(coefficients: Uint8Array, payload: Uint8Array): boolean;
  /** True once source symbol `index` is determined. That can happen before full rank. */
  isDecoded(index: number): boolean;
  /**
   * Copies `count` source symbols (at least one) from `firstIndex` into `out` (`count * symbolBytes` bytes). Throws
   * `notDecoded` if one of them is not determined: `got` is its index and `limit` is the rank.
   */
  read(firstIndex: number, count: number, out: Uint8Array): void;
  free(): void;
}

/**
 * Makes new coded symbols from received ones. Their coefficient vectors refer to the source symbols. It takes symbols
 * as `Decoder` does.
 */
export interface Recoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  readonly rank: number;
  addVector(coefficients: Uint8Array, payload: Uint8Array): boolean;
  addSeeded(seed: number, payload: Uint8Array): boolean;
  addSystematic(index: number, payload: Uint8Array): boolean;
  /**
   * Combines all held symbols with the `rank` multipliers that `seed` (u32) stands for. Writes the resulting
   * coefficient vector (`symbolCount` bytes) and payload (`symbolBytes` bytes). Throws `rank` at rank 0.
   */
  recode(seed: number, outCoefficients: Uint8Array, outPayload: Uint8Array): void;
  free(): void;
}

/** Codes a block of many source symbols. A seed stands for `symbolCount` coefficients, as in a generation. */
export interface RepairEncoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  /** Same as `Encoder.setSymbols`. */
  setSymbols(firstIndex: number, bytes: Uint8Array): void;
  /** Same as `Encoder.encodeSeeds`. A multiple of four seeds is cheapest. */
  encodeSeeds(seeds: Uint32Array, out: Uint8Array): void;
  free(): void;
}

/**
 * Repairs a block. Add source symbols until at most 512 are missing. After that, add coded symbols and late source
 * symbols in any order. native-codec/README.md gives the costs and says how to choose the size of a block.
 */
export interface RepairDecoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  /** Innovative symbols that are still needed. At 0 every source symbol is determined. */
  readonly missingCount: number;
  /** True when source symbol `index` was missing. `payload` has `symbolBytes` bytes, here and in `addSeeded`. */
  addSource(index: number, payload: Uint8Array): boolean;
  /** True when the coded symbol of `seed` was innovative. Throws `missing` while more than 512 symbols are missing. */
  addSeeded(seed: number, payload: Uint8Array): boolean;
  isDecoded(index: number): boolean;
  /** Same as `Decoder.read`, but the `limit` of `notDecoded` is the number of known symbols. */
  read(firstIndex: number, count: number, out: Uint8Array): void;
  free(): void;
}

/** Misuse of a codec object: `what` names the value, `got` is the value and `limit` is the allowed one. */
export class CodecError extends Error {
  override readonly name = "CodecError";
  constructor(
    readonly what: string,
    readonly got: number,
    readonly limit: number,
    message = `${what}: got ${got}, limit ${limit}`,
  ) {
    super(message);
  }
}

/** Both the places and the values are drawn from one seed. This constant keeps the two draws apart. */
const PLACES = 0x5bd1e995;

/**
 * A sparse coefficient vector for `Encoder.encodeVector` and `Decoder.addVector`. It has `symbolCount` (1..256) bytes.
 * Each byte is the coefficient of `seed` (u32) with probability `density`, in steps of 1/256, and otherwise 0. At least
 * one byte is not 0. Both ends compute the same vector. The cost of encoding grows with the entries that are not 0.
 * Fewer such entries make vectors dependent on others more often. Throws `density` outside (0, 1].
 */
export function sparseCoefficients(codec: Codec, seed: number, symbolCount: number, density: number): Uint8Array {
  if (!(density > 0 && density <= 1))
    throw new CodecError("density", density, 1, `density: got ${density}, limit above 0 and at most 1`);
  const vector = codec.coefficients(seed, symbolCount);
  const draw = codec.coefficients((seed ^ PLACES) >>> 0, symbolCount);
  const kept = Math.max(1, Math.round(256 * density));
  for (let index = 0; index < symbolCount; index++) if (draw[index]! >= kept) vector[index] = 0;
  if (vector.every((value) => value === 0)) vector[seed % symbolCount] = 1;
  return vector;
}
