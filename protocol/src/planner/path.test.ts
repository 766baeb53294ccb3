/** Tests the measurements of one proxy: docs/spec/protocol.md §8.6. */
import { Path } from "./path";
import type { DataFrame } from "../types";

const frame = (sequence: number, grant = 0): DataFrame => ({
  type: "data",
  requestId: 1,
  sequence,
  generationIndex: 0,
  coding: { kind: "systematic", symbolIndex: 0, grant },
  payload: new Uint8Array(0),
});

/** `count` packets, one each `gapMs`, the first at `fromMs`. */
function arrive(path: Path, fromSequence: number, count: number, gapMs: number, fromMs: number): void {
  for (let i = 0; i < count; i++) path.handleData(frame(fromSequence + i), true, fromMs + i * gapMs);
}

const fresh = () => {
  const path = new Path(Array<number>(1000).fill(0), 0);
  path.handleHeard(50);
  return path;
};

test("path: the rate is what arrives, and a lost packet does not lower it", () => {
  const path = fresh();
  for (let sequence = 0; sequence < 200; sequence++)
    if (sequence % 10) path.handleData(frame(sequence), true, 51.25 + 1.25 * sequence);
  expect(path.perMs(0, 300)).toBeCloseTo(0.8, 2);
  path.loss.settle(400);
  expect(path.loss.share).toBeCloseTo(0.1, 1);
});

test("path: packets that bring nothing lower its usefulness, and each sequence counts once", () => {
  const path = fresh();
  arrive(path, 0, 100, 1.25, 51.25);
  for (const sequence of [99, 99, 99]) path.handleData(frame(sequence), false, 180);
  expect([path.loss.usefulShare, path.loss.isUseless]).toEqual([1, false]);
  for (let sequence = 100; sequence < 500; sequence++) path.handleData(frame(sequence), false, 181 + sequence);
  path.loss.settle(600);
  expect(path.loss.usefulShare).toBeGreaterThan(0);
  expect(path.loss.isUseless).toBe(true);
});

test("path: a fall to a tenth is believed within two gaps, and a delay of 5 ms is not a fall", () => {
  const path = fresh();
  arrive(path, 0, 100, 1.25, 51.25);
  const lastMs = 51.25 + 99 * 1.25;
  expect(path.perMs(0, lastMs + 5)).toBeGreaterThan(0.7);
  arrive(path, 100, 2, 12.5, lastMs + 12.5);
  expect(path.perMs(0, lastMs + 26)).toBeLessThan(0.12);
});

test("path: a silence behind a queue that all proxies share is not a fall", () => {
  const path = fresh();
  arrive(path, 0, 100, 1.25, 51.25);
  expect(path.perMs(40, 51.25 + 99 * 1.25 + 12)).toBeGreaterThan(0.5);
});

test("path: a grant from before the first data leaves no times behind when the proxy began with more", () => {
  const begin = Array.from({ length: 50 }, (_, sequence) => Math.floor(sequence / 10));
  const path = new Path(begin, 0);
  path.handleHeard(50);
  path.order.length = 20;
  for (let count = 0; count < 5; count++) path.orderMore(9, 200);
  path.nextGrant(true, 65);
  for (let sequence = 0; sequence < 24; sequence++)
    path.handleData({ ...frame(sequence), generationIndex: begin[sequence]! }, true, 70 + sequence);
  path.handleData({ ...frame(24), generationIndex: 3 }, true, 95);
  expect(path.soonestMs).not.toContain(NaN);
  expect(path.sentBy(path.perMs(0, 100), 103)).toBeGreaterThan(25);
});

test("path: packets that were never ordered are beyond its quota", () => {
  const path = new Path([0, 0, 1], 0);
  expect(path.quota).toBe(3);
  path.order.push(1, 1);
  path.nextGrant(false, 10);
  path.order.length = 2;
  path.nextGrant(false, 20);
  expect(path.quota).toBe(5);
});

