/**
 * A small seedable random generator for scheduling: xorshift128 (Marsaglia, "Xorshift RNGs", JSS 8(14), 2003). It is
 * not for secrets.
 */
import type { Rng } from "./types";

/** Seeds that differ in few bits give similar first numbers, so this many are dropped. */
const WARM_UP = 16;

export function xorshift128(seed: number): Rng {
  let x = (seed ^ 0x9e3779b9) >>> 0 || 1;
  let y = Math.imul(seed | 1, 0x85ebca6b) >>> 0;
  let z = (seed + 0xc2b2ae35) >>> 0;
  let w = 0x27d4eb2f;
  const next: Rng = () => {
    const t = (x ^ (x << 11)) >>> 0;
    x = y;
    y = z;
    z = w;
    w = (w ^ (w >>> 19) ^ t ^ (t >>> 8)) >>> 0;
    return Math.imul(w, 0x9e3779b1) >>> 0;
  };
  for (let i = 0; i < WARM_UP; i++) next();
  return next;
}

/** A uniform integer in [0, bound); bound 1..2^32. The result has a bias of at most bound / 2^32. */
export function below(rng: Rng, bound: number): number {
  return Math.floor((rng() / 0x1_0000_0000) * bound);
}
