/** Makes processes end with whoever started them: a starter with npm, and what it starts with the starter. */
import fs from "node:fs";
import { clearInterval, setInterval } from "node:timers";
import { fileURLToPath } from "node:url";

const LOOK_MS = 500;

/** Words for node that bind a child to this process. The child's descriptor 3 must be a pipe. */
export const boundWords = ["--import", fileURLToPath(new URL("end-with-starter.mjs", import.meta.url))];

/**
 * Sends SIGHUP to this process when a process that waits for it has ended: the npm that runs it, the script or program
 * that runs npm, and so on. npm passes on only SIGINT and SIGTERM, and a script passes on nothing. Without npm nothing
 * is watched, so that a shell which starts `node FILE &` may end.
 */
export function endWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const waiting = waitingProcesses();
  const timer = setInterval(() => {
    if (waiting.every((pid, index) => pid === parentOf(waiting[index - 1] ?? process.pid))) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGHUP");
  }, LOOK_MS);
  timer.unref();
}

/**
 * The parent of this process, its parent and so on, within their process group. A terminal or a service manager starts
 * npm in a group of its own. A script that starts npm in the background does not wait for it, so only npm counts
 * there. Without /proc only the parent counts.
 */
function waitingProcesses() {
  const waiting = [process.ppid];
  const group = groupOf(process.pid);
  if (group === undefined) return waiting;
  // An orphan's npm ended before this process could look.
  if (process.ppid === 1 && groupOf(1) !== group) return [undefined];
  if (inBackground()) return waiting;
  for (;;) {
    const next = parentOf(waiting.at(-1));
    if (!next || groupOf(next) !== group) return waiting;
    waiting.push(next);
  }
}

/** A shell gives /dev/null to what a script starts in the background. */
function inBackground() {
  return fs.fstatSync(0).rdev === fs.statSync("/dev/null").rdev;
}

const parentOf = (pid) => (pid === process.pid ? process.ppid : fieldsOf(pid)[1]);
const groupOf = (pid) => fieldsOf(pid)[2];

/** State, parent and process group of a process, after its name in parentheses. Empty if nobody knows it. */
function fieldsOf(pid) {
  try {
    return fs
      .readFileSync(`/proc/${pid}/stat`, "utf8")
      .replace(/^.*\) /s, "")
      .split(" ")
      .map(Number);
  } catch {
    return [];
  }
}
