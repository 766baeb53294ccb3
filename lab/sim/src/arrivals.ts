/**
 * The packets of one download by source and time, in the way of the paper's Figs 8 and 9: a panel a source, innovative,
 * duplicate and late packets by colour, and below them what the client said to it. Vega-Lite, which lab/sim/draw.mjs
 * draws.
 */
const KINDS: Readonly<Record<string, string>> = {
  innovative: "#1f7a4d",
  duplicate: "#d9822b",
  late: "#b3372f",
  rejected: "#6b2d7a",
};
export const PANEL_WIDTH = 760;
/** So that the panels stand one above the other. */
export const Y_EXTENT = 36;
const WORDS_COLOUR = "#3465a4";
/** Below the curves: where what the client says is marked. */
const WORDS_SHARE = 0.12;

export interface Arrival {
  ms: number;
  source: number;
  kind: string;
}

/** What the client said to a source. */
export interface Word {
  ms: number;
  source: number;
}

/** One panel a source, the last with the axis of time, 0 to `lastMs`. */
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

/** Two steps to a round number near the highest. */
function ticksTo(most: number): number[] {
  const step = 10 ** Math.floor(Math.log10(most / 2));
  const round = Math.floor(most / 2 / step) * step;
  return [0, round, 2 * round];
}