test("path: a packet that was ordered too late comes after the one that took its place", () => {
  const path = new Path([0, 0, 0, 0], 0);
  path.handleData(frame(0), true, 60);
  path.order.length = 2;
  for (const index of [2, 0, 1]) path.orderMore(index, 120);
  path.nextGrant(false, 65);
  path.handleData(frame(1), true, 66);
  path.handleData(frame(2), true, 67);
  expect(path.order).toEqual([0, 0, 0, 2, 1]);
  expect(path.soonestMs.slice(3)).toEqual([120, 120]);
  path.handleData(frame(3), true, 68);
  expect(path.order).toEqual([0, 0, 0, 0, 2]);
  path.handleData(frame(4, 1), true, 125);
  expect(path.order).toEqual([0, 0, 0, 0, 0]);
});

test("path: the first data shows which of two requests reached the proxy", () => {
  const path = new Path([0, 0, 1, 1], 0);
  path.handleAsked([1, 1, 2], 10);
  path.handleData({ ...frame(0), generationIndex: 1 }, true, 60);
  expect(path.order).toEqual([1, 1, 2]);
  const first = new Path([0, 0, 1, 1], 0);
  first.handleAsked([1, 1, 2], 10);
  first.handleData(frame(1), true, 60);
  expect(first.order).toEqual([0, 0, 1, 1]);
});

test("path: an echo tells the round trip and how far the proxy gets before a grant reaches it", () => {
  const path = fresh();
  arrive(path, 0, 40, 1.25, 51.25);
  path.nextGrant(true, 60);
  path.handleData(frame(40, 1), true, 110);
  expect(path.roundTrip.latestMs).toBe(50);
  expect(path.sentBy(0.8, 110)).toBe(41 + 80);
});

test("path: an old echo and an echo of no grant give no round trip, even after many grants", () => {
  const path = fresh();
  arrive(path, 0, 20, 1.25, 51.25);
  for (let i = 0; i < 400; i++) path.nextGrant(true, 100 + 5 * i);
  for (const [at, echo] of [0, 200, 255].entries()) path.handleData(frame(20 + at, echo), true, 2100);
  expect(path.roundTrip.latestMs).toBe(100);
  path.handleData(frame(23, 1), true, 2100);
  expect([path.roundTrip.latestMs, path.roundTrip.leastMs]).toEqual([2000, 2000]);
  path.handleData(frame(24, 128), true, 2200);
  expect(path.roundTrip.latestMs).toBe(2000);
  const known = path.nextGrant(true, 2300);
  path.handleData(frame(25, known % 256), true, 2350);
  expect([path.roundTrip.latestMs, path.roundTrip.leastMs]).toEqual([50, 50]);
});

test("path: an overtaken packet does not confirm a newer grant that has the same low byte", () => {
  const path = fresh();
  for (const sequence of [0, 1, 3]) path.handleData(frame(sequence, 0), true, 60);
  for (let i = 1; i <= 256; i++) {
    path.nextGrant(true, 60 + i);
    if (i === 128) path.handleData(frame(4, 128), true, 238);
  }
  expect(path.roundTrip.latestMs).toBe(50);
  path.handleData(frame(2, 0), true, 316);
  expect([path.roundTrip.latestMs, path.roundTrip.leastMs]).toEqual([50, 50]);
  path.handleData(frame(5, 0), true, 376);
  expect(path.roundTrip.latestMs).toBe(60);
});

test("path: an assumed round trip is not the least one seen", () => {
  const path = fresh();
  path.nextGrant(true, 60);
  path.handleData(frame(0, 1), true, 410);
  expect([path.roundTrip.latestMs, path.roundTrip.leastMs]).toEqual([350, 350]);
});

test("path: grant sequences only grow, and 256 grants without an echo repeat no low byte that is out", () => {
  const path = fresh();
  const sequences = Array.from({ length: 300 }, (_, i) => path.nextGrant(true, i));
  expect(sequences.every((sequence, i) => i === 0 || sequence > sequences[i - 1]!)).toBe(true);
  expect(new Set(sequences.map((sequence) => sequence % 256)).size).toBe(128);
});

