/**
 * Means: the interval of a difference where many clients have equal values, such as 0. Ranks say little there: the
 * shift of a typical client is 0 however many others differ. So the means of the clients are compared. Pure. Each
 * interval inverts a test that holds its 95 % for every distribution if the groups do not differ. Equal outcomes count
 * half in it (mid-p), because a few values give few outcomes. The orders come from a fixed seed, so the same clients
 * give the same interval.
 */
import type { Shift } from "./intervals";

/** Loops below call these millions of times, so they look them up once. */
const { abs, imul, max, sqrt } = Math;

const ORDERS = 999;
const TAIL = 0.025;
const SEED = 1;
/** Sums of the same numbers in another order differ by less, in units of the sums. */
const ROUNDING = 1e-9;
/** An edge is found to four times the range of values over 2 to this power. */
const HALVINGS = 24;

/** Mulberry32: 32 random bits at each call. */
function bitsOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  };
}

/**
 * The mean of `differences`, one of each client. The interval inverts the test that turns signs at random. It lies
 * between means of random subsets (Hartigan 1969, J. Am. Stat. Assoc. 64(328)). There must be at least one difference.
 */
export function meanWithin(differences: readonly number[]): Shift {
  const bits = bitsOf(SEED);
  const means: number[] = [];
  while (means.length < ORDERS) {
    let [sum, count, left] = [0, 0, 0];
    for (const [index, difference] of differences.entries()) {
      if (index % 32 === 0) left = bits();
      if (left & 1) {
        sum += difference;
        count++;
      }
      left >>>= 1;
    }
    if (count > 0) means.push(sum / count);
  }
  const sorted = Float64Array.from(means).sort();
  const mirrored = sorted.map((mean) => -mean).reverse();
  return { estimate: meanOf(differences), interval: [lowEdge(sorted), -lowEdge(mirrored)] };
}

/** The least value that more than the tail is at or below. Its equals count half. */
function lowEdge(sorted: Float64Array): number {
  for (let first = 0, next = 0; first < sorted.length; first = next) {
    const value = sorted[first]!;
    while (next < sorted.length && sorted[next]! - value <= ROUNDING * abs(value)) next++;
    if ((first + next) / 2 >= TAIL * (ORDERS + 1)) return value;
  }
  return sorted.at(-1)!;
}

/** The sums of one group and of its squares. */
interface Sums {
  sum: number;
  squares: number;
}

/** What a random order of all clients moves: as many of `a` to `b` as of `b` to `a`, and their sums. */
interface Order {
  moved: number;
  ofA: Sums;
  ofB: Sums;
}

/**
 * How much more the mean of `b` is than that of `a`, for groups that share no client. The interval inverts the
 * studentized permutation test (Chung and Romano 2013, Ann. Stat. 41(2)), which lets the groups spread differently.
 * Each group must have at least two clients.
 */
export function meanBetween(a: readonly number[], b: readonly number[]): Shift {
  const base = meanOf(a);
  const [centredA, centredB] = [a.map((value) => value - base), b.map((value) => value - base)];
  const [allA, allB] = [sumsOf(centredA), sumsOf(centredB)];
  const orders = ordersOf(centredA, centredB);
  const estimate = allB.sum / b.length;
  const above = (shift: number): number => {
    const shifted = lessShift(allB, b.length, shift);
    const observed = studentized(allA, a.length, shifted, b.length);
    let count = 0.5;
    for (const { moved, ofA, ofB } of orders) {
      const toA = lessShift(ofB, moved, shift);
      const other = studentized(exchanged(allA, ofA, toA), a.length, exchanged(shifted, toA, ofA), b.length);
      const isEqual = other === observed || abs(other - observed) <= ROUNDING * max(1, abs(observed));
      count += isEqual ? 0.5 : other > observed ? 1 : 0;
    }
    return count / (ORDERS + 1);
  };
  const values = [...centredA, ...centredB].sort((one, other) => one - other);
  const range = values.at(-1)! - values[0]!;
  const edge = (outermost: number, isInside: (shift: number) => boolean): number => {
    let [inside, outside] = [estimate, outermost];
    for (let halving = 0; halving < HALVINGS; halving++) {
      const middle = (inside + outside) / 2;
      if (isInside(middle)) inside = middle;
      else outside = middle;
    }
    return outside;
  };
  const low = edge(estimate - 2 * range, (shift) => above(shift) >= TAIL);
  const high = edge(estimate + 2 * range, (shift) => above(shift) <= 1 - TAIL);
  return { estimate, interval: [low, high] };
}

function ordersOf(a: readonly number[], b: readonly number[]): Order[] {
  const bits = bitsOf(SEED);
  return Array.from({ length: ORDERS }, () => {
    const order: Order = { moved: 0, ofA: { sum: 0, squares: 0 }, ofB: { sum: 0, squares: 0 } };
    let [places, left] = [a.length, a.length + b.length];
    const isInA = (): boolean => {
      const chosen = (bits() / 2 ** 32) * left-- < places;
      if (chosen) places--;
      return chosen;
    };
    for (const value of a) if (!isInA()) add(order.ofA, value);
    for (const value of b) {
      if (!isInA()) continue;
      add(order.ofB, value);
      order.moved++;
    }
    return order;
  });
}

function add(sums: Sums, value: number): void {
  sums.sum += value;
  sums.squares += value * value;
}

function sumsOf(values: readonly number[]): Sums {
  const sums = { sum: 0, squares: 0 };
  for (const value of values) add(sums, value);
  return sums;
}

const lessShift = ({ sum, squares }: Sums, count: number, shift: number): Sums => ({
  sum: sum - count * shift,
  squares: squares - 2 * shift * sum + count * shift * shift,
});

const exchanged = (all: Sums, out: Sums, into: Sums): Sums => ({
  sum: all.sum - out.sum + into.sum,
  squares: all.squares - out.squares + into.squares,
});

/** The difference of the means over its standard error (Welch). */
function studentized(a: Sums, countA: number, b: Sums, countB: number): number {
  const apart = b.sum / countB - a.sum / countA;
  const error = sqrt(errorSquare(a, countA) + errorSquare(b, countB));
  if (error > ROUNDING * sqrt(a.squares + b.squares)) return apart / error;
  return abs(apart) <= error ? 0 : apart / 0;
}

const errorSquare = ({ sum, squares }: Sums, count: number): number =>
  max(0, squares - (sum * sum) / count) / (count - 1) / count;

const meanOf = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
