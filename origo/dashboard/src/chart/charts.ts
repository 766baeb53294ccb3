/**
 * Charts: Origo's answers to chart questions as ECharts options, and as CSV. Pure.
 * A group is named by its values; every box carries its n.
 */
import { csvCell } from "../../../src/csv";
import type { Box, Cell, Chart, Field } from "@tributary/contract/query-schema";
import { count, quantity } from "../format";
import { axisLook, baseOption, type Option } from "./base";
import { colourAt, type Look } from "./look";

export interface ChartFields {
  /** The field on the axis of values; of a scatter plot the vertical one. */
  y: Field | undefined;
  /** Of a scatter plot only. */
  x?: Field | undefined;
  groups: readonly (Field | undefined)[];
  /** Of a time series: what was taken of each bucket. */
  statistic?: string | undefined;
  log: boolean;
}

export const cellText = (cell: Cell | undefined): string =>
  cell === null || cell === undefined ? "none" : String(cell);
export const groupText = (group: readonly Cell[]): string =>
  group.length === 0 ? "all" : group.map(cellText).join(" · ");

const titleOf = (field: Field | undefined): string => field?.label ?? "";
const unitOf = (field: Field | undefined): string | null => field?.unit ?? null;

export function optionOf(chart: Chart, fields: ChartFields, look: Look): Option {
  switch (chart.chart) {
    case "box":
      return boxOption(chart.boxes, fields, look);
    case "histogram":
      return histogramOption(chart, fields, look);
    case "cdf":
      return linesOption(
        chart.series.map((each) => ({ ...each, x: each.values, y: each.shares })),
        fields,
        look,
      );
    case "scatter":
      return scatterOption(chart, fields, look);
    case "time":
      return timeOption(chart, fields, look);
  }
}

function valueAxis(field: Field | undefined, look: Look, log: boolean, name = titleOf(field)): Option {
  const { axisLabel, ...rest } = axisLook(look) as { axisLabel: object };
  return {
    ...rest,
    type: log ? "log" : "value",
    name,
    scale: log,
    nameLocation: "end",
    axisLabel: { ...axisLabel, formatter: (value: number) => quantity(value, unitOf(field)) },
  };
}

/** A value axis under the drawing, its name in the middle below. */
const below = (axis: Option): Option => ({ ...axis, nameLocation: "middle", nameGap: 28 });
/** A value axis beside the drawing, its name above it, flush left. */
const beside = (axis: Option, look: Look): Option => ({
  ...axis,
  nameTextStyle: { color: look.muted, align: "left", padding: [0, 0, 0, -28] },
});

function legend(names: readonly string[], look: Look): Option {
  return {
    show: names.length > 1,
    type: "scroll",
    top: 0,
    right: 8,
    left: "30%",
    align: "left",
    textStyle: { color: look.text },
    data: [...names],
  };
}

/** First field of the group along the axis, second one as colour. */
export function boxGrid(boxes: readonly Box[]): {
  categories: string[];
  series: string[];
  at: (category: string, series: string) => Box | undefined;
} {
  const categories = [...new Set(boxes.map((box) => groupText(box.group.slice(0, 1))))];
  const series = [...new Set(boxes.map((box) => groupText(box.group.slice(1))))];
  const byName = new Map(
    boxes.map((box) => [JSON.stringify([groupText(box.group.slice(0, 1)), groupText(box.group.slice(1))]), box]),
  );
  return { categories, series, at: (category, name) => byName.get(JSON.stringify([category, name])) };
}

interface CustomApi {
  coord: (point: [number, number]) => [number, number];
  barLayout: (options: object) => { offsetCenter: number; width: number }[];
}

