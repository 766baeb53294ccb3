/**
 * One suite for every codec there is: each native engine this processor runs, and all WebAssembly modules. What they
 * are compared with is written out here once more: the field, the coefficients, the code as a plain sum.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { setFlagsFromString } from "node:v8";
import { CodecError, sparseCoefficients, xorshift128, type Codec, type Decoder } from "@tributary/protocol";
import { instantiateCodec } from "@tributary/wasm-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { loadNativeCodec, nativeEngineNames } from "./index";

function nativeCodec(engine: string): Codec {
  const { codec } = loadNativeCodec(engine);
  if (codec === undefined) throw new Error(`${engine} did not load`);
  return codec;
}

setFlagsFromString("--experimental-wasm-relaxed-simd"); // Node 20 has it behind this flag

/** TRIBUTARY_WASM_MODULE: a module from elsewhere, then tested alone (wasm-codec/emscripten.mjs). */
const moduleFile = process.env["TRIBUTARY_WASM_MODULE"];

const CODECS: Codec[] =
  moduleFile !== undefined
    ? [instantiateCodec(readFileSync(moduleFile))]
    : [
        ...nativeEngineNames().map(nativeCodec),
        loadWasmCodec("codec-relaxed.wasm"),
        loadWasmCodec("codec.wasm"),
        loadWasmCodec("codec-scalar.wasm"),
      ];

