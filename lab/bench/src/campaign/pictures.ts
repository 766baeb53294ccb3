/**
 * The campaign as pictures: grouped boxplots like the paper's (box: IQR, line: median, whiskers to 1.5 IQR, circles:
 * outliers, number: n). Makes Vega-Lite specifications.
 */
import { arrivalPanels } from "@tributary/lab-sim";
import { colourBy, inOrder } from "../kit/picture";
import type { Box } from "./boxes";
import { goodputOf } from "./rows";
import type { Sample } from "./rows";

export interface Picture {
  /** Name of the file, without its ending. */
  name: string;
  specification: object;
}

/** One download, with what the pictures sort by. */
interface Point {
  setup: string;
  order: number;
  who: string;
  session: string;
  goodput: number;
  normalized: number;
}

const LEGEND = { columns: 4, labelLimit: 260 };
const PANEL = { width: 380, height: 190 };
const BOX_WIDTH = 16;
/** Setups continue in a new row if one row would be wider. */
const ROW_WIDTH = 1200;
const HTTP = new Set<string>(["direct", "direct-http2", "parallel-http", "split-http", "aria2", "chunked"]);

/** HTTP is over BBR and packets are over WebRTC unless the name says otherwise. */
function whoOf({ mode, transport, links }: Box): string {
  if (HTTP.has(mode)) return links.congestion === "bbr" ? mode : `${mode} ${links.congestion}`;
  return transport === "webrtc" ? mode : `${mode} WebTransport`;
}

/**
 * Modes with packets do not depend on TCP's congestion control. No browser has plain UDP. Fig. 15 shows Cubic without
 * loss too.
 */
const isDrawn = ({ mode, transport, links: { congestion } }: Box, figure: string): boolean =>
  transport !== "udp" && (congestion === "bbr" || (HTTP.has(mode) && figure !== "11"));

function pointsOf(boxes: readonly Box[], samples: readonly Sample[], figure: string): Point[] {
  const byId = new Map(boxes.filter(({ figures }) => figures.includes(figure)).map((box) => [box.id, box]));
  return samples.flatMap((sample): Point[] => {
    const box = byId.get(sample.box);
    if (!box || !sample.ok || !isDrawn(box, figure)) return [];
    return [
      {
        setup: setupOf(box, figure),
        order: orderOf(box),
        who: whoOf(box),
        session: sample.session,
        goodput: goodputOf(sample) / 1000,
        normalized: sample.netBytes / sample.grossBytes,
      },
    ];
  });
}

/** The label of a box on the figure's axis. */
function setupOf({ links, chunkBytes, chunkAt, generationSize, windowPackets }: Box, figure: string): string {
  const rates = links.id.split(",")[0]!.replace(" KB/s", "");
  if (figure === "12") return `${Math.round(chunkBytes / 1024)} KiB`;
  if (figure === "13-14") return `g=${generationSize}, w=${windowPackets}`;
  if (figure === "15" || figure === "browser") return `${rates}, ${links.lossPercent} %`;
  if (figure === "radio") return `${rates}, jitter ${links.jitterMs} ms`;
  if (figure !== "rivals") return rates;
  const happening = links.event ? [links.event.what === "tenth" ? "one falls to 1/10" : "one dies"] : [];
  const far = new Set(links.rttMs).size > 1 ? [`${Math.min(...links.rttMs)}-${Math.max(...links.rttMs)} ms`] : [];
  return [
    rates,
    ...far,
    ...happening,
    ...(links.lossPercent > 0 ? [`${links.lossPercent} %`] : []),
    `${chunkBytes / 1e6} MB`,
    ...(chunkAt === "origin" ? ["at the origin"] : []),
  ].join(", ");
}

function orderOf({ links, chunkBytes, generationSize = 0, windowPackets = 0 }: Box): number {
  return (
    links.ratesKB.reduce((sum, rate) => sum + rate, 0) * 1e6 +
    chunkBytes / 10 +
    (links.lossPercent + (links.jitterMs ?? 0)) * 1e5 +
    generationSize * 100 +
    windowPackets
  );
}

function setupsOf(points: readonly Point[]): string[] {
  return [...new Map([...points].sort((a, b) => a.order - b.order).map(({ setup, order }) => [setup, order])).keys()];
}

const whosOf = (points: readonly Point[]): string[] => inOrder(points.map(({ who }) => who));

/** Vega-Lite's boxplot has the paper's whiskers: the last value within 1.5 IQR of the box. */
function boxplot(
  points: readonly Point[],
  field: "goodput" | "normalized",
  title: string,
  all: readonly Point[],
): object {
  const [setups, whos] = [setupsOf(points), whosOf(points)];
  // Panels share their colours: each names all that the figure has.
  const named = whosOf(all);
  const x = {
    field: "setup",
    type: "nominal",
    sort: setups,
    axis: { title: null, labelAngle: 0, labelLimit: 170, labelExpr: "split(datum.label, ', ')" },
  };
  const offset = { field: "who", type: "nominal", sort: whos };
  const y = { field, type: "quantitative", axis: { title }, scale: { zero: true } };
  const low = `${field}Low`;
  const counts = {
    aggregate: [
      { op: "count", as: "n" },
      { op: "min", field, as: low },
    ],
    groupby: ["setup", "who"],
  };
  return {
    ...PANEL,
    width: Math.max(PANEL.width, setups.length * whos.length * BOX_WIDTH),
    data: { values: points },
    layer: [
      {
        mark: {
          type: "boxplot",
          extent: 1.5,
          size: 11,
          outliers: { shape: "circle", filled: false, size: 16 },
          median: { color: "#222", size: 11 },
        },
        encoding: { x, xOffset: offset, y, color: colourBy("who", named, LEGEND) },
      },
      {
        transform: [counts],
        mark: { type: "text", dy: 9, fontSize: 8, color: "#666" },
        encoding: { x, xOffset: offset, y: { ...y, field: low }, text: { field: "n" } },
      },
    ],
  };
}

