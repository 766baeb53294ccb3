/** Every engine's encoder, decoder and recoder keep the promises of protocol/src/codec.ts. */
import { CodecError, sparseCoefficients } from "@tributary/protocol";
import { CODECS } from "../../test/codecs";
import {
  codedSymbol,
  combination,
  encoderOf,
  misuseOf,
  product,
  randomBytes,
  same,
  seedsFrom,
  unitVector,
} from "../../test/reference";

describe.each(CODECS)("%s", (_engine, codec) => {
  describe("encoder", () => {
    test("reads unset symbols as zeros and pads the last one that is set", () => {
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
      expect(same(backing.subarray(13, 90), codedSymbol(codec, source, 77, 9))).toBe(true);
      expect([...backing.subarray(0, 13), ...backing.subarray(90)].every((byte) => byte === 0xaa)).toBe(true);
    });

    test("codes a batch to the same bytes as single seeds (1 to 70 seeds)", () => {
      const source = randomBytes(24 * 1100, 6);
      const encoder = encoderOf(codec, source, 1100);
      const singles = Array.from({ length: 70 }, (_, seed) => codedSymbol(codec, source, 1100, seed));
      for (const count of [1, 2, 3, 4, 5, 15, 16, 17, 70]) {
        const out = new Uint8Array(count * 1100);
        encoder.encodeSeeds(seedsFrom(0, count), out);
        expect(same(out, Buffer.concat(singles.slice(0, count)))).toBe(true);
      }
    });
  });

  describe("decoder", () => {
    const source = randomBytes(8 * 50, 8);
    const symbol = (index: number): Uint8Array => source.slice(index * 50, index * 50 + 50);

    test("reports the all-zero vector as redundant, whatever its payload", () => {
      const decoder = codec.createDecoder(8, 50);
      expect(decoder.addVector(new Uint8Array(8), symbol(0))).toBe(false);
      expect(decoder.rank).toBe(0);
    });

    test("reports repeated and dependent symbols as redundant, and keeps the first", () => {
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
      expect(same(out, symbol(1))).toBe(true);
      expect(misuseOf(() => decoder.read(0, 1, out))).toEqual({ what: "notDecoded", got: 0, limit: 2 });
      expect(misuseOf(() => decoder.read(1, 2, new Uint8Array(100)))).toEqual({ what: "notDecoded", got: 2, limit: 2 });
    });

    test("reads any range of symbols, and reads it again", () => {
      const decoder = codec.createDecoder(8, 50);
      for (let i = 0; i < 8; i += 2) decoder.addSystematic(i, symbol(i));
      for (let seed = 1; decoder.rank < 8; seed++) decoder.addSeeded(seed, codedSymbol(codec, source, 50, seed));
      for (let first = 0; first < 8; first++) {
        for (let count = 1; first + count <= 8; count++) {
          const out = new Uint8Array(count * 50);
          decoder.read(first, count, out);
          expect(same(out, source.subarray(first * 50, (first + count) * 50))).toBe(true);
        }
      }
    });
  });

  test("sparse vectors: take their entries from the seed, match the density, and decode a generation", () => {
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
    expect(same(out, source)).toBe(true);
    expect(sparseCoefficients(codec, 5, 1, 0.001)).not.toEqual(new Uint8Array(1));
    expect(sparseCoefficients(codec, 7, 24, 1)).toEqual(codec.coefficients(7, 24));
    for (const density of [0, -1, 1.01, NaN])
      expect(() => sparseCoefficients(codec, 1, 24, density)).toThrow(CodecError);
    encoder.free();
    decoder.free();
  });

  test("recoder: keeps innovative symbols and combines them by the multipliers of the seed", () => {
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
    expect(same(payload, combination(expected, source, 40))).toBe(true);
  });

  test.each([
    [2, 30_000],
    [8, 20_000],
    [24, 6000],
  ])(
    "random square systems are singular at the rate of theory (%i symbols, %i systems, within 5 sigma)",
    (symbolCount, systems) => {
      let regularShare = 1;
      for (let i = 1; i <= symbolCount; i++) regularShare *= 1 - 256 ** -i;
      regularShare /= (1 - 256 ** -symbolCount) ** symbolCount; // because no vector is all zero
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
});
