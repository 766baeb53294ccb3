/** Map: the proxies that told their place, on the world's land; size by what they send now, colour by their state. */
import land from "world-atlas/land-110m.json";
import { registerMap } from "echarts/core";
import { useMemo } from "react";
import type { FleetProxy } from "../../../src/schema";
import { rate } from "../format";
import { baseOption, type Option } from "./base";
import { EChart } from "./echart";
import { useLook, type Look } from "./look";

registerMap("land", land as unknown as Parameters<typeof registerMap>[1]);

const COLOURS = (look: Look): Record<string, string> => ({ live: look.series[2] ?? look.text, draining: look.packet.duplicate, disabled: look.packet.rejected });

function mapOption(proxies: readonly FleetProxy[], look: Look): Option {
  const most = Math.max(1, ...proxies.map((proxy) => proxy.sentBytesPerSec ?? 0));
  return {
    ...baseOption(look),
    geo: {
      map: "land", roam: false, silent: true, preserveAspect: "contain", left: 0, right: 0, top: 0, bottom: 0, boundingCoords: [[-170, 76], [190, -56]], clip: true,
      itemStyle: { areaColor: look.land, borderColor: look.land, borderWidth: 0.5 },
    },
    series: [{
      type: "scatter", coordinateSystem: "geo",
      data: proxies.flatMap((proxy) => (proxy.place ? [{
        name: proxy.name, value: [proxy.place.lon, proxy.place.lat, proxy.sentBytesPerSec ?? 0],
        symbolSize: 10 + 14 * Math.sqrt((proxy.sentBytesPerSec ?? 0) / most),
        itemStyle: { color: COLOURS(look)[proxy.state], borderColor: look.surface, borderWidth: 1.5, opacity: 0.9 },
      }] : [])),
      label: { show: proxies.length <= 24, formatter: "{b}", position: "right", color: look.text, fontSize: 11, textBorderColor: look.surface, textBorderWidth: 2 },
      labelLayout: { hideOverlap: true },
      tooltip: { formatter: ({ name, value }: { name: string; value: [number, number, number] }) => `${name}\n${rate(value[2])}\n${value[1].toFixed(1)}°, ${value[0].toFixed(1)}°` },
    }],
  };
}

export default function FleetMap({ proxies }: { proxies: readonly FleetProxy[] }) {
  const look = useLook();
  const height = Math.min(380, Math.round(window.innerWidth * 0.48));
  const option = useMemo(() => mapOption(proxies, look), [proxies, look]);
  return <EChart option={option} height={height} label={`Map of ${proxies.length} proxies: ${proxies.map((proxy) => proxy.name).join(", ")}`} />;
}