test("path: a new sender's grants count from 1 again, and they judge its packets (swarm seeds 96, 237 and 267)", () => {
  const path = fresh();
  arrive(path, 0, 20, 1.25, 51.25);
  for (let i = 0; i < 3; i++) path.nextGrant(true, 60 + i);
  path.handleData(frame(20, 3), true, 110);
  path.restart(200);
  expect([path.next, path.quota, path.order.length]).toEqual([0, 0, 0]);
  expect(path.nextGrant(true, 210)).toBe(1);
  path.handleData(frame(0, 1), true, 250);
  expect(path.roundTrip.latestMs).toBe(40);
});

test("path: a proxy is quiet when packets are due and none comes, and not when none is due", () => {
  const path = fresh();
  arrive(path, 0, 20, 1.25, 51.25);
  expect(path.isQuiet(0.8, 80)).toBe(false);
  expect(path.isQuiet(0.8, 100)).toBe(true);
  path.order.length = 20;
  expect(path.isQuiet(0.8, 100)).toBe(false);
});

test("path: it gives a memory once rate and round trip are measured, and a remembered loss fades", () => {
  const path = new Path(Array<number>(1000).fill(0), 0, 0, { rttMs: 40, perMs: 8, loss: 0.2 });
  expect(path.toRemember(1000)).toBeUndefined();
  path.roundTrip.handleSample(50);
  path.handleHeard(50);
  arrive(path, 0, 200, 1.25, 51.25);
  const { rttMs, bytesPerSec, loss } = path.toRemember(1000)!;
  expect([rttMs, Math.round(bytesPerSec! / 1000)]).toEqual([50, 800]);
  expect(loss).toBeCloseTo((0.2 * 16) / 216, 5);
});

test("path: a remembered proxy is expected a round trip after the request, until it answers or is overdue", () => {
  const path = new Path([0, 0, 1], 0, 5, { rttMs: 40, perMs: 0.8, loss: 0 });
  expect([path.expectedMs(10), path.expectedMs(60), path.expectedMs(70)]).toEqual([48, 60, undefined]);
  expect(path.perMs(0, 10)).toBe(0.8);
  path.handleHeard(50);
  expect(path.expectedMs(55)).toBeUndefined();
  expect(new Path([0], 0, 5).expectedMs(10)).toBeUndefined();
});

test("path: a proxy is expected only after it was asked", () => {
  const path = new Path([0, 0, 1], 0, undefined, { rttMs: 40, perMs: 0.8, loss: 0 });
  expect(path.expectedMs(10)).toBeUndefined();
  path.handleAsked([1, 1], 20);
  expect(path.expectedMs(30)).toBe(63);
});

test("path: a grant takes the latest round trip, or the least one when nothing is on its way", () => {
  const path = fresh();
  path.roundTrip.handleSample(50);
  path.roundTrip.handleSample(120);
  expect(path.delayMs).toBe(120);
  path.order.length = 0;
  expect(path.delayMs).toBe(50);
});

test("path: the age of a rate counts from the first packet and again from each change", () => {
  const path = fresh();
  arrive(path, 0, 40, 1.25, 51.25);
  const lastMs = 51.25 + 39 * 1.25;
  expect(path.rate.seenMs(lastMs)).toBeCloseTo(lastMs - 50, 6);
  arrive(path, 40, 2, 12.5, lastMs + 12.5);
  expect(path.rate.seenMs(lastMs + 25)).toBeLessThan(30);
});

test("path: a second pause like one that passed is neither a fall nor quiet, but after a fall it is", () => {
  const judged = (paused: boolean): [boolean, number] => {
    const path = fresh();
    arrive(path, 0, 100, 1.25, 51.25);
    const lastMs = 175;
    arrive(path, 100, 40, 1.25, lastMs + (paused ? 40 : 1.25));
    const silentFromMs = lastMs + (paused ? 40 : 1.25) + 39 * 1.25;
    return [path.isQuiet(0.8, silentFromMs + 35), path.perMs(0, silentFromMs + 35)];
  };
  expect(judged(true)).toEqual([false, expect.closeTo(0.8, 0)]);
  const [isQuiet, perMs] = judged(false);
  expect([isQuiet, perMs < 0.1]).toEqual([true, true]);
});

