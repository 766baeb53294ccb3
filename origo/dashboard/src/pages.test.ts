/** Tests of the pages' logic without a browser: addresses, conditions, charts and their numbers, traces, settings. */
import type { ConfigResponse, Setting } from "@tributary/contract/admin-schema";
import type { Chart, Field, Trace } from "@tributary/contract/query-schema";
import { boxGrid } from "./chart/boxes";
import { optionOf, stepsOf } from "./chart/charts";
import { chartCsv, csvOf, figuresOf } from "./chart/figures";
import type { Look } from "./chart/look";
import { withEmpty } from "./chart/over-time";
import { fillingsOf } from "./chart/trace";
import { conditionOf, scalarOf, wordsOf } from "./conditions";
import { linkTo, parseHash, parseState } from "./hash";
import { valuesAfter } from "./pages/configuration";
import { nextSort } from "./pages/downloads";
import { differencesOf, faultOf, rangeText } from "./settings";
import { z } from "zod";

const box = (group: (string | number)[], n: number) => ({
  group,
  n,
  q1: 1,
  median: 2,
  q3: 3,
  whiskerLow: 0,
  whiskerHigh: 4,
  outliers: [9],
  outlierCount: 1,
});
const FIELD: Field = { name: "netBytes", label: "Net", type: "number", unit: "B", origin: "basic", help: "" };
const WINDOW: Setting = {
  key: "w",
  type: "integer",
  scope: "client",
  group: "g",
  help: "",
  min: 1,
  max: 10,
  unit: "packets",
  default: 4,
};
const LOOK: Look = {
  text: "black",
  muted: "gray",
  line: "gray",
  surface: "white",
  land: "gray",
  series: ["blue"],
  packet: { innovative: "blue", duplicate: "orange", late: "gray", rejected: "red" },
};

test("an address holds the page, the rest and the state, with any characters in them", () => {
  expect(parseHash("")).toEqual({ page: "fleet", rest: "", state: "" });
  const state = { where: [{ value: "a?b#c/%d" }] };
  expect(parseHash(linkTo("downloads/x", state))).toEqual({
    page: "downloads",
    rest: "x",
    state: JSON.stringify(state),
  });
  expect(parseHash("#/analysis?%")).toEqual({ page: "analysis", rest: "", state: "%" });
});

test("a state that is not JSON, or does not fit the schema, becomes the default state", () => {
  const schema = z.object({ bins: z.number().max(5).default(3) });
  expect([parseState(schema, "{"), parseState(schema, '{"bins":9}'), parseState(schema, '{"bins":2}')]).toEqual([
    { bins: 3 },
    { bins: 3 },
    { bins: 2 },
  ]);
});

test("a condition is complete only when it has a value of its field's type", () => {
  expect([
    scalarOf("", "number"),
    scalarOf("1e3", "number"),
    scalarOf("x", "number"),
    scalarOf("true", "boolean"),
    scalarOf("x", "text"),
  ]).toEqual([undefined, 1000, undefined, true, "x"]);
  expect(conditionOf({ field: "netBytes", op: "in", text: "", list: ["1", "x"] }, "number")).toBeUndefined();
  expect(conditionOf({ field: "netBytes", op: "in", text: "", list: ["1", "2"] }, "number")).toEqual({
    field: "netBytes",
    op: "in",
    value: [1, 2],
  });
  expect(wordsOf({ field: "netBytes", op: ">=", value: 1000 }, FIELD)).toBe("Net is at least 1000 B");
  expect(wordsOf({ field: "gone", op: "isNull" }, undefined)).toBe("gone is empty");
});

test("boxes are placed by their first group and coloured by their second, and each keeps its n", () => {
  const boxes = [box([1, "coded"], 5), box([2, "coded"], 6), box([2, "direct"], 7)];
  const grid = boxGrid(boxes);
  expect([grid.categories, grid.series, grid.at("2", "direct")?.n, grid.at("1", "direct")]).toEqual([
    ["1", "2"],
    ["coded", "direct"],
    7,
    undefined,
  ]);
  const chart: Chart = { chart: "box", boxes, groupsLeftOut: 0 };
  expect(figuresOf(chart).rows.map((row) => [row.group, row.values[0]])).toEqual([
    ["1 · coded", 5],
    ["2 · coded", 6],
    ["2 · direct", 7],
  ]);
  expect(chartCsv(chart).split("\r\n")[1]).toBe("1 · coded,5,1,2,3,0,4,1");
});

