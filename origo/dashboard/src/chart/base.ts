/**
 * Base: what all charts share: their options, axes, legend, and the names of groups, in the colours of the page. Pure.
 */
import type { EChartsCoreOption } from "echarts/core";
import type { Cell, Field } from "@tributary/contract/query-schema";
import { count, quantity } from "../format";
import type { Look } from "./look";

export type Option = EChartsCoreOption;

export interface ChartFields {
  /** The field on the axis of values; in a scatter plot the vertical axis. */
  y: Field | undefined;
  /** The horizontal axis of a scatter plot. */
  x?: Field | undefined;
  groups: readonly (Field | undefined)[];
  /** What a chart over time shows of each interval. */
  statistic?: string | undefined;
  log: boolean;
}

export function baseOption(look: Look): Option {
  return {
    animation: false,
    textStyle: {
      fontFamily: "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif",
      color: look.text,
    },
    tooltip: {
      renderMode: "richText",
      confine: true,
      backgroundColor: look.surface,
      borderColor: look.line,
      borderWidth: 1,
      textStyle: { color: look.text, fontSize: 12, lineHeight: 18 },
    },
    grid: { left: 8, right: 28, top: 44, bottom: 36, containLabel: true },
  };
}

export function axisLook(look: Look): Option {
  return {
    axisLine: { show: true, lineStyle: { color: look.line } },
    axisTick: { show: false },
    axisLabel: { color: look.muted, hideOverlap: true },
    splitLine: { lineStyle: { color: look.line } },
    nameTextStyle: { color: look.muted },
  };
}

export const titleOf = (field: Field | undefined): string => field?.label ?? "";
export const unitOf = (field: Field | undefined): string | null => field?.unit ?? null;

export function valueAxis(field: Field | undefined, look: Look, log: boolean, name = titleOf(field)): Option {
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

/** A vertical axis that shows shares from 0 to 1 as percentages. */
export function shareAxis(name: string, look: Look): Option {
  return { ...valueAxis(undefined, look, false, name), axisLabel: { color: look.muted, formatter: percent } };
}

export const percent = (share: unknown): string => `${quantity(Number(share) * 100, null)} %`;

/** Puts a value axis under the chart, with its name in the middle below. */
export const below = (axis: Option): Option => ({ ...axis, nameLocation: "middle", nameGap: 28 });
/** Puts a value axis beside the chart, with its name above it. */
export const beside = (axis: Option, look: Look): Option => ({
  ...axis,
  nameTextStyle: { color: look.muted, align: "left", padding: [0, 0, 0, -28] },
});

export function legend(names: readonly string[], look: Look): Option {
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

export const cellText = (cell: Cell | undefined): string =>
  cell === null || cell === undefined ? "none" : String(cell);
/** The values of a group, or `all` when the downloads are not grouped. */
export const groupText = (group: readonly Cell[]): string =>
  group.length === 0 ? "all" : group.map(cellText).join(" · ");

export const seriesName = (series: { group: readonly Cell[]; n: number }): string =>
  `${groupText(series.group)} (n=${count(series.n)})`;
