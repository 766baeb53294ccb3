/**
 * Measures groups of cases: round after round, each case of a group for one slice of time in each round, the order
 * rotated so that no case always runs after the same one. Who measures is behind `Runner`.
 */
import { caseKey, type Case, type Group, type RunnerName } from "./cases";
import { GroupSamples, type Measured } from "./samples";

/** A process that answers requests of one line with one line: docs in lab/bench/codec/native.cc. */
export interface Runner {
  request(line: string): Promise<string>;
  close(): Promise<void>;
}

export type Runners = Partial<Record<RunnerName, Runner>>;

export interface Pace {
  readonly rounds: number;
  readonly sliceMs: number;
}

/** Cases that could not be measured, each with what the runner said. */
export type Absences = Map<string, string>;

const SECONDS = /^seconds (\S+)$/;

async function measureOnce(runners: Runners, c: Case, sliceMs: number): Promise<number | string> {
  const runner = runners[c.runner];
  if (!runner) return `no ${c.runner} runner`;
  const answer = await runner.request(
    `measure ${c.contender} ${c.path} ${c.request} ${c.g} ${c.symbolBytes} ${c.outputs} ${sliceMs}`,
  );
  const seconds = Number(SECONDS.exec(answer)?.[1]);
  if (Number.isFinite(seconds) && seconds > 0) return seconds;
  if (answer.startsWith("absent ")) return answer.slice("absent ".length);
  throw new Error(`${caseKey(c)}: ${answer}`);
}

/** Runs one group; what is absent is noted in `absences` and left out. A wrong result of a contender throws. */
export async function measureGroup(
  group: Group,
  runners: Runners,
  pace: Pace,
  absences: Absences,
): Promise<GroupSamples> {
  const samples = new Map<Case, number[]>(group.cases.map((c) => [c, []]));
  for (let round = 0; round < pace.rounds; round++) {
    const cases = [...samples.keys()];
    const first = round % Math.max(cases.length, 1);
    for (const c of [...cases.slice(first), ...cases.slice(0, first)]) {
      const seconds = await measureOnce(runners, c, pace.sliceMs);
      if (typeof seconds === "number") samples.get(c)!.push(seconds);
      else {
        absences.set(caseKey(c), seconds);
        samples.delete(c);
      }
    }
  }
  await Promise.all(Object.values(runners).map((runner) => runner.request("forget")));
  return new GroupSamples(
    group.name,
    [...samples].map(([c, seconds]): Measured => ({ case: c, seconds })),
  );
}

/** Engine names of a runner, fastest first. */
export async function enginesOf(runner: Runner | undefined): Promise<string[]> {
  return runner ? (await runner.request("engines")).split(" ").slice(1) : [];
}
