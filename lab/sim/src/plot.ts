/**
 * A picture of one simulated download, like the paper's Figs 8 and 9 (arrivals.ts). A panel above the sources shows the
 * bytes delivered in order. The class collects events and makes a Vega-Lite specification, which lab/sim/draw.mjs
 * draws.
 */
import { parseFrame } from "@tributary/protocol";
import { arrivalPanels, PANEL_WIDTH, timeAxis, Y_EXTENT } from "./arrivals";
import type { Arrival, Word } from "./arrivals";
import type { OnLinkEvent } from "./network";
import { SHARED_DOWNLINK } from "./network";
import type { OnArrival, Outcome } from "./world";

export class Plot {
  readonly #arrivals: Arrival[] = [];
  readonly #words: Word[] = [];

  readonly onArrival: OnArrival = (ms, source, kind) => void this.#arrivals.push({ ms, source, kind });

  /** Collects the client's feedback and grants, or its requests over HTTP. */
  readonly onLinkEvent: OnLinkEvent = (ms, event, link, bytes, message) => {
    if (event !== "sent" || link === SHARED_DOWNLINK || !(link & 1)) return;
    if (message ? /feedback|grant/.test(parseFrame(message).type) : bytes > 100)
      this.#words.push({ ms, source: link >> 1 });
  };

  /** `boundMs`: no scheme can be complete sooner. */
  specification(title: string, outcome: Outcome, boundMs: number, sourceCount: number): object {
    const lastMs = Math.max(boundMs, ...this.#arrivals.map(({ ms }) => ms)) * 1.02;
    const panels = arrivalPanels(
      this.#arrivals,
      this.#words,
      Array.from({ length: sourceCount }, (_, source) => `Source ${source + 1}`),
      lastMs,
    );
    const done =
      outcome.completionMs < Infinity ? `complete after ${outcome.completionMs.toFixed(0)} ms` : "never complete";
    const subtitle = [
      `${done}, bound ${boundMs.toFixed(0)} ms (dashed); ${outcome.symbolCount} packets needed, ` +
        `${outcome.receivedPackets} received, normalized goodput ${outcome.normalizedGoodput.toFixed(3)}`,
      "blue marks: messages of the client to a source (feedback, grants or requests)",
    ];
    return {
      title,
      subtitle,
      vconcat: [this.#progress(outcome, boundMs, lastMs), ...panels],
      spacing: 12,
      resolve: { scale: { color: "shared" } },
    };
  }

  #progress({ delivered, completionMs }: Outcome, boundMs: number, lastMs: number): object {
    const values = [
      { ms: 0, bytes: 0 },
      ...delivered.map(({ atMs, untilByte }) => ({ ms: atMs, bytes: untilByte / 1000 })),
    ];
    const rules = [
      { ms: boundMs, dash: [4, 4] },
      { ms: completionMs, dash: [1, 0] },
    ].filter(({ ms }) => ms < Infinity);
    return {
      width: PANEL_WIDTH,
      height: 120,
      title: "Bytes delivered in order",
      layer: [
        {
          data: { values },
          mark: { type: "line", interpolate: "step-after", strokeWidth: 2, color: "#444" },
          encoding: {
            x: timeAxis(lastMs, false),
            y: {
              field: "bytes",
              type: "quantitative",
              axis: { title: "KB", tickCount: 4, format: ",d", minExtent: Y_EXTENT },
            },
          },
        },
        ...rules.map(({ ms, dash }) => ({
          data: { values: [{ ms }] },
          mark: { type: "rule", strokeDash: dash, color: "#888" },
          encoding: { x: timeAxis(lastMs, false) },
        })),
      ],
    };
  }
}
