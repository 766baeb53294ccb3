/**
 * Trace: two charts of the packets of one download. Pure. The first is like the paper's Figs. 8 and 9: each proxy has a
 * lane, each packet is a dot placed by its time and generation, and the colour shows what the packet was. Ticks show
 * the feedback that the client sent. The second chart shows when each generation filled.
 */
import type { Trace } from "@tributary/contract/query-schema";
import { count, quantity } from "../format";
import { axisLook, baseOption, type Option } from "./base";
import type { Look } from "./look";

const KINDS = ["innovative", "duplicate", "late", "rejected"] as const;
/** The share of a lane's height that its packets take. The feedback is below them. */
const LANE = 0.72;

const timeAxis = (look: Look): Option => ({
  ...axisLook(look),
  type: "value",
  name: "time since the request, ms",
  nameLocation: "middle",
  nameGap: 26,
  min: 0,
  axisLine: { onZero: false, lineStyle: { color: look.line } },
});

export function arrivalsOption(trace: Trace, names: readonly string[], look: Look): Option {
  const top = names.length - 1;
  const height = (generation: number): number =>
    (trace.generationCount > 1 ? generation / (trace.generationCount - 1) : 0.5) * LANE - LANE / 2 + 0.08;
  const at = (kind: (typeof KINDS)[number]) =>
    trace.packets
      .filter((packet) => packet[3] === kind)
      .map(([ms, proxy, generation]) => [ms, top - proxy + height(generation), generation, proxy]);
  const shown = KINDS.map((kind) => ({ kind, data: at(kind) })).filter(({ data }) => data.length > 0);
  return {
    ...baseOption(look),
    legend: { type: "scroll", top: 0, left: 0, right: 0, textStyle: { color: look.text }, icon: "circle" },
    grid: { left: 8, right: 20, top: 36, bottom: 34, containLabel: true },
    dataZoom: [
      { type: "inside", xAxisIndex: 0, filterMode: "none", zoomOnMouseWheel: "ctrl", moveOnMouseWheel: false },
    ],
    xAxis: timeAxis(look),
    yAxis: {
      ...axisLook(look),
      type: "value",
      min: -0.5,
      max: top + 0.5,
      interval: 0.5,
      // Lanes are one unit high and begin at -0.5, so every other line lies between two lanes.
      splitLine: { lineStyle: { color: [look.line, "transparent"] } },
      axisLabel: {
        color: look.text,
        formatter: (value: number) => (Number.isInteger(value) ? (names[top - value] ?? "") : ""),
      },
    },
    series: [
      ...shown.map(({ kind, data }) => ({
        type: "scatter",
        name: `${kind} (${count(data.length)})`,
        data,
        symbolSize: kind === "innovative" ? 4 : 5,
        itemStyle: { color: look.packet[kind] },
        large: data.length > 4000,
        largeThreshold: 4000,
        tooltip: {
          formatter: ({ value }: { value: number[] }) =>
            `${kind} packet from ${names[value[3] ?? 0] ?? ""}\n` +
            `after ${quantity(value[0] ?? 0, "ms")}, generation ${value[2] ?? 0}`,
        },
      })),
      {
        type: "scatter",
        name: `feedback (${count(trace.feedback.length)})`,
        symbol: "rect",
        symbolSize: [1.5, 7],
        itemStyle: { color: look.muted },
        data: trace.feedback.map(([ms, proxy]) => [ms, top - proxy - 0.4, 0, proxy]),
        tooltip: {
          formatter: ({ value }: { value: number[] }) =>
            `feedback to ${names[value[3] ?? 0] ?? ""}\nafter ${quantity(value[0] ?? 0, "ms")}`,
        },
      },
    ],
  };
}

export interface Filling {
  generation: number;
  /** When the first and the last innovative packet arrived, in ms. */
  fromMs: number;
  toMs: number;
  innovative: number;
}

/** Sorted by generation. A generation without innovative packets is left out. */
export function fillingsOf(trace: Trace): Filling[] {
  const fillings = new Map<number, Filling>();
  for (const [ms, , generation, kind] of trace.packets) {
    if (kind !== "innovative") continue;
    const known = fillings.get(generation) ?? { generation, fromMs: ms, toMs: ms, innovative: 0 };
    fillings.set(generation, {
      generation,
      fromMs: Math.min(known.fromMs, ms),
      toMs: Math.max(known.toMs, ms),
      innovative: known.innovative + 1,
    });
  }
  return [...fillings.values()].sort((a, b) => a.generation - b.generation);
}

export function generationsOption(trace: Trace, look: Look): Option {
  const fillings = fillingsOf(trace);
  return {
    ...baseOption(look),
    grid: { left: 8, right: 20, top: 24, bottom: 34, containLabel: true },
    xAxis: timeAxis(look),
    yAxis: {
      ...axisLook(look),
      type: "value",
      name: "generation",
      nameTextStyle: { color: look.muted, align: "left" },
      min: -0.5,
      max: trace.generationCount - 0.5,
      splitLine: { show: false },
      minInterval: 1,
      axisLabel: { color: look.muted, formatter: (value: number) => (Number.isInteger(value) ? String(value) : "") },
    },
    series: [
      {
        type: "custom",
        encode: { x: [0, 1], y: 2 },
        data: fillings.map((filling) => [filling.fromMs, filling.toMs, filling.generation, filling.innovative]),
        tooltip: {
          formatter: ({ value }: { value: number[] }) =>
            `generation ${value[2] ?? 0}: ${count(value[3] ?? 0)} innovative packets\n` +
            `from ${quantity(value[0] ?? 0, "ms")} to ${quantity(value[1] ?? 0, "ms")}`,
        },
        renderItem: (
          _params: unknown,
          api: {
            value: (dimension: number) => number;
            coord: (point: [number, number]) => [number, number];
            size: (span: [number, number]) => [number, number];
          },
        ) => {
          const [fromX, y] = api.coord([api.value(0), api.value(2)]);
          const [toX] = api.coord([api.value(1), api.value(2)]);
          const height = Math.max(2, Math.min(12, api.size([0, 1])[1] * 0.7));
          return {
            type: "rect",
            shape: { x: fromX, y: y - height / 2, width: Math.max(2, toX - fromX), height, r: 1 },
            style: { fill: look.packet.innovative },
          };
        },
      },
    ],
  };
}
