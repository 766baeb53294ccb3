/**
 * The codec as the protocol sees it: random linear network coding over GF(2^8), polynomial 0x11D
 * (x^8 + x^4 + x^3 + x^2 + 1), on generations of `symbolCount` symbols of `symbolBytes` bytes each.
 * Implemented by native-codec (Node addon) and wasm-codec (WebAssembly). Words: RFC 8406.
 *
 * Misuse (a length that does not match, an index out of range, a count over the limit, nothing to do: no seeds, no
 * bytes, no symbols) throws a `CodecError` that names the value got and the limit, and changes nothing. So does memory
 * that cannot be had (`memoryBytes`, from a `create` or a call that grows its object). A linearly dependent symbol, all
 * zeros among them, is not misuse. Lengths are in bytes; buffers are at any alignment and are not kept.
 * Each object owns memory outside the JavaScript heap: call `free()` once; use after it throws (`freed`).
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
   * Sets source symbols from `firstIndex` on; `bytes` is cut into symbols, the last one padded with zeros.
   * Bytes beyond the generation's end are an error, and so are none. Symbols never set are zeros.
   */
  setSymbols(firstIndex: number, bytes: Uint8Array): void;
  /** Writes one coded symbol per seed, at least one, into `out` (`seeds.length * symbolBytes` bytes) in order. */
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
  /** Source symbol `index` as it is; `payload` has `symbolBytes` bytes. */
  addSystematic(index: number, payload: Uint8Array): boolean;
  /** The coded symbol of `seed` (u32). */
  addSeeded(seed: number, payload: Uint8Array): boolean;
  /** The coded symbol of `coefficients` (`symbolCount` bytes). */
  addVector(coefficients: Uint8Array, payload: Uint8Array): boolean;
  /** True once source symbol `index` is determined, which can be before full rank. */
  isDecoded(index: number): boolean;
  /**
   * Copies `count` source symbols (at least one) from `firstIndex` into `out` (`count * symbolBytes` bytes). Throws
   * `notDecoded` if one of them is not determined: got its index, limit the rank.
   */
  read(firstIndex: number, count: number, out: Uint8Array): void;
  free(): void;
}

/**
 * Makes fresh coded symbols from received ones, coefficient vectors expressed on the source symbols. Takes them in as
 * `Decoder` does.
 */
export interface Recoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  readonly rank: number;
  addVector(coefficients: Uint8Array, payload: Uint8Array): boolean;
  addSeeded(seed: number, payload: Uint8Array): boolean;
  addSystematic(index: number, payload: Uint8Array): boolean;
  /**
   * Combines all held symbols with the multipliers that `seed` (u32) stands for (`rank` of them); writes the
   * resulting coefficient vector (`symbolCount` bytes) and payload (`symbolBytes` bytes). Throws `rank` at rank 0.
   */
  recode(seed: number, outCoefficients: Uint8Array, outPayload: Uint8Array): void;
  free(): void;
}

/** Coded symbols over a block of many source symbols; seeds stand for `symbolCount` coefficients as in a generation. */
export interface RepairEncoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  /** As `Encoder.setSymbols`. */
  setSymbols(firstIndex: number, bytes: Uint8Array): void;
  /** As `Encoder.encodeSeeds`; cheapest with a multiple of four seeds. */
  encodeSeeds(seeds: Uint32Array, out: Uint8Array): void;
  free(): void;
}

/**
 * Repairs a block: source symbols come as they are until at most 512 are missing, then coded symbols, and late source
 * symbols among them. Costs and how to choose the size of a block: native-codec/README.md.
 */
export interface RepairDecoder {
  readonly symbolCount: number;
  readonly symbolBytes: number;
  /** Innovative symbols that are still to come; at 0 every source symbol is determined. */
  readonly missingCount: number;
  /** True when source symbol `index` was missing; `payload` has `symbolBytes` bytes, here and in `addSeeded`. */
  addSource(index: number, payload: Uint8Array): boolean;
  /** True when the coded symbol of `seed` was innovative; throws `missing` while more than 512 symbols are missing. */
  addSeeded(seed: number, payload: Uint8Array): boolean;
  isDecoded(index: number): boolean;
  /** As `Decoder.read`, but `notDecoded` has for limit how many symbols are known. */
  read(firstIndex: number, count: number, out: Uint8Array): void;
  free(): void;
}

/** Misuse of a codec object: `what` was `got`, allowed is `limit`. */
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

/** Separates the draw of places from the draw of values: both are made from one seed. */
const PLACES = 0x5bd1e995;

/**
 * A sparse coefficient vector for `Encoder.encodeVector` and `Decoder.addVector`: `symbolCount` (1..256) bytes, each
 * one what `seed` (u32) stands for with probability `density`, in steps of 1/256, and else 0; one at least is not. The
 * same at both ends. Encoding costs its entries only; the fewer there are, the more often vectors are dependent on
 * others. Throws `density` outside (0, 1].
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
