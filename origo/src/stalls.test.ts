/** Tests what counts as a stall, and from when on. */
import { watchStalls } from "./stalls";

beforeEach(() => jest.useFakeTimers());
afterEach(() => jest.useRealTimers());

test("stalls: a running process has none, and a process that stood still knows for how long", () => {
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
