/**
 * One simulated download as a picture, in the way of the paper's Figs 8 and 9: for each source the packets that came, by
 * time, innovative, duplicate or late by colour, and what the client said to it; above them the bytes handed on in order.
 * Collects, and makes a Vega-Lite specification; lab/bench/draw.mjs draws it.
 */
import { parseFrame } from "@tributary/protocol";
import type { OnLinkEvent } from "./network";
import { SHARED_DOWNLINK } from "./network";
import type { ArrivalKind, OnArrival, Outcome } from "./world";

const KINDS: readonly { kind: ArrivalKind; colour: string }[] = [
  { kind: "innovative", colour: "#1f7a4d" },
  { kind: "duplicate", colour: "#d9822b" },
  { kind: "late", colour: "#b3372f" },
];
const WIDTH = 760;
/** So that the panels stand one above the other. */
const Y_EXTENT = 36;
const WORDS_COLOUR = "#3465a4";
/** Below the curves: where what the client says is marked. */
const WORDS_SHARE = 0.12;

interface Arrival {
  ms: number;
  source: number;
  kind: ArrivalKind;
  /** Packets from this source so far. */
  count: number;
}

export class Plot {
  private readonly arrivals: Arrival[] = [];
  private readonly words: { ms: number; source: number }[] = [];
  private readonly counts = new Map<number, number>();

  readonly onArrival: OnArrival = (ms, source, kind) => {
    const count = (this.counts.get(source) ?? 0) + 1;
    this.counts.set(source, count);
    this.arrivals.push({ ms, source, kind, count });
  };

  /** Feedback, grants, and over HTTP requests, as the client sends them. */
  readonly onLinkEvent: OnLinkEvent = (ms, event, link, bytes, message) => {
    if (event !== "sent" || link === SHARED_DOWNLINK || !(link & 1)) return;
    if (message ? /feedback|grant/.test(parseFrame(message).type) : bytes > 100) this.words.push({ ms, source: link >> 1 });
  };

  /** `boundMs`: when no scheme could have been done sooner. */
  specification(title: string, outcome: Outcome, boundMs: number, sourceCount: number): object {
    const lastMs = Math.max(boundMs, ...this.arrivals.map(({ ms }) => ms)) * 1.02;
    const panels = Array.from({ length: sourceCount }, (_, source) => this.source(source, lastMs, source === sourceCount - 1));
    const done = outcome.completionMs < Infinity ? `complete after ${outcome.completionMs.toFixed(0)} ms` : "never complete";
    const subtitle = [
      `${done}, bound ${boundMs.toFixed(0)} ms (dashed); ${outcome.symbolCount} packets needed, ${outcome.receivedPackets} received, normalized goodput ${outcome.normalizedGoodput.toFixed(3)}`,
      "blue marks: what the client says to a source (feedback, grants or requests)",
    ];
    return { title, subtitle, vconcat: [this.progress(outcome, boundMs, lastMs), ...panels], spacing: 12, resolve: { scale: { color: "shared" } } };
  }

  private progress({ delivered, completionMs }: Outcome, boundMs: number, lastMs: number): object {
    const values = [{ ms: 0, bytes: 0 }, ...delivered.map(({ atMs, untilByte }) => ({ ms: atMs, bytes: untilByte / 1000 }))];
    const rules = [{ ms: boundMs, dash: [4, 4] }, { ms: completionMs, dash: [1, 0] }].filter(({ ms }) => ms < Infinity);
    return {
      width: WIDTH, height: 120, title: "Bytes handed on in order",
      layer: [
        { data: { values }, mark: { type: "line", interpolate: "step-after", strokeWidth: 2, color: "#444" }, encoding: { x: xOf(lastMs, false), y: { field: "bytes", type: "quantitative", axis: { title: "KB", tickCount: 4, format: ",d", minExtent: Y_EXTENT } } } },
        ...rules.map(({ ms, dash }) => ({ data: { values: [{ ms }] }, mark: { type: "rule", strokeDash: dash, color: "#888" }, encoding: { x: xOf(lastMs, false) } })),
      ],
    };
  }

  private source(source: number, lastMs: number, isLast: boolean): object {
    const own = this.arrivals.filter((arrival) => arrival.source === source);
    const most = Math.max(10, ...this.counts.values());
    const y = { field: "count", type: "quantitative", scale: { domain: [-most * WORDS_SHARE * 1.6, most], nice: false }, axis: { title: "packets", values: ticksTo(most), format: ",d", minExtent: Y_EXTENT } };
    const color = { field: "kind", type: "nominal", scale: { domain: KINDS.map(({ kind }) => kind), range: KINDS.map(({ colour }) => colour) }, legend: { title: null, orient: "bottom", symbolType: "square", symbolSize: 90 } };
    const words = this.words.filter((word) => word.source === source).map(({ ms }) => ({ ms, count: -most * WORDS_SHARE }));
    return {
      width: WIDTH, height: 74, title: `Source ${source + 1}`,
      layer: [
        { data: { values: words }, mark: { type: "tick", orient: "vertical", size: 9, thickness: 1, color: WORDS_COLOUR, opacity: 0.8 }, encoding: { x: xOf(lastMs, isLast), y } },
        { data: { values: own }, mark: { type: "point", shape: "circle", filled: true, size: 9, opacity: 1 }, encoding: { x: xOf(lastMs, isLast), y, color } },
      ],
    };
  }
}

function xOf(lastMs: number, isLast: boolean): object {
  return { field: "ms", type: "quantitative", scale: { domain: [0, lastMs], nice: false }, axis: { title: isLast ? "ms since the request" : null, labels: isLast, ticks: isLast, grid: true, tickCount: 10 } };
}

/** Two steps to a round number near the highest. */
function ticksTo(most: number): number[] {
  const step = 10 ** Math.floor(Math.log10(most / 2));
  const round = Math.floor(most / 2 / step) * step;
  return [0, round, 2 * round];
}
