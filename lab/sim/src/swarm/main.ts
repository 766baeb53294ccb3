/**
 * `npm run sim -- swarm`: many runs on all processors, each with its own faults. Each must keep the rules of run.ts.
 *
 *   npm run sim -- swarm [--runs 2000] [--seed N]
 *
 * Run i has the seed N + i. Without --seed, N comes from the clock and is printed. Each failed run prints a line with
 * the command that repeats it; a summary follows. Exit status: 0 all passed, 1 some failed, 2 wrong option.
 */
import { parseArgs } from "node:util";
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { Codec } from "@tributary/protocol";
import { inProcesses, serve } from "../processes";
import { draw, withSharing } from "./draw";
import { runSwarm, type SwarmOutcome } from "./run";

export const USAGE = "usage: npm run sim -- swarm [--runs 2000] [--seed N]";
const SEED_MAX = 0xffff_ffff;
/** Runs per report of a process. */
const BATCH = 25;

export interface Batch {
  firstSeed: number;
  runs: number;
}

export interface Report {
  ends: Record<SwarmOutcome["end"], number>;
  excluded: number;
  events: number;
  /** The largest share of its bound that a complete run took. */
  slowest: number;
  failures: { seed: number; wrongs: string[] }[];
}

const noReport = (): Report => ({
  ends: { complete: 0, failed: 0, aborted: 0, none: 0 },
  excluded: 0,
  events: 0,
  slowest: 0,
  failures: [],
});

function work({ firstSeed, runs }: Batch, codec: Codec): Report {
  const report = noReport();
  for (let i = 0; i < runs; i++) {
    const seed = (firstSeed + i) % (SEED_MAX + 1);
    const outcome = runSwarm(withSharing(draw(seed)), codec);
    report.ends[outcome.end]++;
    report.excluded += outcome.excluded;
    report.events += outcome.events;
    if (outcome.end === "complete") report.slowest = Math.max(report.slowest, outcome.endMs / outcome.boundMs);
    if (outcome.wrongs.length > 0) report.failures.push({ seed, wrongs: outcome.wrongs });
  }
  return report;
}

function add(sum: Report, one: Report): void {
  for (const end of Object.keys(sum.ends) as SwarmOutcome["end"][]) sum.ends[end] += one.ends[end];
  sum.excluded += one.excluded;
  sum.events += one.events;
  sum.slowest = Math.max(sum.slowest, one.slowest);
  sum.failures.push(...one.failures);
  for (const { seed, wrongs } of one.failures) {
    console.log(`seed ${seed}: ${wrongs.join("; ")}\nto repeat: npm run sim -- swarm --seed ${seed} --runs 1`);
  }
}

function* batchesOf(firstSeed: number, runs: number): Generator<Batch> {
  for (let done = 0; done < runs; done += BATCH)
    yield { firstSeed: firstSeed + done, runs: Math.min(BATCH, runs - done) };
}

async function runAll(firstSeed: number, runs: number): Promise<Report> {
  const sum = noReport();
  await inProcesses<Batch, Report>(__filename, batchesOf(firstSeed, runs), (report) => add(sum, report));
  return sum;
}

/** `runs`: if the words say nothing. */
export function readOptions(words: string[], preset = 2000): { runs: number; seed: number } | string {
  let values;
  try {
    ({ values } = parseArgs({ args: words, options: { runs: { type: "string" }, seed: { type: "string" } } }));
  } catch (error) {
    return (error as Error).message;
  }
  const runs = Number(values.runs ?? preset);
  const seed = Number(values.seed ?? Date.now() % SEED_MAX);
  if (!Number.isInteger(runs) || runs < 1 || runs > 100_000_000)
    return `--runs: got ${values.runs}, wanted an integer 1 to 100000000`;
  if (!Number.isInteger(seed) || seed < 0 || seed > SEED_MAX)
    return `--seed: got ${values.seed}, wanted an integer 0 to ${SEED_MAX}`;
  return { runs, seed };
}

export async function swarm(words: string[]): Promise<number> {
  const options = readOptions(words);
  if (typeof options === "string") {
    console.error(`${options}\n${USAGE}`);
    return 2;
  }
  const { runs, seed } = options;
  console.log(`swarm: ${runs} runs from seed ${seed}`);
  const startedMs = Date.now();
  const { ends, excluded, events, slowest, failures } = await runAll(seed, runs);
  console.log(
    `${ends.complete} complete, ${ends.failed} failed, ${ends.aborted} aborted, ${ends.none} still waiting; ` +
      `${excluded} proxies excluded for false packets`,
  );
  console.log(
    `the slowest took ${(slowest * 100).toFixed(0)} % of its bound; ` +
      `${events} events in ${((Date.now() - startedMs) / 1000).toFixed(0)} s`,
  );
  console.log(`${runs - failures.length} passed, ${failures.length} failed`);
  return failures.length > 0 ? 1 : 0;
}

if (require.main === module) {
  const codec = loadCodec(loadWasmCodec);
  serve<Batch, Report>((batch) => work(batch, codec));
}
