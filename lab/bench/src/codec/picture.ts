/**
 * The picture of a codec bench run: bandwidth against generation size and symbol size, and bars for each engine and
 * rival. Makes a Vega-Lite specification.
 */
import { colourBy } from "../kit/picture";
import type { Op, Runtime } from "./cases";
import type { Row } from "./rows";

/** Kinds of contenders in the order of the legend, with their colours. */
const KINDS: Readonly<Record<string, string>> = {
  "ours, native": "#1f4e9c",
  "ours, WebAssembly in Chromium": "#2a9d8f",
  "ours, WebAssembly in Node": "#9bd1c8",
  "rivals, native": "#d9822b",
};

function kindOf({ rival, runtime }: Row): string {
  if (rival) return "rivals, native";
  const ours: Record<Runtime, string> = {
    native: "ours, native",
    "chromium-wasm": "ours, WebAssembly in Chromium",
    "node-wasm": "ours, WebAssembly in Node",
  };
  return ours[runtime];
}

const RIVAL_NAMES: Readonly<Record<string, string>> = { "isa-l": "ISA-L", tables: "log/exp tables" };
const RUNTIME_NAMES: Readonly<Record<Runtime, string>> = {
  native: "",
  "node-wasm": "Node, ",
  "chromium-wasm": "Chromium, ",
};
const plural = (count: number, word: string): string => `${count} ${word}${count === 1 ? "" : "s"}`;

function nameOf(row: Row): string {
  if (!row.rival) return `${RUNTIME_NAMES[row.runtime]}${row.engine}`;
  const name = RIVAL_NAMES[row.rival] ?? row.rival;
  if (row.rival !== "isa-l") return name;
  return row.engine === "best"
    ? `${name} ${row.request === "encode-packed" ? "(packed)" : "(its choice)"}`
    : `${name} ${row.engine}`;
}

interface Series {
  name: string;
  colour: string;
  dash: readonly number[];
  of: (row: Row, best: string | undefined) => boolean;
}

/** The lines of every panel. */
const SERIES: readonly Series[] = [
  {
    name: "ours, fastest native engine",
    colour: "#1f4e9c",
    dash: [1, 0],
    of: (row, best) => !row.rival && row.runtime === "native" && row.engine === best,
  },
  {
    name: "ours, native AVX2",
    colour: "#6f9bdc",
    dash: [1, 0],
    of: (row) => !row.rival && row.runtime === "native" && row.engine === "avx2",
  },
  {
    name: "ours, Chromium relaxed SIMD",
    colour: "#1d7a6f",
    dash: [1, 0],
    of: (row) => row.runtime === "chromium-wasm" && row.engine === "relaxed-simd",
  },
  {
    name: "ours, Chromium plain SIMD",
    colour: "#6cc3b5",
    dash: [1, 0],
    of: (row) => row.runtime === "chromium-wasm" && row.engine === "simd128",
  },
  {
    name: "ISA-L, its choice of path",
    colour: "#d9822b",
    dash: [5, 3],
    of: (row) => row.rival === "isa-l" && row.engine === "best",
  },
  { name: "rlnc crate", colour: "#b3372f", dash: [5, 3], of: (row) => row.rival === "rlnc" },
];