function boxOption(boxes: readonly Box[], fields: ChartFields, look: Look): Option {
  const { categories, series, at } = boxGrid(boxes);
  const unit = unitOf(fields.y);
  const positive = (value: number): boolean => !fields.log || value > 0;
  return {
    ...baseOption(look),
    legend: legend(series, look),
    grid: { left: 8, right: 20, top: 44, bottom: 36, containLabel: true },
    xAxis: {
      ...axisLook(look),
      type: "category",
      data: categories,
      splitLine: { show: false },
      name: titleOf(fields.groups[0]),
      nameLocation: "middle",
      nameGap: 30,
    },
    yAxis: beside(valueAxis(fields.y, look, fields.log), look),
    series: series.map((name, seriesIndex) => {
      const shown = categories.map((category) => at(category, name));
      return {
        type: "custom",
        name,
        clip: true,
        itemStyle: { color: colourAt(look, seriesIndex) },
        encode: { x: 0, y: [1, 2, 3] },
        data: shown.flatMap((box, index) =>
          box === undefined
            ? []
            : [
                {
                  value: [
                    index,
                    Math.min(box.whiskerLow, ...box.outliers.filter(positive)),
                    box.median,
                    Math.max(box.whiskerHigh, ...box.outliers),
                  ],
                  box,
                },
              ],
        ),
        tooltip: { formatter: ({ data }: { data: { box: Box } }) => boxText(data.box, unit) },
        renderItem: (params: { dataIndex: number }, api: CustomApi) => {
          const box = shown.filter((each) => each !== undefined)[params.dataIndex];
          if (box === undefined) return null;
          const slot = api.barLayout({ count: series.length, barMaxWidth: 56, barGap: "25%" })[seriesIndex] ?? {
            offsetCenter: 0,
            width: 20,
          };
          return boxShape(box, shown.indexOf(box), slot, api, colourAt(look, seriesIndex), look, positive);
        },
      };
    }),
  };
}

function boxText(box: Box, unit: string | null): string {
  const show = (value: number): string => quantity(value, unit);
  return [
    `${groupText(box.group)}   n = ${count(box.n)}`,
    `median ${show(box.median)}`,
    `quartiles ${show(box.q1)} to ${show(box.q3)}`,
    `whiskers ${show(box.whiskerLow)} to ${show(box.whiskerHigh)}`,
    `beyond them ${count(box.outlierCount)}`,
  ].join("\n");
}

/** A box narrower than this, in CSS pixels, has its n written upwards. */
const NAMED_WIDTH_MIN = 30;

/**
 * One box: quartiles, median, whiskers to the last value within 1.5 interquartile ranges, what lies beyond, and n above
 * it.
 */
function boxShape(
  box: Box,
  category: number,
  slot: { offsetCenter: number; width: number },
  api: CustomApi,
  colour: string,
  look: Look,
  positive: (value: number) => boolean,
): object {
  const y = (value: number): number => api.coord([category, value])[1];
  const x = api.coord([category, box.median])[0] + slot.offsetCenter;
  const half = Math.max(2, slot.width / 2);
  const line = (x1: number, y1: number, x2: number, y2: number, width = 1.5) => ({
    type: "line",
    shape: { x1, y1, x2, y2 },
    style: { stroke: colour, lineWidth: width },
  });
  const outliers = box.outliers.filter(positive);
  const narrow = slot.width < NAMED_WIDTH_MIN;
  return {
    type: "group",
    children: [
      line(x, y(box.q3), x, y(box.whiskerHigh)),
      line(x, y(box.q1), x, y(box.whiskerLow)),
      line(x - half / 2, y(box.whiskerHigh), x + half / 2, y(box.whiskerHigh)),
      line(x - half / 2, y(box.whiskerLow), x + half / 2, y(box.whiskerLow)),
      {
        type: "rect",
        shape: { x: x - half, y: y(box.q3), width: 2 * half, height: Math.max(1, y(box.q1) - y(box.q3)) },
        style: { fill: `${colour}40`, stroke: colour, lineWidth: 1.5 },
      },
      line(x - half, y(box.median), x + half, y(box.median), 3),
      ...outliers.map((value) => ({
        type: "circle",
        shape: { cx: x, cy: y(value), r: 2 },
        style: { fill: `${colour}80` },
      })),
      {
        type: "text",
        x,
        y: y(Math.max(box.whiskerHigh, ...outliers)) - 4,
        rotation: narrow ? Math.PI / 2 : 0,
        style: {
          text: `n=${count(box.n)}`,
          align: narrow ? "left" : "center",
          verticalAlign: narrow ? "middle" : "bottom",
          fill: look.muted,
          fontSize: narrow ? 9 : 11,
        },
      },
    ],
  };
}

type Of<K extends Chart["chart"]> = Extract<Chart, { chart: K }>;

const seriesName = (series: { group: readonly Cell[]; n: number }): string =>
  `${groupText(series.group)} (n=${count(series.n)})`;

