/**
 * Loaded into a process by `--require`, and with it into each of its threads: takes V8's CPU profile of the thread, a
 * file for each `SLICE_MS`, in the folder PROFILE_FOLDER. Names of files begin with PROFILE_NAME.
 */
import { writeFileSync } from "node:fs";
import { Session } from "node:inspector";
import path from "node:path";
import { threadId } from "node:worker_threads";

const SLICE_MS = 1000;

const { PROFILE_FOLDER: folder = "", PROFILE_NAME: name = "" } = process.env;
const session = new Session();
let slice = 0;

function turn(): void {
  session.post("Profiler.stop", (error, answer) => {
    if (!error)
      writeFileSync(
        path.join(folder, `${name}-${process.pid}-${threadId}-${slice++}.json`),
        JSON.stringify(answer.profile),
      );
    session.post("Profiler.start");
  });
}

session.connect();
session.post("Profiler.enable");
session.post("Profiler.start");
setInterval(turn, SLICE_MS).unref();