const SHAPES: [symbolCount: number, symbolBytes: number][] = [
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

const PRODUCTS = Uint8Array.from({ length: 65_536 }, (_, i) => multiplied(i >> 8, i & 255));
const product = (a: number, b: number): number => PRODUCTS[(a << 8) | b] ?? 0;

function* splitMix64(seed: number): Generator<bigint> {
  const u64 = (value: bigint): bigint => BigInt.asUintN(64, value);
  for (let state = BigInt(seed); ;) {
    state = u64(state + 0x9e3779b97f4a7c15n);
    let z = u64((state ^ (state >> 30n)) * 0xbf58476d1ce4e5b9n);
    z = u64((z ^ (z >> 27n)) * 0x94d049bb133111ebn);
    yield z ^ (z >> 31n);
  }
}

/** docs/spec/protocol.md §5.3. */
function specifiedCoefficients(seed: number, symbolCount: number): Uint8Array {
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

function combination(coefficients: Uint8Array, source: Uint8Array, symbolBytes: number): Uint8Array {
  const sum = new Uint8Array(symbolBytes);
  coefficients.forEach((factor, s) => {
    for (let i = 0; i < symbolBytes; i++) sum[i] = (sum[i] ?? 0) ^ product(factor, source[s * symbolBytes + i] ?? 0);
  });
  return sum;
}

function randomBytes(length: number, seed: number): Uint8Array {
  const rng = xorshift128(seed);
  return Uint8Array.from({ length }, () => rng() >>> 24);
}

function unitVector(symbolCount: number, index: number): Uint8Array {
  const vector = new Uint8Array(symbolCount);
  vector[index] = 1;
  return vector;
}

function readAll(decoder: Decoder): Uint8Array {
  const out = new Uint8Array(decoder.symbolCount * decoder.symbolBytes);
  decoder.read(0, decoder.symbolCount, out);
  return out;
}

/** An encoder that holds `source`. */
function encoderOf(codec: Codec, source: Uint8Array, symbolBytes: number) {
  const encoder = codec.createEncoder(source.length / symbolBytes, symbolBytes);
  encoder.setSymbols(0, source);
  return encoder;
}

function codedSymbol(codec: Codec, source: Uint8Array, symbolBytes: number, seed: number): Uint8Array {
  const out = new Uint8Array(symbolBytes);
  encoderOf(codec, source, symbolBytes).encodeSeeds(Uint32Array.of(seed), out);
  return out;
}

/** The CodecError that `action` throws, as data. */
function misuseOf(action: () => unknown): { what: string; got: number; limit: number } | undefined {
  try {
    action();
  } catch (error) {
    if (error instanceof CodecError) return { what: error.what, got: error.got, limit: error.limit };
    throw error;
  }
  return undefined;
}

test("conformance: at least one native engine and all WebAssembly modules are tested, or the one module named", () => {
  const all = expect.arrayContaining([
    "native/scalar",
    "native/reference",
    "wasm/relaxed-simd",
    "wasm/simd128",
    "wasm/scalar",
  ]) as string[];
  expect(CODECS.map((codec) => codec.engine)).toEqual(
    moduleFile === undefined ? all : [expect.stringMatching(/^wasm\//)],
  );
});

describe.each(CODECS.map((codec) => [codec.engine, codec] as const))("%s", (_engine, codec) => {
  describe("field", () => {
    /** One symbol holding every byte: encoding it with a coefficient gives that row of the multiplication table. */
    const table = new Uint8Array(65_536);
    beforeAll(() => {
      const encoder = encoderOf(
        codec,
        Uint8Array.from({ length: 256 }, (_, i) => i),
        256,
      );
      for (let a = 0; a < 256; a++) encoder.encodeVector(Uint8Array.of(a), table.subarray(a * 256, a * 256 + 256));
    });
    const times = (a: number, b: number): number => table[a * 256 + b] ?? 0;

    test("multiplies as the polynomial 0x11D says, all 65,536 products", () => {
      expect(Buffer.compare(table, PRODUCTS)).toBe(0);
    });

    test("is commutative, associative and distributive, and 2 generates all 255 units", () => {
      const rng = xorshift128(11);
      for (let i = 0; i < 20_000; i++) {
        const [a, b, c] = [rng() >>> 24, rng() >>> 24, rng() >>> 24];
        const holds =
          times(a, b) === times(b, a) &&
          times(times(a, b), c) === times(a, times(b, c)) &&
          times(a, b ^ c) === (times(a, b) ^ times(a, c)) &&
          times(1, a) === a;
        if (!holds) throw new Error(`fails for ${a}, ${b}, ${c}`);
      }
      const units = new Set<number>();
      for (let i = 0, power = 1; i < 255; i++, power = times(power, 2)) units.add(power);
      expect(units.size).toBe(255);
    });
  });

  describe("coefficients", () => {
    test("are those the protocol specifies, for seeds at both ends and vectors of 1 to 256", () => {
      for (const seed of [0, 1, 6, 255, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]) {
        for (const count of [1, 2, 7, 8, 9, 24, 255, 256]) {
          expect(codec.coefficients(seed, count)).toEqual(specifiedCoefficients(seed, count));
        }
      }
    });

    test("are the protocol's example", () => {
      expect(Buffer.from(codec.coefficients(1, 10)).toString("hex")).toBe("c15c0289ec2d0a9167ec");
      expect([...codec.coefficients(6, 1)]).toEqual([0x99]);
    });

    test("are never all zero (one symbol, 5,000 seeds)", () => {
      const seeds = Array.from({ length: 5000 }, (_, seed) => seed);
      expect(seeds.filter((seed) => codec.coefficients(seed, 1)[0] === 0)).toEqual([]);
    });

    test("are uniform (chi-squared of 64,000 bytes over 256 values, within 5 sigma)", () => {
      const counts = new Array<number>(256).fill(0);
      for (let seed = 0; seed < 1000; seed++) for (const byte of codec.coefficients(seed, 64)) counts[byte]! += 1;
      const chiSquared = counts.reduce((sum, count) => sum + (count - 250) ** 2 / 250, 0);
      expect(Math.abs(chiSquared - 255)).toBeLessThan(5 * Math.sqrt(2 * 255));
    });
  });

  describe.each(SHAPES)("generation of %i x %i bytes", (symbolCount, symbolBytes) => {
    const source = randomBytes(symbolCount * symbolBytes, symbolCount * 7919 + symbolBytes);

    test("encodes seeds and vectors as the plain sum", () => {
      const encoder = encoderOf(codec, source, symbolBytes);
      const seeds = Uint32Array.of(3, 0xffff_ffff, 5, 6, 7);
      const out = new Uint8Array(seeds.length * symbolBytes);
      encoder.encodeSeeds(seeds, out);
      const expected = [...seeds].map((seed) =>
        combination(codec.coefficients(seed, symbolCount), source, symbolBytes),
      );
      expect(Buffer.compare(out, Buffer.concat(expected))).toBe(0);
      const single = new Uint8Array(symbolBytes);
      encoder.encodeVector(codec.coefficients(5, symbolCount), single);
      expect(Buffer.compare(single, expected[2]!)).toBe(0);
      encoder.free();
    });

    test("decodes coded symbols, any of them, counting the rank", () => {
      const encoder = encoderOf(codec, source, symbolBytes);
      const decoder = codec.createDecoder(symbolCount, symbolBytes);
      const payload = new Uint8Array(symbolBytes);
      let innovative = 0;
      for (let seed = 1000; decoder.rank < symbolCount; seed++) {
        encoder.encodeSeeds(Uint32Array.of(seed), payload);
        if (decoder.addSeeded(seed, payload)) innovative++;
        expect(decoder.rank).toBe(innovative);
      }
      expect(Buffer.compare(readAll(decoder), source)).toBe(0);
      expect(decoder.addSeeded(1, codedSymbol(codec, source, symbolBytes, 1))).toBe(false);
      encoder.free();
      decoder.free();
    });

    test("decodes a mix of systematic, seeded and vector symbols in random order", () => {
      const encoder = encoderOf(codec, source, symbolBytes);
      const decoder = codec.createDecoder(symbolCount, symbolBytes);
      const rng = xorshift128(symbolCount + symbolBytes);
      const payload = new Uint8Array(symbolBytes);
      while (decoder.rank < symbolCount) {
        const draw = rng();
        if (draw % 3 === 0) {
          const index = (draw >>> 8) % symbolCount;
          const known = decoder.isDecoded(index);
          const start = index * symbolBytes;
          expect(decoder.addSystematic(index, source.subarray(start, start + symbolBytes))).toBe(!known);
          expect(decoder.isDecoded(index)).toBe(true);
        } else {
          const coefficients = codec.coefficients(draw, symbolCount);
          encoder.encodeVector(coefficients, payload);
          if (draw % 3 === 1) decoder.addSeeded(draw, payload);
          else decoder.addVector(coefficients, payload);
        }
      }
      expect(Buffer.compare(readAll(decoder), source)).toBe(0);
    });

    test("passes through a chain of two recoders", () => {
      const encoder = encoderOf(codec, source, symbolBytes);
      const [first, second] = [
        codec.createRecoder(symbolCount, symbolBytes),
        codec.createRecoder(symbolCount, symbolBytes),
      ];
      const decoder = codec.createDecoder(symbolCount, symbolBytes);
      const [payload, coefficients] = [new Uint8Array(symbolBytes), new Uint8Array(symbolCount)];
      first.addSystematic(0, source.subarray(0, symbolBytes));
      for (let seed = 1; decoder.rank < symbolCount; seed++) {
        encoder.encodeSeeds(Uint32Array.of(seed), payload);
        first.addSeeded(seed, payload);
        first.recode(seed, coefficients, payload);
        second.addVector(coefficients, payload);
        second.recode(seed, coefficients, payload);
        decoder.addVector(coefficients, payload);
        if (seed < 4) expect(Buffer.compare(payload, combination(coefficients, source, symbolBytes))).toBe(0);
      }
      expect(Buffer.compare(readAll(decoder), source)).toBe(0);
      expect(second.rank).toBe(symbolCount);
    });
  });

  describe("encoder", () => {
    test("treats symbols not set as zeros, and pads the last one set", () => {
      const encoder = codec.createEncoder(3, 10);
      const out = new Uint8Array(10);
      encoder.setSymbols(0, new Uint8Array(30).fill(9));
      encoder.setSymbols(1, Uint8Array.of(1, 2, 3));
      encoder.encodeVector(unitVector(3, 1), out);
      expect([...out]).toEqual([1, 2, 3, 0, 0, 0, 0, 0, 0, 0]);
      encoder.encodeVector(unitVector(3, 2), out);
      expect(out.every((byte) => byte === 9)).toBe(true);
    });

    test("writes into a view at an odd offset and leaves its neighbours alone", () => {
      const source = randomBytes(5 * 77, 5);
      const backing = new Uint8Array(200).fill(0xaa);
      encoderOf(codec, source, 77).encodeSeeds(Uint32Array.of(9), backing.subarray(13, 90));
      expect(Buffer.compare(backing.subarray(13, 90), codedSymbol(codec, source, 77, 9))).toBe(0);
      expect([...backing.subarray(0, 13), ...backing.subarray(90)].every((byte) => byte === 0xaa)).toBe(true);
    });

    test("codes a batch as it codes one by one (1 to 70 seeds)", () => {
      const source = randomBytes(24 * 1100, 6);
      const encoder = encoderOf(codec, source, 1100);
      const singles = Array.from({ length: 70 }, (_, seed) => codedSymbol(codec, source, 1100, seed));
      for (const count of [1, 2, 3, 4, 5, 15, 16, 17, 70]) {
        const out = new Uint8Array(count * 1100);
        encoder.encodeSeeds(
          Uint32Array.from({ length: count }, (_, seed) => seed),
          out,
        );
        expect(Buffer.compare(out, Buffer.concat(singles.slice(0, count)))).toBe(0);
      }
    });
  });

  describe("decoder", () => {
    const source = randomBytes(8 * 50, 8);
    const symbol = (index: number): Uint8Array => source.slice(index * 50, index * 50 + 50);

    test("finds the all-zero vector redundant, whatever its payload", () => {
      const decoder = codec.createDecoder(8, 50);
      expect(decoder.addVector(new Uint8Array(8), symbol(0))).toBe(false);
      expect(decoder.rank).toBe(0);
    });

    test("finds repeated and dependent symbols redundant, and keeps the first", () => {
      const decoder = codec.createDecoder(8, 50);
      expect(decoder.addSeeded(1, codedSymbol(codec, source, 50, 1))).toBe(true);
      expect(decoder.addSeeded(1, codedSymbol(codec, source, 50, 1))).toBe(false);
      const scaled = codec.coefficients(1, 8).map((c) => product(c, 77));
      expect(decoder.addVector(scaled, combination(scaled, source, 50))).toBe(false);
      expect(decoder.addSystematic(3, symbol(3))).toBe(true);
      expect(decoder.addSystematic(3, new Uint8Array(50))).toBe(false);
      expect(decoder.rank).toBe(2);
    });

    test("reads symbols as soon as they are determined, before full rank", () => {
      const decoder = codec.createDecoder(8, 50);
      const pair = Uint8Array.of(0, 5, 0, 0, 0, 0, 9, 0);
      decoder.addVector(pair, combination(pair, source, 50));
      expect([1, 6].map((index) => decoder.isDecoded(index))).toEqual([false, false]);
      decoder.addSystematic(6, symbol(6));
      expect([0, 1, 2, 6].map((index) => decoder.isDecoded(index))).toEqual([false, true, false, true]);
      const out = new Uint8Array(50);
      decoder.read(1, 1, out);
      expect(Buffer.compare(out, symbol(1))).toBe(0);
      expect(misuseOf(() => decoder.read(0, 1, out))).toEqual({ what: "notDecoded", got: 0, limit: 2 });
      expect(misuseOf(() => decoder.read(1, 2, new Uint8Array(100)))).toEqual({ what: "notDecoded", got: 2, limit: 2 });
    });

    test("gives any run of symbols, as often as it is asked", () => {
      const decoder = codec.createDecoder(8, 50);
      for (let i = 0; i < 8; i += 2) decoder.addSystematic(i, symbol(i));
      for (let seed = 1; decoder.rank < 8; seed++) decoder.addSeeded(seed, codedSymbol(codec, source, 50, seed));
      for (let first = 0; first < 8; first++) {
        for (let count = 1; first + count <= 8; count++) {
          const out = new Uint8Array(count * 50);
          decoder.read(first, count, out);
          expect(Buffer.compare(out, source.subarray(first * 50, (first + count) * 50))).toBe(0);
        }
      }
    });
  });

  test("sparse vectors: their entries are those of the seed, as many as the density says, and a generation decodes from them", () => {
    const [count, bytes, density] = [48, 70, 0.2];
    const encoder = codec.createEncoder(count, bytes);
    const source = Uint8Array.from({ length: count * bytes }, (_, at) => (at * 31 + (at >> 8)) & 0xff);
    encoder.setSymbols(0, source);
    const decoder = codec.createDecoder(count, bytes);
    const payload = new Uint8Array(bytes);
    let [entries, vectors] = [0, 0];
    for (let seed = 1; decoder.rank < count || vectors < 200; seed++, vectors++) {
      const vector = sparseCoefficients(codec, seed, count, density);
      const dense = codec.coefficients(seed, count);
      expect(vector.every((value, at) => value === 0 || value === dense[at])).toBe(true);
      entries += vector.filter((value) => value !== 0).length;
      encoder.encodeVector(vector, payload);
      decoder.addVector(vector, payload);
    }
    const expected = (51 / 256) * (255 / 256);
    const sigma = Math.sqrt((expected * (1 - expected)) / (vectors * count));
    expect(Math.abs(entries / (vectors * count) - expected)).toBeLessThan(5 * sigma);
    const out = new Uint8Array(count * bytes);
    decoder.read(0, count, out);
    expect(Buffer.compare(out, source)).toBe(0);
    expect(sparseCoefficients(codec, 5, 1, 0.001)).not.toEqual(new Uint8Array(1));
    expect(sparseCoefficients(codec, 7, 24, 1)).toEqual(codec.coefficients(7, 24));
    for (const density of [0, -1, 1.01, NaN])
      expect(() => sparseCoefficients(codec, 1, 24, density)).toThrow(CodecError);
    encoder.free();
    decoder.free();
  });

  test("recoder: holds what is innovative, and recodes the same for the same seed", () => {
    const source = randomBytes(6 * 40, 12);
    const recoder = codec.createRecoder(6, 40);
    expect(recoder.addSeeded(4, codedSymbol(codec, source, 40, 4))).toBe(true);
    expect(recoder.addSeeded(4, codedSymbol(codec, source, 40, 4))).toBe(false);
    expect(recoder.addVector(new Uint8Array(6), new Uint8Array(40))).toBe(false);
    expect(recoder.addSystematic(2, source.subarray(80, 120))).toBe(true);
    expect(recoder.rank).toBe(2);
    const [vector, payload] = [new Uint8Array(6), new Uint8Array(40)];
    recoder.recode(99, vector, payload);
    const [m0, m2] = codec.coefficients(99, 2);
    const expected = codec.coefficients(4, 6).map((c, i) => product(c, m0!) ^ (i === 2 ? m2! : 0));
    expect(vector).toEqual(expected);
    expect(Buffer.compare(payload, combination(expected, source, 40))).toBe(0);
  });

  describe("repair", () => {
    const [symbolCount, symbolBytes] = [700, 61];
    const source = randomBytes(symbolCount * symbolBytes, 13);
    const symbol = (index: number): Uint8Array => source.subarray(index * symbolBytes, (index + 1) * symbolBytes);
    const missing = [0, 13, 14, 350, 698, 699];
    const repairEncoder = () => {
      const encoder = codec.createRepairEncoder(symbolCount, symbolBytes);
      encoder.setSymbols(0, source);
      return encoder;
    };

    test("codes as the coefficients of a seed say, 1 to 9 seeds at a time", () => {
      const encoder = repairEncoder();
      const wanted = Array.from({ length: 9 }, (_, seed) =>
        combination(specifiedCoefficients(seed, symbolCount), source, symbolBytes),
      );
      for (const count of [1, 3, 4, 9]) {
        const out = new Uint8Array(count * symbolBytes);
        encoder.encodeSeeds(
          Uint32Array.from({ length: count }, (_, seed) => seed),
          out,
        );
        expect(Buffer.compare(out, Buffer.concat(wanted.slice(0, count)))).toBe(0);
      }
    });

    test("recovers a block of 700 symbols, 6 missing, from coded symbols and a straggler", () => {
      const [encoder, decoder] = [repairEncoder(), codec.createRepairDecoder(symbolCount, symbolBytes)];
      for (let i = 0; i < symbolCount; i++)
        if (!missing.includes(i)) expect(decoder.addSource(i, symbol(i))).toBe(true);
      expect(decoder.addSource(1, symbol(1))).toBe(false);
      expect(decoder.missingCount).toBe(missing.length);
      const payload = new Uint8Array(symbolBytes);
      for (let seed = 1; decoder.missingCount > 1; seed++) {
        encoder.encodeSeeds(Uint32Array.of(seed), payload);
        decoder.addSeeded(seed, payload);
      }
      expect(decoder.isDecoded(14)).toBe(false);
      const several = new Uint8Array(5 * symbolBytes);
      expect(misuseOf(() => decoder.read(10, 5, several))).toEqual({
        what: "notDecoded",
        got: 13,
        limit: symbolCount - 1,
      });
      expect(decoder.addSource(14, symbol(14))).toBe(true);
      const out = new Uint8Array(source.length);
      decoder.read(0, symbolCount, out);
      expect(Buffer.compare(out, source)).toBe(0);
    });

    test("takes coded symbols when 512 are missing, and not when 513 are", () => {
      const decoder = codec.createRepairDecoder(513, 4);
      expect(misuseOf(() => decoder.addSeeded(1, new Uint8Array(4)))).toEqual({
        what: "missing",
        got: 513,
        limit: 512,
      });
      decoder.addSource(7, new Uint8Array(4));
      expect(decoder.addSeeded(1, new Uint8Array(4))).toBe(true);
    });
  });

  test.each([
    [2, 30_000],
    [8, 20_000],
    [24, 6000],
  ])(
    "random square systems are singular as often as theory says (%i symbols, %i systems, within 5 sigma)",
    (symbolCount, systems) => {
      let regularShare = 1;
      for (let i = 1; i <= symbolCount; i++) regularShare *= 1 - 256 ** -i;
      regularShare /= (1 - 256 ** -symbolCount) ** symbolCount; // no vector is all zero
      let singular = 0;
      const payload = new Uint8Array(1);
      for (let system = 0; system < systems; system++) {
        const decoder = codec.createDecoder(symbolCount, 1);
        for (let i = 0; i < symbolCount; i++) decoder.addSeeded(system * symbolCount + i, payload);
        if (decoder.rank < symbolCount) singular++;
        decoder.free();
      }
      const expected = systems * (1 - regularShare);
      expect(Math.abs(singular - expected)).toBeLessThan(5 * Math.sqrt(expected * regularShare));
    },
  );

  test("frozen: encoder, recoder and coefficients give the bytes they always gave", () => {
    const hash = createHash("sha256");
    for (const [symbolCount, symbolBytes] of SHAPES) {
      const encoder = encoderOf(codec, randomBytes(symbolCount * symbolBytes, 1), symbolBytes);
      const recoder = codec.createRecoder(symbolCount, symbolBytes);
      const [vector, payload] = [new Uint8Array(symbolCount), new Uint8Array(symbolBytes)];
      for (let seed = 0; seed < 3; seed++) {
        encoder.encodeSeeds(Uint32Array.of(seed), payload);
        recoder.addSeeded(seed, payload);
        hash.update(codec.coefficients(seed, symbolCount)).update(payload);
        recoder.recode(seed, vector, payload);
        hash.update(vector).update(payload);
      }
    }
    expect(hash.digest("hex")).toBe("ceb378c2bbb062da7c8325e3d183d9eeb44603df7c717daa93008b70d8843504");
  });

  describe("misuse", () => {
    const bytes = (length: number): Uint8Array => new Uint8Array(length);
    const encoder = codec.createEncoder(4, 10);
    const decoder = codec.createDecoder(4, 10);
    const recoder = codec.createRecoder(4, 10);
    const repairEncoder = codec.createRepairEncoder(4, 10);
    const repairDecoder = codec.createRepairDecoder(4, 10);
    beforeAll(() => {
      for (let i = 0; i < 4; i++) decoder.addSystematic(i, bytes(10));
      for (let i = 0; i < 4; i++) repairDecoder.addSource(i, bytes(10));
      recoder.addSystematic(0, bytes(10));
    });

    const OUTSIDE: [string, inside: () => unknown, outside: () => unknown, what: string, got: number, limit: number][] =
      [
        [
          "symbolCount at its lower end",
          () => codec.createEncoder(1, 1),
          () => codec.createEncoder(0, 1),
          "symbolCount",
          0,
          1,
        ],
        [
          "symbolCount at its upper end",
          () => codec.createDecoder(256, 1),
          () => codec.createDecoder(257, 1),
          "symbolCount",
          257,
          256,
        ],
        [
          "symbolBytes at its lower end",
          () => codec.createRecoder(1, 1),
          () => codec.createRecoder(1, 0),
          "symbolBytes",
          0,
          1,
        ],
        [
          "symbolBytes at its upper end",
          () => codec.createEncoder(1, 65_536),
          () => codec.createEncoder(1, 65_537),
          "symbolBytes",
          65_537,
          65_536,
        ],
        [
          "coefficients of no symbol",
          () => codec.coefficients(1, 1),
          () => codec.coefficients(1, 0),
          "symbolCount",
          0,
          1,
        ],
        [
          "coefficients of too many",
          () => codec.coefficients(1, 256),
          () => codec.coefficients(1, 257),
          "symbolCount",
          257,
          256,
        ],
        [
          "a seed beyond u32",
          () => codec.coefficients(2 ** 32 - 1, 1),
          () => codec.coefficients(2 ** 32, 1),
          "seed",
          2 ** 32,
          2 ** 32 - 1,
        ],
        ["a negative seed", () => codec.coefficients(0, 1), () => codec.coefficients(-1, 1), "seed", -1, 2 ** 32 - 1],
        [
          "a fractional seed",
          () => codec.coefficients(1, 1),
          () => codec.coefficients(1.5, 1),
          "seed",
          1.5,
          2 ** 32 - 1,
        ],
        [
          "firstIndex at the end",
          () => encoder.setSymbols(3, bytes(10)),
          () => encoder.setSymbols(4, bytes(10)),
          "firstIndex",
          4,
          3,
        ],
        [
          "bytes beyond the generation",
          () => encoder.setSymbols(2, bytes(20)),
          () => encoder.setSymbols(2, bytes(21)),
          "bytes",
          21,
          20,
        ],
        ["no bytes", () => encoder.setSymbols(0, bytes(1)), () => encoder.setSymbols(0, bytes(0)), "bytes", 0, 1],
        [
          "no seeds",
          () => encoder.encodeSeeds(Uint32Array.of(1), bytes(10)),
          () => encoder.encodeSeeds(Uint32Array.of(), bytes(0)),
          "seeds",
          0,
          1,
        ],
        [
          "too short an out",
          () => encoder.encodeSeeds(Uint32Array.of(1, 2), bytes(20)),
          () => encoder.encodeSeeds(Uint32Array.of(1, 2), bytes(19)),
          "out",
          19,
          20,
        ],
        [
          "too long an out",
          () => encoder.encodeVector(bytes(4), bytes(10)),
          () => encoder.encodeVector(bytes(4), bytes(11)),
          "out",
          11,
          10,
        ],
        [
          "too few coefficients",
          () => encoder.encodeVector(bytes(4), bytes(10)),
          () => encoder.encodeVector(bytes(3), bytes(10)),
          "coefficients",
          3,
          4,
        ],
        [
          "too long a payload",
          () => decoder.addSeeded(1, bytes(10)),
          () => decoder.addSeeded(1, bytes(11)),
          "payload",
          11,
          10,
        ],
        [
          "too short a payload",
          () => decoder.addSystematic(0, bytes(10)),
          () => decoder.addSystematic(0, bytes(9)),
          "payload",
          9,
          10,
        ],
        [
          "too many coefficients",
          () => decoder.addVector(bytes(4), bytes(10)),
          () => decoder.addVector(bytes(5), bytes(10)),
          "coefficients",
          5,
          4,
        ],
        [
          "an index at the end",
          () => decoder.addSystematic(3, bytes(10)),
          () => decoder.addSystematic(4, bytes(10)),
          "index",
          4,
          3,
        ],
        ["an index at the end of isDecoded", () => decoder.isDecoded(3), () => decoder.isDecoded(4), "index", 4, 3],
        [
          "reading beyond the end",
          () => decoder.read(2, 2, bytes(20)),
          () => decoder.read(2, 3, bytes(30)),
          "count",
          3,
          2,
        ],
        [
          "reading from beyond the end",
          () => decoder.read(3, 1, bytes(10)),
          () => decoder.read(4, 1, bytes(10)),
          "firstIndex",
          4,
          3,
        ],
        ["reading nothing", () => decoder.read(0, 1, bytes(10)), () => decoder.read(0, 0, bytes(0)), "count", 0, 1],
        [
          "too short an out to read into",
          () => decoder.read(0, 4, bytes(40)),
          () => decoder.read(0, 4, bytes(39)),
          "out",
          39,
          40,
        ],
        [
          "recoding at rank 0",
          () => recoder.recode(1, bytes(4), bytes(10)),
          () => codec.createRecoder(4, 10).recode(1, bytes(4), bytes(10)),
          "rank",
          0,
          1,
        ],
        [
          "too short a vector out",
          () => recoder.recode(1, bytes(4), bytes(10)),
          () => recoder.recode(1, bytes(3), bytes(10)),
          "outCoefficients",
          3,
          4,
        ],
        [
          "symbolCount of a block at its lower end",
          () => codec.createRepairEncoder(1, 1),
          () => codec.createRepairEncoder(0, 1),
          "symbolCount",
          0,
          1,
        ],
        [
          "symbolCount of a block at its upper end",
          () => codec.createRepairDecoder(65_536, 1),
          () => codec.createRepairDecoder(65_537, 1),
          "symbolCount",
          65_537,
          65_536,
        ],
        [
          "bytes beyond a block",
          () => repairEncoder.setSymbols(3, bytes(10)),
          () => repairEncoder.setSymbols(3, bytes(11)),
          "bytes",
          11,
          10,
        ],
        [
          "too short an out for repair symbols",
          () => repairEncoder.encodeSeeds(Uint32Array.of(1), bytes(10)),
          () => repairEncoder.encodeSeeds(Uint32Array.of(1), bytes(9)),
          "out",
          9,
          10,
        ],
        [
          "an index at the end of a block",
          () => repairDecoder.addSource(3, bytes(10)),
          () => repairDecoder.addSource(4, bytes(10)),
          "index",
          4,
          3,
        ],
        [
          "too long a repair payload",
          () => repairDecoder.addSeeded(1, bytes(10)),
          () => repairDecoder.addSeeded(1, bytes(11)),
          "payload",
          11,
          10,
        ],
        [
          "reading beyond a block",
          () => repairDecoder.read(3, 1, bytes(10)),
          () => repairDecoder.read(3, 2, bytes(20)),
          "count",
          2,
          1,
        ],
        [
          "too long a payload out",
          () => recoder.recode(1, bytes(4), bytes(10)),
          () => recoder.recode(1, bytes(4), bytes(11)),
          "outPayload",
          11,
          10,
        ],
      ];

    test.each(OUTSIDE)(
      "%s: allowed just inside, a CodecError just outside",
      (_name, inside, outside, what, got, limit) => {
        inside();
        expect(misuseOf(outside)).toEqual({ what, got, limit });
      },
    );

    test("wrong types are a CodecError that names the argument", () => {
      const wrong = (value: unknown): never => value as never;
      for (const value of [
        undefined,
        null,
        5,
        "abc",
        {},
        [1, 2],
        new ArrayBuffer(10),
        new Int8Array(10),
        new Float64Array(10),
      ]) {
        expect(misuseOf(() => encoder.setSymbols(0, wrong(value)))?.what).toBe("bytes");
        expect(misuseOf(() => encoder.encodeSeeds(Uint32Array.of(1), wrong(value)))?.what).toBe("out");
        expect(misuseOf(() => decoder.addSeeded(1, wrong(value)))?.what).toBe("payload");
        expect(misuseOf(() => decoder.addVector(wrong(value), bytes(10)))?.what).toBe("coefficients");
        expect(misuseOf(() => recoder.recode(1, wrong(value), bytes(10)))?.what).toBe("outCoefficients");
        expect(misuseOf(() => repairEncoder.encodeSeeds(Uint32Array.of(1), wrong(value)))?.what).toBe("out");
        expect(misuseOf(() => repairDecoder.addSource(1, wrong(value)))?.what).toBe("payload");
      }
      expect(misuseOf(() => encoder.encodeSeeds(wrong(bytes(4)), bytes(10)))?.what).toBe("seeds");
      for (const value of [undefined, null, "1", {}, NaN, Infinity, 2n]) {
        expect(misuseOf(() => codec.createEncoder(wrong(value), 1))?.what).toBe("symbolCount");
        expect(misuseOf(() => decoder.isDecoded(wrong(value)))?.what).toBe("index");
        expect(misuseOf(() => decoder.addSeeded(wrong(value), bytes(10)))?.what).toBe("seed");
      }
    });

    test("a Buffer is a Uint8Array", () => {
      encoder.setSymbols(0, Buffer.from("abc"));
      const out = Buffer.alloc(10);
      encoder.encodeVector(Buffer.from([1, 0, 0, 0]), out);
      expect(out.toString("latin1", 0, 3)).toBe("abc");
    });

    test("detached buffers have no bytes, and that is a CodecError", () => {
      const detached = bytes(10);
      structuredClone(detached.buffer, { transfer: [detached.buffer] });
      expect(misuseOf(() => encoder.setSymbols(0, detached))).toEqual({ what: "bytes", got: 0, limit: 1 });
      expect(misuseOf(() => encoder.encodeSeeds(Uint32Array.of(1), detached))).toEqual({
        what: "out",
        got: 0,
        limit: 10,
      });
      expect(misuseOf(() => decoder.addSeeded(1, detached))).toEqual({ what: "payload", got: 0, limit: 10 });
      expect(misuseOf(() => decoder.read(0, 1, detached))).toEqual({ what: "out", got: 0, limit: 10 });
    });

    test("use after free throws, a second free does nothing", () => {
      const [e, d, r] = [codec.createEncoder(2, 2), codec.createDecoder(2, 2), codec.createRecoder(2, 2)];
      const [re, rd] = [codec.createRepairEncoder(2, 2), codec.createRepairDecoder(2, 2)];
      for (const coder of [e, d, r, re, rd, e, d, r, re, rd]) coder.free();
      const uses = [
        () => e.setSymbols(0, bytes(2)),
        () => e.encodeSeeds(Uint32Array.of(1), bytes(2)),
        () => e.encodeVector(bytes(2), bytes(2)),
        () => d.rank,
        () => d.addSeeded(1, bytes(2)),
        () => d.addVector(bytes(2), bytes(2)),
        () => d.addSystematic(0, bytes(2)),
        () => d.isDecoded(0),
        () => d.read(0, 1, bytes(2)),
        () => r.rank,
        () => r.recode(1, bytes(2), bytes(2)),
        () => re.setSymbols(0, bytes(2)),
        () => re.encodeSeeds(Uint32Array.of(1), bytes(2)),
        () => rd.missingCount,
        () => rd.addSource(0, bytes(2)),
        () => rd.addSeeded(1, bytes(2)),
        () => rd.isDecoded(0),
        () => rd.read(0, 1, bytes(2)),
      ];
      for (const use of uses) expect(misuseOf(use)?.what).toBe("freed");
    });

    test("a failed call changes nothing", () => {
      const fresh = codec.createDecoder(2, 4);
      expect(misuseOf(() => fresh.addSystematic(0, bytes(5)))).toBeDefined();
      expect(fresh.rank).toBe(0);
      expect(fresh.isDecoded(0)).toBe(false);
    });
  });
});