function linePanel(rows: readonly Row[], op: Op, axis: "g" | "symbolBytes"): object {
  const best = rows.find((row) => !row.rival && row.runtime === "native")?.engine;
  const fixed = axis === "g" ? (row: Row) => row.symbolBytes === 1400 : (row: Row) => row.g === 24;
  const values = rows
    .filter((row) => row.group.startsWith("grid ") && row.op === op && fixed(row))
    .flatMap((row) =>
      SERIES.filter(({ of }) => of(row, best)).map(({ name }) => ({
        x: row[axis],
        rate: row.outputBytesPerSec / 1e6,
        series: name,
      })),
    );
  const [title, x] = axis === "g" ? ["symbols of 1,400 B", "generation size g"] : ["g = 24", "symbol size, B"];
  const ticks = [...new Set(values.map((value) => value.x))]
    .sort((a, b) => a - b)
    .filter((tick) => tick !== 1024 && tick !== 1100);
  return {
    title: `${op === "encode" ? "Encode" : "Decode"}, ${title}`,
    width: 318,
    height: 210,
    data: { values },
    mark: { type: "line", point: { size: 32 }, strokeWidth: 2.2 },
    encoding: {
      x: {
        field: "x",
        type: "quantitative",
        scale: { type: "log", base: 2, nice: false },
        axis: { title: x, values: ticks, format: ",d", grid: false, labelFlush: false },
      },
      y: {
        field: "rate",
        type: "quantitative",
        scale: { type: "log", domain: [20, 20000], clamp: true },
        axis: {
          title: "MB/s of output (log scale)",
          values: [20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000],
          format: ",d",
        },
      },
      color: colourBy(
        "series",
        SERIES.map(({ name }) => name),
        { columns: 3, labelLimit: 0, symbolType: "stroke", symbolStrokeWidth: 3 },
        Object.fromEntries(SERIES.map(({ name, colour }) => [name, colour])),
      ),
      strokeDash: {
        field: "series",
        type: "nominal",
        scale: { domain: SERIES.map(({ name }) => name), range: SERIES.map(({ dash }) => dash) },
        legend: null,
      },
    },
  };
}

interface Bar {
  name: string;
  kind: string;
  /** MB/s */
  rate: number;
  outputs: number;
  op: Op;
}

/** For each engine or rival, the number of outputs at which it is fastest. The fastest one comes first. */
function fastestOfEach(rows: readonly Row[]): (Bar & { label: string })[] {
  const byName = new Map<string, Bar>();
  for (const row of rows) {
    const bar = {
      name: nameOf(row),
      kind: kindOf(row),
      rate: row.outputBytesPerSec / 1e6,
      outputs: row.outputs,
      op: row.op,
    };
    if (!((byName.get(bar.name)?.rate ?? -1) >= bar.rate)) byName.set(bar.name, bar);
  }
  return [...byName.values()]
    .sort((a, b) => b.rate - a.rate)
    .map((bar) => ({
      ...bar,
      label:
        `${Math.round(bar.rate).toLocaleString("en")}` +
        `${bar.op === "encode" ? `  (${plural(bar.outputs, "output")})` : ""}`,
    }));
}

function barPanel(rows: readonly Row[], op: Op): object {
  const shown = rows.filter(
    (row) => row.group === `${op} 24 x 1,400` && !["memcpy", "roofline"].includes(row.rival ?? ""),
  );
  const values = fastestOfEach(shown);
  const longest = Math.max(1, ...values.map(({ rate }) => rate));
  const y = {
    field: "name",
    type: "nominal",
    sort: values.map(({ name }) => name),
    axis: { title: null, labelLimit: 0, domain: false, ticks: false, labelPadding: 6 },
  };
  const x = {
    field: "rate",
    type: "quantitative",
    scale: { domain: [0, longest * (op === "encode" ? 1.5 : 1.2)], nice: false },
    axis: { title: "MB/s of output", format: ",d", tickCount: 5 },
  };
  return {
    title: `${op === "encode" ? "Encode" : "Decode"} 24 x 1,400 B, by engine and rival`,
    width: 245,
    height: { step: 17 },
    view: { stroke: null },
    data: { values },
    layer: [
      {
        mark: { type: "bar", height: 12 },
        encoding: {
          y,
          x,
          color: colourBy("kind", Object.keys(KINDS), { columns: 2, labelLimit: 0, symbolType: "square" }, KINDS),
        },
      },
      { mark: { type: "text", align: "left", dx: 4, fontSize: 10 }, encoding: { y, x, text: { field: "label" } } },
    ],
  };
}

export function specificationOf(rows: readonly Row[], machine: string): object {
  const lines = (op: Op): object => ({
    hconcat: [linePanel(rows, op, "g"), linePanel(rows, op, "symbolBytes")],
    spacing: 34,
  });
  return {
    title: "Tributary's codec and its rivals",
    subtitle: `One thread; tables and coefficients are made inside the timed region. ${machine}`,
    resolve: { scale: { color: "independent", strokeDash: "independent" } },
    vconcat: [
      { vconcat: [lines("encode"), lines("decode")], spacing: 26, align: "none" },
      { hconcat: (["encode", "decode"] as const).map((op) => barPanel(rows, op)), spacing: 24, align: "none" },
    ],
    spacing: 36,
    align: "none",
  };
}
