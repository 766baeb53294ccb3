/** Figures: the numbers of a chart as a table and as CSV. Pure. */
import { csvCell } from "../../../src/csv";
import type { Chart } from "@tributary/contract/query-schema";
import { groupText } from "./base";

export interface Figures {
  headings: string[];
  /** One row per group. */
  rows: { group: string; values: number[] }[];
}

/** The table under a chart. It shows the quartiles of boxes, and n for every other chart. */
export function figuresOf(chart: Chart): Figures {
  if (chart.chart !== "box")
    return { headings: ["n"], rows: chart.series.map(({ group, n }) => ({ group: groupText(group), values: [n] })) };
  return {
    headings: ["n", "q1", "median", "q3", "whiskerLow", "whiskerHigh", "outliers"],
    rows: chart.boxes.map((box) => ({
      group: groupText(box.group),
      values: [box.n, box.q1, box.median, box.q3, box.whiskerLow, box.whiskerHigh, box.outlierCount],
    })),
  };
}

/** Writes a table as CSV. src/csv.ts says how text that looks like a formula is written. */
export function csvOf(rows: readonly (readonly (string | number | undefined)[])[]): string {
  return rows.map((row) => `${row.map(csvCell).join(",")}\r\n`).join("");
}

/** Everything that the chart shows, in the units of the fields. */
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
