/** Every engine repairs a block: source symbols first, then coded symbols for the missing ones. */
import { CODECS } from "../../test/codecs";
import { combination, misuseOf, randomBytes, same, seedsFrom, specifiedCoefficients } from "../../test/reference";

describe.each(CODECS)("%s", (_engine, codec) => {
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

    test("codes a block by the coefficients of a seed (1 to 9 seeds at a time)", () => {
      const encoder = repairEncoder();
      const wanted = Array.from({ length: 9 }, (_, seed) =>
        combination(specifiedCoefficients(seed, symbolCount), source, symbolBytes),
      );
      for (const count of [1, 3, 4, 9]) {
        const out = new Uint8Array(count * symbolBytes);
        encoder.encodeSeeds(seedsFrom(0, count), out);
        expect(same(out, Buffer.concat(wanted.slice(0, count)))).toBe(true);
      }
    });

    test("recovers a block of 700 symbols with 6 missing from coded symbols and one late source symbol", () => {
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
      expect(same(out, source)).toBe(true);
    });

    test("accepts coded symbols while 512 symbols are missing, and refuses them while 513 are", () => {
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
});
