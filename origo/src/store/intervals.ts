/**
 * Intervals: how far apart two groups of clients are, with a 95 % confidence interval. Pure. In goes one number for
 * each client, since the downloads of one client are alike: same line, same place. The methods use ranks, so one
 * client with an extreme line moves them little, and they hold their 95 % for lines of every distribution.
 */

/** Loops below call these millions of times, so they look them up once. */
const { abs, floor, max, sqrt } = Math;
const LEAST = -Infinity;

/** The 97.5 percentile of the normal distribution. */
const Z = 1.959963984540054;
/** An edge is found to a few units in the last place of the values. The difference there must not be missed. */
const ROUNDING = 2 ** -50;
/** With fewer clients no order of the differences is rarer than 5 %. */
export const CLIENTS_MIN = 6;

export interface Shift {
  /** The shift of a typical client (Hodges and Lehmann 1963, Ann. Math. Stat. 34(2)). */
  estimate: number;
  /** Null with fewer than CLIENTS_MIN clients. */
  interval: [low: number, high: number] | null;
}

/**
 * The centre of `differences`, one of each client. The interval inverts Wilcoxon's signed-rank test (Hollander, Wolfe
 * and Chicken, Nonparametric Statistical Methods, 3rd ed., §3.2 and §3.3). There must be at least one difference.
 */
export function shiftWithin(differences: readonly number[]): Shift {
  const sorted = Float64Array.from(differences).sort();
  const count = sorted.length;
  const averages = (count * (count + 1)) / 2;
  const averageAt = (rank: number): number => walshAverage(sorted, rank);
  const estimate = (averageAt(floor((averages + 1) / 2)) + averageAt(Math.ceil((averages + 1) / 2))) / 2;
  if (count < CLIENTS_MIN) return { estimate, interval: null };
  const rank = floor(averages / 2 - Z * sqrt((count * (count + 1) * (2 * count + 1)) / 24));
  return { estimate, interval: [averageAt(rank), averageAt(averages + 1 - rank)] };
}

/** The Walsh average of this rank, from 1: the averages of each two differences, and of each with itself, in order. */
function walshAverage(sorted: Float64Array, rank: number): number {
  const last = sorted.length - 1;
  return ofRank([sorted[0]!, sorted[last]!], rank, (bound) => {
    let [ranked, greatest, right] = [0, LEAST, last];
    for (let left = 0; left <= last; left++) {
      while (right >= left && (sorted[left]! + sorted[right]!) / 2 > bound) right--;
      if (right < left) break;
      ranked += right - left + 1;
      greatest = max(greatest, (sorted[left]! + sorted[right]!) / 2);
    }
    return { ranked, greatest };
  });
}

/**
 * How much more `b` is than `a`, for groups that share no client. The interval inverts the test of Brunner and Munzel
 * (2000, Biometrical Journal 42(1)), which lets the groups spread differently. Neither group may be empty.
 */
export function shiftBetween(a: readonly number[], b: readonly number[]): Shift {
  const [sortedA, sortedB] = [Float64Array.from(a).sort(), Float64Array.from(b).sort()];
  const pairs = a.length * b.length;
  const range: [number, number] = [sortedB[0]! - sortedA.at(-1)!, sortedB.at(-1)! - sortedA[0]!];
  const differenceAt = (rank: number): number => ofRank(range, rank, (bound) => upTo(sortedA, sortedB, bound));
  const estimate = (differenceAt(floor((pairs + 1) / 2)) + differenceAt(Math.ceil((pairs + 1) / 2))) / 2;
  if (Math.min(a.length, b.length) < CLIENTS_MIN) return { estimate, interval: null };
  const rounding = ROUNDING * max(...[sortedA, sortedB].flatMap((values) => [abs(values[0]!), abs(values.at(-1)!)]));
  const edge = (outside: number): number => {
    let inside = estimate;
    for (;;) {
      const middle = (inside + outside) / 2;
      if (middle === inside || middle === outside) break;
      if (isPlausible(sortedA, sortedB, middle)) inside = middle;
      else outside = middle;
    }
    return upTo(sortedA, sortedB, max(inside, outside) + rounding).greatest;
  };
  return { estimate, interval: [edge(range[0]), edge(range[1])] };
}

/** How many differences of a `b` less an `a` are at most `bound`, and the greatest of these. */
function upTo(a: Float64Array, b: Float64Array, bound: number): { ranked: number; greatest: number } {
  let [ranked, greatest, right] = [0, LEAST, -1];
  for (const value of a) {
    while (right + 1 < b.length && b[right + 1]! - value <= bound) right++;
    if (right < 0) continue;
    ranked += right + 1;
    greatest = max(greatest, b[right]! - value);
  }
  return { ranked, greatest };
}

/** The value of this rank among those that `upTo` counts and that lie in the range. */
function ofRank(
  [low, high]: readonly [number, number],
  rank: number,
  countUpTo: (bound: number) => { ranked: number; greatest: number },
): number {
  for (;;) {
    const middle = (low + high) / 2;
    if (middle === low || middle === high) break;
    if (countUpTo(middle).ranked >= rank) high = middle;
    else low = middle;
  }
  return countUpTo(high).greatest;
}

/** Whether the test does not tell `b` less `shift` from `a`. */
function isPlausible(a: Float64Array, b: Float64Array, shift: number): boolean {
  const [ofA, ofB] = [placements(a, b, -shift), placements(b, a, shift)];
  const [varianceA, varianceB] = [ofA.variance / a.length, ofB.variance / b.length];
  const variance = varianceA + varianceB;
  const apart = abs(ofB.mean - 0.5);
  if (variance === 0) return apart === 0;
  const degrees = variance ** 2 / (varianceA ** 2 / (a.length - 1) + varianceB ** 2 / (b.length - 1));
  return apart <= studentQuantile(degrees) * sqrt(variance);
}

/** Mean and variance of the share of `others` that each value less `shift` exceeds. An equal one counts half. */
function placements(values: Float64Array, others: Float64Array, shift: number): { mean: number; variance: number } {
  let [below, upTo, sum, squares] = [0, 0, 0, 0];
  for (const value of values) {
    while (below < others.length && others[below]! < value - shift) below++;
    upTo = max(upTo, below);
    while (upTo < others.length && others[upTo]! <= value - shift) upTo++;
    const share = (below + upTo) / 2 / others.length;
    sum += share;
    squares += share * share;
  }
  const mean = sum / values.length;
  return { mean, variance: max(0, (squares - sum * mean) / (values.length - 1)) };
}

/** The 97.5 percentile of Student's t distribution (Abramowitz and Stegun, 26.7.5). */
function studentQuantile(degrees: number): number {
  return (
    Z +
    (Z ** 3 + Z) / (4 * degrees) +
    (5 * Z ** 5 + 16 * Z ** 3 + 3 * Z) / (96 * degrees ** 2) +
    (3 * Z ** 7 + 19 * Z ** 5 + 17 * Z ** 3 - 15 * Z) / (384 * degrees ** 3)
  );
}
