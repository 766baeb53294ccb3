/** What a person reads: the figures to reach, capacities, and growth with time. Pure: text out. */
import { groupBy } from "../kit/figures";
import { sittingsText, type Sitting } from "../kit/sitting";
import { percent, table } from "../kit/table";
import { atLeast, figureTable, type Figure } from "../kit/verdict";
import type { Bandwidth } from "./bandwidth";
import { GROUP_BYTES as CODER_GROUP_BYTES, type CoderResults, type Sharing } from "./coders";
import { GIGABIT_VIEWERS, VIEWER_BYTES_PER_SEC } from "./content";
import type { CapacityRun, GrowthRun, Stretch } from "./measure";
import { PAPER } from "./paper";
import type { StackOptions } from "./stack";

export interface Results {
  sitting: Sitting;
  cores: StackOptions["cores"];
  capacities: CapacityRun[];
  growth: GrowthRun[];
  churn: GrowthRun[];
  bandwidths: Bandwidth[];
  coders: CoderResults[];
}

/** What a run measured, in words. */
export const nameOf = ({ transport, mode, proxyEnv }: CapacityRun["setting"]): string =>
  [
    transport === "webtransport" ? "WebTransport" : "WebRTC",
    mode,
    ...(proxyEnv?.["CODES_ANEW"] ? ["anew"] : []),
    ...(proxyEnv?.["TRIBUTARY_CODER"] ? [`coder ${proxyEnv["TRIBUTARY_CODER"]}`] : []),
  ].join(", ");

/** Floor and aim for the viewers of one proxy on one core. */
const LIMITS = { webtransport: [300, 800], webrtc: [200, 500] } as const;

/** More of a core than this that other programs take makes a proxy look slower than it is. */
const OTHERS_MAX = 0.1;

export function figuresOf({ capacities, coders }: Results): Figure[] {
  const carried = (["webtransport", "webrtc"] as const).map((transport) => {
    const own = capacities.filter(({ setting }) => setting.transport === transport && setting.mode === "coded-mutp");
    const viewers = own.at(-1)?.viewers ?? NaN;
    return atLeast(`viewers at 100 ms, ${transport}, every packet coded`, viewers, LIMITS[transport], {
      ...(own.at(-1)?.isAtLeast ? { note: "the generator was the limit" } : {}),
    });
  });
  return [...carried, ...coderFigures(coders.at(-1))];
}

function coderFigures(results: CoderResults | undefined): Figure[] {
  const { bytesPerSec: rate, sharing, queue } = results ?? {};
  const of = (value: number | undefined): number => value ?? NaN;
  return [
    atLeast(
      "viewers of one channel, shared symbols over coding anew",
      of(sharing && sharing.anewMs / sharing.sharedMs),
      [5, 20],
    ),
    atLeast("the same without the time to hand symbols out", of(sharing && codedOnly(sharing)), []),
    atLeast("both coders over the sum of each alone", of(rate && rate.both / (rate.fast + rate.slow)), [0.9, 0.97]),
    atLeast("self-scheduling over an even split", of(rate && rate.both / rate.even), [1.3, 1.4]),
    {
      what: "capacity of the queue over its model",
      got: of(queue && queue.tasksPerSec / queue.modelTasksPerSec),
      unit: "",
      better: "nearOne",
      floor: 1.1,
    },
  ];
}

export const settingText = ({ sitting, cores }: Results): string =>
  `${sittingsText([sitting], [1])}, commit ${sitting.commit}; proxy on core ${cores.proxy}, viewers and origin ` +
  `on core ${cores.generator}`;

export function reportOf(results: Results): string {
  const { capacities, growth, churn } = results;
  const stretches = [
    ...capacities.flatMap(({ holds }) => holds),
    ...[...growth, ...churn].flatMap((run) => run.stretches),
  ];
  const othersAtMost = Math.max(0, ...stretches.map(({ othersBusy }) => othersBusy));
  return [
    settingText(results),
    ...(othersAtMost > OTHERS_MAX
      ? [`Other programs took up to ${percent(othersAtMost)} of a core: these figures are too low.`]
      : []),
    ...(capacities.length > 0 ? [capacityTable(capacities)] : []),
    ...[...growth, ...churn].map(growthTable),
    ...results.coders.map(coderTable),
    ...(results.bandwidths.length > 0 ? [bandwidthTable(results.bandwidths)] : []),
    paperTable(),
    "Figures to reach:",
    figureTable(figuresOf(results)),
  ].join("\n\n");
}

