/**
 * Difference: compares two groups of downloads with a bootstrap over clients. The downloads of one client are alike
 * (same line, same place), so whole clients are drawn, not downloads (cluster bootstrap; Field and Welsh 2007, J. R.
 * Stat. Soc. B 69(3)). A client with downloads in both groups is drawn with both.
 */
import type { z } from "zod";
import type { Difference, DifferenceQuery } from "@tributary/contract/query-schema";
import type { Database, Row } from "./database";
import { faultAt } from "./faults";
import { known, knownNumber, Places, valueFor, whereOf } from "./sql";

/** When there are more clients, they are merged at random. This bounds the work and keeps the interval. */
const CLUSTERS_MAX = 2000;
const RESAMPLES = 1000;
/** With fewer clients in a group, the percentiles of a bootstrap are too narrow. */
const CLIENTS_ENOUGH = 20;

/** The sums and counts of one client, or of some merged clients, in the groups a and b. */
interface Cluster {
  sumA: number;
  countA: number;
  sumB: number;
  countB: number;
}

/** Throws a QueryFault. */
export async function queryDifference(
  database: Database,
  query: z.output<typeof DifferenceQuery>,
): Promise<Difference> {
  if (query.a === query.b) throw faultAt("b", "must differ from a");
  const places = new Places();
  const metric = knownNumber(query.metric, "metric").sql;
  const field = known(query.field, "field");
  const [a, b] = [places.add(valueFor(field, query.a, "a")), places.add(valueFor(field, query.b, "b"))];
  const where = whereOf(query.where, places, [`${metric} IS NOT NULL`, `${field.sql} IN (${a}, ${b})`]);
  const selected = `client_id, ${field.sql} = ${b} AS is_b, (${metric})::DOUBLE PRECISION AS v`;
  const from = `(SELECT ${selected} FROM downloads ${where}) t`;
  const [arms, clients] = await Promise.all([
    database.all(
      `SELECT is_b, count(*) AS n, count(DISTINCT client_id) AS clients, avg(v) AS mean,
      percentile_cont(0.5) WITHIN GROUP (ORDER BY v) AS median FROM ${from} GROUP BY is_b`,
      places.values,
    ),
    database.all(
      `SELECT ${sums("NOT is_b", "a")}, ${sums("is_b", "b")} FROM ${from} GROUP BY client_id`,
      places.values,
    ),
  ]);
  const [armA, armB] = [armOf(arms.find(({ is_b }) => is_b === false)), armOf(arms.find(({ is_b }) => is_b === true))];
  const testable = armA.clients >= 2 && armB.clients >= 2;
  return {
    a: armA,
    b: armB,
    difference: armA.mean === null || armB.mean === null ? null : armB.mean - armA.mean,
    ratio: !armA.mean || armB.mean === null ? null : armB.mean / armA.mean,
    interval: testable ? intervalOf(clustersOf(clients)) : null,
    enough: Math.min(armA.clients, armB.clients) >= CLIENTS_ENOUGH,
  };
}

const sums = (condition: string, name: string): string =>
  `coalesce(sum(v) FILTER (WHERE ${condition}), 0) AS sum_${name}, ` +
  `count(*) FILTER (WHERE ${condition}) AS count_${name}`;

const armOf = (row: Row | undefined): Difference["a"] =>
  row === undefined
    ? { n: 0, clients: 0, mean: null, median: null }
    : {
        n: Number(row["n"]),
        clients: Number(row["clients"]),
        mean: Number(row["mean"]),
        median: Number(row["median"]),
      };

function clustersOf(rows: readonly Row[]): Cluster[] {
  const clusters = Array.from({ length: Math.min(rows.length, CLUSTERS_MAX) }, (): Cluster => ({
    sumA: 0,
    countA: 0,
    sumB: 0,
    countB: 0,
  }));
  rows.forEach((row, index) => {
    const cluster = clusters[index % clusters.length]!;
    cluster.sumA += Number(row["sum_a"]);
    cluster.countA += Number(row["count_a"]);
    cluster.sumB += Number(row["sum_b"]);
    cluster.countB += Number(row["count_b"]);
  });
  return clusters;
}

/**
 * The 2.5 and 97.5 percentiles of the difference of means over resamples. A resample that lacks a group is drawn again.
 */
export function intervalOf(clusters: readonly Cluster[]): [number, number] | null {
  let state = 1;
  // Numerical Recipes' linear congruential generator: its high bits are good enough to draw clients, and the same each
  // time.
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
  const differences: number[] = [];
  for (let tries = 0; differences.length < RESAMPLES && tries < 2 * RESAMPLES; tries++) {
    const drawn: Cluster = { sumA: 0, countA: 0, sumB: 0, countB: 0 };
    for (let count = 0; count < clusters.length; count++) {
      const { sumA, countA, sumB, countB } = clusters[below(clusters.length)]!;
      drawn.sumA += sumA;
      drawn.countA += countA;
      drawn.sumB += sumB;
      drawn.countB += countB;
    }
    if (drawn.countA > 0 && drawn.countB > 0) differences.push(drawn.sumB / drawn.countB - drawn.sumA / drawn.countA);
  }
  if (differences.length < RESAMPLES) return null;
  differences.sort((left, right) => left - right);
  return [differences[Math.round(0.025 * (RESAMPLES - 1))]!, differences[Math.round(0.975 * (RESAMPLES - 1))]!];
}
