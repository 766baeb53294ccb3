/** The command line of a bench: options, files and the exit status. */
import path from "node:path";
import { parseArgs, type ParseArgsConfig } from "node:util";

export const FLAG = { type: "boolean", default: false } as const;
export const TEXT = { type: "string" } as const;

/** Status of a bench that Ctrl-C stopped. */
export const INTERRUPTED = 130;

/** A wrong option: the command prints this and ends with status 2. */
export class UsageError extends Error {}

type Options = NonNullable<ParseArgsConfig["options"]>;

export function optionsOf<const T extends Options>(options: T): ReturnType<typeof parseArgs<{ options: T }>>["values"] {
  try {
    return parseArgs({ args: process.argv.slice(2), options }).values;
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/** A whole number from 1 to `max`; undefined if the option was not given. */
export function countOf(name: string, text: string | undefined, max = 9999): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (Number.isInteger(value) && value > 0 && value <= max) return value;
  throw new UsageError(`--${name} must be a whole number from 1 to ${max}, got ${text}`);
}

/** Relative to where the person typed the command. */
export const fileOf = (name: string): string => path.resolve(process.env["INIT_CWD"] ?? process.cwd(), name);

/** Resolves to whether Ctrl-C was pressed. A second Ctrl-C ends the process at once. */
export function watchInterrupt(message: string): () => boolean {
  let stopped = false;
  process.once("SIGINT", () => {
    stopped = true;
    console.log(`\n${message}; press Ctrl-C again to stop at once`);
    process.once("SIGINT", () => process.exit(INTERRUPTED));
  });
  return () => stopped;
}

/** Runs a bench, or prints its usage after `--help`. Its status is 1 when it throws, 2 for a wrong option. */
export function runBench(usage: string, main: () => Promise<number>): void {
  if (process.argv.includes("--help")) return console.log(`usage: ${usage}`);
  void main().then(
    // A pipe may not have taken all of the report yet.
    (status) => process.stdout.write("", () => process.exit(status)),
    (error: unknown) => {
      if (error instanceof UsageError) console.error(`${error.message}\nusage: ${usage}`);
      else console.error(error);
      process.exit(error instanceof UsageError ? 2 : 1);
    },
  );
}
