/** What this machine is, how busy its processors are, and when that decides what is measured. */
import os from "node:os";

/** As a report names it. */
export function machineText(): string {
  const processors = os.cpus();
  return `${processors[0]?.model.trim() ?? "unknown processor"}, ${processors.length} cores, Linux ${os.release()}, node ${process.versions.node}`;
}

/** Under this the programs waited for a processor. */
const IDLE_SHARE_MIN = 0.1;
const LATE_US_MAX = 2000;

/** Did the machine set the pace, not the links? `lateUs`: how late the emulator handed packets over (99 %). */
export const isHostLimited = (idleShare: number, lateUs: number): boolean => idleShare < IDLE_SHARE_MIN || lateUs > LATE_US_MAX;

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
