/** Programs that a bench starts and asks: each order and each answer is one line of JSON. */
import type { ChildProcess } from "node:child_process";
import { createInterface } from "node:readline";
import type { Links } from "@tributary/lab-links";

/** Hands on each line of the program's standard output when it is asked for. Rejects after the program has ended. */
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

export interface Driver<Order, Answer> {
  ask(order: Order): Promise<Answer>;
  /** Resolves when the program and its browsers have ended. */
  close(): Promise<void>;
}

/** Starts a client of the Origo on `links`, on the client's host. `flags` are Node's own. */
export function startDriver<Order, Answer>(
  links: Links,
  script: string,
  flags: readonly string[] = [],
): Driver<Order, Answer> {
  const words = [process.execPath, ...flags, script, links.env["ORIGO_URL"]!, links.env["ORIGO_COOKIE"]!];
  const driver = links.run("client", words, { stdio: ["pipe", "pipe", "inherit"], detached: true });
  // The next answer reports that the program has ended.
  driver.stdin!.on("error", () => undefined);
  const lines = linesOf(driver);
  return {
    ask: async (order) => {
      driver.stdin!.write(`${JSON.stringify(order)}\n`);
      return JSON.parse(await lines.next()) as Answer;
    },
    close: async () => {
      driver.stdin!.end();
      await exitOf(driver);
    },
  };
}
