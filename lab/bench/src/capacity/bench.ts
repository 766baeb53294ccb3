/**
 * `npm run bench -- capacity`: how many viewers one proxy serves, measured as in the paper on GPU-accelerated servers
 * (Zhao, Zhang, Wang 2010, section IV-C). Exit status 0 measured, 1 could not measure, 2 bad option.
 */
import { writeFileSync } from "node:fs";
import { drawTo } from "@tributary/lab-sim";
import { countOf, fileOf, FLAG, optionsOf, runBench, TEXT, UsageError } from "../kit/command";
import { allowedCores } from "../kit/machine";
import { newSitting } from "../kit/sitting";
import { measureBandwidths } from "./bandwidth";
import { measureCoders } from "./coders";
import { measureCapacity, measureChurn, measureGrowth, type GrowthRun } from "./measure";
import { specificationOf } from "./picture";
import { reportOf, settingText, type Results } from "./report";
import type { StackOptions } from "./stack";

const USAGE = `npm run bench -- capacity [--quick] [--json FILE] [--picture FILE] [--row A,B] [--pace N]
                             [--cores PROXY:GENERATOR]
  --quick       coarse capacities and short growth, about twelve minutes
  --json FILE   all results
  --picture FILE  the paper's Figs 5 to 11 with our results, .svg or .png
  --row A,B     only the parts whose name begins with A or B: capacity-webtransport, capacity-webrtc,
                capacity-sources (nothing is coded), capacity-anew (each request is coded anew), coders, bandwidth,
                growth-1, growth-30, growth-200, stages, churn
  --pace N      viewers arrive N times as fast as in the paper (default 20; 1 takes hours)
  --cores P:G   the proxy's cores and those of the load generator, as taskset takes them (default: the first two)`;

/** Every packet is coded. */
const CODED = { transport: "webtransport", mode: "coded-mutp" } as const;
/** Each request's symbols are coded for it alone, as in the paper. */
const ANEW = { CODES_ANEW: "1" };
/** All coding goes to the queue, where a slowed coder stands in for a GPU. */
const BOTH = { TRIBUTARY_CODER: "both", TRIBUTARY_GPU: "stand-in" };
/** Between holds. A proxy takes 1,200 offers of WebRTC a minute from one address. */
const ARRIVALS_PER_SEC = { webtransport: 50, webrtc: 18 } as const;
const ZIPF = 0.5;
const VERIFY_EVERY = 20;
const SEED = 1;

type Print = (line: string) => void;

interface Part {
  name: string;
  run(results: Results, print: Print): Promise<void>;
}

function partsOf(base: Pick<StackOptions, "cores">, quick: boolean, pace: number): Part[] {
  const common = { ...base, channels: 1, zipf: ZIPF, verifyEvery: VERIFY_EVERY, seed: SEED };
  const grow = (name: string, own: Pick<StackOptions, "channels" | "proxyEnv">): Part => ({
    name,
    run: async (results, print) => {
      const size = { viewers: quick ? 320 : 640, pace, everyMs: 5000 };
      results.growth.push(await measureGrowth({ ...common, ...CODED, ...own }, size, print));
    },
  });
  const carry = (name: string, own: Pick<StackOptions, "transport" | "mode" | "proxyEnv">): Part => ({
    name,
    run: async (results, print) => {
      const ramp = { step: 200, exact: quick ? 50 : 25, most: 1400 };
      const times = { arrivalsPerSec: ARRIVALS_PER_SEC[own.transport], holdMs: quick ? 5000 : 10_000 };
      results.capacities.push(await measureCapacity({ ...common, ...own }, ramp, times, print));
    },
  });
  return [
    carry("capacity-webtransport", CODED),
    carry("capacity-webrtc", { ...CODED, transport: "webrtc" }),
    carry("capacity-sources", { ...CODED, mode: "coded" }),
    carry("capacity-anew", { ...CODED, proxyEnv: ANEW }),
    { name: "coders", run: async (results) => void results.coders.push(await measureCoders(quick ? 7 : 21)) },
    {
      name: "bandwidth",
      run: async (results) => void results.bandwidths.push(...(await measureBandwidths(quick ? 60 : 300))),
    },
    ...[1, 30, 200].map((channels) => grow(`growth-${channels}`, { channels })),
    grow("stages", { channels: 30, proxyEnv: BOTH }),
    {
      name: "churn",
      run: async (results, print) => {
        const seconds = (quick ? 1200 : 3600) / pace;
        const run: GrowthRun = await measureChurn(
          { ...common, ...CODED },
          { seconds, pace, meanStaySec: 600 / pace, everyMs: Math.max(2000, (1000 * 60) / pace) },
          print,
        );
        results.churn.push(run);
      },
    },
  ];
}

function coresOf(text: string | undefined): StackOptions["cores"] {
  const [first, second] = allowedCores();
  if (text === undefined && second === undefined)
    throw new UsageError("this bench needs two processors: one for the proxy, one for the viewers");
  const match = /^([\d,-]+):([\d,-]+)$/.exec(text ?? `${first}:${second}`);
  if (!match) throw new UsageError(`--cores must be PROXY:GENERATOR as in 0:1 or 0,1:2-3, got ${text}`);
  return { proxy: match[1]!, generator: match[2]! };
}

async function main(): Promise<number> {
  const options = optionsOf({
    quick: FLAG,
    json: TEXT,
    picture: TEXT,
    row: { ...TEXT, default: "" },
    pace: TEXT,
    cores: TEXT,
  });
  const pace = countOf("pace", options.pace, 100) ?? 20;
  if (process.platform !== "linux") throw new UsageError("this bench pins processes and reads /proc: it needs Linux");
  const cores = coresOf(options.cores);
  const results: Results = {
    sitting: newSitting(),
    cores,
    capacities: [],
    growth: [],
    churn: [],
    bandwidths: [],
    coders: [],
  };
  const parts = partsOf({ cores }, options.quick, pace).filter(({ name }) =>
    options.row.split(",").some((begin) => name.startsWith(begin)),
  );
  if (parts.length === 0) throw new UsageError(`--row: no part's name begins with ${options.row}`);
  let failures = 0;
  for (const part of parts) {
    console.log(part.name);
    await part.run(results, console.log).catch((error: unknown) => {
      failures++;
      console.error(`  ${part.name} could not be measured: ${(error as Error).message}`);
    });
  }
  if (options.json !== undefined) writeFileSync(fileOf(options.json), `${JSON.stringify(results)}\n`);
  if (options.picture !== undefined) drawTo(options.picture, specificationOf(results, settingText(results)));
  console.log(`\n${reportOf(results)}`);
  return failures > 0 ? 1 : 0;
}

runBench(USAGE, main);
