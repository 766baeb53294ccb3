#!/usr/bin/env node
/** The command line: `tributary get URL`. The table of commands: cli/program.ts. */
import path from "node:path";
import { run } from "./cli/program";
import { STATUS } from "./cli/exit";
import { stopped, watchSignals } from "./cli/signals";

/** A reader that has stopped reading holds the last text back no longer than this. */
const FLUSH_MS = 500;

/** `npm run tributary` runs in the repository. The user's folder counts for the names of files. */
function enterUserFolder(): void {
  const { INIT_CWD: folder, npm_lifecycle_event: script } = process.env;
  const root = path.resolve(__dirname, "../..");
  if (folder !== undefined && script === "tributary" && process.cwd() === root) process.chdir(folder);
}

/** Exits when standard output and standard error have taken all text. */
function exit(status: number): void {
  process.exitCode = status;
  const open = [process.stdout, process.stderr].filter((stream) => stream.writableLength > 0 && !stream.destroyed);
  let left = open.length;
  if (left === 0) process.exit(status);
  if (stopped.aborted) setTimeout(() => process.exit(status), FLUSH_MS);
  for (const stream of open) stream.write("", () => --left === 0 && process.exit(status));
}

process.exitCode = STATUS.failed;
process.stdout.on("error", () => undefined);
process.stderr.on("error", () => undefined);
watchSignals();
enterUserFolder();
void run(process.argv.slice(2)).then(exit);
