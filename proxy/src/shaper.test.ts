import { Shaper, type Feeder } from "./shaper";

class Source implements Feeder {
  sentBytes = 0;
  #leftBytes: number;

  constructor(
    leftBytes: number,
    readonly clientName = "a",
  ) {
    this.#leftBytes = leftBytes;
  }
  feed(budgetBytes: number): number {
    const bytes = Math.min(budgetBytes, this.#leftBytes);
    this.#leftBytes -= bytes;
    this.sentBytes += bytes;
    return bytes;
  }
}

const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));

test("shaper: two feeders share the rate evenly and do not exceed it (1 MB/s, 400 ms)", async () => {
  const shaper = new Shaper(1_000_000);
  const feeders = [new Source(1e9), new Source(1e9)];
  for (const feeder of feeders) shaper.wake(feeder);
  await pause(400);
  const [first, second] = feeders.map((feeder) => feeder.sentBytes) as [number, number];
  for (const feeder of feeders) shaper.remove(feeder);
  expect(first + second).toBeLessThan(400_000 * 1.5 + 16_384 + 4624);
  expect(first + second).toBeGreaterThan(400_000 * 0.7);
  expect(Math.abs(first - second)).toBeLessThanOrEqual(4624);
  expect(shaper.sentBytes).toBe(first + second);
});

test("shaper: a client with a hundred feeders gets as much as one with one feeder", () => {
  jest.useFakeTimers();
  const shaper = new Shaper(10_000_000, () => Date.now());
  const many = Array.from({ length: 100 }, () => new Source(1e9, "many"));
  const one = new Source(1e9, "one");
  const short = new Source(10_000, "short");
  for (const feeder of [...many, one, short]) shaper.wake(feeder);
  jest.advanceTimersByTime(1000);
  for (const feeder of [...many, one]) shaper.remove(feeder);
  jest.useRealTimers();
  const share = many.reduce((sum, { sentBytes }) => sum + sentBytes, 0) / one.sentBytes;
  expect([share, short.sentBytes]).toEqual([expect.closeTo(1, 1), 10_000]);
  const each = many.map(({ sentBytes }) => sentBytes);
  expect(Math.max(...each) - Math.min(...each)).toBeLessThanOrEqual(4624);
});

test("shaper: at a high rate it sleeps 4 ms at a time and keeps the rate (20 MB/s, 1 s)", () => {
  jest.useFakeTimers();
  const startMs = Date.now();
  const wakings = new Set<number>();
  const shaper = new Shaper(20_000_000, () => Date.now());
  const source = new Source(1e9);
  shaper.wake({
    clientName: "a",
    feed: (budgetBytes) => (wakings.add(Date.now() - startMs), source.feed(budgetBytes)),
  });
  jest.advanceTimersByTime(1000);
  jest.useRealTimers();
  expect(source.sentBytes).toBeGreaterThan(0.99 * 20_000_000);
  expect(source.sentBytes).toBeLessThan(1.02 * 20_000_000);
  expect(wakings.size).toBe(251);
});

test("shaper: a feeder with nothing to send gets no turns until it wakes the shaper", async () => {
  const shaper = new Shaper(0);
  let asked = 0;
  const idle: Feeder = { clientName: "a", feed: () => (asked++, 0) };
  shaper.wake(idle);
  await pause(20);
  expect(asked).toBe(1);
  shaper.wake(idle);
  await pause(20);
  expect(asked).toBe(2);
});

test("shaper: without a limit, the event loop still gets its turns", async () => {
  const shaper = new Shaper(0);
  const endless = new Source(Infinity);
  shaper.wake(endless);
  const startMs = performance.now();
  await pause(10);
  expect(performance.now() - startMs).toBeLessThan(10_000);
  shaper.remove(endless);
  await pause(5);
  const { sentBytes } = endless;
  await pause(20);
  expect(endless.sentBytes).toBe(sentBytes);
});
