/** Runs one world over many seeds in one mode. Gives medians, 95th percentiles and paired differences. */
import type { Codec } from "@tributary/protocol";
import {
  boundMs,
  HTTP_MODES,
  simulate,
  simulateHttp,
  withPauses,
  type HttpMode,
  type Mode,
  type Outcome,
  type Tuning,
  type World,
} from "@tributary/lab-sim";
import { rankedQuantile } from "../kit/figures";
import type { Seventh, Variant } from "./rows";

export interface Measured {
  links: string;
  loss: number;
  rttMs: number;
  chunkBytes: number;
  mode: Mode;
  seeds: number;
  /** Medians and 95th percentiles. They are null in JSON if most runs did not end. */
  completionSec: number;
  completionSecP95: number;
  boundSec: number;
  normalizedGoodput: number;
  /** The 5th percentile: 95 % of the runs do better. */
  normalizedGoodputP5: number;
  firstBytesSec: number;
  firstBytesSecP95: number;
  /** Largest lag of the bytes in order behind the fluid ideal. */
  lagSec: number;
  lagSecP95: number;
  /** Median goodput over the sum of the links' rates (at the start). */
  linkShare: number;
  /** Runs that did not end, or ended with a wrong byte. */
  failed: number;
}

export interface SeventhMeasured extends Seventh {
  mode: Mode;
  loss: number;
  /** Loss of the six. */
  baseLoss: number;
  seeds: number;
  /** Mean of T7 / T6 - 1 over paired seeds, and the upper end of its 95 % interval. */
  slowdown: number;
  slowdownUpper95: number;
}

export function runOnce(world: World, mode: Mode, codec: Codec, tuning: Tuning = {}): Outcome {
  return (HTTP_MODES as readonly string[]).includes(mode)
    ? simulateHttp(world, mode as HttpMode)
    : simulate(world, mode, codec, tuning);
}

/** Seeds `firstSeed`, `firstSeed + 1`, ... */
export function measure(variant: Variant, mode: Mode, seeds: number, firstSeed: number, codec: Codec): Measured {
  const worlds = Array.from({ length: seeds }, (_, i) => withPauses({ ...variant.world, seed: firstSeed + i }));
  const runs = worlds.map((world) => runOnce(world, mode, codec, variant.tuning));
  const bounds = runs.map(({ symbolCount, packetBytes }, i) =>
    boundMs(worlds[i]!, symbolCount, packetBytes, variant.chunkBytes),
  );
  const completions = runs.map(({ completionMs }) => completionMs / 1000);
  const goodputs = runs.map(({ normalizedGoodput }) => normalizedGoodput);
  const firsts = runs.map(({ firstBytesMs }) => firstBytesMs / 1000);
  const lags = runs.map((run, i) => lagMs(worlds[i]!, run) / 1000);
  const { links, loss, rttMs, chunkBytes } = variant;
  const linksBytesPerSec = variant.world.links.reduce((sum, { bytesPerSec }) => sum + bytesPerSec, 0);
  return {
    ...{ links, loss, rttMs, chunkBytes, mode, seeds },
    completionSec: rankedQuantile(completions, 0.5),
    completionSecP95: rankedQuantile(completions, 0.95),
    boundSec: rankedQuantile(bounds, 0.5) / 1000,
    normalizedGoodput: rankedQuantile(goodputs, 0.5),
    normalizedGoodputP5: rankedQuantile(goodputs, 0.05),
    firstBytesSec: rankedQuantile(firsts, 0.5),
    firstBytesSecP95: rankedQuantile(firsts, 0.95),
    lagSec: rankedQuantile(lags, 0.5),
    lagSecP95: rankedQuantile(lags, 0.95),
    linkShare: chunkBytes / rankedQuantile(completions, 0.5) / linksBytesPerSec,
    failed: runs.filter(({ completionMs, bytesRight }) => completionMs === Infinity || !bytesRight).length,
  };
}

/** The first byte of each stretch waited longest: when it came, less when the fluid ideal has it. */
function lagMs(world: World, { delivered, symbolCount, packetBytes, completionMs }: Outcome): number {
  if (completionMs === Infinity) return Infinity;
  let lag = 0;
  let fromByte = 0;
  for (const { untilByte, atMs } of delivered) {
    lag = Math.max(lag, atMs - boundMs(world, (fromByte / world.chunkBytes) * symbolCount, packetBytes, fromByte));
    fromByte = untilByte;
  }
  return lag;
}

export function measureSeventh(
  base: Variant,
  sevenths: readonly Seventh[],
  mode: Mode,
  seeds: number,
  firstSeed: number,
  codec: Codec,
): SeventhMeasured[] {
  const completion = (links: World["links"], seed: number) =>
    runOnce({ ...base.world, links, seed }, mode, codec).completionMs;
  const numbers = Array.from({ length: seeds }, (_, i) => firstSeed + i);
  const six = numbers.map((seed) => completion(base.world.links, seed));
  return sevenths.map((seventh) => {
    const slowdowns = numbers.map((seed, i) => completion([...base.world.links, { ...seventh }], seed) / six[i]! - 1);
    const mean = slowdowns.reduce((a, b) => a + b, 0) / seeds;
    const variance = slowdowns.reduce((sum, value) => sum + (value - mean) ** 2, 0) / Math.max(1, seeds - 1);
    const slowdownUpper95 = mean + 1.96 * Math.sqrt(variance / seeds);
    return { ...seventh, mode, baseLoss: base.loss, seeds, slowdown: mean, slowdownUpper95 };
  });
}
