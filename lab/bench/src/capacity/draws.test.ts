import { Random } from "@tributary/lab-sim";
import { nextArrivalMs, Zipf } from "./draws";

test("arrivals: 20,000 gaps at 2 in 5 s have a mean of 2.5 s and an exponential spread (seed 1)", () => {
  const random = new Random(1);
  const gaps = Array.from({ length: 20_000 }, () => nextArrivalMs(random, 0.4));
  const mean = gaps.reduce((sum, gap) => sum + gap, 0) / gaps.length;
  expect(mean / 2500).toBeCloseTo(1, 1);
  expect(gaps.filter((gap) => gap > 2500).length / gaps.length).toBeCloseTo(Math.exp(-1), 1);
});

test("channels: with exponent 0.5 the first is drawn twice as often as the fourth, and each is drawn (seed 1)", () => {
  const random = new Random(1);
  const zipf = new Zipf(30, 0.5);
  const counts = new Array<number>(30).fill(0);
  for (let i = 0; i < 60_000; i++) counts[zipf.draw(random)]!++;
  expect(counts[0]! / counts[3]!).toBeCloseTo(2, 0);
  expect(Math.min(...counts)).toBeGreaterThan(0);
  expect(new Zipf(1, 0.5).draw(random)).toBe(0);
});
