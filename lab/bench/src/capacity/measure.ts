/** Measures a stack: holds of a constant number of viewers, and growth with time as the paper's figures show it. */
import { quantile, sum } from "../kit/figures";
import { percent } from "../kit/table";
import type { Look } from "./generator";
import { histogramQuantile, stageSeconds, type Metrics } from "./metrics";
import { findCapacity, type Capacity, type Hold, type Ramp } from "./ramp";
import { startStack, type Spent, type Stack, type StackOptions } from "./stack";

/** The paper's bound of the response time (section IV-C, Fig. 7b). */
export const RESPONSE_MS_MAX = 100;
/** This share of the requests must be answered within the bound. */
export const RESPONSE_SHARE = 0.95;
/** More groups than this that come too late for the video mean that the viewers are not served. */
const LATE_SHARE_MAX = 0.01;
/** With less processor time left than this, the generator may be the one that is slow. */
const GENERATOR_BUSY_MAX = 0.9;
const RESPONSE_METRIC = "tributary_response_seconds";
const SETTLE_MS = 3000;

/** One stretch of time with the viewers that were there at its end. */
export interface Stretch {
  atSec: number;
  viewers: number;
  seconds: number;
  requests: number;
  responseMs: { mean: number; p50: number; p95: number; p99: number };
  /** By the proxy's own clock, from the request to its first data frame. NaN if the proxy does not say. */
  proxyResponseMsP95: number;
  /** Time of all coding tasks by stage, s. */
  stageSec: Record<string, number>;
  completeMsP95: number;
  /** Groups that came too late for the video, of all. */
  lateShare: number;
  bytesPerSec: number;
  /** Shares of the time of their cores. */
  proxyBusy: number;
  /** With the origin. */
  generatorBusy: number;
  /** What other programs took of the proxy's cores or of the generator's, whichever is more. */
  othersBusy: number;
  verifiedBytes: number;
  wrongGroups: number;
  failures: string[];
}

export interface HeldStretch extends Stretch, Hold {}

export interface CapacityRun extends Capacity {
  setting: Omit<StackOptions, "cores">;
  holds: HeldStretch[];
  /** Response times of the largest hold that was carried, ms. */
  responseMs: number[];
}

export interface GrowthRun {
  setting: Omit<StackOptions, "cores">;
  /** How many times faster than in the paper viewers arrive. */
  pace: number;
  meanStaySec?: number;
  stretches: Stretch[];
}

type Print = (line: string) => void;

const settingOf = ({ cores: _, ...setting }: StackOptions): CapacityRun["setting"] => setting;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Takes stretches of a stack, one after the other. */
class Watch {
  readonly #startMs = performance.now();
  #lastMs = performance.now();
  #last: ReturnType<Stack["spent"]>;
  #metrics: Metrics = new Map();

  readonly #stack: Stack;

  constructor(stack: Stack) {
    this.#stack = stack;
    this.#last = stack.spent();
  }

