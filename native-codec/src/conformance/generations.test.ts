/** Every engine encodes, recodes and decodes generations of many shapes. */
import { xorshift128 } from "@tributary/protocol";
import { CODECS } from "../../test/codecs";
import { codedSymbol, combination, encoderOf, randomBytes, readAll, same, SHAPES } from "../../test/reference";

describe.each(CODECS)("%s", (_engine, codec) => {
  describe.each(SHAPES)("generation of %i x %i bytes", (symbolCount, symbolBytes) => {
    const source = randomBytes(symbolCount * symbolBytes, symbolCount * 7919 + symbolBytes);

    test("encodes seeds and vectors to the plain sum of the sources", () => {
      const encoder = encoderOf(codec, source, symbolBytes);
      const seeds = Uint32Array.of(3, 0xffff_ffff, 5, 6, 7);
      const out = new Uint8Array(seeds.length * symbolBytes);
      encoder.encodeSeeds(seeds, out);
      const expected = [...seeds].map((seed) =>
        combination(codec.coefficients(seed, symbolCount), source, symbolBytes),
      );
      expect(same(out, Buffer.concat(expected))).toBe(true);
      const single = new Uint8Array(symbolBytes);
      encoder.encodeVector(codec.coefficients(5, symbolCount), single);
      expect(same(single, expected[2]!)).toBe(true);
      encoder.free();
    });

    test("decodes from coded symbols and counts the rank", () => {
      const encoder = encoderOf(codec, source, symbolBytes);
      const decoder = codec.createDecoder(symbolCount, symbolBytes);
      const payload = new Uint8Array(symbolBytes);
      let innovative = 0;
      for (let seed = 1000; decoder.rank < symbolCount; seed++) {
        encoder.encodeSeeds(Uint32Array.of(seed), payload);
        if (decoder.addSeeded(seed, payload)) innovative++;
        expect(decoder.rank).toBe(innovative);
      }
      expect(same(readAll(decoder), source)).toBe(true);
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
      expect(same(readAll(decoder), source)).toBe(true);
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
        if (seed < 4) expect(same(payload, combination(coefficients, source, symbolBytes))).toBe(true);
      }
      expect(same(readAll(decoder), source)).toBe(true);
      expect(second.rank).toBe(symbolCount);
    });
  });
});
