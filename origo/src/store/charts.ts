/**
 * Charts: computes charts over the stored downloads. The database computes quartiles, counts, quantiles and samples,
 * exactly and over every matching download, and only what is drawn leaves it. Downloads without a value of the metric
 * are in no chart.
 */
import type { z } from "zod";
import { QUERY_LIMITS, type Cell as GroupCell, type Chart, type ChartQuery } from "@tributary/contract/query-schema";
import type { Database, Row } from "./database";
import { faultAt } from "./faults";
import type { StoredField } from "./fields";
import { known, knownNumber, Places, whereOf } from "./sql";

type Query = z.output<typeof ChartQuery>;
type Of<Kind extends Query["chart"]> = Extract<Query, { chart: Kind }>;
type Answer<Kind extends Chart["chart"]> = Extract<Chart, { chart: Kind }>;

/** The most outliers that are drawn for one box. Of more, a random sample is drawn. */
const OUTLIERS_MAX = 200;
/** One CDF is drawn from this many quantiles. */
const CDF_STEPS = 200;
/** The most points of one time series, over all groups. */
const POINTS_MAX = 5000;

/** An order that does not depend on the data and is always the same. 7919 and the modulus are prime. */
const SHUFFLED = "(seq * 7919) % 1000003";
const SHUFFLE_RANGE = 1_000_003;

/** Throws a QueryFault. */
export function queryChart(database: Database, query: Query): Promise<Chart> {
  switch (query.chart) {
    case "box":
      return boxes(database, query, OUTLIERS_MAX);
    case "histogram":
      return histogram(database, query);
    case "cdf":
      return cdf(database, query, CDF_STEPS);
    case "scatter":
      return scatter(database, query);
    case "time":
      return timeSeries(database, query, POINTS_MAX);
  }
}

/** The downloads of one question: `SELECT seq, g0, g1, VALUES FROM downloads WHERE ...`, where g0 and g1 are groups. */
interface Base {
  places: Places;
  sql: string;
  fields: readonly StoredField[];
  groups: readonly string[];
}

function baseOf(query: Query, values: Readonly<Record<string, StoredField>>): Base {
  const places = new Places();
  const fields = query.groupBy.map((name, index) => known(name, `groupBy[${index}]`));
  const groups = fields.map((_, index) => `g${index}`);
  const charted = Object.entries(values).map(([name, { sql }]) => `(${sql})::DOUBLE PRECISION AS ${name}`);
  const where = whereOf(
    query.where,
    places,
    Object.values(values).map(({ sql }) => `${sql} IS NOT NULL`),
  );
  const selected = ["seq", ...fields.map(({ sql }, index) => `${sql} AS g${index}`), ...charted];
  return { places, sql: `SELECT ${selected.join(", ")} FROM downloads ${where}`, fields, groups };
}

interface Grouped {
  group: GroupCell[];
  row: Row;
}

/** Computes `aggregates` and the count `n` of each group, for the largest groups. */
async function grouped(
  database: Database,
  base: Base,
  aggregates: string,
): Promise<{ found: Grouped[]; leftOut: number }> {
  const by = base.groups.length > 0 ? `GROUP BY ${base.groups.join(", ")}` : "";
  const selected = [...base.groups, "count(*) AS n", aggregates].join(", ");
  const sql = `SELECT *, count(*) OVER () AS all_groups FROM (SELECT ${selected} FROM (${base.sql}) t ${by}) a
    WHERE n > 0 ORDER BY n DESC LIMIT ${QUERY_LIMITS.groups}`;
  const rows = await database.all(sql, base.places.values);
  const found = rows
    .map((row) => ({ group: base.groups.map((name) => (row[name] ?? null) as GroupCell), row }))
    .sort((a, b) => compare(a.group, b.group));
  return { found, leftOut: Math.max(0, Number(rows[0]?.["all_groups"] ?? 0) - rows.length) };
}

/** Sorts by the first field, then by the second. A group without a value comes last. */
function compare(a: readonly GroupCell[], b: readonly GroupCell[]): number {
  for (const [index, left] of a.entries()) {
    const right = b[index] ?? null;
    if (left === right) continue;
    if (left === null || right === null) return left === null ? 1 : -1;
    return left < right ? -1 : 1;
  }
  return 0;
}

/** Joins the downloads `t` with the groups `f`. Each group has its index `k` and the numbers that `numbersOf` gives. */
function joined(
  base: Base,
  found: readonly Grouped[],
  names: readonly string[],
  numbersOf: (row: Row, index: number) => readonly number[],
): string {
  const rows = found.map(({ group, row }, index) => {
    const cells = group.map((cell, place) =>
      base.places.addAs(cell, base.fields[place]?.type === "text" ? "VARCHAR" : "DOUBLE PRECISION"),
    );
    return `(${[String(index), ...cells, ...numbersOf(row, index).map((value) => base.places.add(value))].join(", ")})`;
  });
  // PostgreSQL cannot hash IS NOT DISTINCT FROM, so it is used only when a group is null.
  const on = base.groups.map(
    (name, place) =>
      `t.${name} ${found.some(({ group }) => group[place] === null) ? "IS NOT DISTINCT FROM" : "="} f.${name}`,
  );
  const columns = ["k", ...base.groups, ...names].join(", ");
  return `(${base.sql}) t JOIN (VALUES ${rows.join(", ")}) f(${columns}) ON ${["TRUE", ...on].join(" AND ")}`;
}

