import { EventLog } from "./event-log";
import { EventQueue } from "./events";
import { Link, meanLoss, PacketPool, type LinkOptions } from "./link";
import { Random } from "./random";

/** Sends `count` packets of `bytes` at once and returns the number and time of each arrival. */
function arrivals(options: LinkOptions, count: number, bytes: number, seed = 1): { number: number; atMs: number }[] {
  const events = new EventQueue();
  const pool = new PacketPool();
  const seen: { number: number; atMs: number }[] = [];
  const deliver = (slot: number) => {
    seen.push({ number: pool.tag[slot]!, atMs: events.nowMs });
    pool.giveBack(slot);
  };
  const link = new Link(options, { events, pool, log: new EventLog(), random: new Random(seed), name: 0, deliver });
  for (let i = 0; i < count; i++) link.send(pool.take(undefined, bytes, i));
  while (events.step(Infinity));
  expect(pool.inUse).toBe(0);
  return seen;
}

test("link: a packet takes its time in the serializer, then the delay (1,120 bytes at 896,000 bytes/s, 20 ms)", () => {
  const seen = arrivals({ bytesPerSec: 896_000, delayMs: 20 }, 1000, 1120);
  expect(seen[0]!.atMs).toBeCloseTo(21.25, 9);
  expect(seen[999]!.atMs).toBeCloseTo(20 + 1250, 6);
});

test("link: a change of rate holds from the next packet on, and no packet moves at rate 0", () => {
  const rateChanges = [
    { atMs: 5, bytesPerSec: 0 },
    { atMs: 100, bytesPerSec: 100_000 },
  ];
  const seen = arrivals({ bytesPerSec: 1_000_000, delayMs: 0, rateChanges }, 10, 1000);
  expect(seen.map(({ atMs }) => Math.round(atMs))).toEqual([1, 2, 3, 4, 5, 110, 120, 130, 140, 150]);
});

test("link: a queue of 5,000 bytes takes five packets of 1,000 bytes, not six", () => {
  const seen = arrivals({ bytesPerSec: 1_000_000, delayMs: 0, queueBytes: 5_000 }, 6, 1000);
  expect(seen.map(({ number }) => number)).toEqual([0, 1, 2, 3, 4]);
});

test.each([0.02, 0.2])(
  "link: random loss of %d is exact within four standard deviations (50,000 packets, seed 7)",
  (loss) => {
    const lost = 50_000 - arrivals({ bytesPerSec: Infinity, delayMs: 0, loss }, 50_000, 100, 7).length;
    expect(Math.abs(lost / 50_000 - loss)).toBeLessThan(4 * Math.sqrt((loss * (1 - loss)) / 50_000));
  },
);

test("link: burst loss has the right mean and the right mean length of runs (100,000 packets, seed 8)", () => {
  const burst = { enter: 0.01, leave: 0.2, loss: 1 };
  const seen = arrivals({ bytesPerSec: Infinity, delayMs: 0, burst }, 100_000, 100, 8);
  const lost = 100_000 - seen.length;
  expect(lost / 100_000).toBeGreaterThan(0.9 * meanLoss({ burst }));
  expect(lost / 100_000).toBeLessThan(1.1 * meanLoss({ burst }));
  const runs = seen.filter(({ number }, i) => i > 0 && number > seen[i - 1]!.number + 1).length;
  expect(lost / runs).toBeGreaterThan(4.5);
  expect(lost / runs).toBeLessThan(5.5);
});

test("link: jitter is uniform in [0, 20) ms, and repeats have the right share (20,000 packets, seed 9)", () => {
  const seen = arrivals({ bytesPerSec: Infinity, delayMs: 10, jitterMs: 20, repeat: 0.1 }, 20_000, 100, 9);
  const times = seen.map(({ atMs }) => atMs);
  expect(times.reduce((least, ms) => Math.min(least, ms))).toBeGreaterThanOrEqual(10);
  expect(times.reduce((most, ms) => Math.max(most, ms))).toBeLessThan(30);
  expect(times.reduce((sum, ms) => sum + ms, 0) / times.length).toBeCloseTo(20, 0);
  expect(seen.length / 20_000).toBeGreaterThan(1.09);
  expect(seen.length / 20_000).toBeLessThan(1.11);
});

test("link: the right share of packets comes late and is overtaken (10,000 packets, seed 10)", () => {
  const seen = arrivals({ bytesPerSec: 1_000_000, delayMs: 5, reorder: { share: 0.05, extraMs: 7 } }, 10_000, 1000, 10);
  const overtaken = seen.filter(({ number }, i) => i > 0 && number < seen[i - 1]!.number).length;
  expect(overtaken / 10_000).toBeGreaterThan(0.03);
  expect(overtaken / 10_000).toBeLessThan(0.06);
});
