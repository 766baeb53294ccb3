/** Tests tables, charts and differences on both databases, against the same sums computed here. */
import { randomUUID } from "node:crypto";
import { ChartQuery, DifferenceQuery, DownloadsQuery, type Chart } from "@tributary/contract/query-schema";
import { DATABASES, stopDatabases, type TestDatabase } from "../../test/databases";
import { bareRecordOf, recordOf } from "../../../contract/test/samples";
import type { DownloadRecord } from "@tributary/contract/schema";
import { FIELDS, queryChart, queryDifference, queryDownloads, type Store } from ".";

const NOW = 1_790_000_000_000;
const HOSTILE = `'; DROP TABLE downloads; -- <script>alert(1)</script> "$1" %_\\`;
afterAll(stopDatabases);
jest.setTimeout(60_000);

const idOf = (index: number): string => `00000000-0000-4000-8000-${String(index).padStart(12, "0")}`;

/** 60 records with durations of 1 to 60 s. Modes take turns, clients too (three), and arms take turns of two. */
function sampleOf(index: number): DownloadRecord {
  const proxies = recordOf().proxies.map((proxy) => ({ ...proxy, name: HOSTILE }));
  return recordOf({
    id: idOf(index),
    clientId: idOf(1000 + (index % 3)),
    durationMs: 1000 * (index + 1),
    netBytes: 100_000 * (index + 1),
    mode: index % 2 === 0 ? "coded" : "direct",
    connections: [1, 2, 4][index % 3]!,
    startedAtMs: NOW + index * 1000,
    experiments: [{ id: "e1", arm: index % 2 === 0 ? "wide" : "narrow" }],
    proxies,
    comment: index === 7 ? HOSTILE : "plain",
    userComment: HOSTILE,
    error: { kind: "stalled", message: HOSTILE },
    player: "HLS.js",
  });
}

const quantile = (values: number[], share: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low]! + (place - low) * ((sorted[low + 1] ?? sorted[low]!) - sorted[low]!);
};