function capacityTable(runs: readonly CapacityRun[]): string {
  const head = ["over, mode", "viewers", "with a whole core", ...CELL_NAMES];
  const lines = runs.map(({ setting, viewers, isAtLeast, holds }) => {
    const held = holds.findLast((hold) => hold.viewers === viewers && hold.isCarried);
    return [
      nameOf(setting),
      `${isAtLeast ? "at least " : ""}${viewers}`,
      ...(held ? [(viewers / held.proxyBusy).toFixed(0), ...cellsOf(held)] : []),
    ];
  });
  return (
    "Capacity: the most viewers with 95 % of the responses within 100 ms, and how many the processor time of each " +
    `viewer would allow. Gigabit Ethernet carries ${GIGABIT_VIEWERS}.\n\n${table(head, lines)}`
  );
}

const ms = (value: number): string => `${value.toFixed(1)} ms`;

/** The columns of `cellsOf`. */
const CELL_NAMES = ["response 50 %", "95 %", "99 %", "proxy's clock, 95 %", "MB/s", "proxy", "generator", "others"];

const cellsOf = ({
  responseMs,
  proxyResponseMsP95,
  bytesPerSec,
  proxyBusy,
  generatorBusy,
  othersBusy,
}: Stretch): string[] => [
  ms(responseMs.p50),
  ms(responseMs.p95),
  ms(responseMs.p99),
  ms(proxyResponseMsP95),
  (bytesPerSec / 1e6).toFixed(1),
  percent(proxyBusy),
  percent(generatorBusy),
  percent(othersBusy),
];

function growthTable({ setting, pace, meanStaySec, stretches }: GrowthRun): string {
  const head = ["time, s", "viewers", ...CELL_NAMES];
  const lines = stretches.map((each) => [each.atSec.toFixed(0), String(each.viewers), ...cellsOf(each)]);
  const stay = meanStaySec === undefined ? "viewers stay" : `viewers stay for ${meanStaySec} s in the mean`;
  return (
    `${setting.channels} channels, ${nameOf(setting)}; arrivals ${pace} times as fast as in the ` +
    `paper, ${stay}\n\n${table(head, lines)}`
  );
}

const codedOnly = ({ anewMs, sharedMs, handedMs }: Sharing): number => anewMs / Math.max(1e-6, sharedMs - handedMs);

/** By the processor's time, if it did nothing but code. */
export const viewersOf = (groupMs: number, cores: number): string =>
  ((cores * 1000 * CODER_GROUP_BYTES) / groupMs / VIEWER_BYTES_PER_SEC).toFixed(0);

function coderTable({ engine, bytesPerSec, queue, sharing }: CoderResults): string {
  const mb = (value: number): string => `${(value / 1e6).toFixed(0)} MB/s`;
  const lines = [
    ["one coder", mb(bytesPerSec.fast)],
    ["another, slowed", mb(bytesPerSec.slow)],
    ["both on one queue", mb(bytesPerSec.both)],
    ["both at once, a queue and its share for each", mb(bytesPerSec.apart)],
    ["both, tasks split evenly", mb(bytesPerSec.even)],
    ["tasks that the queue carries", `${queue.tasksPerSec.toFixed(0)} a second`],
    ["tasks that its model carries", `${queue.modelTasksPerSec.toFixed(0)} a second`],
    [
      `${sharing.viewers} viewers, ${sharing.watched} groups each: a group coded anew`,
      `${sharing.anewMs.toFixed(3)} ms`,
    ],
    ["a shared group, coding and handing out", `${sharing.sharedMs.toFixed(3)} ms`],
    ["of it handing out", `${sharing.handedMs.toFixed(3)} ms`],
    ["viewers that two cores carry, coded anew", viewersOf(sharing.anewMs, 2)],
    ["the same, shared", viewersOf(sharing.sharedMs, 2)],
    ...sharing.memory.map(({ bytes, anewMs, sharedMs }) => [
      `all groups of 160 MB in turns, memory of ${bytes / 2 ** 20} MiB: anew, shared`,
      `${anewMs.toFixed(3)} ms, ${sharedMs.toFixed(3)} ms`,
    ]),
  ];
  return `Coders without network, groups of 128 x 4 KB (${engine})\n\n${table(["what", "value"], lines)}`;
}

function bandwidthTable(bandwidths: readonly Bandwidth[]): string {
  const head = ["op", "cores", "n", ...new Set(bandwidths.map(({ symbolBytes }) => `${symbolBytes} B`))];
  const keyOf = ({ op, threads, symbolCount }: Bandwidth): string => `${op} ${threads} ${symbolCount}`;
  const lines = [...groupBy(bandwidths, keyOf).values()].map((own) => [
    own[0].op,
    String(own[0].threads),
    String(own[0].symbolCount),
    ...own.map(({ bytesPerSec }) => (bytesPerSec / 1e6).toFixed(0)),
  ]);
  return `Coding on the CPU, MB/s, by block size (${bandwidths[0]!.engine})\n\n${table(head, lines)}`;
}

const paperTable = (): string =>
  `The paper says\n\n${table(
    ["figure", "section", "what", "value"],
    PAPER.map(({ figure, section, what, value, unit }) => [figure, section, what, `${value} ${unit}`]),
  )}`;
