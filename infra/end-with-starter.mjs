/**
 * Preload for a process that must end with its starter, even if the starter is killed (`node --import FILE`, see
 * `boundWords` in lifetime.mjs). Descriptor 3 is a pipe from the starter, which writes nothing to it. The pipe closes
 * when the starter ends, because nobody else has its other end.
 */
import net from "node:net";
import { isMainThread } from "node:worker_threads";

/** A proxy drains for up to 5 s after SIGTERM. After this time the process ends anyway. */
const STOP_MS_MAX = 8_000;

if (isMainThread) {
  // A forked child would get this preload too, and its descriptor 3 is something else.
  process.execArgv.splice(process.execArgv.indexOf("--import"), 2);
  const pipe = new net.Socket({ fd: 3 });
  pipe.once("close", () => {
    // Nobody reads the process's output any more.
    for (const stream of [process.stdout, process.stderr]) stream.on("error", () => undefined);
    setTimeout(() => process.kill(process.pid, "SIGKILL"), STOP_MS_MAX).unref();
    process.kill(process.pid, "SIGTERM");
  });
  pipe.on("error", () => undefined);
  pipe.resume().unref();
}
