/**
 * Map: the proxies whose place is known, on a map of the world. A larger dot sends more now; the colour shows the
 * state.
 */
import land from "world-atlas/land-110m.json";
import { registerMap } from "echarts/core";
import { useMemo } from "react";
import { degrees, rate } from "../format";
import { baseOption, type Option } from "./base";
import { EChart } from "./echart";
import { useLook, type Look } from "./look";
import { longitudeOf, MAP, nameGroups, pxPerDegree, type PlacedProxy } from "./places";

registerMap("land", land as unknown as Parameters<typeof registerMap>[1]);

const COLOURS = (look: Look): Record<string, string> => ({
  live: look.series[2] ?? look.text,
  draining: look.packet.duplicate,
  disabled: look.packet.rejected,
});

/** A tooltip has room for this many proxies. The table below the map lists all. */
const NAMED_MAX = 10;

function describe(group: readonly PlacedProxy[]): string {
  const lines = group
    .slice(0, NAMED_MAX)
    .map(({ name, sentBytesPerSec, place }) => `${name}  ${rate(sentBytesPerSec)}  ${degrees(place)}`);
  return [...lines, ...(group.length > NAMED_MAX ? [`and ${group.length - NAMED_MAX} more`] : [])].join("\n");
}

/**
 * Every proxy has a dot. Where names would overlap, the map shows their number instead, and the tooltip of each of
 * these dots lists the whole group.
 */
function mapOption(proxies: readonly PlacedProxy[], look: Look, width: number, height: number): Option {
  const most = Math.max(1, ...proxies.map((proxy) => proxy.sentBytesPerSec ?? 0));
  const dots = nameGroups(proxies, pxPerDegree(width, height)).flatMap((group) => {
    const name = group.length === 1 ? group[0]!.name : `${group.length} proxies`;
    const tooltip = describe(group);
    return group.map((proxy, index) => ({
      name,
      tooltip,
      value: [longitudeOf(proxy), proxy.place.lat],
      symbolSize: 10 + 14 * Math.sqrt((proxy.sentBytesPerSec ?? 0) / most),
      itemStyle: { color: COLOURS(look)[proxy.state], borderColor: look.surface, borderWidth: 1.5, opacity: 0.9 },
      label: { show: index === 0 },
    }));
  });
  return {
    ...baseOption(look),
    geo: {
      map: "land",
      roam: false,
      silent: true,
      preserveAspect: "contain",
      aspectScale: MAP.aspect,
      left: 0,
      right: 0,
      top: 0,
      bottom: 0,
      boundingCoords: [
        [MAP.west, MAP.north],
        [MAP.east, MAP.south],
      ],
      clip: true,
      itemStyle: { areaColor: look.land, borderColor: look.land, borderWidth: 0.5 },
    },
    series: [
      {
        type: "scatter",
        coordinateSystem: "geo",
        data: dots,
        label: {
          formatter: "{b}",
          position: "right",
          color: look.text,
          fontSize: 11,
          textBorderColor: look.surface,
          textBorderWidth: 2,
        },
        labelLayout: { hideOverlap: true },
        tooltip: { formatter: ({ data }: { data: { tooltip: string } }) => data.tooltip },
      },
    ],
  };
}

export default function FleetMap({ proxies }: { proxies: readonly PlacedProxy[] }) {
  const look = useLook();
  const height = Math.min(380, Math.round(window.innerWidth * 0.48));
  const option = useMemo(() => mapOption(proxies, look, window.innerWidth, height), [proxies, look, height]);
  return (
    <EChart
      option={option}
      height={height}
      label={`Map of ${proxies.length} proxies: ${proxies.map((proxy) => proxy.name).join(", ")}`}
    />
  );
}
