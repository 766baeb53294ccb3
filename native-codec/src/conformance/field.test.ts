/** Every engine computes in the same field and draws the same coefficients from a seed. */
import { createHash } from "node:crypto";
import { xorshift128 } from "@tributary/protocol";
import { CODECS, moduleFile } from "../../test/codecs";
import { encoderOf, PRODUCTS, randomBytes, SHAPES, same, specifiedCoefficients } from "../../test/reference";

test("conformance: tests a native engine and every WebAssembly module, or the one module that is named", () => {
  const all = ["native/scalar", "native/reference", "wasm/relaxed-simd", "wasm/simd128", "wasm/scalar"];
  const expected = moduleFile === undefined ? expect.arrayContaining(all) : [expect.stringMatching(/^wasm\//)];
  expect(CODECS.map(([engine]) => engine)).toEqual(expected);
});

describe.each(CODECS)("%s", (_engine, codec) => {
  describe("field", () => {
    /** One symbol holds every byte. Encoding it with a coefficient gives that row of the multiplication table. */
    const table = new Uint8Array(65_536);
    const everyByte = Uint8Array.from({ length: 256 }, (_, i) => i);
    beforeAll(() => {
      const encoder = encoderOf(codec, everyByte, 256);
      for (let a = 0; a < 256; a++) encoder.encodeVector(Uint8Array.of(a), table.subarray(a * 256, a * 256 + 256));
    });
    const times = (a: number, b: number): number => table[a * 256 + b] ?? 0;

    test("multiplies by polynomial 0x11D in all 65,536 products", () => {
      expect(same(table, PRODUCTS)).toBe(true);
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
        if (!holds) throw new Error(`The field's laws fail for ${a}, ${b}, ${c}.`);
      }
      const units = new Set<number>();
      for (let i = 0, power = 1; i < 255; i++, power = times(power, 2)) units.add(power);
      expect(units.size).toBe(255);
    });
  });

  describe("coefficients", () => {
    test("follow the protocol for the smallest and largest seeds and for 1 to 256 symbols", () => {
      for (const seed of [0, 1, 6, 255, 0x7fff_ffff, 0x8000_0000, 0xffff_ffff]) {
        for (const count of [1, 2, 7, 8, 9, 24, 255, 256]) {
          expect(codec.coefficients(seed, count)).toEqual(specifiedCoefficients(seed, count));
        }
      }
    });

    test("equal the protocol's example", () => {
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

  test("frozen: encoder, recoder and coefficients give the recorded bytes", () => {
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
});
