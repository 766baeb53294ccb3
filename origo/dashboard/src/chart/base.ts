/** Base: what all drawings have in common, as ECharts options in the colours of the page. Pure. */
import type { EChartsCoreOption } from "echarts/core";
import type { Look } from "./look";

export type Option = EChartsCoreOption;

/** What all drawings have in common. */
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
    grid: { left: 8, right: 20, top: 40, bottom: 28, containLabel: true },
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
