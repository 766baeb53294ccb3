/** The schedulers against section III of the paper and eq. (1), on chunks of one-byte-wide arithmetic. */
import { geometryOf, type Geometry } from "../geometry";
import { RandomSchedule, RarestGenerationSchedule } from "./schedule";
import { xorshift128 } from "../rng";

const geometry = (symbols: number, generationSize: number) =>
  geometryOf(symbols * 100, 100, generationSize) as Geometry;
const bits = (...indexes: number[]) => {
  const bitmap = new Uint8Array(8);
  for (const index of indexes) bitmap[index >> 3]! |= 1 << (index & 7);
  return { kind: "symbols", count: 64, bitmap } as const;
};
const degrees = (...counts: number[]) => ({ kind: "degreesOfFreedom", counts: Uint8Array.from(counts) }) as const;
const drain = (next: () => number | undefined) => {
  const items: number[] = [];
  for (let item = next(); item !== undefined; item = next()) items.push(item);
  return items;
};

test("uncoded: each symbol of the window goes out once, in random order, and no other symbol does", () => {
  const schedule = new RandomSchedule(geometry(100, 4), 10, xorshift128(1));
  const sent = drain(() => schedule.next(10_000));
  expect([...sent].sort((a, b) => a - b)).toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  expect(sent).not.toEqual([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
});

test("uncoded: the window of the paper's Fig. 3 moves only past acknowledged packets", () => {
  const schedule = new RandomSchedule(geometry(100, 4), 4, xorshift128(1));
  drain(() => schedule.next(10_000));
  schedule.acknowledge(bits(1, 2), 0);
  expect(drain(() => schedule.next(10_000))).toEqual([]);
  schedule.acknowledge(bits(0, 1, 2), 0);
  expect(drain(() => schedule.next(10_000)).sort()).toEqual([4, 5, 6]);
});

test("uncoded: only whole symbols are sent, and the last, short one once the body is complete", () => {
  const schedule = new RandomSchedule(geometryOf(250, 100, 4) as Geometry, 10, xorshift128(1));
  expect(drain(() => schedule.next(99))).toEqual([]);
  expect(drain(() => schedule.next(249)).sort()).toEqual([0, 1]);
  expect(drain(() => schedule.next(250))).toEqual([2]);
});

test("uncoded: a lost symbol can be sent again, and a received one cannot", () => {
  const schedule = new RandomSchedule(geometry(4, 4), 4, xorshift128(1));
  drain(() => schedule.next(400));
  schedule.acknowledge(bits(0), 0);
  schedule.release(0);
  schedule.release(3);
  expect(drain(() => schedule.next(400))).toEqual([3]);
});

test("uncoded: the draw is uniform (chi-squared over the first of 10 symbols, 9 degrees of freedom, 0.1 %)", () => {
  const counts = new Array<number>(10).fill(0);
  for (let seed = 0; seed < 5000; seed++)
    counts[new RandomSchedule(geometry(10, 4), 10, xorshift128(seed)).next(1000)!]!++;
  const chi2 = counts.reduce((sum, count) => sum + (count - 500) ** 2 / 500, 0);
  expect(chi2).toBeLessThan(27.9);
});

test("coded: the generation with the fewest degrees of freedom received and in transit comes first", () => {
  const schedule = new RarestGenerationSchedule(geometry(12, 4), 12);
  schedule.acknowledge(degrees(3, 1, 2), 0);
  expect(drain(() => schedule.next(1200))).toEqual([1, 1, 2, 0, 1, 2]);
});

test("coded: the window holds floor(w / g) generations, at least one", () => {
  expect(new Set(drain(bound(new RarestGenerationSchedule(geometry(40, 4), 11))))).toEqual(new Set([0, 1]));
  expect(new Set(drain(bound(new RarestGenerationSchedule(geometry(40, 4), 3))))).toEqual(new Set([0]));
});

test("coded: a lost packet is replaced, and a received one is not", () => {
  const schedule = new RarestGenerationSchedule(geometry(4, 4), 4);
  drain(() => schedule.next(400));
  schedule.acknowledge(degrees(2), 0);
  for (let i = 0; i < 4; i++) schedule.release(0);
  expect(drain(() => schedule.next(400))).toEqual([0, 0]);
});

test("coded: old and hostile reports change nothing", () => {
  const schedule = new RarestGenerationSchedule(geometry(12, 4), 12);
  schedule.acknowledge(degrees(4, 2), 0);
  schedule.acknowledge(degrees(1, 1, 255, 9, 9), 0);
  schedule.acknowledge(degrees(7), 4_000_000_000);
  expect(drain(() => schedule.next(1200))).toEqual([]);
});

function bound(schedule: RarestGenerationSchedule): () => number | undefined {
  return () => schedule.next(4000);
}