/** Shares instead of counts, so that groups of different size compare. */
function histogramOption(chart: Of<"histogram">, fields: ChartFields, look: Look): Option {
  const names = chart.series.map(seriesName);
  const bins = chart.edges.length - 1;
  return {
    ...baseOption(look),
    legend: legend(names, look),
    grid: { left: 8, right: 28, top: 44, bottom: 36, containLabel: true },
    xAxis: below({ ...valueAxis(fields.y, look, false), min: chart.edges[0], max: chart.edges[bins] }),
    yAxis: beside(
      {
        ...valueAxis(undefined, look, false, "share of downloads"),
        axisLabel: { color: look.muted, formatter: (value: number) => `${quantity(value * 100, null)} %` },
      },
      look,
    ),
    tooltip: {
      ...(baseOption(look)["tooltip"] as object),
      trigger: "axis",
      valueFormatter: (value: unknown) => `${quantity(Number(value) * 100, null)} %`,
    },
    series: chart.series.map((series, index) => ({
      type: "line",
      name: names[index],
      step: "end",
      showSymbol: false,
      lineStyle: { width: 1.5 },
      areaStyle: { opacity: 0.18 },
      color: colourAt(look, index),
      data: chart.edges.map((edge, at) => [edge, (series.counts[Math.min(at, bins - 1)] ?? 0) / Math.max(1, series.n)]),
    })),
  };
}

interface LineSeries {
  group: readonly Cell[];
  n: number;
  x: readonly number[];
  y: readonly number[];
}

function linesOption(lines: readonly LineSeries[], fields: ChartFields, look: Look): Option {
  const names = lines.map(seriesName);
  return {
    ...baseOption(look),
    legend: legend(names, look),
    grid: { left: 8, right: 28, top: 44, bottom: 36, containLabel: true },
    xAxis: below(valueAxis(fields.y, look, fields.log)),
    yAxis: beside({ ...valueAxis(undefined, look, false, "share of downloads up to the value"), min: 0, max: 1 }, look),
    tooltip: { ...(baseOption(look)["tooltip"] as object), trigger: "item" },
    series: lines.map((line, index) => ({
      type: "line",
      name: names[index],
      step: "end",
      showSymbol: false,
      lineStyle: { width: 2 },
      color: colourAt(look, index),
      data: line.x.flatMap((value, at) => (fields.log && value <= 0 ? [] : [[value, line.y[at] ?? 0]])),
    })),
  };
}

function scatterOption(chart: Of<"scatter">, fields: ChartFields, look: Look): Option {
  const names = chart.series.map(seriesName);
  return {
    ...baseOption(look),
    legend: legend(names, look),
    grid: { left: 8, right: 28, top: 44, bottom: 36, containLabel: true },
    xAxis: below(valueAxis(fields.x, look, fields.log)),
    yAxis: beside(valueAxis(fields.y, look, fields.log), look),
    series: chart.series.map((series, index) => ({
      type: "scatter",
      name: names[index],
      symbolSize: 6,
      itemStyle: { color: colourAt(look, index), opacity: 0.6 },
      data: series.x.map((x, at) => [x, series.y[at] ?? 0]),
      tooltip: {
        formatter: ({ value }: { value: [number, number] }) =>
          `${names[index] ?? ""}\n${titleOf(fields.x)} ${quantity(value[0], unitOf(fields.x))}\n${titleOf(fields.y)} ${quantity(value[1], unitOf(fields.y))}`,
      },
    })),
  };
}

/** Of a line over time: ms since the epoch, and the value, null where the line has a gap. */
type Moment = [atMs: number, value: number | null];

interface Buckets {
  atMs: readonly number[];
  values: readonly number[];
}

/**
 * All buckets from `fromMs` to `toMs`: of each stretch of them without downloads the first and the last, as `empty`.
 */
export function withEmpty(
  { atMs, values }: Buckets,
  bucketMs: number,
  empty: 0 | null,
  fromMs: number,
  toMs: number,
): Moment[] {
  const moments: Moment[] = [];
  let nextMs = fromMs;
  const skipTo = (ms: number): void => {
    if (nextMs < ms) moments.push([nextMs, empty]);
    if (nextMs + bucketMs < ms) moments.push([ms - bucketMs, empty]);
  };
  atMs.forEach((at, index) => {
    skipTo(at);
    moments.push([at, values[index] ?? null]);
    nextMs = at + bucketMs;
  });
  skipTo(toMs + bucketMs);
  return moments;
}

