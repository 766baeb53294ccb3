/** The paper's Figs 5 to 11, drawn from our own measurements: one panel a figure, with what the paper says in words. */
import { publishedRun } from "../gpu/published";
import { groupBy, quantile } from "../kit/figures";
import type { Bandwidth } from "./bandwidth";
import type { Sharing } from "./coders";
import { GIGABIT_VIEWERS } from "./content";
import { RESPONSE_MS_MAX, RESPONSE_SHARE, type GrowthRun, type Stretch } from "./measure";
import { PAPER_USERS } from "./paper";
import { nameOf, viewersOf, type Results } from "./report";

const SIZE = { width: 400, height: 190 };
const QUANTILES = Array.from({ length: 100 }, (_, index) => (index + 0.5) / 100);
const LEGEND = { title: null, orient: "bottom", columns: 2, labelLimit: 0 };

const x = (field: string, title: string, scale: object = {}): object => ({
  field,
  type: "quantitative",
  axis: { title },
  scale,
});
const y = x;
const series = { field: "series", type: "nominal", legend: LEGEND };

export function specificationOf(results: Results, subtitle: string): object {
  const { capacities, growth, churn, bandwidths, coders } = results;
  const plain = growth.filter(({ setting }) => !setting.proxyEnv);
  const rows: [unknown[], object[]][] = [
    [bandwidths, [bandwidthPanel("5", "encode", bandwidths), bandwidthPanel("6", "decode", bandwidths)]],
    [capacities, [busyPanel(results), responsePanel(results)]],
    [
      [...churn, ...capacities],
      [...churn.map(churnPanel), distributionPanel(results)],
    ],
    [plain, [growthPanel("9", BUSY, plain, busyOf), growthPanel("10", P95, plain, p95Of)]],
    [growth.filter(hasStages), growth.filter(hasStages).slice(-1).map(stagePanel)],
  ];
  return {
    title: "Viewers of one proxy at 750 kbit/s",
    subtitle: [
      subtitle,
      ...coders.map(({ sharing }) => coderLimits(sharing)),
      "after Zhao, Zhang, Wang 2010, Figs 5 to 11; their curves have no numbers, their sentences do",
    ],
    vconcat: rows.flatMap(([data, hconcat]) =>
      data.length > 0 ? [{ hconcat, spacing: 34, resolve: { scale: { color: "independent" } } }] : [],
    ),
    spacing: 26,
  };
}

const BUSY = "proxy's cores in use, %";
const P95 = "response, 95 %, ms";
const busyOf = ({ proxyBusy }: Stretch): number => 100 * proxyBusy;
const p95Of = ({ responseMs }: Stretch): number => responseMs.p95;

/** The published run of the GPU bench, from host to host, at the numbers of blocks that the CPU has. */
function gpuValues(op: Bandwidth["op"], bandwidths: readonly Bandwidth[]) {
  const { facts, rows } = publishedRun();
  return rows
    .filter(({ what, coder, symbolCount }) => {
      const isGpu = what === `host ${op}` && coder.startsWith("GPU") && !coder.includes("pageable");
      return isGpu && bandwidths.some((each) => each.symbolCount === symbolCount);
    })
    .map(({ symbolCount, symbolBytes, gbPerSec }) => ({
      symbolBytes,
      rate: 1000 * gbPerSec,
      series: `n = ${symbolCount}, ${facts["GPU"]!.split(" ").slice(1, 2).join("")}`,
    }));
}

function bandwidthPanel(figure: string, op: Bandwidth["op"], bandwidths: readonly Bandwidth[]): object {
  const values = bandwidths
    .filter((each) => each.op === op)
    .map(({ threads, symbolCount, symbolBytes, bytesPerSec }) => ({
      symbolBytes,
      rate: bytesPerSec / 1e6,
      series: `n = ${symbolCount}, ${threads} ${threads === 1 ? "core" : "cores"}`,
    }));
  const gpu = op === "encode" ? "another machine's GPU" : "another machine's GPU, which does not invert";
  return {
    title: { text: `Fig. ${figure}: ${op} on the CPU`, subtitle: `beside ${gpu} (ADR 0013)` },
    ...SIZE,
    data: { values: [...values, ...gpuValues(op, bandwidths)] },
    mark: { type: "line", point: true },
    encoding: {
      x: x("symbolBytes", "block size, bytes", { type: "log", base: 2 }),
      y: y("rate", "MB/s", { type: "log" }),
      color: { ...series, sort: null },
    },
  };
}

/** What two cores that only code would carry. It is far beyond the scale of Fig. 7b. */
const coderLimits = ({ anewMs, sharedMs }: Sharing): string =>
  `two cores that only code carry ${viewersOf(anewMs, 2)} viewers, each coded anew, or ${viewersOf(sharedMs, 2)} ` +
  "that share symbols";

