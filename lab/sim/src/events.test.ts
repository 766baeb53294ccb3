import { EventQueue } from "./events";
import { Random } from "./random";

test("event queue: 5,000 events keep the order of their times, and of scheduling within one time (seed 1)", () => {
  const events = new EventQueue();
  const random = new Random(1);
  const seen: { atMs: number; made: number }[] = [];
  const handler = events.register((made) => seen.push({ atMs: events.nowMs, made }));
  for (let i = 0; i < 5000; i++) events.schedule(random.u32() % 300, handler, i);
  while (events.step(Infinity));
  expect(seen).toHaveLength(5000);
  const ordered = [...seen].sort((a, b) => a.atMs - b.atMs || a.made - b.made);
  expect(seen).toEqual(ordered);
});

test("event queue: stops at the limit (just inside and just outside)", () => {
  const events = new EventQueue();
  const handler = events.register(() => undefined);
  events.schedule(10, handler, 0);
  expect(events.step(9.999)).toBe(false);
  expect(events.step(10)).toBe(true);
  expect(events.step(Infinity)).toBe(false);
});

test("event queue: an event scheduled in the past happens at once", () => {
  const events = new EventQueue();
  const times: number[] = [];
  const late = events.register(() => times.push(events.nowMs));
  const first = events.register(() => events.schedule(3, late, 0));
  events.schedule(8, first, 0);
  while (events.step(Infinity));
  expect(times).toEqual([8]);
});
