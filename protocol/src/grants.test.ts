/** Shares of mode `coded`: docs/protocol.md §8.2 and §8.3. */
import { geometryOf, type Geometry } from "./geometry";
import { equalShare, firstPackets, GrantedSchedule, symbolsOf } from "./grants";

const geometry = (symbols: number, generationSize: number) => geometryOf(symbols * 100, 100, generationSize) as Geometry;
const countOf = (order: readonly number[], index: number) => order.filter((other) => other === index).length;

test.each([1, 2, 3, 5, 6, 7, 16])("grants: the shares of %i proxies have each symbol of a generation once, whatever its size", (count) => {
  for (let symbols = 1; symbols <= 128; symbols++) {
    const all = Array.from({ length: count }, (_, index) => [...symbolsOf(equalShare(index, count), symbols)]).flat();
    expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: symbols }, (_, symbol) => symbol));
  }
});

test("grants: of a generation that is half there every proxy has about half of its symbols", () => {
  for (let index = 0; index < 6; index++) {
    const early = symbolsOf(equalShare(index, 6), 128).filter((symbol) => symbol < 64).length;
    expect(Math.abs(early - 128 / 12)).toBeLessThanOrEqual(2);
  }
});

test("grants: a share is sent with one packet more of the first generation, and its root in turn at the end", () => {
  const order = firstPackets(geometry(6 * 96, 96), equalShare(0, 3), 4096);
  expect(order.slice(0, 33)).toEqual(Array(33).fill(0));
  expect(order.slice(33, 65)).toEqual(Array(32).fill(1));
  expect(order.slice(193)).toEqual([5, 4, 3, 2, 5, 4, 3, 2, 5, 4, 3, 2, 5, 4]);
});

test("grants: a share that begins later leaves out what is before, and no share goes over its limit", () => {
  const later = firstPackets(geometry(6 * 96, 96), { ...equalShare(0, 3), firstGeneration: 4 }, 4096);
  expect([0, 3, 4, 5].map((index) => countOf(later, index))).toEqual([0, 2, 34, 34]);
  expect(firstPackets(geometry(6 * 96, 96), equalShare(0, 1), 50)).toEqual(Array(50).fill(0));
  expect(firstPackets(geometry(1, 96), equalShare(0, 6), 50)).toEqual([0]);
});

test("grants: a proxy sends its symbols as they are, lowest first, and then codes; earlier generations are coded", () => {
  const share = { ...equalShare(0, 2), firstGeneration: 1 };
  const schedule = new GrantedSchedule(geometry(16, 8), share, 100);
  const runs = [{ generationIndex: 0, count: 1 }, { generationIndex: 1, count: 5 }];
  schedule.grant({ type: "grant", requestId: 1, grantSequence: 1, fromSequence: 0, base: 0, runs });
  const sent = Array.from({ length: 6 }, () => [schedule.next(1600), schedule.symbolIndex]);
  const own = [...symbolsOf(share, 8)].map((symbol) => [1, symbol]);
  expect(own).toHaveLength(3);
  expect(sent).toEqual([[0, undefined], ...own, [1, undefined], [1, undefined]]);
  expect(schedule.next(1600)).toBeUndefined();
});

test("grants: of a body that is arriving a symbol goes out as soon as it is there, a coded packet with its generation", () => {
  const schedule = new GrantedSchedule(geometry(16, 8), equalShare(0, 2), 100);
  const [first, second] = symbolsOf(equalShare(0, 2), 8);
  expect(schedule.next((first! + 1) * 100 - 1)).toBeUndefined();
  expect(schedule.next((first! + 1) * 100)).toBe(0);
  expect(schedule.next((second! + 1) * 100 - 1)).toBeUndefined();
  while (schedule.next(800) === 0 && schedule.symbolIndex !== undefined);
  expect(schedule.symbolIndex).toBeUndefined();
});
