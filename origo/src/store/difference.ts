/**
 * Difference: compares a metric in two groups of downloads, client by client. The downloads of one client are alike, so
 * each client counts once. Clients with downloads in both groups are compared with themselves. Where they are too few,
 * the clients of one group are compared with those of the other. Rates and times are compared by their logarithms,
 * since lines differ by factors. Where many clients have equal values, their means are compared.
 */
import type { z } from "zod";
import type { Difference, DifferenceQuery } from "@tributary/contract/query-schema";
import type { Database, Row } from "./database";
import { faultAt } from "./faults";
import { CLIENTS_MIN, shiftBetween, shiftWithin, type Shift } from "./intervals";
import { meanBetween, meanWithin } from "./means";
import { known, knownNumber, Places, valueFor, whereOf } from "./sql";

/** The methods hold their 95 % from this many clients on. */
export const CLIENTS_ENOUGH = 20;
/** This bounds the time that Origo serves nobody else. The interval of so many clients is narrow already. */
const CLIENTS_MAX = 20_000;
/** The same for means between groups, which cost more. */
const MEANS_MAX = 5_000;
/**
 * Ranks are used while ties widen their test by at most this many standard deviations. Then 96 % of the intervals hold
 * 0 where nothing differs, in place of 95 %.
 */
const TIES_MOST = 0.1;
/** Means are compared if so many clients have another value than the commonest one. */
const UNLIKE_ENOUGH = 10;
const UNITS_OF_FACTORS: readonly (string | null)[] = ["B/s", "ms"];

/** Means of one client. A client that is in one group only has one of them. */
interface Client {
  a: number | null;
  b: number | null;
}

type Compared = Pick<Difference, "design" | "compared" | "estimate" | "enough"> & {
  typicalA: number;
  shift: Shift | null;
};

/** Throws a QueryFault. */
export async function queryDifference(
  database: Database,
  query: z.output<typeof DifferenceQuery>,
): Promise<Difference> {
  if (query.a === query.b) throw faultAt("b", "must differ from a");
  const places = new Places();
  const { sql: metric, unit } = knownNumber(query.metric, "metric");
  const field = known(query.field, "field");
  const [a, b] = [places.add(valueFor(field, query.a, "a")), places.add(valueFor(field, query.b, "b"))];
  const where = whereOf(query.where, places, [`${metric} IS NOT NULL`, `${field.sql} IN (${a}, ${b})`]);
  const selected = `id, client_id, ${field.sql} = ${b} AS is_b, (${metric})::DOUBLE PRECISION AS v`;
  const from = `(SELECT ${selected} FROM downloads ${where}) t`;
  const arms = await database.all(
    `SELECT is_b, count(*) AS n, count(DISTINCT client_id) AS clients, avg(v) AS mean, min(v) AS least,
    percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS median FROM ${from} GROUP BY is_b`,
    places.values,
  );
  const [rowA, rowB] = [arms.find(({ is_b }) => is_b === false), arms.find(({ is_b }) => is_b === true)];
  const byFactor = UNITS_OF_FACTORS.includes(unit) && arms.every(({ least }) => Number(least) > 0);
  const clients = rowA && rowB ? await database.all(clientsSql(from, byFactor ? "ln(v)" : "v"), places.values) : [];
  const compared = compare(clients.map(clientOf));
  return { a: armOf(rowA), b: armOf(rowB), ...answerOf(compared, byFactor) };
}

/**
 * The means of each client. Of a client in both groups, as many downloads of the one as of the other count, chosen by
 * their random ids: then its difference is as often above as below 0 if the groups do not differ, whatever the
 * distribution, as the signed-rank test requires.
 */
const clientsSql = (from: string, value: string): string => `
  WITH placed AS (
    SELECT *, row_number() OVER (PARTITION BY client_id, is_b ORDER BY id) AS place FROM ${from}
  ), counted AS (
    SELECT client_id, count(*) FILTER (WHERE NOT is_b) AS of_a, count(*) FILTER (WHERE is_b) AS of_b
    FROM placed GROUP BY client_id
  )
  SELECT avg(${value}) FILTER (WHERE NOT is_b AND (of_b = 0 OR place <= of_b)) AS a,
    avg(${value}) FILTER (WHERE is_b AND (of_a = 0 OR place <= of_a)) AS b
  FROM placed JOIN counted USING (client_id) GROUP BY client_id ORDER BY client_id`;

const armOf = (row: Row | undefined): Difference["a"] =>
  row === undefined
    ? { n: 0, clients: 0, mean: null, median: null }
    : {
        n: Number(row["n"]),
        clients: Number(row["clients"]),
        mean: Number(row["mean"]),
        median: Number(row["median"]),
      };

const numberOf = (cell: Row[string] | undefined): number | null =>
  cell === null || cell === undefined ? null : Number(cell);
