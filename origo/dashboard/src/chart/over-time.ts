/** Over time: a chart with one line per group, over the time when the downloads started. Pure. */
import type { Chart } from "@tributary/contract/query-schema";
import { quantity } from "../format";
import {
  axisLook,
  baseOption,
  below,
  beside,
  legend,
  seriesName,
  titleOf,
  unitOf,
  valueAxis,
  type ChartFields,
  type Option,
} from "./base";
import { colourAt, type Look } from "./look";

/**
 * A longer line has no mark at each point. Only a point without neighbours keeps its mark, since no line reaches it.
 */
const MARKED_POINTS_MAX = 60;

/** A point of a line: the time in ms since the epoch, and the value, or null where the line has a gap. */
type Moment = [atMs: number, value: number | null];

interface Intervals {
  atMs: readonly number[];
  values: readonly number[];
}

/**
 * Adds intervals without downloads, from `fromMs` to `toMs`, with the value `empty`. Of consecutive ones only the first
 * and the last are added.
 */
export function withEmpty(
  { atMs, values }: Intervals,
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

export function timeOption(chart: Extract<Chart, { chart: "time" }>, fields: ChartFields, look: Look): Option {
  const names = chart.series.map(seriesName);
  const isCount = fields.statistic === "count";
  const title = isCount ? "number of downloads" : `${fields.statistic ?? "median"} of ${titleOf(fields.y)}`;
  const unit = isCount ? null : unitOf(fields.y);
  const log = fields.log && !isCount;
  // An interval without downloads has the count 0 and the sum 0, but no median and no mean.
  const empty = isCount || (fields.statistic === "sum" && !log) ? 0 : null;
  const fromMs = Math.min(...chart.series.map(({ atMs }) => atMs[0] ?? Infinity));
  const toMs = Math.max(...chart.series.map(({ atMs }) => atMs[atMs.length - 1] ?? -Infinity));
  const base = baseOption(look);
  return {
    ...base,
    useUTC: true,
    legend: legend(names, look),
    xAxis: below({ ...axisLook(look), type: "time", name: "start of the download, UTC" }),
    yAxis: beside(valueAxis(isCount ? undefined : fields.y, look, log, title), look),
    tooltip: {
      ...(base["tooltip"] as object),
      trigger: "axis",
      valueFormatter: (value: unknown) => quantity(value === null ? NaN : Number(value), unit),
    },
    series: chart.series.map((series, index) => {
      const moments = withEmpty(series, chart.bucketMs, empty, fromMs, toMs);
      const isAlone = (at: number): boolean =>
        (moments[at - 1]?.[1] ?? null) === null && (moments[at + 1]?.[1] ?? null) === null;
      return {
        type: "line",
        name: names[index],
        symbolSize: 6,
        symbol: series.atMs.length < MARKED_POINTS_MAX ? "emptyCircle" : "none",
        lineStyle: { width: 2 },
        color: colourAt(look, index),
        data: moments.map((moment, at) => (isAlone(at) ? { value: moment, symbol: "emptyCircle" } : moment)),
      };
    }),
  };
}
