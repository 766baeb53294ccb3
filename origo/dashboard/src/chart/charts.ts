/**
 * Charts: turns the answers to chart questions into ECharts options. Pure. Histogram, distribution and scatter plot are
 * here; boxes.ts and over-time.ts have the others. The name of a group is made of its values.
 */
import type { Chart } from "@tributary/contract/query-schema";
import { quantity } from "../format";
import {
  baseOption,
  below,
  beside,
  legend,
  percent,
  seriesName,
  shareAxis,
  titleOf,
  unitOf,
  valueAxis,
  type ChartFields,
  type Option,
} from "./base";
import { boxOption } from "./boxes";
import { colourAt, type Look } from "./look";
import { timeOption } from "./over-time";

type Of<K extends Chart["chart"]> = Extract<Chart, { chart: K }>;

export function optionOf(chart: Chart, fields: ChartFields, look: Look): Option {
  switch (chart.chart) {
    case "box":
      return boxOption(chart.boxes, fields, look);
    case "histogram":
      return histogramOption(chart, fields, look);
    case "cdf":
      return distributionOption(chart, fields, look);
    case "scatter":
      return scatterOption(chart, fields, look);
    case "time":
      return timeOption(chart, fields, look);
  }
}

/** Shows shares instead of counts, so that groups of different sizes can be compared. */
function histogramOption(chart: Of<"histogram">, fields: ChartFields, look: Look): Option {
  const names = chart.series.map(seriesName);
  const bins = chart.edges.length - 1;
  const base = baseOption(look);
  return {
    ...base,
    legend: legend(names, look),
    xAxis: below({ ...valueAxis(fields.y, look, false), min: chart.edges[0], max: chart.edges[bins] }),
    yAxis: beside(shareAxis("share of downloads", look), look),
    tooltip: { ...(base["tooltip"] as object), trigger: "axis", valueFormatter: percent },
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

function distributionOption(chart: Of<"cdf">, fields: ChartFields, look: Look): Option {
  const names = chart.series.map(seriesName);
  return {
    ...baseOption(look),
    legend: legend(names, look),
    xAxis: below(valueAxis(fields.y, look, fields.log)),
    yAxis: beside({ ...shareAxis("share of downloads with at most this value", look), min: 0, max: 1 }, look),
    series: chart.series.map((series, index) => ({
      type: "line",
      name: names[index],
      showSymbol: false,
      lineStyle: { width: 2 },
      color: colourAt(look, index),
      data: stepsOf(series.values, series.shares).filter(([value]) => !fields.log || value > 0),
    })),
  };
}

/**
 * The corners of a staircase that rises at each value to its last share. Points between the corners are left out, since
 * ECharts skips points that are less than 2 pixels apart, which would make the stairs slant.
 */
export function stepsOf(values: readonly number[], shares: readonly number[]): [value: number, share: number][] {
  const corners: [number, number][] = [];
  let before = shares[0] ?? 0;
  values.forEach((value, at) => {
    if (values[at + 1] === value) return;
    const share = shares[at] ?? 0;
    corners.push([value, before], [value, share]);
    before = share;
  });
  return corners;
}

function scatterOption(chart: Of<"scatter">, fields: ChartFields, look: Look): Option {
  const names = chart.series.map(seriesName);
  return {
    ...baseOption(look),
    legend: legend(names, look),
    xAxis: below(valueAxis(fields.x, look, fields.log)),
    yAxis: beside(valueAxis(fields.y, look, fields.log), look),
    series: chart.series.map((series, index) => ({
      type: "scatter",
      name: names[index],
      symbolSize: 6,
      itemStyle: { color: colourAt(look, index), opacity: 0.6 },
      data: series.x.map((x, at) => [x, series.y[at] ?? 0]),
      tooltip: {
        formatter: ({ value: [x, y] }: { value: [number, number] }) =>
          `${names[index] ?? ""}\n` +
          `${titleOf(fields.x)}: ${quantity(x, unitOf(fields.x))}\n` +
          `${titleOf(fields.y)}: ${quantity(y, unitOf(fields.y))}`,
      },
    })),
  };
}
