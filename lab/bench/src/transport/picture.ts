/**
 * The bench's picture as a Vega-Lite specification: a panel for each crowd (its median run) and for each change of the
 * link.
 */
import { colourBy } from "../kit/picture";
import { crowdsOf, medianRunOf } from "./rows";
import type { Results } from "./rows";

interface Point {
  second: number;
  value: number;
  line: string;
}

const LINE_COLOURS = { ours: "#1f4e9c", TCP: "#d9822b" };
const SAMPLES_MEAN = 10;

/** Means of half a second. */
function smoothed<T>(history: readonly T[], of: (each: T) => number): number[] {
  return history.flatMap((_, at) =>
    at % SAMPLES_MEAN === 0
      ? [history.slice(at, at + SAMPLES_MEAN).reduce((sum, each, _at, all) => sum + of(each) / all.length, 0)]
      : [],
  );
}

function pointsOf<T extends { atMs: number }>(history: readonly T[], line: string, of: (each: T) => number): Point[] {
  return smoothed(history, of).map((value, at) => ({ second: history[at * SAMPLES_MEAN]!.atMs / 1000, value, line }));
}

function panel(title: string, rates: Point[], queue: Point[]): object {
  const x = { field: "second", type: "quantitative", axis: { title: "seconds", grid: false } };
  const rate = {
    width: 250,
    height: 120,
    title,
    data: { values: rates },
    mark: { type: "line", strokeWidth: 1.6 },
    encoding: {
      x: { ...x, axis: { title: null, grid: false } },
      y: { field: "value", type: "quantitative", axis: { title: "KB/s" }, scale: { domain: [0, 1300], clamp: true } },
      color: colourBy("line", ["ours", "TCP"], {}, LINE_COLOURS),
    },
  };
  const waiting = {
    width: 250,
    height: 50,
    data: { values: queue },
    mark: { type: "area", color: "#9bd1c8" },
    encoding: {
      x,
      y: {
        field: "value",
        type: "quantitative",
        axis: { title: "queue, BDP", tickCount: 3 },
        scale: { domain: [0, 2.5], clamp: true },
      },
    },
  };
  return { vconcat: [rate, waiting], spacing: 8 };
}

export function specificationOf({ sharing, reactions }: Results): object {
  const shared = crowdsOf(sharing)
    .map(medianRunOf)
    .map(({ history, transport, ourFlows, theirFlows, rivals, queueProducts }) =>
      panel(
        `${ourFlows} ${transport === "cubic" ? "cubic for ours" : transport}, ${theirFlows} ${rivals}, ` +
          `queue ${queueProducts} BDP`,
        [
          ...pointsOf(history, "ours", ({ ours }) => ours / 1000),
          ...pointsOf(history, "TCP", ({ theirs }) => theirs / 1000),
        ],
        pointsOf(history, "queue", ({ queue }) => queue),
      ),
    );
  const alone = reactions.map(({ what, history }) =>
    panel(
      `ours alone, ${what}`,
      pointsOf(history, "ours", ({ ours }) => ours / 1000),
      pointsOf(history, "queue", ({ queue }) => queue),
    ),
  );
  return {
    title: "Congestion control beside TCP, and alone",
    subtitle: "10 Mbit/s, 40 ms; what each sends, means of half a second, and the highest queue of each 50 ms",
    columns: 2,
    concat: [...shared, ...alone],
  };
}
