/**
 * EChart: one Apache ECharts chart. It follows the width of its place and can be saved as a PNG or SVG file. Only the
 * parts of ECharts that the dashboard uses are bundled. Tooltips are drawn on the canvas; they are not HTML.
 */
import { CustomChart, LineChart, ScatterChart } from "echarts/charts";
import {
  DataZoomInsideComponent,
  GeoComponent,
  GridComponent,
  LegendComponent,
  TooltipComponent,
} from "echarts/components";
import { LabelLayout } from "echarts/features";
import { init, use, type EChartsType } from "echarts/core";
import { CanvasRenderer, SVGRenderer } from "echarts/renderers";
import { useEffect, useImperativeHandle, useRef, type Ref } from "react";
import type { Option } from "./base";

use([
  CustomChart,
  LineChart,
  ScatterChart,
  DataZoomInsideComponent,
  GeoComponent,
  GridComponent,
  LabelLayout,
  LegendComponent,
  TooltipComponent,
  CanvasRenderer,
  SVGRenderer,
]);

export interface ChartHandle {
  png: (background: string) => Blob;
  svg: (background: string) => Blob;
}

interface Props {
  option: Option;
  /** CSS pixels. */
  height: number;
  /** What the chart shows, for people who cannot see it. */
  label: string;
  handle?: Ref<ChartHandle>;
  /** Called when a point is clicked, with the index of its series and its index in the data of that series. */
  onPick?: (seriesIndex: number, dataIndex: number) => void;
}

export function EChart({ option, height, label, handle, onPick }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<EChartsType>(undefined);
  const pointer = useRef<Pick<MouseEventInit, "clientX" | "clientY">>(undefined);
  const pick = useRef(onPick);
  pick.current = onPick;
  useEffect(() => {
    if (place.current === null) return;
    const made = init(place.current, null, { renderer: "canvas" });
    made.on("click", (event) => {
      const { seriesIndex, dataIndex } = event as { seriesIndex?: number; dataIndex?: number };
      if (seriesIndex !== undefined && dataIndex !== undefined) pick.current?.(seriesIndex, dataIndex);
    });
    const observer = new ResizeObserver(() => made.resize());
    observer.observe(place.current);
    chart.current = made;
    return () => {
      observer.disconnect();
      made.dispose();
    };
  }, []);
  // A new option replaces every part of the chart, also an open tooltip. A mouse event at the pointer opens it again.
  useEffect(() => {
    chart.current?.setOption(option, { notMerge: true });
    if (pointer.current)
      place.current
        ?.querySelector("canvas")
        ?.dispatchEvent(new MouseEvent("mousemove", { bubbles: true, ...pointer.current }));
  }, [option]);
  useImperativeHandle(
    handle,
    () => ({
      png: (background) =>
        blobOf(chart.current?.getDataURL({ type: "png", pixelRatio: 2, backgroundColor: background }) ?? ""),
      svg: (background) =>
        svgOf({ ...option, animation: false, backgroundColor: background }, chart.current?.getWidth() ?? 1000, height),
    }),
    [option, height],
  );
  return (
    <div
      ref={place}
      className="chart"
      role="img"
      aria-label={label}
      style={{ height }}
      onMouseMove={({ clientX, clientY }) => void (pointer.current = { clientX, clientY })}
      onMouseLeave={() => void (pointer.current = undefined)}
    />
  );
}

function svgOf(option: Option, width: number, height: number): Blob {
  const chart = init(null, null, { renderer: "svg", ssr: true, width, height });
  chart.setOption(option);
  const text = chart.renderToSVGString();
  chart.dispose();
  return new Blob([text], { type: "image/svg+xml" });
}

/** The page's security policy does not allow to fetch a `data:` address, so this function decodes it. */
function blobOf(dataUrl: string): Blob {
  const [head = "", body = ""] = dataUrl.split(",");
  return new Blob([Uint8Array.from(atob(body), (character) => character.charCodeAt(0))], {
    type: /^data:([^;]+)/.exec(head)?.[1] ?? "",
  });
}