test("path: packets that come later and later are a fall and not a pause", () => {
  const path = fresh();
  arrive(path, 0, 100, 1.25, 51.25);
  arrive(path, 100, 20, 12.5, 187.5);
  expect(path.rate.pauseMs).toBe(0);
});

test("path: twice as many packets may be under way while each round trip brings far more packets", () => {
  const path = fresh();
  path.roundTrip.handleSample(100);
  expect(path.openingPackets(50)).toBe(0);
  let [sequence, opening] = [0, 0];
  for (const [round, packets] of [10, 20, 40, 44, 44].entries()) {
    for (let part = 0; part < 10; part++) {
      const nowMs = 60 + round * 100 + part * 10;
      for (const upTo = sequence + packets / 10; sequence < upTo; sequence++)
        path.handleData(frame(sequence), true, nowMs);
      opening = path.openingPackets(nowMs);
    }
    expect(opening).toBe([20, 40, 80, 0, 0][round]);
  }
});

/**
 * Each grant is of 10 packets, leaves when the last one's have come, and finds the proxy without work, as the round
 * trip is `rttMs`.
 */
function starve(path: Path, grants: number, fromMs: number, rttMs: number): number {
  let nowMs = fromMs;
  for (let i = 0; i < grants; i++) {
    for (let packet = 0; packet < 10; packet++) path.orderMore(0);
    const grant = path.nextGrant(true, nowMs);
    nowMs += rttMs;
    for (let packet = 0; packet < 10; packet++) path.handleData(frame(path.next, grant), true, nowMs + packet);
    nowMs += 9;
  }
  return nowMs;
}

test("path: the least round trip is measured again when grants find the proxy idle and less comes", () => {
  const path = new Path([], 0);
  path.handleHeard(0);
  const nowMs = starve(path, 4, 0, 30);
  expect(path.roundTrip.leastMs).toBe(30);
  const laterMs = starve(path, 4, nowMs, 130);
  expect(path.roundTrip.leastMs).toBe(30);
  path.handleLess();
  expect(path.roundTrip.leastMs).toBe(130);
  starve(path, 1, laterMs, 40);
  expect(path.roundTrip.leastMs).toBe(40);
});

test("path: the way is not longer when grants reach far enough or find the proxy busy", () => {
  const near = new Path([], 0);
  near.handleHeard(0);
  starve(near, 8, starve(near, 4, 0, 30), 70);
  near.handleLess();
  expect(near.roundTrip.leastMs).toBe(30);
  const busy = new Path([], 0);
  busy.handleHeard(0);
  let nowMs = starve(busy, 4, 0, 30);
  for (let i = 0; i < 10; i++) {
    for (let packet = 0; packet < 10; packet++) busy.orderMore(0);
    const grant = busy.nextGrant(true, nowMs);
    for (let packet = 0; packet < 10; packet++) busy.orderMore(0);
    busy.nextGrant(true, nowMs + 1);
    nowMs += 130;
    for (let packet = 0; packet < 10; packet++)
      busy.handleData(frame(busy.next, packet < 9 ? grant : grant + 1), true, nowMs + packet);
  }
  busy.handleLess();
  expect(busy.roundTrip.leastMs).toBe(30);
});

test("path: a long pause leaves the rate unchanged once packets come as before", () => {
  const path = fresh();
  arrive(path, 0, 100, 1.25, 51.25);
  const lastMs = 51.25 + 99 * 1.25;
  expect(path.perMs(0, lastMs + 40)).toBeLessThan(0.1);
  arrive(path, 100, 32, 0.01, lastMs + 40);
  expect(path.rate.pauseMs).toBeGreaterThan(30);
  arrive(path, 132, 8, 1.25, lastMs + 41.25);
  expect(path.perMs(0, lastMs + 50)).toBeGreaterThan(0.6);
});
