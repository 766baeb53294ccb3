/**
 * Difference: compares a metric in two groups of downloads, client by client. The downloads of one client are alike, so
 * each client counts once. Clients with downloads in both groups are compared with themselves. Where they are too few,
 * the clients of one group are compared with those of the other. Rates and times are compared by their logarithms,
 * since lines differ by factors.
 */
import type { z } from "zod";
import type { Difference, DifferenceQuery } from "@tributary/contract/query-schema";
import type { Database, Row } from "./database";
import { faultAt } from "./faults";
import { shiftBetween, shiftWithin, type Shift } from "./intervals";
import { known, knownNumber, Places, valueFor, whereOf } from "./sql";

/** The methods hold their 95 % from this many clients on. */
export const CLIENTS_ENOUGH = 20;
/** This bounds the time that Origo serves nobody else. The interval of so many clients is narrow already. */
const CLIENTS_MAX = 20_000;
const UNITS_OF_FACTORS: readonly (string | null)[] = ["B/s", "ms"];

/** Means of one client. A client that is in one group only has one of them. */
interface Client {
  a: number | null;
  b: number | null;
}

type Compared = Pick<Difference, "design" | "compared" | "enough"> & { typicalA: number; shift: Shift | null };

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
  if (least === 0) return { design: null, compared: [0, 0], enough: false, typicalA: 0, shift: null };
  return {
    design: "groups",
    compared: [onlyA.length, onlyB.length],
    ...judged(shiftBetween(onlyA, onlyB), least, [...onlyA, ...onlyB]),
    typicalA: medianOf(onlyA),
  };
}

/**
 * An interval without width says nothing unless all values are equal: so many of them are equal that the middle ranks
 * do not move, whatever the others do.
 */
function judged(shift: Shift, clients: number, values: readonly number[]): Pick<Compared, "shift" | "enough"> {
  const { interval } = shift;
  const isBlind = interval?.[0] === interval?.[1] && values.some((value) => value !== values[0]);
  return { shift, enough: clients >= CLIENTS_ENOUGH && !isBlind };
}

/** At most CLIENTS_MAX, spread over the order of ids, so nobody fills the choice with clients of their own. */
function some<T>(all: readonly T[]): readonly T[] {
  const stride = Math.ceil(all.length / CLIENTS_MAX);
  return stride <= 1 ? all : all.filter((_, index) => index % stride === 0);
}

function within(both: readonly { a: number; b: number }[]): Compared {
  const differences = both.map(({ a, b }) => b - a);
  return {
    design: "pairs",
    compared: [both.length, both.length],
    ...judged(shiftWithin(differences), both.length, differences),
    typicalA: medianOf(both.map(({ a }) => a)),
  };
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
