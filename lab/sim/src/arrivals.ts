/**
 * The packets of one download by source and time, like the paper's Figs 8 and 9. Each source has a panel. Colours tell
 * innovative, duplicate and late packets apart, and marks below show the client's messages to the source. The result is
 * Vega-Lite, which lab/sim/draw.mjs draws.
 */
const KINDS: Readonly<Record<string, string>> = {
  innovative: "#1f7a4d",
  duplicate: "#d9822b",
  late: "#b3372f",
  rejected: "#6b2d7a",
};
export const PANEL_WIDTH = 760;
/** The same width of every Y axis aligns the panels. */
export const Y_EXTENT = 36;
const WORDS_COLOUR = "#3465a4";
/** The client's messages are marked this far below the curves, as a share of the height. */
const WORDS_SHARE = 0.12;

export interface Arrival {
  ms: number;
  source: number;
  kind: string;
}

/** A message of the client to a source. */
export interface Word {
  ms: number;
  source: number;
}

/** One panel for each source. The last one has the time axis, from 0 to `lastMs`. */
export function arrivalPanels(
  arrivals: readonly Arrival[],
  words: readonly Word[],
  sourceNames: readonly string[],
  lastMs: number,
): object[] {
  const counted = sourceNames.map((_, source) =>
    arrivals
      .filter((arrival) => arrival.source === source)
      .map(({ ms, kind }, index) => ({ ms, kind, count: index + 1 })),
  );
  const most = Math.max(10, ...counted.map(({ length }) => length));
  const kinds = Object.keys(KINDS).filter(
    (kind) => kind !== "rejected" || arrivals.some((arrival) => arrival.kind === kind),
  );
  const y = {
    field: "count",
    type: "quantitative",
    scale: { domain: [-most * WORDS_SHARE * 1.6, most], nice: false },
    axis: { title: "packets", values: ticksTo(most), format: ",d", minExtent: Y_EXTENT },
  };
  const color = {
    field: "kind",
    type: "nominal",
    scale: { domain: kinds, range: kinds.map((kind) => KINDS[kind]) },
    legend: { title: null, orient: "bottom", symbolType: "square", symbolSize: 90 },
  };
  return sourceNames.map((title, source) => {
    const x = timeAxis(lastMs, source === sourceNames.length - 1);
    const said = words.filter((word) => word.source === source).map(({ ms }) => ({ ms, count: -most * WORDS_SHARE }));
    return {
      width: PANEL_WIDTH,
      height: 74,
      title,
      layer: [
        {
          data: { values: said },
          mark: { type: "tick", orient: "vertical", size: 9, thickness: 1, color: WORDS_COLOUR, opacity: 0.8 },
          encoding: { x, y },
        },
        {
          data: { values: counted[source] },
          mark: { type: "point", shape: "circle", filled: true, size: 9, opacity: 1 },
          encoding: { x, y, color },
        },
      ],
    };
  });
}

export function timeAxis(lastMs: number, isLast: boolean): object {
  return {
    field: "ms",
    type: "quantitative",
    scale: { domain: [0, lastMs], nice: false },
    axis: { title: isLast ? "ms since the request" : null, labels: isLast, ticks: isLast, grid: true, tickCount: 10 },
  };
}

/** 0 and two equal steps up to a round number near `most`. */
function ticksTo(most: number): number[] {
  const step = 10 ** Math.floor(Math.log10(most / 2));
  const round = Math.floor(most / 2 / step) * step;
  return [0, round, 2 * round];
}