describe.each(DATABASES)("questions over %s", (_name, make) => {
  let place: TestDatabase;
  let store: Store;
  const samples = Array.from({ length: 60 }, (_, index) => sampleOf(index));
  const bare = { ...bareRecordOf(), id: idOf(60), startedAtMs: NOW - 5, url: "http://other.example/" };

  beforeAll(async () => {
    place = await make();
    store = await place.open();
    await store.addRecords([...samples, bare], NOW);
  });
  afterAll(async () => {
    await store.close();
    await place.remove();
  });

  const table = (query: DownloadsQuery): ReturnType<typeof queryDownloads> =>
    queryDownloads(store.database, DownloadsQuery.parse(query));
  const chart = async <Kind extends Chart["chart"]>(
    query: Extract<ChartQuery, { chart: Kind }>,
  ): Promise<Extract<Chart, { chart: Kind }>> =>
    (await queryChart(store.database, ChartQuery.parse(query))) as Extract<Chart, { chart: Kind }>;

  test("a table has the requested cells, the newest download first, and the number of matches", async () => {
    const page = await table({ columns: ["mode", "durationMs", "host", "arm:e1", "configVersion"], limit: 2 });
    expect(page).toMatchObject({ matching: 61, ids: [idOf(60), idOf(59)] });
    expect(page.rows).toEqual([
      ["direct", 855.5, "other.example", null, null],
      ["direct", 60_000, "origin.example", "narrow", 3],
    ]);
  });

  test.each([
    ["durationMs", false],
    ["durationMs", true],
    ["configVersion", true],
    ["mode", false],
    ["goodputBytesPerSec", true],
    ["startedAtMs", false],
  ] as const)("pages sorted by %s (descending: %s) hold every download once", async (field, descending) => {
    const seen: string[] = [];
    const cells: unknown[] = [];
    let cursor: string | undefined;
    for (let pages = 0; pages < 20; pages++) {
      const page = await table({
        columns: [field],
        sort: { field, descending },
        limit: 7,
        ...(cursor === undefined ? {} : { cursor }),
      });
      seen.push(...page.ids);
      cells.push(...page.rows.map(([cell]) => cell));
      if (page.next === null) break;
      cursor = page.next;
    }
    expect(new Set(seen).size).toBe(61);
    expect(seen).toHaveLength(61);
    const values = cells.filter((cell) => cell !== null) as (string | number)[];
    expect(values).toEqual([...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0) * (descending ? -1 : 1)));
    expect(cells.slice(values.length).every((cell) => cell === null)).toBe(true);
  });

  test.each([
    [{ field: "mode", op: "=", value: "coded" }, 30],
    [{ field: "mode", op: "!=", value: "coded" }, 31],
    [{ field: "configVersion", op: "!=", value: 3 }, 1],
    [{ field: "durationMs", op: "<=", value: 10_000.5 }, 11],
    [{ field: "connections", op: "in", value: [1, 4] }, 40],
    [{ field: "player", op: "contains", value: "hls.J" }, 60],
    [{ field: "comment", op: "contains", value: "%_\\" }, 1],
    [{ field: "comment", op: "=", value: HOSTILE }, 1],
    [{ field: "proxies", op: "contains", value: "drop table" }, 60],
    [{ field: "comment", op: "isNull" }, 1],
    [{ field: "comment", op: "notNull" }, 60],
    [{ field: "arm:e1", op: "=", value: "wide" }, 30],
    [{ field: "arm:e9", op: "=", value: "wide" }, 0],
    [{ field: "startedAtMs", op: ">=", value: NOW + 50_000 }, 10],
    [{ field: "id", op: "=", value: idOf(5) }, 1],
  ] as const)("the filter %j leaves %s downloads", async (condition, expected) => {
    const where = [condition as NonNullable<DownloadsQuery["where"]>[number]];
    expect(await table({ columns: ["id"], where })).toMatchObject({ matching: expected });
  });

  test("hostile text is stored unchanged and does nothing", async () => {
    expect(await store.record(idOf(7))).toEqual(samples[7]);
    const page = await table({
      columns: ["comment", "userComment", "errorMessage"],
      where: [{ field: "comment", op: "=", value: HOSTILE }],
    });
    expect(page.rows).toEqual([[HOSTILE, HOSTILE, HOSTILE]]);
    expect(
      (await chart({ chart: "box", metric: "durationMs", groupBy: ["comment"] })).boxes.map(({ group }) => group),
    ).toEqual([[HOSTILE], ["plain"], [null]]);
  });

  test.each([
    [{ columns: ["id; DROP TABLE downloads"] }, "columns[0]"],
    [{ columns: ["constructor"] }, "columns[0]"],
    [{ columns: ["id"], sort: { field: "seq", descending: true } }, "sort.field"],
    [{ columns: ["id"], where: [{ field: "x", op: "isNull" }] }, "where[0].field"],
    [{ columns: ["id"], where: [{ field: "mode", op: "=", value: 1 }] }, "where[0].value"],
    [{ columns: ["id"], where: [{ field: "durationMs", op: "in", value: [1, "2"] }] }, "where[0].value[1]"],
    [{ columns: ["arm:a'b"] }, "columns[0]"],
    [{ columns: ["id"], cursor: "1 OR 1=1" }, "cursor"],
    [{ columns: ["id"], cursor: "999999" }, "cursor"],
  ] as const)("%j is refused with its place, %s", async (query, field) => {
    await expect(table(query as unknown as DownloadsQuery)).rejects.toMatchObject({ field });
  });

  test("every field can be a column, and every field can sort, group and filter", async () => {
    for (const { name, type } of FIELDS) {
      const page = await table({
        columns: [name],
        sort: { field: name, descending: false },
        where: [{ field: name, op: "notNull" }],
      });
      expect(page.rows.every(([cell]) => typeof cell === (type === "text" ? "string" : "number"))).toBe(true);
      const { boxes } = await chart({ chart: "box", metric: "durationMs", groupBy: [name] });
      expect(boxes.reduce((sum, { n }) => sum + n, 0)).toBe(61);
    }
  });

  test("a box has the quartiles, whiskers and outliers of its group", async () => {
    const { boxes } = await chart({
      chart: "box",
      metric: "durationMs",
      groupBy: ["mode", "connections"],
      where: [{ field: "configVersion", op: "notNull" }],
    });
    expect(boxes.map(({ group }) => group)).toEqual([
      ["coded", 1],
      ["coded", 2],
      ["coded", 4],
      ["direct", 1],
      ["direct", 2],
      ["direct", 4],
    ]);
    for (const box of boxes) {
      const values = samples
        .filter((sample) => sample.mode === box.group[0] && sample.connections === box.group[1])
        .map(({ durationMs }) => durationMs);
      expect(box).toMatchObject({
        n: values.length,
        q1: quantile(values, 0.25),
        median: quantile(values, 0.5),
        q3: quantile(values, 0.75),
        outlierCount: 0,
        outliers: [],
      });
      expect([box.whiskerLow, box.whiskerHigh]).toEqual([Math.min(...values), Math.max(...values)]);
    }
    const [whole] = (
      await chart({
        chart: "box",
        metric: "durationMs",
        where: [{ field: "durationMs", op: "in", value: [1000, 2000, 3000, 4000, 60_000] }],
      })
    ).boxes;
    expect(whole).toEqual({
      group: [],
      n: 5,
      q1: 2000,
      median: 3000,
      q3: 4000,
      whiskerLow: 1000,
      whiskerHigh: 4000,
      outliers: [60_000],
      outlierCount: 1,
    });
  });

  test("a metric without values gives empty charts", async () => {
    const where = [{ field: "mode", op: "=", value: "uncoded-mutp" }] as NonNullable<ChartQuery["where"]>;
    expect(await chart({ chart: "box", metric: "durationMs", where })).toEqual({
      chart: "box",
      boxes: [],
      groupsLeftOut: 0,
    });
    expect(await chart({ chart: "histogram", metric: "durationMs", where })).toMatchObject({ edges: [], series: [] });
    expect(await chart({ chart: "cdf", metric: "durationMs", where })).toMatchObject({ series: [] });
    expect(await chart({ chart: "scatter", x: "durationMs", y: "netBytes", where })).toMatchObject({ series: [] });
    expect(await chart({ chart: "time", metric: "durationMs", bucketMs: 1000, where })).toMatchObject({ series: [] });
  });

  test("a histogram counts every download in exactly one bin", async () => {
    const { edges, series } = await chart({
      chart: "histogram",
      metric: "durationMs",
      bins: 10,
      groupBy: ["mode"],
      where: [{ field: "configVersion", op: "notNull" }],
    });
    expect(edges).toHaveLength(11);
    expect([edges[0], edges[10]]).toEqual([1000, 60_000]);
    expect(series.map(({ group, n }) => [group, n])).toEqual([
      [["coded"], 30],
      [["direct"], 30],
    ]);
    const modes = samples.filter(({ mode }) => mode === "coded").map(({ durationMs }) => durationMs);
    expect(series[0]?.counts).toEqual(
      Array.from(
        { length: 10 },
        (_, bin) => modes.filter((value) => Math.min(9, Math.floor((value - 1000) / 5900)) === bin).length,
      ),
    );
    expect(await chart({ chart: "histogram", metric: "status", bins: 10 })).toMatchObject({
      edges: [206, 207],
      series: [{ counts: [61] }],
    });
  });

  test("a CDF goes from the smallest value to the largest", async () => {
    const [one] = (
      await chart({ chart: "cdf", metric: "durationMs", where: [{ field: "mode", op: "=", value: "coded" }] })
    ).series;
    const values = samples
      .filter(({ mode }) => mode === "coded")
      .map(({ durationMs }) => durationMs)
      .sort((a, b) => a - b);
    expect(one?.n).toBe(30);
    expect(one?.shares).toHaveLength(201);
    one?.shares.forEach((_share, step) =>
      expect(one.values[step]).toBe(values[Math.max(1, Math.ceil((step * 30) / 200)) - 1]),
    );
  });

  test("a CDF of two values has half of the downloads at the smaller one", async () => {
    const [two] = (
      await chart({
        chart: "cdf",
        metric: "durationMs",
        where: [{ field: "durationMs", op: "in", value: [1000, 2000] }],
      })
    ).series;
    expect(two?.values).toEqual(Array.from({ length: 201 }, (_, step) => (step <= 100 ? 1000 : 2000)));
  });

  test("a scatter plot has all points if they fit, and otherwise a share of each group", async () => {
    const whole = await chart({
      chart: "scatter",
      x: "durationMs",
      y: "netBytes",
      groupBy: ["mode"],
      where: [{ field: "configVersion", op: "notNull" }],
    });
    expect(whole.series.map(({ n, x }) => [n, x.length])).toEqual([
      [30, 30],
      [30, 30],
    ]);
    whole.series[0]?.ids.forEach((id, index) =>
      expect(samples.find((sample) => sample.id === id)).toMatchObject({
        durationMs: whole.series[0]?.x[index],
        netBytes: whole.series[0]?.y[index],
      }),
    );
    const few = await chart({
      chart: "scatter",
      x: "durationMs",
      y: "netBytes",
      points: 10,
      groupBy: ["mode"],
      where: [{ field: "configVersion", op: "notNull" }],
    });
    for (const { n, x } of few.series) expect([n, x.length <= 5]).toEqual([30, true]);
  });

  test("a time series has a point for each interval with downloads", async () => {
    const { series } = await chart({
      chart: "time",
      metric: "durationMs",
      statistic: "mean",
      bucketMs: 10_000,
      groupBy: ["mode"],
      where: [{ field: "mode", op: "=", value: "coded" }],
    });
    expect(series).toEqual([
      {
        group: ["coded"],
        n: 30,
        atMs: [0, 1, 2, 3, 4, 5].map((bucket) => NOW + bucket * 10_000),
        values: [5000, 15_000, 25_000, 35_000, 45_000, 55_000],
        counts: [5, 5, 5, 5, 5, 5],
      },
    ]);
    const median = await chart({ chart: "time", metric: "durationMs", bucketMs: 1_000_000 });
    expect(median.series[0]?.counts.reduce((sum, count) => sum + count, 0)).toBe(61);
  });

  test("weeks begin on Monday and days at midnight, in UTC", async () => {
    const beginning = async (days: number): Promise<string[]> => {
      const [one] = (
        await chart({ chart: "time", metric: "durationMs", statistic: "count", bucketMs: days * 86_400_000 })
      ).series;
      return (one?.atMs ?? []).map((atMs) => new Date(atMs).toISOString());
    };
    // 2026-09-21 is a Monday.
    expect(new Date(NOW).toISOString()).toMatch(/^2026-09-21T/);
    expect([await beginning(7), await beginning(1)]).toEqual([
      ["2026-09-21T00:00:00.000Z"],
      ["2026-09-21T00:00:00.000Z"],
    ]);
  });

  test.each([
    [{ chart: "box", metric: "mode" }, "metric"],
    [{ chart: "box", metric: "nope" }, "metric"],
    [{ chart: "cdf", metric: "durationMs", groupBy: ["nope"] }, "groupBy[0]"],
    [{ chart: "scatter", x: "durationMs", y: "url" }, "y"],
  ] as const)("the chart %j is refused with its place, %s", async (query, field) => {
    await expect((async () => chart(query as never))()).rejects.toMatchObject({ field });
  });

  const difference = (query: DifferenceQuery): ReturnType<typeof queryDifference> =>
    queryDifference(store.database, DifferenceQuery.parse(query));
  const NONE_COMPARED = {
    design: null,
    compared: [0, 0],
    estimate: null,
    difference: null,
    interval: null,
    ratio: null,
    ratioInterval: null,
    enough: false,
  };

  test("a difference compares each client with itself, times by their logarithms", async () => {
    const answer = await difference({ metric: "durationMs", field: "arm:e1", a: "wide", b: "narrow" });
    expect(answer).toMatchObject({
      a: { n: 30, clients: 3, mean: 30_000, median: 30_000 },
      b: { n: 30, clients: 3, mean: 31_000, median: 31_000 },
      design: "pairs",
      compared: [3, 3],
      interval: null,
      ratioInterval: null,
      enough: false,
    });
    const meanLog = (client: number, odd: number): number => {
      const logs = samples.filter((_, index) => index % 3 === client && index % 2 === odd);
      return logs.reduce((sum, { durationMs }) => sum + Math.log(durationMs), 0) / logs.length;
    };
    const shifts = [0, 1, 2].map((client) => meanLog(client, 1) - meanLog(client, 0));
    const averages = shifts.flatMap((one, index) => shifts.slice(index).map((other) => (one + other) / 2));
    expect(Math.log(answer.ratio!)).toBeCloseTo(quantile(averages, 0.5), 9);
    const typical = Math.exp(
      quantile(
        [0, 1, 2].map((client) => meanLog(client, 0)),
        0.5,
      ),
    );
    expect(answer.difference).toBeCloseTo(typical * (answer.ratio! - 1), 6);
  });

  test("a difference takes as many downloads of the one group as of the other from a client in both", async () => {
    const answer = await difference({
      metric: "netBytes",
      field: "mode",
      a: "coded",
      b: "direct",
      where: [{ field: "durationMs", op: "in", value: [1000, 4000, 7000, 13_000] }],
    });
    // All four are of the first client: 1, 7 and 13 s coded, 4 s direct. One of the three counts, by its id.
    expect(answer).toMatchObject({
      a: { n: 3, clients: 1 },
      b: { n: 1, clients: 1 },
      design: "pairs",
      compared: [1, 1],
      difference: 300_000,
      ratio: null,
    });
  });

  test("a difference compares clients that are in one group only where none is in both", async () => {
    const query = { metric: "durationMs", field: "id", a: idOf(0), b: idOf(1) };
    const lonely = await difference(query);
    expect(lonely).toMatchObject({ design: "groups", compared: [1, 1], interval: null, enough: false });
    expect([lonely.ratio, lonely.difference]).toEqual([expect.closeTo(2, 9), expect.closeTo(1000, 6)]);
    expect(await difference({ ...query, b: randomUUID() })).toEqual({
      a: { n: 1, clients: 1, mean: 1000, median: 1000 },
      b: { n: 0, clients: 0, mean: null, median: null },
      ...NONE_COMPARED,
    });
  });

  test("a difference is refused for a metric without numbers and for one group twice", async () => {
    await expect(
      queryDifference(store.database, DifferenceQuery.parse({ metric: "mode", field: "mode", a: "x", b: "y" })),
    ).rejects.toMatchObject({ field: "metric" });
    await expect(
      queryDifference(store.database, DifferenceQuery.parse({ metric: "durationMs", field: "mode", a: "x", b: "x" })),
    ).rejects.toMatchObject({ field: "b" });
  });
});