  /** The stretch since the last call, and its response times. */
  async take(): Promise<{ stretch: Stretch; responseMs: number[] }> {
    const look = await this.#stack.look();
    const nowMs = performance.now();
    const seconds = (nowMs - this.#lastMs) / 1000;
    const spent = this.#stack.spent();
    const proxy = sharesOf(this.#last.proxy, spent.proxy, seconds);
    const generator = sharesOf(this.#last.generator, spent.generator, seconds);
    this.#last = spent;
    this.#lastMs = nowMs;
    const [before, after] = [this.#metrics, await this.#stack.metrics()];
    this.#metrics = after;
    const responseMs = responsesOf(look);
    return {
      responseMs,
      stretch: {
        atSec: (nowMs - this.#startMs) / 1000,
        viewers: look.viewers,
        seconds,
        requests: responseMs.length,
        responseMs: {
          mean: sum(responseMs) / responseMs.length,
          p50: quantile(responseMs, 0.5),
          p95: quantile(responseMs, RESPONSE_SHARE),
          p99: quantile(responseMs, 0.99),
        },
        proxyResponseMsP95: 1000 * histogramQuantile(before, after, RESPONSE_METRIC, RESPONSE_SHARE),
        stageSec: stageSeconds(before, after),
        completeMsP95: quantile(look.completeMs, 0.95),
        lateShare: look.late / Math.max(1, look.completeMs.length),
        bytesPerSec: look.bytes / seconds,
        proxyBusy: proxy.own,
        generatorBusy: generator.own,
        othersBusy: Math.max(proxy.others, generator.others),
        verifiedBytes: look.verifiedBytes,
        wrongGroups: look.wrongGroups,
        failures: look.failures,
      },
    };
  }
}

function sharesOf(before: Spent, after: Spent, seconds: number): { own: number; others: number } {
  const own = (after.ownSec - before.ownSec) / seconds / after.cores;
  return { own, others: Math.max(0, (after.coresSec - before.coresSec) / seconds / after.cores - own) };
}

/** A request that still waits, and has waited longer than the bound, counts with its time so far. */
const responsesOf = ({ responseMs, waitingMs }: Look): number[] => [
  ...responseMs,
  ...waitingMs.filter((ms) => ms > RESPONSE_MS_MAX),
];

/** Viewers that got no session, or lost it, are not served: then there are fewer than `wanted`. */
function heldOf(stretch: Stretch, wanted: number): HeldStretch {
  const { responseMs, lateShare, failures, wrongGroups, generatorBusy } = stretch;
  const isCarried =
    stretch.viewers === wanted &&
    responseMs.p95 <= RESPONSE_MS_MAX &&
    lateShare <= LATE_SHARE_MAX &&
    failures.length === 0 &&
    wrongGroups === 0;
  return { ...stretch, viewers: wanted, isCarried, isGeneratorBound: generatorBusy > GENERATOR_BUSY_MAX };
}

export function stretchText(stretch: Stretch): string {
  const { viewers, responseMs, completeMsP95, lateShare, bytesPerSec, failures } = stretch;
  return [
    `${viewers} viewers: response ${responseMs.p50.toFixed(1)} ms (50 %), ${responseMs.p95.toFixed(1)} ms (95 %)`,
    `by the proxy's clock ${stretch.proxyResponseMsP95.toFixed(1)} ms (95 %)`,
    `complete ${completeMsP95.toFixed(0)} ms (95 %)`,
    `late ${percent(lateShare)}`,
    `${(bytesPerSec / 1e6).toFixed(1)} MB/s`,
    `processor: proxy ${percent(stretch.proxyBusy)}`,
    `generator ${percent(stretch.generatorBusy)}`,
    `others ${percent(stretch.othersBusy)}`,
    ...(failures.length > 0 ? [`${failures.length} failures: ${failures[0]}`] : []),
  ].join(", ");
}

/** `arrivalsPerSec`: how fast viewers come between holds. A hold lasts for `holdMs`. */
export async function measureCapacity(
  options: StackOptions,
  ramp: Ramp,
  { arrivalsPerSec, holdMs }: { arrivalsPerSec: number; holdMs: number },
  print: Print,
): Promise<CapacityRun> {
  const setting = settingOf(options);
  const stack = await startStack(options);
  const holds: HeldStretch[] = [];
  let best: { viewers: number; responseMs: number[] } = { viewers: 0, responseMs: [] };
  try {
    const watch = new Watch(stack);
    const capacity = await findCapacity(ramp, async (viewers) => {
      await stack.tell({ kind: "grow", viewers, perSec: arrivalsPerSec });
      await pause(SETTLE_MS);
      await watch.take();
      await pause(holdMs);
      const { stretch, responseMs } = await watch.take();
      const held = heldOf(stretch, viewers);
      holds.push(held);
      print(`  ${stretchText(held)}${held.isCarried ? "" : ": not carried"}`);
      if (held.isCarried && viewers > best.viewers) best = { viewers, responseMs };
      return held;
    });
    return { ...capacity, setting, holds, responseMs: best.responseMs };
  } finally {
    await stack.stop();
  }
}

/** The paper's arrivals (section IV-C): Poisson, 2 in 5 s. */
export const ARRIVALS_PER_SEC = 2 / 5;

/** Viewers arrive and stay, up to `viewers`. */
export function measureGrowth(
  options: StackOptions,
  { viewers, pace, everyMs }: { viewers: number; pace: number; everyMs: number },
  print: Print,
): Promise<GrowthRun> {
  return measureStretches(options, { pace }, print, async (stack, take) => {
    const perStretch = Math.max(1, Math.round((ARRIVALS_PER_SEC * pace * everyMs) / 1000));
    for (let count = perStretch; count <= viewers; count += perStretch) {
      await stack.tell({ kind: "grow", viewers: count, perSec: ARRIVALS_PER_SEC * pace });
      await take();
    }
  });
}

/** Viewers arrive and leave for `seconds`. */
export function measureChurn(
  options: StackOptions,
  { seconds, pace, meanStaySec, everyMs }: { seconds: number; pace: number; meanStaySec: number; everyMs: number },
  print: Print,
): Promise<GrowthRun> {
  return measureStretches(options, { pace, meanStaySec }, print, async (stack, take) => {
    await stack.tell({ kind: "churn", perSec: ARRIVALS_PER_SEC * pace, stayMs: 1000 * meanStaySec });
    for (const endMs = performance.now() + 1000 * seconds; performance.now() < endMs;) {
      await pause(everyMs);
      await take();
    }
  });
}

/** Starts a stack for `load`, which takes a stretch whenever one is over. */
async function measureStretches(
  options: StackOptions,
  facts: Pick<GrowthRun, "pace" | "meanStaySec">,
  print: Print,
  load: (stack: Stack, take: () => Promise<void>) => Promise<void>,
): Promise<GrowthRun> {
  const setting = settingOf(options);
  const stack = await startStack(options);
  try {
    const stretches: Stretch[] = [];
    const watch = new Watch(stack);
    await load(stack, async () => {
      const { stretch } = await watch.take();
      stretches.push(stretch);
      print(`  ${stretchText(stretch)}`);
    });
    return { setting, ...facts, stretches };
  } finally {
    await stack.stop();
  }
}
