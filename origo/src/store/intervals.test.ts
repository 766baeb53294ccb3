/**
 * Tests of intervals: the ranks against all pairs, and how often the interval of a difference holds 0 where the groups
 * do not differ. `SETS=1000 SEED=1 npx jest origo/src/store/intervals.test.ts` tries more sets.
 */
import { compare } from "./difference";
import { shiftBetween, shiftWithin } from "./intervals";

/** Loops below call these millions of times, so they look them up once. */
const { cos, exp, floor, imul, log, min, PI, sqrt } = Math;

const SETS = Number(process.env["SETS"] ?? 200);
const SEED = Number(process.env["SEED"] ?? 1);
/** Of 1,000 sets 93 to 97 % hold 0. The bounds are wider by chance where there are fewer sets. */
const SLACK = 3 * sqrt((0.05 * 0.95) / SETS);
const HELD_MIN = SETS >= 1000 ? 0.93 : 0.95 - SLACK;
const HELD_MAX = SETS >= 1000 ? 0.97 : 0.95 + SLACK;

type Random = () => number;

/** Mulberry32. */
function randomOf(seed: number): Random {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const normal = (random: Random): number => sqrt(-2 * log(1 - random())) * cos(2 * PI * random());
const mean = (values: readonly number[]): number | null =>
  values.length === 0 ? null : values.reduce((sum, value) => sum + value, 0) / values.length;

interface Population {
  /** The share of the second mode. Each client uses one mode only if it is "one". */
  share: number | "one";
  downloads: (random: Random) => number;
  /** Standard deviations of logarithms: of lines, of downloads on one line, and of the latter between lines. */
  line: number;
  noise: number;
  unlike: number;
  /** One in 20 downloads is a hundred times as slow. */
  stalls?: boolean;
  /** Compares plain values, as those of bytes, in place of logarithms. */
  plain?: boolean;
  /** Such a share of the clients, or of the downloads, has the value 0. */
  zeroClients?: number;
  zeroDownloads?: number;
  /** Values are whole numbers, and few of them differ. */
  whole?: boolean;
}

const ten = (): number => 10;
const one = (): number => 1;
const four = (): number => 4;
const unequal = (random: Random): number => min(100, 2 + floor(exp(1.5 + 1.5 * normal(random))));

const POPULATIONS: Record<string, Population> = {
  "both modes": { share: 0.5, downloads: ten, line: 1, noise: 0.5, unlike: 0 },
  "both modes, very unequal lines": { share: 0.5, downloads: unequal, line: 2, noise: 0.7, unlike: 1.5 },
  "a fifth in the second mode, with stalls": {
    share: 0.2,
    downloads: unequal,
    line: 1.5,
    noise: 0.7,
    unlike: 0.5,
    stalls: true,
  },
  "one mode each": { share: "one", downloads: ten, line: 1.5, noise: 0.5, unlike: 0.5 },
  "plain values, a fifth in the second mode": {
    share: 0.2,
    downloads: unequal,
    line: 1.5,
    noise: 0.7,
    unlike: 0,
    plain: true,
  },
  "plain values, one mode each": { share: "one", downloads: unequal, line: 2, noise: 0.7, unlike: 0, plain: true },
};

const skewed = { line: 1, noise: 0.7, unlike: 0, plain: true };
const TIED: Record<string, Population> = {
  "half of the clients 0, both modes": { ...skewed, share: 0.5, downloads: ten, zeroClients: 0.5 },
  "half of the clients 0, one mode each": { ...skewed, share: "one", downloads: ten, zeroClients: 0.5 },
  "half of the downloads 0, both modes": { ...skewed, share: 0.5, downloads: four, zeroDownloads: 0.5 },
  "half of the downloads 0, one mode each": { ...skewed, share: "one", downloads: one, zeroDownloads: 0.5 },
  "nine of ten downloads 0, both modes": { ...skewed, share: 0.5, downloads: four, zeroDownloads: 0.9 },
  "nine of ten downloads 0, one mode each": { ...skewed, share: "one", downloads: one, zeroDownloads: 0.9 },
  "a fifth of the clients 0, one mode each": { ...skewed, share: "one", downloads: ten, zeroClients: 0.2 },
  "whole numbers, both modes": { ...skewed, share: 0.5, downloads: four, whole: true },
  "whole numbers, one mode each": { ...skewed, share: "one", downloads: one, whole: true },
  "whole numbers, a fifth in the second mode": { ...skewed, share: 0.2, downloads: ten, whole: true },
};

/** One client of an A/A set, as the database gives it: as many downloads of the one mode as of the other count. */
function clientOf(random: Random, index: number, population: Population): { a: number | null; b: number | null } {
  const { share, downloads, line, noise, unlike, stalls = false, plain = false } = population;
  const { zeroClients = 0, zeroDownloads = 0, whole = false } = population;
  const isZero = zeroClients > 0 && random() < zeroClients;
  const [rate, spread] = [line * normal(random), noise * exp(unlike * normal(random))];
  const [a, b]: [number[], number[]] = [[], []];
  for (let left = downloads(random); left > 0; left--) {
    const value = rate + spread * normal(random) - (stalls && random() < 0.05 ? log(100) : 0);
    const isB = share === "one" ? index % 2 === 1 : random() < share;
    const isNone = isZero || (zeroDownloads > 0 && random() < zeroDownloads);
    const shown = isNone ? 0 : plain ? exp(value) : value;
    (isB ? b : a).push(whole ? floor(shown) : shown);
  }
  const alike = a.length > 0 && b.length > 0 ? min(a.length, b.length) : Infinity;
  return { a: mean(a.slice(0, alike)), b: mean(b.slice(0, alike)) };
}

/** Of the sets that have enough clients, the share whose interval holds 0. */
function heldShare(population: Population, clientCount: number, seed: number): { enough: number; held: number } {
  const random = randomOf(seed);
  let [enough, held] = [0, 0];
  for (let set = 0; set < SETS; set++) {
    const clients = Array.from({ length: clientCount }, (_, index) => clientOf(random, index, population));
    const answer = compare(clients);
    if (!answer.enough) continue;
    const [low, high] = answer.shift?.interval ?? [NaN, NaN];
    enough++;
    if (low <= 0 && 0 <= high) held++;
  }
  return { enough, held: held / enough };
}

const isLong = process.env["SETS"] !== undefined;
const COUNTS = [20, 40, isLong ? 200 : 100];
const casesOf = (populations: Record<string, Population>, counts: readonly number[]) =>
  Object.entries(populations).flatMap(([name, population]) =>
    counts.map((clients) => [name, clients, population] as const),
  );

jest.setTimeout(600_000);

test("values that hardly vary are not enough, and where many are equal the means are compared", () => {
  /** Of 60 clients in each group, so many have the value 1 and the others 0. */
  const groupsOf = (ofA: number, ofB: number) =>
    Array.from({ length: 60 }, (_, index) => [
      { a: index < ofA ? 1 : 0, b: null },
      { a: null, b: index < ofB ? 1 : 0 },
    ]).flat();
  const pairsOf = (ofA: number, ofB: number) =>
    Array.from({ length: 60 }, (_, index) => ({ a: index < ofA ? 1 : 0, b: index < ofB ? 1 : 0 }));
  const answers = (of: typeof groupsOf | typeof pairsOf) =>
    [of(6, 24), of(0, 30), of(3, 6), of(0, 0), of(60, 60)].map((clients) => compare(clients));
  for (const each of [answers(groupsOf), answers(pairsOf)]) {
    expect(each.map(({ enough }) => enough)).toEqual([true, false, false, false, false]);
    expect(each.map(({ estimate }) => estimate)).toEqual(each.map(() => "mean"));
    expect(each[0]!.shift?.estimate).toBeCloseTo(0.3, 9);
    const [low, high] = each[0]!.shift!.interval!;
    expect([low > 0.1 && low < 0.2, high > 0.4 && high < 0.5]).toEqual([true, true]);
  }
});

test.each([...casesOf(POPULATIONS, COUNTS), ...casesOf(TIED, isLong ? COUNTS : [40])])(
  "%s, %i clients: the interval holds 0 as often as it says, or there are not enough",
  (name, clients, population) => {
    const { enough, held } = heldShare(population, clients, SEED);
    if (isLong)
      process.stdout.write(`${name}, ${clients} clients: enough in ${enough}, ${(100 * held).toFixed(1)} % hold 0\n`);
    if (enough < SETS / 2) return;
    expect(held).toBeGreaterThanOrEqual(HELD_MIN);
    expect(held).toBeLessThanOrEqual(HELD_MAX);
  },
);

describe("ranks", () => {
  const values = (count: number, seed: number): number[] => {
    const random = randomOf(seed);
    return Array.from({ length: count }, () => Math.round(10 * normal(random)));
  };
  const middle = (sorted: number[]): number =>
    (sorted[floor((sorted.length - 1) / 2)]! + sorted[Math.ceil((sorted.length - 1) / 2)]!) / 2;

  test.each([1, 2, 6, 20, 57])("the shift within %i clients is one of their averages", (count) => {
    const differences = values(count, count);
    const averages = differences.flatMap((one, index) => differences.slice(index).map((other) => (one + other) / 2));
    averages.sort((one, other) => one - other);
    const { estimate, interval } = shiftWithin(differences);
    expect(estimate).toBe(middle(averages));
    if (count < 6) return expect(interval).toBeNull();
    const rank = averages.length - averages.lastIndexOf(interval![1]);
    expect(averages[rank - 1]).toBeLessThanOrEqual(interval![0]);
    expect(averages).toContain(interval![0]);
  });

  test.each([
    [6, 9],
    [20, 100],
  ])("the shift between %i and %i clients is one of their differences", (ofA, ofB) => {
    const [a, b] = [values(ofA, 1), values(ofB, 2).map((value) => value + 30)];
    const differences = a.flatMap((one) => b.map((other) => other - one)).sort((one, other) => one - other);
    const { estimate, interval } = shiftBetween(a, b);
    expect(estimate).toBe(middle(differences));
    expect(differences).toContain(interval![0]);
    expect(differences).toContain(interval![1]);
    expect(interval![0]).toBeLessThan(30);
    expect(interval![1]).toBeGreaterThan(30);
    const turned = shiftBetween(b, a);
    expect(turned.estimate).toBe(-estimate);
  });

  test.each([1, 2, 3, 4, 5, 6, 7, 8])("the shift between groups does not depend on the unit (seed %i)", (seed) => {
    const random = randomOf(seed);
    const [a, b] = [20, 19].map((count) => Array.from({ length: count }, () => floor(1e6 * random()))) as [
      number[],
      number[],
    ];
    const whole = shiftBetween(a, b);
    // Whole numbers have no rounding, and their tenths have.
    const tenths = shiftBetween(...([a, b].map((values) => values.map((value) => value / 10)) as [number[], number[]]));
    expect(tenths.interval!.map((edge) => Math.round(10 * edge))).toEqual(whole.interval);
  });

  test("the depression scores of Hollander and Wolfe's book (example 3.1)", () => {
    const scores = [-0.952, 0.147, -1.022, -0.43, -0.62, -0.59, -0.49, 0.08, -0.01];
    const { estimate, interval } = shiftWithin(scores);
    expect(estimate).toBeCloseTo(-0.46, 6);
    // The book's exact 96.1 % interval takes the 6th average from each end, the approximation takes the 5th.
    expect(interval![0]).toBeCloseTo(-0.806, 6);
    expect(interval![1]).toBeGreaterThanOrEqual(-0.01);
  });

  test("equal values have the shift 0, exactly", () => {
    const zeros = Array.from({ length: 30 }, (_, index) => (index === 7 ? 5 : 0));
    expect(shiftWithin(zeros)).toEqual({ estimate: 0, interval: [0, 0] });
    expect(shiftBetween(zeros, zeros)).toEqual({ estimate: 0, interval: [0, 0] });
  });

  test("a client with an extreme line moves the interval little", () => {
    const differences = values(40, 3);
    const [before, after] = [shiftWithin(differences), shiftWithin([...differences.slice(1), 1e12])];
    expect(Math.abs(after.estimate - before.estimate)).toBeLessThan(2);
  });

  test.each([7, 400])("an effect on %i clients of each group is found", (count) => {
    const { interval } = shiftBetween(
      values(count, 4),
      values(count, 5).map((value) => value + 100),
    );
    expect(interval![0]).toBeGreaterThan(60);
    expect(interval![1]).toBeLessThan(140);
  });
});
