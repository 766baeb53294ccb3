/** How busy this machine's processors are. */
import os from "node:os";

/** Starts counting; what it returns gives the share of all processors' time that was idle since, 0..1. */
export function watchIdleShare(): () => number {
  const before = processorTimes();
  return () => {
    const after = processorTimes();
    return (after.idle - before.idle) / Math.max(1, after.all - before.all);
  };
}

function processorTimes(): { idle: number; all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of os.cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { idle, all };
}
