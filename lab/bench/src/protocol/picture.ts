/**
 * The rows of `npm run bench -- protocol` as a picture: for each row and mode completion over the bound, from the
 * median to the 95th percentile, and normalized goodput, from the median to the 5th. Makes a Vega-Lite specification;
 * lab/sim/draw.mjs draws it.
 */
import { colourBy } from "../kit/picture";
import type { Measured } from "./measure";
import type { Row } from "./rows";
import type { Mode } from "@tributary/lab-sim";

const COLOURS: Readonly<Record<Mode, string>> = {
  coded: "#1f4e9c",
  "coded-mutp": "#2a9d8f",
  "uncoded-mutp": "#9bbf3b",
  "split-http": "#d9822b",
  "split-http-cubic": "#b3372f",
  "parallel-http": "#999999",
  "parallel-http-cubic": "#555555",
};
const RATIO_MAX = 8;

interface Point {
  row: string;
  mode: Mode;
  ratio: number;
  ratioP95: number;
  goodput: number;
  goodputP5: number;
}

/** `groups`: each row with what was measured for it. */
export function pictureOf(groups: readonly { row: Row; measured: readonly Measured[] }[], seeds: number): object {
  const points = groups
    .filter(({ row }) => row.short !== undefined)
    .flatMap(({ row, measured }) => measured.map((one) => pointOf(row, one)));
  const rows = [...new Set(points.map(({ row }) => row))];
  const modes = (Object.keys(COLOURS) as Mode[]).filter((mode) => points.some((point) => point.mode === mode));
  const legend = { columns: 7, labelLimit: 0, symbolType: "circle", symbolSize: 90 };
  const color = colourBy("mode", modes, legend, COLOURS);
  const y = (labels: boolean): object => ({
    field: "row",
    type: "nominal",
    sort: rows,
    axis: { title: null, labels, labelLimit: 0, ticks: false, domain: false, grid: true, labelPadding: 8 },
  });
  const ratio = {
    scale: { type: "log", domain: [1, RATIO_MAX], clamp: true, nice: false },
    axis: {
      title: `completion over bound (log scale, up to ${RATIO_MAX})`,
      values: [1, 1.1, 1.25, 1.5, 2, 3, 4, 6, 8],
      format: "~r",
      grid: true,
    },
  };
  const goodput = {
    scale: { domain: [0, 1], nice: false },
    axis: { title: "normalized goodput", tickCount: 5, grid: true },
  };
  const panel = (labels: boolean, [from, to]: readonly [string, string], axis: object): object => ({
    width: labels ? 430 : 300,
    height: { step: 8 + 6 * modes.length, for: "position" },
    data: { values: points },
    encoding: { y: y(labels), yOffset: { field: "mode", type: "nominal", sort: modes }, color },
    layer: [
      {
        mark: { type: "rule", strokeWidth: 2, opacity: 0.55 },
        encoding: { x: { field: from, type: "quantitative", ...axis }, x2: { field: to } },
      },
      {
        mark: { type: "circle", size: 34, opacity: 1 },
        encoding: { x: { field: from, type: "quantitative", ...axis } },
      },
    ],
  });
  const title = "Downloads in simulation, against what the links allow";
  const subtitle =
    `median (dot) to 95th percentile of completion, to 5th of goodput; ${seeds} seeds a row; 1.0 ` +
    "is the bound on both sides";
  return {
    title,
    subtitle,
    hconcat: [panel(true, ["ratio", "ratioP95"], ratio), panel(false, ["goodput", "goodputP5"], goodput)],
    spacing: 18,
    resolve: { scale: { color: "shared" } },
  };
}

function pointOf(
  row: Row,
  {
    loss,
    rttMs,
    chunkBytes,
    mode,
    completionSec,
    completionSecP95,
    boundSec,
    normalizedGoodput,
    normalizedGoodputP5,
  }: Measured,
): Point {
  const within = (ratio: number): number => Math.min(RATIO_MAX, Math.max(1, ratio));
  const label = `${row.short}, ${chunkBytes / 1000} KB, loss ${loss * 100} %, RTT ${rttMs} ms`;
  return {
    row: label,
    mode,
    ratio: within(completionSec / boundSec),
    ratioP95: within(completionSecP95 / boundSec),
    goodput: normalizedGoodput,
    goodputP5: normalizedGoodputP5,
  };
}