const NOTES = [
  "box: quartiles; line: median; whiskers: 1.5 IQR; circles: outliers; number: downloads",
  "packets over WebRTC and TCP with BBR unless named; the table has all, over plain UDP too",
];

const TITLES: Readonly<Record<string, string>> = {
  "11": "Goodput by links (as the paper's Fig. 11)",
  "12": "By chunk size (as the paper's Fig. 12)",
  "13-14": "By generation size and window (as the paper's Figs 13 and 14)",
  "15": "Over lossy links (as the paper's Fig. 15)",
  rivals: "Beside aria2, over links that differ, and over links that change",
  radio: "Over links whose packets take now more and now less time, as over radio",
  browser: "Chromium with the extension",
};

/**
 * Figs 8 and 9: for each traced box, the download of median time among those on warm sessions whose packets were kept.
 */
function packetPictures(boxes: readonly Box[], samples: readonly Sample[], subtitle: string): Picture[] {
  const shown = boxes
    .filter(({ traced }) => traced)
    .flatMap((box) => {
      const own = samples
        .filter(({ box: id, session, ok, trace }) => id === box.id && session === "warm" && ok && trace)
        .sort((a, b) => a.completionMs - b.completionMs);
      const middle = own[Math.floor((own.length - 1) / 2)];
      return middle ? [{ box, sample: middle, trace: middle.trace! }] : [];
    });
  if (shown.length === 0) return [];
  const lastMs = 1.02 * Math.max(...shown.flatMap(({ trace }) => trace.packets.map(([ms]) => ms)));
  const panels = shown.flatMap(({ box, sample, trace }) => {
    const names = [...trace.proxies].sort();
    const sourceOf = trace.proxies.map((name) => names.indexOf(name));
    const arrivals = trace.packets.map(([ms, source, , kind]) => ({ ms, source: sourceOf[source]!, kind }));
    const title =
      `${box.mode}: ${(sample.completionMs / 1000).toFixed(2)} s, normalized goodput ` +
      `${(sample.netBytes / sample.grossBytes).toFixed(2)}`;
    const own = arrivalPanels(
      arrivals,
      trace.feedback.map(([ms, source]) => ({ ms, source: sourceOf[source]! })),
      names,
      lastMs,
    );
    return own.map((panel, index) =>
      index > 0 ? panel : { ...panel, title: { text: title, subtitle: names[0], fontSize: 14 } },
    );
  });
  const of = shown[0]!.box;
  const what = [
    `${of.chunkBytes / 1e6} MB over ${of.links.id}, g=${of.generationSize}, w=${of.windowPackets}; of ` +
      "the downloads on warm sessions",
    "whose packets were kept the one of median time; blue marks: what the client says to a proxy",
  ];
  return [
    {
      name: "campaign-8-9",
      specification: {
        title: "Packets of one download by proxy (as the paper's Figs 8 and 9)",
        subtitle: [subtitle, ...what],
        vconcat: panels,
        spacing: 14,
      },
    },
  ];
}

/** `subtitle`: on each picture, the days and the machines. */
export function picturesOf(boxes: readonly Box[], samples: readonly Sample[], subtitle: string): Picture[] {
  const pictures = packetPictures(boxes, samples, subtitle);
  for (const [key, title] of Object.entries(TITLES)) {
    const own = pointsOf(boxes, samples, key);
    const panels = (["warm", "new"] as const).flatMap((session) => {
      const shown = own.filter((point) => point.session === session);
      const setups = setupsOf(shown);
      const rows = Math.ceil((setups.length * whosOf(shown).length * BOX_WIDTH) / ROW_WIDTH);
      const setupsPerRow = Math.ceil(setups.length / rows);
      const named = (what: string): string => `${what}, ${session} sessions`;
      return Array.from({ length: rows }, (_, row) => {
        const inRow = setups.slice(row * setupsPerRow, (row + 1) * setupsPerRow);
        const shownInRow = shown.filter(({ setup }) => inRow.includes(setup));
        const shares = {
          ...boxplot(shownInRow, "normalized", "goodput / throughput", own),
          title: named("Normalized goodput"),
        };
        const pair = [{ ...boxplot(shownInRow, "goodput", "goodput, KB/s", own), title: named("Goodput") }, shares];
        const fitsBeside = 2 * inRow.length * whosOf(shownInRow).length * BOX_WIDTH <= ROW_WIDTH;
        return fitsBeside ? { hconcat: pair, spacing: 26 } : { vconcat: pair, spacing: 26 };
      });
    });
    if (panels.length > 0)
      pictures.push({
        name: `campaign-${key}`,
        specification: { title, subtitle: [subtitle, ...NOTES], vconcat: panels, spacing: 26 },
      });
  }
  return pictures;
}
