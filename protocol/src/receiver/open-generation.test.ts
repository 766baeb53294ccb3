import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { Coding } from "../types";
import { OpenGeneration, sameBytes, type GenerationOptions, type Solver } from "./verification";

const codec = loadWasmCodec();
const SYMBOL_BYTES = 64;
const SYMBOLS = 4;
/** The last symbol is not full. */
const truth = Uint8Array.from({ length: SYMBOLS * SYMBOL_BYTES - 10 }, (_, i) => i * 7);

function generation(parts: Partial<GenerationOptions> = {}): OpenGeneration {
  const makeSolver = (): Solver => {
    const decoder = codec.createDecoder(SYMBOLS, SYMBOL_BYTES);
    return {
      get rank() {
        return decoder.rank;
      },
      add: (coding, payload) =>
        coding.kind === "seed"
          ? decoder.addSeeded(coding.seed, payload)
          : coding.kind === "systematic" && decoder.addSystematic(coding.symbolIndex, payload),
      has: (index) => decoder.isDecoded(index),
      read(firstIndex, count) {
        const symbols = new Uint8Array(count * SYMBOL_BYTES);
        decoder.read(firstIndex, count, symbols);
        return symbols;
      },
      free: () => decoder.free(),
    };
  };
  return new OpenGeneration({
    codec,
    symbolCount: SYMBOLS,
    symbolBytes: SYMBOL_BYTES,
    byteCount: truth.length,
    makeSolver,
    isTrue: (bytes, offset) => sameBytes(bytes, truth.subarray(offset, offset + bytes.length)),
    ...parts,
  });
}

const PARTS = { partBytes: 2 * SYMBOL_BYTES };
const symbol = (symbolIndex: number, lie = 0): [Coding, Uint8Array] => {
  const payload = new Uint8Array(SYMBOL_BYTES);
  payload.set(truth.subarray(symbolIndex * SYMBOL_BYTES, (symbolIndex + 1) * SYMBOL_BYTES));
  payload[3]! ^= lie;
  return [{ kind: "systematic", symbolIndex, grant: 0 }, payload];
};

const encoder = codec.createEncoder(SYMBOLS, SYMBOL_BYTES);
encoder.setSymbols(0, truth);
function packet(seed: number, lie = false): [Coding, Uint8Array] {
  const payload = new Uint8Array(SYMBOL_BYTES);
  encoder.encodeSeeds(Uint32Array.of(seed), payload);
  if (lie) payload[3]! ^= 1;
  return [{ kind: "seed", seed, grant: 0 }, payload];
}

