/** Shares of mode `coded`: docs/spec/protocol.md §8.2 and §8.3. */
import { geometryOf, type Geometry } from "../geometry";
import { firstPackets, GrantedSchedule, sharesOf, symbolsOf } from "./grants";
import { LIMITS } from "../limits";

const geometry = (symbols: number, generationSize: number) =>
  geometryOf(symbols * 100, 100, generationSize) as Geometry;
const equalShare = (index: number, count: number) => sharesOf(Array<number>(count).fill(1))[index]!;
const countOf = (order: readonly number[], index: number) => order.filter((other) => other === index).length;

test.each([1, 2, 3, 5, 6, 7, 16])(
  "grants: the shares of %i proxies have each symbol of a generation once, whatever its size",
  (count) => {
    for (let symbols = 1; symbols <= 128; symbols++) {
      const all = Array.from({ length: count }, (_, index) => [...symbolsOf(equalShare(index, count), symbols)]).flat();
      expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: symbols }, (_, symbol) => symbol));
    }
  },
);

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
  const runs = [
    { generationIndex: 0, count: 1 },
    { generationIndex: 1, count: 5 },
  ];
  schedule.grant({ type: "grant", requestId: 1, grantSequence: 1, fromSequence: 0, base: 0, runs });
  const sent = Array.from({ length: 6 }, () => [schedule.next(1600), schedule.symbolIndex]);
  const own = [...symbolsOf(share, 8)].map((symbol) => [1, symbol]);
  expect(own).toHaveLength(3);
  expect(sent).toEqual([[0, undefined], ...own, [1, undefined], [1, undefined]]);
  expect(schedule.next(1600)).toBeUndefined();
});

test("grants: what is granted first comes next, whatever was sent meanwhile, and nothing that was sent comes again", () => {
  const schedule = new GrantedSchedule(geometry(64, 8), equalShare(0, 1), 100);
  const grant = (grantSequence: number, fromSequence: number, counts: [number, number][]) => {
    const runs = counts.map(([generationIndex, count]) => ({ generationIndex, count }));
    schedule.grant({ type: "grant", requestId: 1, grantSequence, fromSequence, base: 0, runs });
  };
  const take = (count: number) => Array.from({ length: count }, () => schedule.next(6400));
  expect(take(5)).toEqual([0, 0, 0, 0, 0]);
  grant(1, 2, [
    [2, 1],
    [0, 4],
    [3, 1],
  ]);
  expect(take(4)).toEqual([2, 0, 3, undefined]);
  grant(2, 6, [
    [4, 1],
    [5, 1],
  ]);
  expect(take(1)).toEqual([undefined]);
  grant(3, 6, [
    [4, 1],
    [5, 2],
  ]);
  expect(take(2)).toEqual([4, undefined]);
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

test("grants: none that begins beyond what is sent changes anything, and 1,000 of 81,600 packets keep no more than the chunk and a window", () => {
  const schedule = new GrantedSchedule(geometry(64, 8), equalShare(0, 1), 100);
  const runs = Array.from({ length: LIMITS.grantRunsMax }, () => ({ generationIndex: 1, count: 255 }));
  const kept = () => schedule.following(1, 1e6);
  for (let grantSequence = 1; grantSequence <= 1000; grantSequence++) {
    schedule.grant({ type: "grant", requestId: 1, grantSequence, fromSequence: kept(), base: 0, runs });
  }
  expect(kept()).toBe(64 + LIMITS.windowPacketsMax);
  expect([schedule.next(6400), schedule.next(6400)]).toEqual([1, 1]);
  const grant = (grantSequence: number, fromSequence: number) =>
    schedule.grant({
      type: "grant",
      requestId: 1,
      grantSequence,
      fromSequence,
      base: 0,
      runs: [{ generationIndex: 2, count: 3 }],
    });
  grant(1001, 3);
  expect(schedule.following(2, 10)).toBe(0);
  grant(1001, 2);
  expect(schedule.following(2, 10)).toBe(3);
});
