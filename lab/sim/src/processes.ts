/**
 * Jobs done by processes of their own. Not by threads: Node 20 aborts now and then (an assertion in its platform) where
 * a thread is ended while V8 compiles in the background what it ran.
 */
import { fork, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { availableParallelism } from "node:os";

/** Whether this process is one that `Helper` started; such a one serves. */
export const isHelper = process.send !== undefined;

/** Answers each job that comes, one at a time. */
export function serve<Job, Result>(work: (job: Job) => Result): void {
  process.on("message", (job: Job) => process.send!(work(job)));
}

/** A process that runs `file`, which serves. */
export class Helper<Job extends object, Result> {
  readonly #child: ChildProcess;

  constructor(file: string) {
    this.#child = fork(file, { serialization: "advanced" });
  }

  /** @throws Error when the process ends meanwhile, or does not answer within `limitMs`. */
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

/** All jobs, on all processors; results come as they are there, with the index of their job. */
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