describe("verification", () => {
  test("a generation of true packets is settled as soon as there are enough, from any proxy", () => {
    const one = generation();
    for (let seed = 1; seed <= SYMBOLS; seed++) expect(one.add(seed % 2, ...packet(seed))).toBe(true);
    expect(one.bytes).toEqual(truth);
    expect(one.liars.size).toBe(0);
  });

  test("a generation that one proxy alone made false convicts that proxy at once", () => {
    const one = generation();
    for (let seed = 1; seed <= SYMBOLS; seed++) one.add(5, ...packet(seed, seed === 2));
    expect(one.bytes).toBeUndefined();
    expect([...one.liars]).toEqual([5]);
  });

  test("a false generation of two proxies is disputed, and the first true solution convicts the other", () => {
    const one = generation();
    one.add(0, ...packet(1));
    one.add(0, ...packet(2));
    one.add(1, ...packet(3, true));
    one.add(1, ...packet(4));
    expect(one.disputed).toBe(true);
    expect([one.rankFor(0), one.rankFor(1), one.rankFor(2)]).toEqual([2, 2, 0]);
    expect(one.takenBack).toBe(1);
    one.add(0, ...packet(5));
    expect(one.liars.size).toBe(0);
    one.add(0, ...packet(6));
    expect(one.bytes).toEqual(truth);
    expect([...one.liars]).toEqual([1]);
  });

  test("a liar among four is found by what the others sent together, although none of them sent all", () => {
    const made = generation();
    for (const [proxyIndex, seed] of [1, 2, 3, 4].entries()) made.add(proxyIndex, ...packet(seed, proxyIndex === 2));
    expect([made.disputed, made.bytes]).toEqual([true, undefined]);
    // Three of four packets without any one proxy: one more from the others, even if one of them brings none.
    expect([0, 1, 2, 3, 4].map((proxyIndex) => made.neededFrom(proxyIndex))).toEqual([1, 1, 1, 1, 1]);
    made.add(0, ...packet(5));
    expect(made.bytes).toEqual(truth);
    expect([...made.liars]).toEqual([2]);
    expect(made.falsePackets.map(({ proxyIndex }) => proxyIndex)).toEqual([2]);
    made.free();
  });

  test("two liars among four leave the honest ones to give true bytes alone", () => {
    const made = generation();
    for (const [proxyIndex, seed] of [1, 2, 3, 4].entries()) made.add(proxyIndex, ...packet(seed, proxyIndex > 1));
    made.add(0, ...packet(5));
    made.add(1, ...packet(6));
    expect([made.bytes, made.neededFrom(0)]).toEqual([undefined, SYMBOLS - 2]);
    made.add(0, ...packet(7));
    made.add(0, ...packet(8));
    expect(made.bytes).toEqual(truth);
    expect([...made.liars].sort()).toEqual([2, 3]);
    made.free();
  });

  test("a part that is true is handed on before the generation is solved, and only once", () => {
    const one = generation(PARTS);
    one.add(0, ...symbol(0));
    expect(one.takeReadable(1)).toBeUndefined();
    one.add(1, ...symbol(1));
    expect(one.takeReadable(3)).toBeUndefined();
    expect(one.takeReadable(1)).toEqual(truth.subarray(0, 2 * SYMBOL_BYTES));
    expect(one.takeReadable(1)).toBeUndefined();
    one.add(0, ...packet(1));
    one.add(0, ...packet(2));
    expect([one.bytes, one.checkedBytes]).toEqual([truth.subarray(2 * SYMBOL_BYTES), truth]);
  });

  test("no part is handed on while its digest is unknown, or if digests are of whole generations", () => {
    const all = [symbol(0), symbol(1), symbol(2)] as const;
    let isKnown = false;
    const late = generation({ ...PARTS, isKnown: () => isKnown });
    const whole = generation();
    const odd = generation({ partBytes: 1.5 * SYMBOL_BYTES });
    for (const each of all) for (const made of [late, whole, odd]) made.add(0, ...each);
    expect([late, whole, odd].map((made) => made.takeReadable(1))).toEqual([undefined, undefined, undefined]);
    isKnown = true;
    expect(late.takeReadable(1)).toEqual(truth.subarray(0, 2 * SYMBOL_BYTES));
  });

  test("a false part is not handed on, and what was handed on before does not come again", () => {
    const made = generation(PARTS);
    made.add(0, ...symbol(0));
    made.add(1, ...symbol(1));
    expect(made.takeReadable(1)).toEqual(truth.subarray(0, 2 * SYMBOL_BYTES));
    made.add(2, ...symbol(2, 1));
    made.add(0, ...symbol(3));
    expect([made.disputed, made.takeReadable(1)]).toEqual([true, undefined]);
    for (let seed = 1; !made.bytes; seed++) made.add(0, ...packet(seed));
    expect([made.bytes, [...made.liars]]).toEqual([truth.subarray(2 * SYMBOL_BYTES), [2]]);

    const early = generation(PARTS);
    early.add(2, ...symbol(0, 1));
    early.add(0, ...symbol(1));
    expect(early.takeReadable(1)).toBeUndefined();
    early.add(0, ...symbol(2));
    expect(early.exclude(2)).toBe(1);
    early.add(1, ...symbol(0));
    expect(early.takeReadable(1)).toEqual(truth.subarray(0, 2 * SYMBOL_BYTES));
  });

  test("packets that are solved anew are checked from the first byte on, also where bytes were handed on", () => {
    const made = generation(PARTS);
    made.add(2, ...symbol(0));
    made.add(0, ...symbol(1));
    expect(made.takeReadable(1)).toEqual(truth.subarray(0, 2 * SYMBOL_BYTES));
    made.exclude(2);
    made.add(1, ...symbol(0, 1));
    made.add(0, ...symbol(2));
    made.add(0, ...symbol(3));
    expect([made.disputed, made.bytes, made.checkedBytes]).toEqual([true, undefined, undefined]);
    made.add(0, ...symbol(0));
    expect([made.bytes, made.checkedBytes]).toEqual([truth.subarray(2 * SYMBOL_BYTES), truth]);
    expect([...made.liars]).toEqual([1]);
  });

  test("a proxy whose own packets are false where others' bytes were handed on convicts no other proxy", () => {
    const made = generation(PARTS);
    made.add(0, ...symbol(0));
    made.add(0, ...symbol(1));
    expect(made.takeReadable(1)).toEqual(truth.subarray(0, 2 * SYMBOL_BYTES));
    made.add(1, ...packet(1, true));
    made.add(0, ...symbol(2));
    expect(made.disputed).toBe(true);
    made.add(1, ...symbol(0, 1));
    made.add(1, ...symbol(1));
    made.add(1, ...symbol(2));
    made.add(1, ...symbol(3));
    expect([made.bytes, [...made.liars]]).toEqual([undefined, [1]]);
    made.add(0, ...symbol(3));
    expect([made.bytes, made.checkedBytes]).toEqual([truth.subarray(2 * SYMBOL_BYTES), truth]);
    expect(made.liars.has(0)).toBe(false);
  });

  test("a generation forgets an excluded proxy's packets, and the others' together settle it", () => {
    const one = generation();
    one.add(0, ...packet(1));
    one.add(2, ...packet(2));
    one.add(1, ...packet(3, true));
    one.add(2, ...packet(4));
    expect(one.disputed).toBe(true);
    expect(one.exclude(1)).toBe(1);
    expect(one.disputed).toBe(false);
    expect(one.rank).toBe(3);
    one.add(0, ...packet(5));
    expect(one.bytes).toEqual(truth);
  });

  test("a generation does not blame a proxy that only sent too little", () => {
    const one = generation();
    one.add(0, ...packet(1));
    for (let seed = 2; seed <= SYMBOLS; seed++) one.add(1, ...packet(seed, true));
    for (let seed = 10; !one.bytes; seed++) one.add(2, ...packet(seed));
    expect([...one.liars]).toEqual([1]);
  });
});
