/**
 * The plays as a picture: panels for start-up, time stalled and bitrate over each set of links (circle: a play, bar:
 * the median). Below them, the sizes that the player asked for (as Braun, Médard, Ekler 2019, Fig. 10).
 */
import { colourBy, inOrder } from "../kit/picture";
import type { VideoBox } from "./boxes";
import type { Play } from "./play";

const PANELS = [
  { title: "start-up, s", of: ({ startUpMs }: Play) => (startUpMs ?? NaN) / 1000 },
  { title: "stalled, s", of: ({ stalledMs }: Play) => stalledMs / 1000 },
  { title: "mean bitrate, Mbit/s", of: ({ bitsPerSec }: Play) => bitsPerSec / 1e6 },
];

/** Upper limits, in KiB, and their names. */
const SIZES: readonly (readonly [number, string])[] = [
  [64, "under 64 KB"],
  [128, "64 - 128 KB"],
  [256, "128 - 256 KB"],
  [512, "256 - 512 KB"],
  [1024, "512 KB - 1 MB"],
  [2048, "1 - 2 MB"],
  [4096, "2 - 4 MB"],
  [Infinity, "over 4 MB"],
];

/** As `COLOURS` names it: what the extension chooses is WebTransport. */
const whoOf = ({ mode, transport }: VideoBox): string =>
  mode === "coded" && transport === "auto" ? "coded WebTransport" : mode;

export function specificationOf(boxes: readonly VideoBox[], plays: readonly Play[], subtitle: string): object {
  const byId = new Map(boxes.map((box) => [box.id, box]));
  const points = plays.flatMap((play) => {
    const box = byId.get(play.box);
    return box && play.ok ? [{ play, links: box.links.id, who: whoOf(box) }] : [];
  });
  const who = inOrder(points.map((point) => point.who));
  const panel = (links: string, { title, of }: (typeof PANELS)[number]): object => {
    const x = {
      field: "who",
      type: "nominal",
      sort: who,
      axis: { title: null, labelAngle: 0, labelExpr: "split(datum.label, ' over ')" },
    };
    const color = colourBy("who", who, null);
    const most = Math.max(1, ...points.map((point) => of(point.play) || 0));
    const y = {
      field: "value",
      type: "quantitative",
      axis: { title, tickCount: 4 },
      scale: { domain: [0, most], nice: true },
    };
    return {
      width: 260,
      height: 130,
      data: {
        values: points
          .filter((point) => point.links === links)
          .map((point) => ({ who: point.who, value: of(point.play) })),
      },
      layer: [
        { mark: { type: "tick", thickness: 2.5, size: 34 }, encoding: { x, y: { ...y, aggregate: "median" }, color } },
        { mark: { type: "point", size: 34, strokeWidth: 1.3 }, encoding: { x, y, color } },
      ],
    };
  };
  const rows = [...new Set(points.map(({ links }) => links))].map((links) => ({
    title: links,
    hconcat: PANELS.map((each) => panel(links, each)),
    spacing: 24,
  }));
  const sizes = who.flatMap((each) => {
    const own = points.filter((point) => point.who === each).flatMap(({ play }) => play.segmentBytes);
    const nameOf = (bytes: number): string => SIZES.find(([limit]) => bytes < 1024 * limit)![1];
    return SIZES.map(([, size]) => ({
      who: each,
      size,
      percent: (100 * own.filter((bytes) => nameOf(bytes) === size).length) / own.length,
    }));
  });
  const asked = {
    title: "segments that the player asked for, by size (as the paper's Fig. 10), all links",
    width: 828,
    height: 130,
    data: { values: sizes },
    mark: { type: "bar" },
    encoding: {
      x: { field: "size", type: "nominal", sort: SIZES.map(([, name]) => name), axis: { title: null, labelAngle: 0 } },
      xOffset: { field: "who", sort: who },
      y: { field: "percent", type: "quantitative", axis: { title: "% of segments", tickCount: 4 } },
      color: colourBy("who", who, {}),
    },
  };
  return {
    title: "Video over emulated links: hls.js in Chromium",
    subtitle: [subtitle, "circle: a play; bar: the median"],
    vconcat: [...rows, asked],
    spacing: 22,
  };
}
