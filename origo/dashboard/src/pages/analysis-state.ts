/** The state of the analysis page, which is in its address, and the question that it asks Origo. Pure. */
import { z } from "zod";
import { Condition, QUERY_LIMITS, type ChartQuery } from "@tributary/contract/query-schema";
import { DifferenceState } from "../difference";

export const KINDS = {
  box: "Boxes",
  histogram: "Histogram",
  cdf: "Distribution",
  scatter: "Scatter",
  time: "Over time",
} as const;
export type Kind = keyof typeof KINDS;

export const STATISTICS = ["median", "mean", "count", "sum"] as const;

/** Lengths of the intervals of a chart over time, in ms. */
export const INTERVALS = [
  { value: "60000", label: "minute" },
  { value: "600000", label: "10 minutes" },
  { value: "3600000", label: "hour" },
  { value: "86400000", label: "day" },
  { value: "604800000", label: "week" },
];

export const BINS_MAX = 200;

export const State = z.object({
  chart: z.enum(["box", "histogram", "cdf", "scatter", "time"]).default("box"),
  metric: z.string().default("goodputBytesPerSec"),
  x: z.string().default("durationMs"),
  groupBy: z.array(z.string()).max(2).default(["mode"]),
  where: z.array(Condition).default([]),
  bins: z.number().int().min(1).max(BINS_MAX).default(40),
  statistic: z.enum(STATISTICS).default("median"),
  bucketMs: z.number().int().min(1000).max(QUERY_LIMITS.bucketMs).default(3_600_000),
  log: z.boolean().default(false),
  difference: DifferenceState.optional(),
});
export type State = z.output<typeof State>;

/** The fields that group the downloads. Only boxes take two. */
export const groupsOf = ({ chart, groupBy }: State): string[] => groupBy.slice(0, chart === "box" ? 2 : 1);

export function queryOf(state: State): ChartQuery {
  const { chart, metric, where } = state;
  const groupBy = groupsOf(state);
  switch (chart) {
    case "box":
      return { chart, metric, groupBy, where };
    case "histogram":
      return { chart, metric, bins: state.bins, groupBy, where };
    case "cdf":
      return { chart, metric, groupBy, where };
    case "scatter":
      return { chart, x: state.x, y: metric, groupBy, where };
    case "time":
      return { chart, metric, statistic: state.statistic, bucketMs: state.bucketMs, groupBy, where };
  }
}

/** How to read a chart. */
export function explanationOf({ chart, statistic, bucketMs }: State): string {
  switch (chart) {
    case "box":
      return (
        "A box holds the middle half of the downloads; the thick line is the median. " +
        "Whiskers reach to the last value within 1.5 box heights. Dots are outliers."
      );
    case "histogram":
      return "The height of a bar is the share of the group's downloads with a value in that range.";
    case "cdf":
      return "The height of a line at a value is the share of downloads with at most this value.";
    case "scatter":
      return "Each point is a download; click it to open the download. Of many downloads a sample is shown.";
    case "time": {
      const interval = INTERVALS.find(({ value }) => value === String(bucketMs))?.label ?? `${bucketMs / 1000} s`;
      return statistic === "count"
        ? `Each point is the number of downloads that started in the same ${interval}.`
        : `Each point is the ${statistic} of the downloads that started in the same ${interval}.`;
    }
  }
}
