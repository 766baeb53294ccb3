/**
 * Capacity: the largest number of viewers that a server carries. The rule is pure; who calls it brings the measurement.
 * A number of viewers is carried if it is carried in one of two holds, because other programs may disturb one. It fails
 * if both holds fail.
 */

export interface Hold {
  viewers: number;
  isCarried: boolean;
  /** The generator had no processor time left, so a hold that is not carried says nothing about the server. */
  isGeneratorBound: boolean;
}

export interface Ramp {
  /** The first number, and how far apart the numbers are while they are carried. */
  step: number;
  /** The result is exact to this many viewers. */
  exact: number;
  most: number;
}

export interface Capacity {
  viewers: number;
  /** The server carries at least this many: the generator, or `most`, was the limit. */
  isAtLeast: boolean;
}

export async function findCapacity(ramp: Ramp, hold: (viewers: number) => Promise<Hold>): Promise<Capacity> {
  let [carried, failed, isAtLeast] = [0, Infinity, false];
  for (;;) {
    const next =
      failed === Infinity ? carried + ramp.step : Math.round((carried + failed) / 2 / ramp.exact) * ramp.exact;
    if (next > ramp.most) return { viewers: carried, isAtLeast: true };
    if (next <= carried || next >= failed) return { viewers: carried, isAtLeast };
    const holds = [await hold(next)];
    if (!holds[0]!.isCarried) holds.push(await hold(next));
    if (holds.some(({ isCarried }) => isCarried)) carried = next;
    else {
      failed = next;
      isAtLeast = holds.every(({ isGeneratorBound }) => isGeneratorBound);
    }
  }
}
