import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { Assembly, type ByteCheck } from "./assembly";
import { geometryOf, type Geometry } from "../geometry";

const SYMBOL_BYTES = 1000;
const SYMBOLS = 100;
/** Two generations, the second one of half the symbols and a padded last one. */
const BYTES = 1.5 * SYMBOLS * SYMBOL_BYTES - 10;
const FILE = Uint8Array.from({ length: BYTES }, (_, at) => at % 251);
const codec = loadWasmCodec();

function make(check?: ByteCheck) {
  const assembly = new Assembly(geometryOf(BYTES, SYMBOL_BYTES, SYMBOLS) as Geometry, "coded", codec, check);
  const add = (generation: number, symbolIndex: number): boolean => {
    const at = (generation * SYMBOLS + symbolIndex) * SYMBOL_BYTES;
    const payload = new Uint8Array(SYMBOL_BYTES);
    payload.set(FILE.subarray(at, at + SYMBOL_BYTES));
    return assembly.add(0, generation, { kind: "systematic", symbolIndex, grant: 0 }, payload);
  };
  const addAll = (generation: number, from: number, to: number): void => {
    for (let index = from; index < to; index++) add(generation, index);
  };
  const taken: number[] = [];
  const take = (): Uint8Array | undefined => {
    const next = assembly.takeBytes();
    if (next === undefined) return undefined;
    expect(next.offset).toBe(taken.reduce((sum, bytes) => sum + bytes, 0));
    expect(Buffer.compare(next.bytes, FILE.subarray(next.offset, next.offset + next.bytes.length))).toBe(0);
    taken.push(next.bytes.length);
    return next.bytes;
  };
  return { assembly, add, addAll, take, taken };
}

describe("assembly: bytes in order", () => {
  test("readable symbols are delivered before their generation is complete: the first at once, then 32 KiB", () => {
    const { addAll, add, take, taken } = make();
    add(0, 1);
    expect(take()).toBeUndefined();
    add(0, 0);
    expect(take()).toHaveLength(2000);
    addAll(0, 2, 34);
    expect(take()).toBeUndefined();
    add(0, 34);
    expect(take()).toHaveLength(33_000);
    addAll(0, 36, SYMBOLS);
    addAll(1, 0, SYMBOLS / 2);
    expect(take()).toBeUndefined();
    add(0, 35);
    while (take() !== undefined);
    expect(taken).toEqual([2000, 33_000, 65_000, 49_990]);
  });

  test("a generation waits for the ones before it", () => {
    const { addAll, take, taken } = make();
    addAll(1, 0, 40);
    expect(take()).toBeUndefined();
    addAll(0, 0, SYMBOLS);
    while (take() !== undefined);
    expect(taken).toEqual([100_000, 40_000]);
    addAll(1, 40, SYMBOLS / 2);
    expect(take()).toHaveLength(9990);
    expect(take()).toBeUndefined();
  });

  test("no byte of a generation is delivered before its digest is right", () => {
    const { addAll, take, taken } = make({ isKnown: () => true, isTrue: () => true });
    addAll(0, 0, SYMBOLS - 1);
    expect(take()).toBeUndefined();
    addAll(0, SYMBOLS - 1, SYMBOLS);
    while (take() !== undefined);
    expect(taken).toEqual([100_000]);
  });

  test("a generation that is solved before its digest is known waits for the digest", () => {
    let isKnown = false;
    const { assembly, addAll, take, taken } = make({ isKnown: () => isKnown, isTrue: () => true });
    addAll(0, 0, SYMBOLS);
    expect([assembly.isSolved(0), assembly.isSolved(1), assembly.base]).toEqual([true, false, 0]);
    expect(take()).toBeUndefined();
    isKnown = true;
    assembly.recheck(0);
    expect(assembly.base).toBe(1);
    while (take() !== undefined);
    expect(taken).toEqual([100_000]);
  });
});
