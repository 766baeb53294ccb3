/** Makes processes end with whoever started them: a starter with npm, and what it starts with the starter. */
import { spawnSync } from "node:child_process";
import { clearInterval, setInterval } from "node:timers";
import { fileURLToPath } from "node:url";

const LOOK_MS = 500;

/** Words for node that bind a child to this process. The child's descriptor 3 must be a pipe. */
export const boundWords = ["--import", fileURLToPath(new URL("end-with-starter.mjs", import.meta.url))];

/**
 * Sends SIGHUP to this process when the npm that runs it has ended. npm passes on only SIGINT and SIGTERM, and where a
 * shell stands between npm and this process, that shell does not pass them on. Without npm nothing is watched, so that
 * a shell which starts `node FILE &` may end.
 */
export function endWithNpm() {
  if (process.env.npm_lifecycle_event === undefined) return;
  const parent = process.ppid;
  const shell = /(^|\/)\w*sh$/.test(ps("comm=", parent));
  const npm = shell ? Number(ps("ppid=", parent)) : undefined;
  const timer = setInterval(() => {
    if (process.ppid === parent && (npm === undefined || exists(npm))) return;
    clearInterval(timer);
    process.kill(process.pid, "SIGHUP");
  }, LOOK_MS);
  timer.unref();
}

function ps(field, pid) {
  return spawnSync("ps", ["-o", field, "-p", String(pid)], { encoding: "utf8" }).stdout?.trim() ?? "";
}

function exists(pid) {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return error.code === "EPERM";
  }
}
