/** Shares of mode `coded`: protocol.md §8.2 and §8.3. */
import { geometryOf, type Geometry } from "./geometry";
import { firstPackets, sharesOf, symbolsOf } from "./packet-order";

const geometry = (symbols: number, generationSize: number) =>
  geometryOf(symbols * 100, 100, generationSize) as Geometry;
const equalShare = (index: number, count: number) => sharesOf(Array<number>(count).fill(1))[index]!;
const countOf = (order: readonly number[], index: number) => order.filter((other) => other === index).length;

test.each([1, 2, 3, 5, 6, 7, 16])(
  "packet order: the shares of %i proxies hold each symbol of a generation exactly once, for every size",
  (count) => {
    for (let symbols = 1; symbols <= 128; symbols++) {
      const all = Array.from({ length: count }, (_, index) => [...symbolsOf(equalShare(index, count), symbols)]).flat();
      expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: symbols }, (_, symbol) => symbol));
    }
  },
);

test("packet order: each proxy has about half of its symbols when half of a generation has arrived", () => {
  for (let index = 0; index < 6; index++) {
    const early = symbolsOf(equalShare(index, 6), 128).filter((symbol) => symbol < 64).length;
    expect(Math.abs(early - 128 / 12)).toBeLessThanOrEqual(2);
  }
});

test("packet order: the first generation gets one extra packet, and the last ones get the root of the share", () => {
  const order = firstPackets(geometry(6 * 96, 96), equalShare(0, 3), 4096);
  expect(order.slice(0, 33)).toEqual(Array(33).fill(0));
  expect(order.slice(33, 65)).toEqual(Array(32).fill(1));
  expect(order.slice(193)).toEqual([5, 4, 3, 2, 5, 4, 3, 2, 5, 4, 3, 2, 5, 4]);
});

test("packet order: a share that begins later skips earlier generations, and no share exceeds its limit", () => {
  const later = firstPackets(geometry(6 * 96, 96), { ...equalShare(0, 3), firstGeneration: 4 }, 4096);
  expect([0, 3, 4, 5].map((index) => countOf(later, index))).toEqual([0, 2, 34, 34]);
  expect(firstPackets(geometry(6 * 96, 96), equalShare(0, 1), 50)).toEqual(Array(50).fill(0));
  expect(firstPackets(geometry(1, 96), equalShare(0, 6), 50)).toEqual([0]);
});