test("a distribution rises in steps, once at each value", () => {
  expect(stepsOf([1, 1, 5, 5, 7], [0, 0.25, 0.5, 0.75, 1])).toEqual([
    [1, 0],
    [1, 0.25],
    [5, 0.25],
    [5, 0.75],
    [7, 0.75],
    [7, 1],
  ]);
});

test("CSV quotes the cells that need it and makes formulas harmless", () => {
  expect(csvOf([["a,b", 'say "x"', "=1+1", -1, undefined]])).toBe('"a,b","say ""x""",\'=1+1,-1,\r\n');
});

test("over time: intervals without downloads are 0 for counts and sums, and gaps for other statistics", () => {
  const series = { atMs: [20, 50], values: [7, 9] };
  expect(withEmpty(series, 10, 0, 0, 60)).toEqual([
    [0, 0],
    [10, 0],
    [20, 7],
    [30, 0],
    [40, 0],
    [50, 9],
    [60, 0],
  ]);
  expect(withEmpty(series, 10, null, 20, 50)).toEqual([
    [20, 7],
    [30, null],
    [40, null],
    [50, 9],
  ]);
  expect(withEmpty({ atMs: [10, 20, 40, 90], values: [1, 2, 3, 4] }, 10, null, 10, 90)).toEqual([
    [10, 1],
    [20, 2],
    [30, null],
    [40, 3],
    [50, null],
    [80, null],
    [90, 4],
  ]);
});

test("over time: the axis is in UTC and says so, and a value without neighbours has a mark", () => {
  const atMs = [0, ...Array.from({ length: 70 }, (_, index) => 20_000 + index * 1000)];
  const chart: Chart = {
    chart: "time",
    bucketMs: 1000,
    groupsLeftOut: 0,
    series: [{ group: [], n: 71, atMs, values: atMs.map(() => 5), counts: atMs.map(() => 1) }],
  };
  const option = optionOf(chart, { y: FIELD, groups: [], statistic: "median", log: false }, LOOK) as unknown as {
    useUTC: boolean;
    xAxis: { name: string };
    series: { symbol: string; data: unknown[] }[];
  };
  expect([option.useUTC, option.xAxis.name, option.series[0]?.symbol]).toEqual([
    true,
    "start of the download, UTC",
    "none",
  ]);
  expect(option.series[0]?.data.slice(0, 4)).toEqual([
    { value: [0, 5], symbol: "emptyCircle" },
    [1000, null],
    [19_000, null],
    [20_000, 5],
  ]);
});

test("a generation fills from its first to its last innovative packet", () => {
  const trace: Trace = {
    id: "x",
    generationCount: 3,
    feedback: [],
    packets: [
      [5, 0, 1, "innovative"],
      [1, 0, 0, "innovative"],
      [9, 1, 1, "innovative"],
      [12, 1, 1, "duplicate"],
      [3, 0, 2, "late"],
    ],
  };
  expect(fillingsOf(trace)).toEqual([
    { generation: 0, fromMs: 1, toMs: 1, innovative: 1 },
    { generation: 1, fromMs: 5, toMs: 9, innovative: 2 },
  ]);
});

test("clicks on a heading sort by the largest value, by the smallest value, by arrival", () => {
  expect(nextSort({}, "a")).toEqual({ field: "a", descending: true });
  expect(nextSort({ sort: { field: "a", descending: true } }, "a")).toEqual({ field: "a", descending: false });
  expect(nextSort({ sort: { field: "a", descending: false } }, "a")).toBeUndefined();
});

test("settings: limits hold at both edges, and a value that is set back to its default is not stored", () => {
  expect([0, 1, 10, 11, 2.5, NaN].map((value) => faultOf(WINDOW, value) === undefined)).toEqual([
    false,
    true,
    true,
    false,
    false,
    false,
  ]);
  expect(rangeText(WINDOW)).toBe("whole number · 1 to 10 · packets");
  const config: ConfigResponse = { version: 1, settings: [WINDOW, { ...WINDOW, key: "g" }], values: { w: 5 } };
  expect(valuesAfter(config, { w: 4, g: 6 })).toEqual({ g: 6 });
  expect(differencesOf({ w: 5 }, { g: 6 })).toEqual([
    { key: "g", before: undefined, after: 6 },
    { key: "w", before: 5, after: undefined },
  ]);
});
