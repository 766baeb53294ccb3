/** What a person reads: the figures to reach, capacities, and growth with time. Pure: text out. */
import { sittingsText, type Sitting } from "../kit/sitting";
import { percent, table } from "../kit/table";
import { atLeast, figureTable, type Figure } from "../kit/verdict";
import type { CapacityRun, GrowthRun, Stretch } from "./measure";
import type { StackOptions } from "./stack";

export interface Results {
  sitting: Sitting;
  cores: StackOptions["cores"];
  capacities: CapacityRun[];
  growth: GrowthRun[];
  churn: GrowthRun[];
}

/** Floor and aim for the viewers of one proxy on one core. */
const LIMITS = { webtransport: [300, 800], webrtc: [200, 500] } as const;

/** More of a core than this that other programs take makes a proxy look slower than it is. */
const OTHERS_MAX = 0.1;

export function figuresOf({ capacities }: Results): Figure[] {
  return (["webtransport", "webrtc"] as const).map((transport) => {
    const own = capacities.filter(({ setting }) => setting.transport === transport && setting.mode === "coded-mutp");
    const viewers = own.at(-1)?.viewers ?? NaN;
    return atLeast(`viewers at 100 ms, ${transport}, every packet coded`, viewers, LIMITS[transport], {
      ...(own.at(-1)?.isAtLeast ? { note: "the generator was the limit" } : {}),
    });
  });
}

export function reportOf(results: Results): string {
  const { sitting, cores, capacities, growth, churn } = results;
  const stretches = [
    ...capacities.flatMap(({ holds }) => holds),
    ...[...growth, ...churn].flatMap((run) => run.stretches),
  ];
  const othersAtMost = Math.max(0, ...stretches.map(({ othersBusy }) => othersBusy));
  return [
    `${sittingsText([sitting], [1])}, commit ${sitting.commit}; proxy on core ${cores.proxy}, viewers and origin on ` +
      `core ${cores.generator}`,
    ...(othersAtMost > OTHERS_MAX
      ? [`Other programs took up to ${percent(othersAtMost)} of a core: these figures are too low.`]
      : []),
    ...(capacities.length > 0 ? [capacityTable(capacities)] : []),
    ...[...growth, ...churn].map(growthTable),
    "Figures to reach:",
    figureTable(figuresOf(results)),
  ].join("\n\n");
}

function capacityTable(runs: readonly CapacityRun[]): string {
  const head = [
    "transport",
    "mode",
    "viewers",
    "response 50 %",
    "95 %",
    "99 %",
    "MB/s",
    "proxy",
    "generator",
    "others",
  ];
  const lines = runs.map(({ setting, viewers, isAtLeast, holds }) => {
    const held = holds.findLast((hold) => hold.viewers === viewers && hold.isCarried);
    return [
      setting.transport,
      setting.mode,
      `${isAtLeast ? "at least " : ""}${viewers}`,
      ...(held ? cellsOf(held) : []),
    ];
  });
  return `Capacity: the most viewers with 95 % of the responses within 100 ms\n\n${table(head, lines)}`;
}

const ms = (value: number): string => `${value.toFixed(1)} ms`;

const cellsOf = ({ responseMs, bytesPerSec, proxyBusy, generatorBusy, othersBusy }: Stretch): string[] => [
  ms(responseMs.p50),
  ms(responseMs.p95),
  ms(responseMs.p99),
  (bytesPerSec / 1e6).toFixed(1),
  percent(proxyBusy),
  percent(generatorBusy),
  percent(othersBusy),
];

function growthTable({ setting, pace, meanStaySec, stretches }: GrowthRun): string {
  const head = ["time, s", "viewers", "response 50 %", "95 %", "99 %", "MB/s", "proxy", "generator", "others"];
  const lines = stretches.map((each) => [each.atSec.toFixed(0), String(each.viewers), ...cellsOf(each)]);
  const stay = meanStaySec === undefined ? "viewers stay" : `viewers stay for ${meanStaySec} s in the mean`;
  return (
    `${setting.channels} channels, ${setting.transport}, ${setting.mode}; arrivals ${pace} times as fast as in the ` +
    `paper, ${stay}\n\n${table(head, lines)}`
  );
}
