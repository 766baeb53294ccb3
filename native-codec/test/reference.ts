/**
 * The code written a second time, as plainly as possible: the field, the coefficients and the coded symbols. The tests
 * compare every engine with it. The file also has the small helpers that the tests share.
 */
import { CodecError, xorshift128, type Codec, type Decoder, type Encoder } from "@tributary/protocol";

/** Generations that exercise the edges of blocks, vectors and rows. */
export const SHAPES: [symbolCount: number, symbolBytes: number][] = [
  [1, 1],
  [1, 65_536],
  [2, 3],
  [3, 31],
  [5, 4096],
  [7, 63],
  [8, 64],
  [9, 65],
  [16, 511],
  [17, 513],
  [24, 1100],
  [31, 127],
  [33, 1],
  [64, 140],
  [128, 257],
  [255, 17],
  [256, 33],
];

function multiplied(a: number, b: number): number {
  let product = 0;
  for (let shifted = a, bits = b; bits !== 0; bits >>= 1) {
    if (bits & 1) product ^= shifted;
    shifted = shifted & 0x80 ? (shifted << 1) ^ 0x11d : shifted << 1;
  }
  return product;
}

/** The multiplication table of GF(2^8): the product of a and b is entry 256 a + b. */
export const PRODUCTS = Uint8Array.from({ length: 65_536 }, (_, i) => multiplied(i >> 8, i & 255));
export const product = (a: number, b: number): number => PRODUCTS[(a << 8) | b] ?? 0;

function* splitMix64(seed: number): Generator<bigint> {
  const u64 = (value: bigint): bigint => BigInt.asUintN(64, value);
  for (let state = BigInt(seed); ;) {
    state = u64(state + 0x9e3779b97f4a7c15n);
    let z = u64((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = u64((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    yield z ^ (z >> 31n);
  }
}

/** The coding coefficients that docs/spec/protocol.md §5.3 specifies. */
export function specifiedCoefficients(seed: number, symbolCount: number): Uint8Array {
  const words = splitMix64(seed);
  for (;;) {
    const bytes: number[] = [];
    while (bytes.length < symbolCount) {
      const word = words.next().value as bigint;
      for (let i = 0n; i < 8n; i++) bytes.push(Number((word >> (8n * i)) & 255n));
    }
    const vector = Uint8Array.from(bytes.slice(0, symbolCount));
    if (vector.some((byte) => byte !== 0)) return vector;
  }
}

/** The sum of the source symbols, each times its coefficient. */
export function combination(coefficients: Uint8Array, source: Uint8Array, symbolBytes: number): Uint8Array {
  const sum = new Uint8Array(symbolBytes);
  coefficients.forEach((factor, s) => {
    for (let i = 0; i < symbolBytes; i++) sum[i] = (sum[i] ?? 0) ^ product(factor, source[s * symbolBytes + i] ?? 0);
  });
  return sum;
}

export function randomBytes(length: number, seed: number): Uint8Array {
  const rng = xorshift128(seed);
  return Uint8Array.from({ length }, () => rng() >>> 24);
}

export const seedsFrom = (first: number, count: number): Uint32Array =>
  Uint32Array.from({ length: count }, (_, i) => first + i);

export const same = (a: Uint8Array, b: Uint8Array): boolean => Buffer.compare(a, b) === 0;

export function unitVector(symbolCount: number, index: number): Uint8Array {
  const vector = new Uint8Array(symbolCount);
  vector[index] = 1;
  return vector;
}

export function readAll(decoder: Decoder): Uint8Array {
  const out = new Uint8Array(decoder.symbolCount * decoder.symbolBytes);
  decoder.read(0, decoder.symbolCount, out);
  return out;
}

/** An encoder that holds `source`. */
export function encoderOf(codec: Codec, source: Uint8Array, symbolBytes: number): Encoder {
  const encoder = codec.createEncoder(source.length / symbolBytes, symbolBytes);
  encoder.setSymbols(0, source);
  return encoder;
}

export function codedSymbol(codec: Codec, source: Uint8Array, symbolBytes: number, seed: number): Uint8Array {
  const out = new Uint8Array(symbolBytes);
  encoderOf(codec, source, symbolBytes).encodeSeeds(Uint32Array.of(seed), out);
  return out;
}

export interface Misuse {
  what: string;
  got: number;
  limit: number;
}

/** The CodecError that `action` throws, as data. Undefined if it throws nothing. */
export function misuseOf(action: () => unknown): Misuse | undefined {
  try {
    action();
  } catch (error) {
    return misuseIn(error);
  }
  return undefined;
}

/** The CodecError that `promise` rejects with, as data. Undefined if it resolves. */
export async function rejectedMisuseOf(promise: Promise<unknown>): Promise<Misuse | undefined> {
  try {
    await promise;
  } catch (error) {
    return misuseIn(error);
  }
  return undefined;
}

function misuseIn(error: unknown): Misuse {
  if (!(error instanceof CodecError)) throw error;
  return { what: error.what, got: error.got, limit: error.limit };
}
