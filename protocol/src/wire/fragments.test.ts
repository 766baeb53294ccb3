import { Fragmenter, Reassembler } from "./fragments";
import { LIMITS } from "../limits";

const message = (bytes: number): Uint8Array =>
  Uint8Array.from({ length: bytes }, (_, index) => (index * 7 + (index >> 8)) & 0x7f);

describe("fragments", () => {
  test("a message that fits is sent unchanged, and one byte more makes two pieces", () => {
    const fragmenter = new Fragmenter();
    expect(fragmenter.split(message(1200), 1200)).toEqual([message(1200)]);
    expect(fragmenter.split(message(1201), 1200).map(({ length }) => length)).toEqual([1200, 11]);
  });

  test.each([1201, 5000, LIMITS.messageBytesMax])(
    "a message of %i bytes arrives whole when its pieces are reordered and repeated",
    (bytes) => {
      const pieces = new Fragmenter().split(message(bytes), 1160);
      expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThanOrEqual(1160);
      const reassembler = new Reassembler();
      const heard = [...pieces]
        .reverse()
        .flatMap((piece, index) => (index === 0 ? [piece, piece] : [piece]))
        .map((piece) => reassembler.accept(piece));
      expect(heard.at(-1)).toEqual(message(bytes));
      expect(heard.slice(0, -1).every((each) => each === undefined)).toBe(true);
    },
  );

  test("pieces of two messages do not mix, and a lost piece loses only its own message", () => {
    const fragmenter = new Fragmenter();
    const [lost, whole] = [fragmenter.split(message(3000), 1000), fragmenter.split(message(2000), 1000)];
    const reassembler = new Reassembler();
    for (const piece of lost.slice(1)) expect(reassembler.accept(piece)).toBeUndefined();
    expect(whole.map((piece) => reassembler.accept(piece)).at(-1)).toEqual(message(2000));
  });

  test("garbage is dropped: no header, an index or count that is wrong, too many bytes", () => {
    const reassembler = new Reassembler();
    for (const bytes of [
      [0xf0],
      [0xf0, 0, 1, 0, 2],
      [0xf0, 0, 1, 2, 2, 9],
      [0xf0, 0, 1, 0, 1, 9],
      [0xf0, 0, 1, 0, 33, 9],
    ]) {
      expect(reassembler.accept(Uint8Array.from(bytes))).toBeUndefined();
    }
    expect(reassembler.accept(Uint8Array.from([0xf0, 0, 2, 0, 3, 9]))).toBeUndefined();
    expect(reassembler.accept(Uint8Array.from([0xf0, 0, 2, 1, 2, 9]))).toBeUndefined();
    const large = (index: number): Uint8Array =>
      Uint8Array.from([0xf0, 0, 3, index, 2, ...message(LIMITS.messageBytesMax / 2 + 1)]);
    expect([reassembler.accept(large(0)), reassembler.accept(large(1))]).toEqual([undefined, undefined]);
  });

  test("unfinished messages take bounded memory, because the oldest one is dropped", () => {
    const fragmenter = new Fragmenter();
    const all = Array.from({ length: 9 }, () => fragmenter.split(message(1500), 1000));
    const reassembler = new Reassembler();
    for (const [first] of all) reassembler.accept(first!);
    expect(reassembler.accept(all[0]![1]!)).toBeUndefined();
    expect(reassembler.accept(all[8]![1]!)).toEqual(message(1500));
  });

  test("a datagram too small for any piece carries nothing", () => {
    expect(new Fragmenter().split(message(100), 5)).toEqual([]);
    expect(new Fragmenter().split(message(16_384), 300)).toEqual([]);
  });
});
