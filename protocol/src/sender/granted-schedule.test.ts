/** The order in which a proxy sends in mode `coded`: protocol.md §8.3 and §8.4. */
import { geometryOf, type Geometry } from "../geometry";
import { LIMITS } from "../limits";
import { sharesOf, symbolsOf } from "../packet-order";
import { GrantedSchedule } from "./granted-schedule";

const geometry = (symbols: number, generationSize: number) =>
  geometryOf(symbols * 100, 100, generationSize) as Geometry;
const equalShare = (index: number, count: number) => sharesOf(Array<number>(count).fill(1))[index]!;

test("granted schedule: a proxy sends its own symbols uncoded, lowest first, and codes everything else", () => {
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

test("granted schedule: a new grant's first packet comes next, and no sent packet comes again", () => {
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

test("granted schedule: a symbol goes out once it has arrived, a coded packet once its generation has", () => {
  const schedule = new GrantedSchedule(geometry(16, 8), equalShare(0, 2), 100);
  const [first, second] = symbolsOf(equalShare(0, 2), 8);
  expect(schedule.next((first! + 1) * 100 - 1)).toBeUndefined();
  expect(schedule.next((first! + 1) * 100)).toBe(0);
  expect(schedule.next((second! + 1) * 100 - 1)).toBeUndefined();
  while (schedule.next(800) === 0 && schedule.symbolIndex !== undefined);
  expect(schedule.symbolIndex).toBeUndefined();
});

test("granted schedule: a grant that begins too late changes nothing, and grants are cut to chunk and window", () => {
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
