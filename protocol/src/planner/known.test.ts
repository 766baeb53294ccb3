/** Tests how measurements of a proxy decide its first packets: docs/spec/protocol.md §8.10. */
import { beginningsOf, type KnownPath } from "./known";

const REQUEST = { windowPackets: 256, generationSize: 128 };
const path = (bytesPerSec: number, rttMs = 50): KnownPath => ({ bytesPerSec, rttMs, loss: 0 });
const parts = (known: (KnownPath | undefined)[]) =>
  beginningsOf(known, REQUEST, 1116).map(({ share }) => (share.end - share.start) / 65535);

test("known: without a memory, shares are equal and windows stay as requested", () => {
  const beginnings = beginningsOf([undefined, undefined, undefined], REQUEST, 1116);
  expect(beginnings.map(({ share }) => share.end)).toEqual([21845, 43690, 65535]);
  expect(beginnings.every(({ windowPackets }) => windowPackets === 256)).toBe(true);
});

test("known: when only round trips are known, a far proxy begins later, by an assumed rate", () => {
  const beginnings = beginningsOf([{ rttMs: 20 }, { rttMs: 20 }, { rttMs: 148 }], REQUEST, 1000);
  expect(beginnings.map(({ share }) => share.firstGeneration)).toEqual([0, 0, 2]);
  expect(beginnings.map(({ share }) => share.end)).toEqual([21845, 43690, 65535]);
  expect(beginnings.every(({ windowPackets }) => windowPackets === 256)).toBe(true);
});

test("known: shares follow the rates, and an unknown proxy counts as the mean", () => {
  const [fast, slow, unknown] = parts([path(2_000_000), path(1_000_000), undefined]) as [number, number, number];
  expect(fast / slow).toBeCloseTo(2, 2);
  expect(unknown / slow).toBeCloseTo(1.5, 2);
  expect(fast + slow + unknown).toBeCloseTo(1, 6);
});

test("known: a proxy that was very slow still gets a share large enough to show its present rate", () => {
  const [, slow] = parts([path(1_000_000), path(1)]) as [number, number];
  expect(slow).toBeGreaterThan(0.1);
});

test("known: the first share fills a fast link and stays within the limit of a request", () => {
  const windows = [path(896_000), path(50_000_000, 10), path(50_000_000, 1000)].map(
    (one) => beginningsOf([one], REQUEST, 1116)[0]!.windowPackets,
  );
  expect(windows).toEqual([256, 2375, 4096]);
});

test("known: a far proxy begins with the generation that nearer ones will have reached", () => {
  const first = (known: (KnownPath | undefined)[]) =>
    beginningsOf(known, REQUEST, 1000).map(({ share }) => share.firstGeneration);
  expect(first([path(2_560_000, 20), path(1_280_000, 120)])).toEqual([0, 2]);
  expect(first([path(2_560_000, 50), path(1_280_000, 52), undefined])).toEqual([0, 0, 0]);
});