/** Longer lines have no mark at each moment, but where one stands alone: no line leads there. */
const MARKED_MAX = 60;

function timeOption(chart: Of<"time">, fields: ChartFields, look: Look): Option {
  const names = chart.series.map(seriesName);
  const counted = fields.statistic === "count";
  const title = counted ? "downloads" : `${fields.statistic ?? "median"} of ${titleOf(fields.y)}`;
  const unit = counted ? null : unitOf(fields.y);
  const log = fields.log && !counted;
  // Of no downloads there is a number and a sum, but no median and no mean.
  const empty = counted || (fields.statistic === "sum" && !log) ? 0 : null;
  const fromMs = Math.min(...chart.series.map(({ atMs }) => atMs[0] ?? Infinity));
  const toMs = Math.max(...chart.series.map(({ atMs }) => atMs[atMs.length - 1] ?? -Infinity));
  return {
    ...baseOption(look),
    useUTC: true,
    legend: legend(names, look),
    grid: { left: 8, right: 28, top: 44, bottom: 36, containLabel: true },
    xAxis: below({ ...axisLook(look), type: "time", name: "start of the download, UTC" }),
    yAxis: beside(valueAxis(counted ? undefined : fields.y, look, log, title), look),
    tooltip: {
      ...(baseOption(look)["tooltip"] as object),
      trigger: "axis",
      valueFormatter: (value: unknown) => quantity(value === null ? NaN : Number(value), unit),
    },
    series: chart.series.map((series, index) => {
      const moments = withEmpty(series, chart.bucketMs, empty, fromMs, toMs);
      const alone = (at: number): boolean =>
        (moments[at - 1]?.[1] ?? null) === null && (moments[at + 1]?.[1] ?? null) === null;
      return {
        type: "line",
        name: names[index],
        symbolSize: 6,
        symbol: series.atMs.length < MARKED_MAX ? "emptyCircle" : "none",
        lineStyle: { width: 2 },
        color: colourAt(look, index),
        data: moments.map((moment, at) => (alone(at) ? { value: moment, symbol: "emptyCircle" } : moment)),
      };
    }),
  };
}

const HEADINGS = { box: ["n", "q1", "median", "q3", "whiskerLow", "whiskerHigh", "beyond"], series: ["n"] };

/** The table under a chart: one row a group, so that the drawing's numbers can be read. */
export function figuresOf(chart: Chart): {
  headings: string[];
  rows: { group: string; values: (number | undefined)[] }[];
} {
  if (chart.chart !== "box")
    return {
      headings: HEADINGS.series,
      rows: chart.series.map(({ group, n }) => ({ group: groupText(group), values: [n] })),
    };
  return {
    headings: HEADINGS.box,
    rows: chart.boxes.map((box) => ({
      group: groupText(box.group),
      values: [box.n, box.q1, box.median, box.q3, box.whiskerLow, box.whiskerHigh, box.outlierCount],
    })),
  };
}

/** Text that a spreadsheet would take for a formula has an apostrophe before it (csv.ts). */
export function csvOf(rows: readonly (readonly (string | number | undefined)[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}

/** All that was drawn, in the fields' own units. */
export function chartCsv(chart: Chart): string {
  switch (chart.chart) {
    case "box": {
      const { headings, rows } = figuresOf(chart);
      return csvOf([["group", ...headings], ...rows.map((row) => [row.group, ...row.values])]);
    }
    case "histogram":
      return csvOf([
        ["group", "from", "to", "count"],
        ...chart.series.flatMap((series) =>
          series.counts.map((each, at) => [groupText(series.group), chart.edges[at], chart.edges[at + 1], each]),
        ),
      ]);
    case "cdf":
      return csvOf([
        ["group", "value", "share"],
        ...chart.series.flatMap((series) =>
          series.values.map((value, at) => [groupText(series.group), value, series.shares[at]]),
        ),
      ]);
    case "scatter":
      return csvOf([
        ["group", "id", "x", "y"],
        ...chart.series.flatMap((series) =>
          series.x.map((x, at) => [groupText(series.group), series.ids[at], x, series.y[at]]),
        ),
      ]);
    case "time":
      return csvOf([
        ["group", "atMs", "value", "count"],
        ...chart.series.flatMap((series) =>
          series.atMs.map((at, point) => [groupText(series.group), at, series.values[point], series.counts[point]]),
        ),
      ]);
  }
}
