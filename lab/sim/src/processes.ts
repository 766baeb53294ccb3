/**
 * Runs jobs in separate processes. Threads do not work: Node 20 sometimes aborts (an assertion in its platform) when a
 * thread ends while V8 compiles its code in the background.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";

/** True in a process that `Helper` started. It must call `serve`. */
export const isHelper = process.send !== undefined;

/** Answers jobs one at a time. */
export function serve<Job, Result>(work: (job: Job) => Result): void {
  process.on("message", (job: Job) => process.send!(work(job)));
}

/** A process that runs `file`, which must call `serve`. */
export class Helper<Job extends object, Result> {
  readonly #child: ChildProcess;

  constructor(file: string) {
    this.#child = fork(file, { serialization: "advanced" });
  }

  /** @throws Error when the process ends before it answers, or does not answer within `limitMs`. */
  async ask(job: Job, limitMs = Infinity): Promise<Result> {
    const over = new AbortController();
    const { signal } = over;
    const ended = once(this.#child, "exit", { signal }).then(([status, killedBy]) => {
      throw new Error(`the process ends with ${killedBy ?? `status ${status}`}`);
    });
    const failed = new Promise<never>((_, reject) => {
      this.#child.send(job, (error) => error && reject(error));
      if (limitMs === Infinity) return;
      const timer = setTimeout(() => reject(new Error(`does not end within ${limitMs / 1000} s`)), limitMs);
      signal.addEventListener("abort", () => clearTimeout(timer));
    });
    try {
      const [result] = await Promise.race([once(this.#child, "message", { signal }), ended, failed]);
      return result as Result;
    } finally {
      over.abort();
    }
  }

  end(): void {
    this.#child.kill("SIGKILL");
  }
}

/** Runs all jobs on all processors. `onResult` gets each result with the index of its job, in any order. */
export async function inProcesses<Job extends object, Result>(
  file: string,
  jobs: Iterable<Job>,
  onResult: (result: Result, index: number) => void,
): Promise<void> {
  const left = jobs[Symbol.iterator]();
  let taken = 0;
  const work = async (): Promise<void> => {
    let helper: Helper<Job, Result> | undefined;
    try {
      for (let next = left.next(); !next.done; next = left.next()) {
        const index = taken++;
        helper ??= new Helper(file);
        onResult(await helper.ask(next.value), index);
      }
    } finally {
      helper?.end();
    }
  };
  await Promise.all(Array.from({ length: availableParallelism() }, work));
}