const clientOf = ({ a, b }: Row): Client => ({ a: numberOf(a), b: numberOf(b) });

/** Compares clients with themselves if enough of them are in both groups, or if no others could be compared. */
export function compare(clients: readonly Client[]): Compared {
  const both = some(clients.filter((each): each is { a: number; b: number } => each.a !== null && each.b !== null));
  const onlyA = some(clients.flatMap(({ a, b }) => (a !== null && b === null ? [a] : [])));
  const onlyB = some(clients.flatMap(({ a, b }) => (b !== null && a === null ? [b] : [])));
  const least = Math.min(onlyA.length, onlyB.length);
  if (both.length >= CLIENTS_ENOUGH || both.length > least) return within(both);
  if (least === 0) return { design: null, compared: [0, 0], estimate: null, enough: false, typicalA: 0, shift: null };
  return between(onlyA, onlyB);
}

/** At most CLIENTS_MAX, spread over the order of ids, so nobody fills the choice with clients of their own. */
const some = <T>(all: readonly T[]): readonly T[] => someOf(all, CLIENTS_MAX);

function someOf<T>(all: readonly T[], most: number): readonly T[] {
  const stride = Math.ceil(all.length / most);
  return stride <= 1 ? all : all.filter((_, index) => index % stride === 0);
}

function within(both: readonly { a: number; b: number }[]): Compared {
  const differences = both.map(({ a, b }) => b - a);
  const [ofA, ofB] = [both.map(({ a }) => a), both.map(({ b }) => b)];
  const count = both.length;
  const isTied = TIES_MOST < equalShare(differences) * (count ** 2 / 4) * Math.sqrt(12 / count ** 3);
  const isByMean = isTied && count >= CLIENTS_MIN;
  const isVaried = unlike(differences) >= UNLIKE_ENOUGH && unlike(ofA) > 0 && unlike(ofB) > 0;
  return {
    design: "pairs",
    compared: [count, count],
    estimate: isByMean ? "mean" : "typical",
    enough: count >= CLIENTS_ENOUGH && (isVaried || !isTied),
    shift: isByMean ? meanWithin(differences) : shiftWithin(differences),
    typicalA: medianOf(ofA),
  };
}

function between(a: readonly number[], b: readonly number[]): Compared {
  const least = Math.min(a.length, b.length);
  const ties = Math.sqrt(equalShare(a) * equalShare(b)) / 2;
  const isTied = TIES_MOST < ties * Math.sqrt((12 * a.length * b.length) / (a.length + b.length));
  const isByMean = isTied && least >= CLIENTS_MIN;
  const isVaried = unlike([...a, ...b]) >= UNLIKE_ENOUGH && unlike(a) > 0 && unlike(b) > 0;
  return {
    design: "groups",
    compared: [a.length, b.length],
    estimate: isByMean ? "mean" : "typical",
    enough: least >= CLIENTS_ENOUGH && (isVaried || !isTied),
    shift: isByMean ? meanBetween(someOf(a, MEANS_MAX), someOf(b, MEANS_MAX)) : shiftBetween(a, b),
    typicalA: medianOf(a),
  };
}

/** The share of pairs of clients whose values are equal. */
function equalShare(values: readonly number[]): number {
  const counts = countsOf(values);
  let pairs = 0;
  for (const count of counts.values()) pairs += count * (count - 1);
  return values.length < 2 ? 0 : pairs / (values.length * (values.length - 1));
}

/** How many clients do not have the commonest value. */
const unlike = (values: readonly number[]): number => values.length - Math.max(...countsOf(values).values());

function countsOf(values: readonly number[]): Map<number, number> {
  const counts = new Map<number, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
}

function medianOf(values: readonly number[]): number {
  const sorted = Float64Array.from(values).sort();
  return (sorted[Math.floor((sorted.length - 1) / 2)]! + sorted[Math.ceil((sorted.length - 1) / 2)]!) / 2;
}

/** A shift of logarithms is a factor. In the metric's unit it is the factor of a typical client of `a`. */
function answerOf({ typicalA, shift, ...rest }: Compared, byFactor: boolean): Omit<Difference, "a" | "b"> {
  if (!shift) return { ...rest, difference: null, interval: null, ratio: null, ratioInterval: null };
  const { estimate, interval } = shift;
  if (!byFactor) return { ...rest, difference: estimate, interval, ratio: null, ratioInterval: null };
  const [base, ratio] = [Math.exp(typicalA), Math.exp(estimate)];
  const ratioInterval: Shift["interval"] = interval && [Math.exp(interval[0]), Math.exp(interval[1])];
  return {
    ...rest,
    difference: base * (ratio - 1),
    interval: ratioInterval && [base * (ratioInterval[0] - 1), base * (ratioInterval[1] - 1)],
    ratio,
    ratioInterval,
  };
}