const numbersOf = (row: Row | undefined, name: string): number[] =>
  ((row?.[name] ?? []) as unknown as number[]).map(Number);

/**
 * Takes two passes: first the quartiles of each group, then the values inside and outside of 1.5 interquartile ranges,
 * as in the paper's figures.
 */
async function boxes(database: Database, query: Of<"box">, outliersMax: number): Promise<Answer<"box">> {
  const base = baseOf(query, { v: knownNumber(query.metric, "metric") });
  const { found, leftOut } = await grouped(
    database,
    base,
    "percentile_cont(ARRAY[0.25, 0.5, 0.75]) WITHIN GROUP (ORDER BY v) AS p",
  );
  if (found.length === 0) return { chart: "box", boxes: [], groupsLeftOut: 0 };
  const from = joined(base, found, ["low", "high"], (row) => {
    const [q1 = 0, , q3 = 0] = numbersOf(row, "p");
    return [q1 - 1.5 * (q3 - q1), q3 + 1.5 * (q3 - q1)];
  });
  const beyond = "FILTER (WHERE v < low OR v > high)";
  const rows = await database.all(
    `SELECT k, min(v) FILTER (WHERE v >= low) AS low, max(v) FILTER (WHERE v <= high) AS high,
    count(*) ${beyond} AS beyond, (array_agg(v ORDER BY ${SHUFFLED}) ${beyond})[1:${outliersMax}] AS outliers
    FROM ${from} GROUP BY k`,
    base.places.values,
  );
  const byIndex = new Map(rows.map((row) => [Number(row["k"]), row]));
  const items = found.map(({ group, row }, index) => {
    const [q1 = 0, median = 0, q3 = 0] = numbersOf(row, "p");
    const edge = byIndex.get(index);
    return {
      group,
      n: Number(row["n"]),
      q1,
      median,
      q3,
      whiskerLow: Number(edge?.["low"] ?? q1),
      whiskerHigh: Number(edge?.["high"] ?? q3),
      outliers: numbersOf(edge, "outliers"),
      outlierCount: Number(edge?.["beyond"] ?? 0),
    };
  });
  return { chart: "box", boxes: items, groupsLeftOut: leftOut };
}

/** Bins of equal width from the smallest to the largest value of all groups. The last bin includes its upper edge. */
async function histogram(database: Database, query: Of<"histogram">): Promise<Answer<"histogram">> {
  const base = baseOf(query, { v: knownNumber(query.metric, "metric") });
  const { found, leftOut } = await grouped(database, base, "min(v) AS low, max(v) AS high");
  if (found.length === 0) return { chart: "histogram", edges: [], groupsLeftOut: 0, series: [] };
  const low = Math.min(...found.map(({ row }) => Number(row["low"])));
  const high = Math.max(...found.map(({ row }) => Number(row["high"])));
  const bins = high > low ? query.bins : 1;
  const width = (high - low) / bins || 1;
  const from = joined(base, found, [], () => []);
  const [start, step] = [base.places.add(low), base.places.add(width)];
  // PostgreSQL refuses a quotient that is too small for a number, so the first bin needs no division.
  const bin = `CASE WHEN v - ${start} < ${step} THEN 0 ELSE least(floor((v - ${start}) / ${step}), ${bins - 1}) END`;
  const rows = await database.all(
    `SELECT k, ${bin} AS bin, count(*) AS n FROM ${from} GROUP BY k, bin`,
    base.places.values,
  );
  const counts = found.map(() => new Array<number>(bins).fill(0));
  for (const row of rows) counts[Number(row["k"])]![Number(row["bin"])] = Number(row["n"]);
  const edges = Array.from({ length: bins + 1 }, (_, index) =>
    index === bins && high > low ? high : low + index * width,
  );
  return {
    chart: "histogram",
    edges,
    groupsLeftOut: leftOut,
    series: found.map(({ group, row }, index) => ({ group, n: Number(row["n"]), counts: counts[index] ?? [] })),
  };
}

/**
 * Computes `steps` + 1 quantiles of each group. The quantile of the share k / steps is the value at place ceil(k n /
 * steps) of the n sorted values. This quotient is either whole or far enough from a whole number, so floating point is
 * exact enough. The values are sorted once: percentile_cont takes DuckDB ten times as long.
 */
