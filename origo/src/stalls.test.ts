/** Stalls: what counts as one, and from when on. */
import { watchStalls } from "./stalls";

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test("stalls: a process that runs has none; one that stood still knows how long, even before its timer is called", () => {
  let now = 1000;
  const stalls = watchStalls(() => now);
  const run = (ms: number): void => {
    now += ms;
    jest.advanceTimersByTime(100);
  };
  for (let tick = 0; tick < 20; tick++) run(tick % 2 === 0 ? 100 : 140);
  expect(stalls.stalledMs()).toBe(0);
  now += 3000;
  expect(stalls.stalledMs()).toBe(2850);
  run(0);
  expect(stalls.stalledMs()).toBe(2850);
  run(650);
  expect(stalls.stalledMs()).toBe(3350);
  stalls.close();
});
