import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import { rankedQuantile } from "../kit/figures";
import { measure, measureSeventh } from "./measure";
import { withPauses } from "@tributary/lab-sim";
import { parseLinks, ROWS, SIX } from "./rows";

const codec = loadCodec(loadWasmCodec);

test("rows: links are read as they are written, and nothing else is", () => {
  expect(parseLinks("6x896", { rttMs: 50 })).toHaveLength(6);
  expect(parseLinks("1x1792+3x896", { rttMs: 50, loss: 0.02 })!.map(({ bytesPerSec }) => bytesPerSec)).toEqual([
    1_792_000, 896_000, 896_000, 896_000,
  ]);
  expect(parseLinks("64x1.5", { rttMs: 50 })![63]).toEqual({ bytesPerSec: 1500, rttMs: 50 });
  for (const text of ["", "6", "0x896", "65x896", "6x0", "6x896+", "-1x5", "6x896 "])
    expect(parseLinks(text, { rttMs: 50 })).toBeUndefined();
});

test("rows: half-way is half of the bound without the change", () => {
  const row = ROWS.find(({ title }) => title.includes("falls"))!;
  const [change] = row.variants[0]!.world.links[0]!.rateChanges!;
  expect(change!.atMs).toBeCloseTo((100 + (1364 * 1115 * 1000) / (6 * 896_000)) / 2, 6);
  expect(change!.bytesPerSec).toBe(89_600);
});

test("measure: quantiles take a value that is there", () => {
  const values = Array.from({ length: 60 }, (_, i) => 60 - i);
  expect([rankedQuantile(values, 0.05), rankedQuantile(values, 0.5), rankedQuantile(values, 0.95)]).toEqual([
    3, 30, 57,
  ]);
  expect(rankedQuantile([7, Infinity, Infinity], 0.5)).toBe(Infinity);
});

test("measure: the same seeds give the same figures, the bound is below every one of them (seeds 1-3)", () => {
  const variant = { ...SIX[0]!, chunkBytes: 300_000, world: { ...SIX[0]!.world, chunkBytes: 300_000 } };
  const once = measure(variant, "coded-mutp", 3, 1, codec);
  expect(measure(variant, "coded-mutp", 3, 1, codec)).toEqual(once);
  expect(once.boundSec).toBeLessThan(once.completionSec);
  expect(once.failed).toBe(0);
});

test("measure: a seventh source that never answers in time changes nothing where no link is lossy (seeds 1-2)", () => {
  const base = { ...SIX[0]!, world: { ...SIX[0]!.world, chunkBytes: 300_000 } };
  const [far] = measureSeventh(base, [{ bytesPerSec: 5000, rttMs: 4000, loss: 0 }], "coded-mutp", 2, 1, codec);
  expect(Math.abs(far!.slowdown)).toBeLessThan(0.02);
});

test("a slow, far or lossy seventh source does not slow mode coded (paired seeds 1 to 4)", () => {
  const sevenths = [
    { bytesPerSec: 5_000, rttMs: 100, loss: 0.2 },
    { bytesPerSec: 50_000, rttMs: 100, loss: 0 },
    { bytesPerSec: 500_000, rttMs: 100, loss: 0.05 },
    { bytesPerSec: 500_000, rttMs: 400, loss: 0 },
  ];
  for (const base of SIX) {
    for (const { slowdown } of measureSeventh(base, sevenths, "coded", 4, 1, codec))
      expect(slowdown).toBeLessThan(0.005);
  }
});

test("pauses: a proxy that stands still half of the time does so, by its seed, and other links are left alone", () => {
  const links = [
    { bytesPerSec: 1000, rttMs: 1, pauses: { apartMs: 1, lastMs: 1 } },
    { bytesPerSec: 1000, rttMs: 1 },
  ];
  const drawn = withPauses({ seed: 5, links, chunkBytes: 1 }).links;
  expect(withPauses({ seed: 5, links, chunkBytes: 1 }).links).toEqual(drawn);
  expect(drawn[1]).toEqual(links[1]);
  const changes = drawn[0]!.rateChanges!;
  const stillMs = changes.reduce(
    (sum, { atMs, bytesPerSec }, i) => sum + (bytesPerSec === 0 ? (changes[i + 1]?.atMs ?? 500) - atMs : 0),
    0,
  );
  expect(stillMs / changes.at(-1)!.atMs).toBeCloseTo(0.5, 1);
});