async function cdf(database: Database, query: Of<"cdf">, steps: number): Promise<Answer<"cdf">> {
  const base = baseOf(query, { v: knownNumber(query.metric, "metric") });
  const counted = Array.from({ length: steps + 1 }, (_, index) => index);
  const { found, leftOut } = await grouped(database, base, "0 AS zero");
  if (found.length === 0) return { chart: "cdf", groupsLeftOut: 0, series: [] };
  const from = joined(base, found, [], () => []);
  const places = counted.map((step) => `a[greatest(1, ceil((${step} * n)::DOUBLE PRECISION / ${steps}))::INTEGER]`);
  const rows = await database.all(
    `WITH sorted AS (SELECT k, array_agg(v ORDER BY v) AS a, count(*) AS n FROM ${from} GROUP BY k)
    SELECT k, ARRAY[${places.join(", ")}] AS p FROM sorted`,
    base.places.values,
  );
  const shares = counted.map((step) => step / steps);
  const byIndex = new Map(rows.map((row) => [Number(row["k"]), row]));
  const series = found.map(({ group, row }, index) => ({
    group,
    n: Number(row["n"]),
    values: numbersOf(byIndex.get(index), "p"),
    shares,
  }));
  return { chart: "cdf", groupsLeftOut: leftOut, series };
}

/** A sample of each group. Each group gets points in proportion to its size. */
async function scatter(database: Database, query: Of<"scatter">): Promise<Answer<"scatter">> {
  const base = baseOf(query, { x: knownNumber(query.x, "x"), y: knownNumber(query.y, "y") });
  const { found, leftOut } = await grouped(database, base, "0 AS zero");
  if (found.length === 0) return { chart: "scatter", groupsLeftOut: 0, series: [] };
  const total = found.reduce((sum, { row }) => sum + Number(row["n"]), 0);
  const share = Math.min(1, query.points / total);
  // Takes a little more than the sample before anything is sorted.
  const thinned =
    share === 1 ? "" : `WHERE ${SHUFFLED} < ${Math.ceil(SHUFFLE_RANGE * Math.min(1, share * 1.5 + 0.001))}`;
  const order = `${SHUFFLED.replace("seq", "t.seq")}, t.seq`;
  const from = joined(base, found, ["most"], (row) => [Math.max(1, Math.floor(Number(row["n"]) * share))]);
  const rows = await database.all(
    `SELECT k, x, y, id FROM (SELECT k, x, y, t.seq, most, row_number() OVER (PARTITION BY k ORDER BY ${order}) AS place
    FROM ${from} ${thinned.replace("(seq", "(t.seq")}) s
    JOIN (SELECT seq, id::VARCHAR AS id FROM downloads) d ON d.seq = s.seq WHERE place <= most`,
    base.places.values,
  );
  const series = found.map(({ group, row }) => ({
    group,
    n: Number(row["n"]),
    x: [] as number[],
    y: [] as number[],
    ids: [] as string[],
  }));
  for (const row of rows) {
    const one = series[Number(row["k"])];
    one?.x.push(Number(row["x"]));
    one?.y.push(Number(row["y"]));
    one?.ids.push(String(row["id"]));
  }
  return { chart: "scatter", groupsLeftOut: leftOut, series };
}

const STATISTICS = {
  median: "percentile_cont(0.5) WITHIN GROUP (ORDER BY v)",
  mean: "avg(v)",
  count: "count(*)",
  sum: "sum(v)",
} as const;

/** The first Monday of the epoch, in ms, so that weeks begin on Mondays. Shorter intervals are not moved by it. */
const MONDAY_MS = 4 * 86_400_000;

/** Uses the client's clock. Intervals begin at multiples of their length since the first Monday of the epoch, UTC. */
async function timeSeries(database: Database, query: Of<"time">, pointsMax: number): Promise<Answer<"time">> {
  const base = baseOf(query, { v: knownNumber(query.metric, "metric"), started: known("startedAtMs", "metric") });
  const { found, leftOut } = await grouped(database, base, "min(started) AS first");
  const { bucketMs } = query;
  if (found.length === 0) return { chart: "time", bucketMs, groupsLeftOut: 0, series: [] };
  const from = joined(base, found, [], () => []);
  const bucket = base.places.add(bucketMs);
  const rows = await database.all(
    `SELECT k, floor((started - ${MONDAY_MS}) / ${bucket}) * ${bucket} + ${MONDAY_MS} AS at_ms,
    ${STATISTICS[query.statistic]} AS v, count(*) AS n FROM ${from} GROUP BY 1, 2 ORDER BY 1, 2 LIMIT ${pointsMax + 1}`,
    base.places.values,
  );
  if (rows.length > pointsMax)
    throw faultAt(
      "bucketMs",
      `makes more than ${pointsMax} points: ask for longer intervals, fewer groups or a shorter time`,
    );
  const series = found.map(({ group, row }) => ({
    group,
    n: Number(row["n"]),
    atMs: [] as number[],
    values: [] as number[],
    counts: [] as number[],
  }));
  for (const row of rows) {
    const one = series[Number(row["k"])];
    one?.atMs.push(Number(row["at_ms"]));
    one?.values.push(Number(row["v"]));
    one?.counts.push(Number(row["n"]));
  }
  return { chart: "time", bucketMs, groupsLeftOut: leftOut, series };
}
