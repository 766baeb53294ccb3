/** Programs that answer in lines, one at a time. */
import { createInterface } from "node:readline";
import type { ChildProcess } from "node:child_process";

/**
 * The lines of a program's standard output, each handed on when it is asked for; rejects when the program has ended.
 */
export function linesOf(child: ChildProcess): { next(): Promise<string> } {
  const lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
  return {
    next: async () => {
      const { value, done } = await lines.next();
      if (done) throw new Error(`${child.spawnargs.at(-1)}: ended without an answer`);
      return value as string;
    },
  };
}

export function exitOf(child: ChildProcess): Promise<number | null> {
  if (child.exitCode !== null) return Promise.resolve(child.exitCode);
  return new Promise((resolve) => child.once("close", resolve));
}
