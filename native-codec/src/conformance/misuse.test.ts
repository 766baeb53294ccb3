/** Every engine refuses misuse with a CodecError that names the value it got and the nearest value allowed. */
import type { Recoder } from "@tributary/protocol";
import { CODECS } from "../../test/codecs";
import { misuseOf } from "../../test/reference";

describe.each(CODECS)("misuse on %s", (_engine, codec) => {
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

  function recoderOfRank(rank: number): Recoder {
    const made = codec.createRecoder(4, 10);
    for (let i = 0; i < rank; i++) made.addSystematic(i, bytes(10));
    return made;
  }

  /**
   * One argument at its limit and just beyond. The call must work with `inside`, which is the limit, and throw a
   * CodecError with `outside`, which is what it got.
   */
  const EDGES: [name: string, what: string, inside: number, outside: number, call: (value: number) => unknown][] = [
    ["the smallest generation", "symbolCount", 1, 0, (n) => codec.createEncoder(n, 1)],
    ["the largest generation", "symbolCount", 256, 257, (n) => codec.createDecoder(n, 1)],
    ["the shortest symbol", "symbolBytes", 1, 0, (n) => codec.createRecoder(1, n)],
    ["the longest symbol", "symbolBytes", 65_536, 65_537, (n) => codec.createEncoder(1, n)],
    ["coefficients of one symbol", "symbolCount", 1, 0, (n) => codec.coefficients(1, n)],
    ["coefficients of 256 symbols", "symbolCount", 256, 257, (n) => codec.coefficients(1, n)],
    ["the largest seed", "seed", 2 ** 32 - 1, 2 ** 32, (n) => codec.coefficients(n, 1)],
    ["the last source symbol", "firstIndex", 3, 4, (n) => encoder.setSymbols(n, bytes(10))],
    ["source bytes up to the end", "bytes", 20, 21, (n) => encoder.setSymbols(2, bytes(n))],
    ["one source byte", "bytes", 1, 0, (n) => encoder.setSymbols(0, bytes(n))],
    ["one seed", "seeds", 1, 0, (n) => encoder.encodeSeeds(new Uint32Array(n), bytes(10 * n))],
    ["an out that is too short", "out", 20, 19, (n) => encoder.encodeSeeds(Uint32Array.of(1, 2), bytes(n))],
    ["an out that is too long", "out", 10, 11, (n) => encoder.encodeVector(bytes(4), bytes(n))],
    ["too few coefficients", "coefficients", 4, 3, (n) => encoder.encodeVector(bytes(n), bytes(10))],
    ["a payload that is too long", "payload", 10, 11, (n) => decoder.addSeeded(1, bytes(n))],
    ["a payload that is too short", "payload", 10, 9, (n) => decoder.addSystematic(0, bytes(n))],
    ["too many coefficients", "coefficients", 4, 5, (n) => decoder.addVector(bytes(n), bytes(10))],
    ["the last index to add", "index", 3, 4, (n) => decoder.addSystematic(n, bytes(10))],
    ["the last index of isDecoded", "index", 3, 4, (n) => decoder.isDecoded(n)],
    ["reading up to the end", "count", 2, 3, (n) => decoder.read(2, n, bytes(10 * n))],
    ["reading from the last symbol", "firstIndex", 3, 4, (n) => decoder.read(n, 1, bytes(10))],
    ["reading one symbol", "count", 1, 0, (n) => decoder.read(0, n, bytes(10 * n))],
    ["an out that is too short to read into", "out", 40, 39, (n) => decoder.read(0, 4, bytes(n))],
    ["recoding at rank 1", "rank", 1, 0, (n) => recoderOfRank(n).recode(1, bytes(4), bytes(10))],
    ["a vector that is too short", "outCoefficients", 4, 3, (n) => recoder.recode(1, bytes(n), bytes(10))],
    ["a recoded payload that is too long", "outPayload", 10, 11, (n) => recoder.recode(1, bytes(4), bytes(n))],
    ["the smallest block", "symbolCount", 1, 0, (n) => codec.createRepairEncoder(n, 1)],
    ["the largest block", "symbolCount", 65_536, 65_537, (n) => codec.createRepairDecoder(n, 1)],
    ["source bytes up to a block's end", "bytes", 10, 11, (n) => repairEncoder.setSymbols(3, bytes(n))],
    ["an out for repair", "out", 10, 9, (n) => repairEncoder.encodeSeeds(Uint32Array.of(1), bytes(n))],
    ["the last index of a block", "index", 3, 4, (n) => repairDecoder.addSource(n, bytes(10))],
    ["a repair payload that is too long", "payload", 10, 11, (n) => repairDecoder.addSeeded(1, bytes(n))],
    ["reading up to a block's end", "count", 1, 2, (n) => repairDecoder.read(3, n, bytes(10 * n))],
  ];

  test.each(EDGES)("%s: %s works at its limit and throws just beyond", (_name, what, inside, outside, call) => {
    call(inside);
    expect(misuseOf(() => call(outside))).toEqual({ what, got: outside, limit: inside });
  });

  test.each([-1, 1.5])("the seed %d is refused", (seed) => {
    expect(misuseOf(() => codec.coefficients(seed, 1))).toEqual({ what: "seed", got: seed, limit: 2 ** 32 - 1 });
  });

  test("an argument of the wrong type is a CodecError that names it", () => {
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

  test("accepts a Buffer as a Uint8Array", () => {
    encoder.setSymbols(0, Buffer.from("abc"));
    const out = Buffer.alloc(10);
    encoder.encodeVector(Buffer.from([1, 0, 0, 0]), out);
    expect(out.toString("latin1", 0, 3)).toBe("abc");
  });

  test("a detached buffer has no bytes, which is a CodecError", () => {
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

  test("use after free() throws, and a second free() does nothing", () => {
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
