/** A small seedable generator (xorshift128, Marsaglia 2003, JSS 8(14)) for scheduling. Not for secrets. */
import type { Rng } from "./types";

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
  for (let i = 0; i < 16; i++) next();
  return next;
}

/** A uniform integer in [0, bound); bound 1..2^32. The bias of at most bound / 2^32 is left in. */
export function below(rng: Rng, bound: number): number {
  return Math.floor((rng() / 0x1_0000_0000) * bound);
}