/** The better hold of each number of viewers, carried or not. */
const holdsOf = ({ capacities }: Results): { viewers: number; busy: number; p95: number; series: string }[] =>
  capacities.flatMap((run) =>
    [...groupBy(run.holds, ({ viewers }) => viewers).values()].map(([first, second = first]) => {
      const hold = second.responseMs.p95 < first.responseMs.p95 ? second : first;
      return { viewers: hold.viewers, busy: busyOf(hold), p95: p95Of(hold), series: nameOf(run.setting) };
    }),
  );

const busyPanel = (results: Results): object => ({
  title: "Fig. 7a: processor of the proxy",
  ...SIZE,
  data: { values: holdsOf(results) },
  mark: { type: "line", point: true },
  encoding: { x: x("viewers", "viewers"), y: y("busy", BUSY, { domain: [0, 100] }), color: series },
});

function responsePanel(results: Results): object {
  const paper = Object.entries(PAPER_USERS).map(([who, viewers]) => ({ viewers, ms: RESPONSE_MS_MAX, who }));
  const limits = [{ viewers: GIGABIT_VIEWERS, what: "Gigabit Ethernet" }];
  const at = x("viewers", "viewers");
  return {
    title: "Fig. 7b: response; squares: the paper's users at 100 ms",
    ...SIZE,
    layer: [
      {
        data: { values: holdsOf(results) },
        mark: { type: "line", point: true },
        encoding: { x: at, y: y("p95", P95, { type: "log" }), color: series },
      },
      {
        data: { values: [{ ms: RESPONSE_MS_MAX }] },
        mark: { type: "rule", strokeDash: [4, 3], color: "#888" },
        encoding: { y: y("ms", P95) },
      },
      {
        data: { values: paper },
        mark: { type: "point", shape: "square", filled: true, size: 60, color: "#333" },
        encoding: { x: at, y: y("ms", P95) },
      },
      {
        data: { values: paper },
        mark: { type: "text", dy: -11, color: "#333" },
        encoding: { x: at, y: y("ms", P95), text: { field: "who" } },
      },
      { data: { values: limits }, mark: { type: "rule", color: "#b3372f" }, encoding: { x: at } },
      {
        data: { values: limits },
        mark: { type: "text", align: "right", dx: -4, y: 12, color: "#b3372f" },
        encoding: { x: at, text: { field: "what" } },
      },
    ],
  };
}

function churnPanel({ stretches, pace }: GrowthRun): object {
  const values = stretches.flatMap(({ atSec, proxyBusy, viewers }) => [
    { atSec, value: 100 * proxyBusy, series: BUSY },
    { atSec, value: viewers, series: "viewers" },
  ]);
  return {
    title: `Fig. 7c: viewers come and go, ${pace} times as fast`,
    ...SIZE,
    data: { values },
    mark: { type: "line" },
    encoding: { x: x("atSec", "time, s"), y: y("value", ""), color: series },
  };
}

function distributionPanel({ capacities }: Results): object {
  const values = capacities.flatMap(({ setting, viewers, responseMs }) =>
    QUANTILES.map((share) => ({
      ms: Math.max(0.1, quantile(responseMs, share)),
      share: 100 * share,
      series: `${nameOf(setting)}, ${viewers} viewers`,
    })).filter(({ ms }) => Number.isFinite(ms)),
  );
  return {
    title: "Fig. 8: responses up to a time, at capacity",
    ...SIZE,
    data: { values },
    mark: { type: "line", interpolate: "step-after" },
    encoding: {
      x: x("ms", "response, ms", { type: "log" }),
      y: y("share", `% of requests (bound: ${100 * RESPONSE_SHARE})`),
      color: series,
      order: { field: "share" },
    },
  };
}

function growthPanel(
  figure: string,
  title: string,
  runs: readonly GrowthRun[],
  valueOf: (stretch: Stretch) => number,
): object {
  const values = runs.flatMap(({ setting: { channels }, stretches }) =>
    stretches.map((stretch) => ({ viewers: stretch.viewers, value: valueOf(stretch), series: `${channels} channels` })),
  );
  return {
    title: `Fig. ${figure}: 1, 30 and 200 channels`,
    ...SIZE,
    data: { values },
    mark: { type: "line", point: true },
    encoding: { x: x("viewers", "viewers"), y: y("value", title), color: { ...series, sort: null } },
  };
}

const hasStages = ({ stretches }: GrowthRun): boolean =>
  stretches.some(({ stageSec }) => Object.values(stageSec).some((seconds) => seconds > 0));

function stagePanel({ setting, stretches }: GrowthRun): object {
  const values = stretches.flatMap(({ viewers, stageSec }) =>
    Object.entries(stageSec).map(([stage, seconds]) => ({ viewers, stage, seconds })),
  );
  return {
    title: `Fig. 11: stages of coding (${nameOf(setting)})`,
    ...SIZE,
    data: { values },
    mark: { type: "area" },
    encoding: {
      x: x("viewers", "viewers"),
      y: { ...y("seconds", "share of the time"), stack: "normalize" },
      color: { field: "stage", type: "nominal", legend: LEGEND },
    },
  };
}
