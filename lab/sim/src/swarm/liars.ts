/**
 * `npm run sim -- liars`: downloads of an object whose root the client knows, from four proxies of which three lie, all
 * in the same way. The links have the faults of the swarm, and the rules are those of run.ts.
 *
 *   npm run sim -- liars [--runs 1000] [--seed N]
 *
 * It makes that many runs of each lie and prints a line for each. Exit status: 0 no wrong byte was handed on, no honest
 * proxy was convicted and every download is complete; 1 otherwise; 2 wrong option.
 */
import { loadCodec } from "@tributary/native-codec";
import { loadWasmCodec } from "@tributary/wasm-codec/node";
import type { Codec } from "@tributary/protocol";
import { inProcesses, serve } from "../processes";
import { draw, LIES_ABOUT } from "./draw";
import { readOptions } from "./main";
import { runSwarm } from "./run";

export const USAGE = "usage: npm run sim -- liars [--runs 1000] [--seed N]";
const BATCH = 25;

interface Batch {
  about: string;
  firstSeed: number;
  runs: number;
}

export interface LiarsReport {
  about: string;
  runs: number;
  complete: number;
  /** Liars that were convicted of a false packet or proof. A false plan costs a proxy its part, too. */
  convicted: number;
  wrongs: { seed: number; wrong: string }[];
}

export function lieIn({ about, firstSeed, runs }: Batch, codec: Codec): LiarsReport {
  const report: LiarsReport = { about, runs, complete: 0, convicted: 0, wrongs: [] };
  for (let seed = firstSeed; seed < firstSeed + runs; seed++) {
    const { end, excluded, wrongs } = runSwarm(draw(seed, LIES_ABOUT[about]), codec);
    if (end === "complete") report.complete++;
    report.convicted += excluded;
    report.wrongs.push(...wrongs.map((wrong) => ({ seed, wrong })));
  }
  return report;
}

function* batchesOf(firstSeed: number, runs: number): Generator<Batch> {
  for (const about of Object.keys(LIES_ABOUT))
    for (let done = 0; done < runs; done += BATCH)
      yield { about, firstSeed: firstSeed + done, runs: Math.min(BATCH, runs - done) };
}

export async function liars(words: string[]): Promise<number> {
  const options = readOptions(words, 1000);
  if (typeof options === "string") {
    console.error(`${options}\n${USAGE}`);
    return 2;
  }
  const { runs, seed } = options;
  console.log(`liars: three of four proxies lie, ${runs} runs of each lie from seed ${seed}`);
  const sums = new Map<string, LiarsReport>();
  await inProcesses<Batch, LiarsReport>(__filename, batchesOf(seed, runs), (report) => {
    const sum = sums.get(report.about) ?? { about: report.about, runs: 0, complete: 0, convicted: 0, wrongs: [] };
    sums.set(report.about, sum);
    sum.runs += report.runs;
    sum.complete += report.complete;
    sum.convicted += report.convicted;
    sum.wrongs.push(...report.wrongs);
  });
  for (const sum of sums.values()) print(sum);
  return [...sums.values()].every(({ complete, wrongs }) => complete === runs && wrongs.length === 0) ? 0 : 1;
}

function print({ about, runs, complete, convicted, wrongs }: LiarsReport): void {
  const count = (text: RegExp): number => wrongs.filter(({ wrong }) => text.test(wrong)).length;
  console.log(
    `${about}: ${complete} of ${runs} complete, ${count(/wrong bytes/)} with wrong bytes, ` +
      `${count(/honest .* blamed/)} honest proxies convicted, ${convicted} liars convicted`,
  );
  for (const { seed, wrong } of wrongs.slice(0, 5)) console.log(`  seed ${seed}: ${wrong}`);
}

if (require.main === module) {
  const codec = loadCodec(loadWasmCodec);
  serve<Batch, LiarsReport>((batch) => lieIn(batch, codec));
}
