/** What this machine is, how busy its processors are, and when that decides what is measured. */
import { existsSync, readFileSync } from "node:fs";
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
export const isHostLimited = (idleShare: number, lateUs: number): boolean =>
  idleShare < IDLE_SHARE_MIN || lateUs > LATE_US_MAX;

/** Starts counting; what it returns gives the share of all processors' time that was idle since, 0..1. */
export function watchIdleShare(): () => number {
  const before = processorTimes();
  return () => {
    const after = processorTimes();
    return (after.idle - before.idle) / Math.max(1, after.all - before.all);
  };
}

/**
 * Of some time: how much of all processors' was idle, and in how much of it some program that could run waited for one;
 * null where the kernel does not count that.
 */
export interface Load {
  idleShare: number;
  waitShare: number | null;
}

const LOOK_MS = 10;
/** Pressure Stall Information: `some avg10=... total=MICROSECONDS`. */
const PRESSURE = "/proc/pressure/cpu";

/**
 * Looks at the processors every 10 ms until it is stopped, for what happens between moments that are known only
 * afterwards.
 */
export class LoadWatch {
  readonly #hasPressure = existsSync(PRESSURE);
  readonly #looks = [this.#look()];
  readonly #timer = setInterval(() => this.#looks.push(this.#look()), LOOK_MS).unref();

  /** Both in ms since the epoch; before the first look and after the last nothing is known. */
  between(fromMs: number, toMs: number): Load {
    const before = this.#looks.findLast(({ atMs }) => atMs <= fromMs) ?? this.#looks[0]!;
    const after = this.#looks.find(({ atMs }) => atMs >= toMs) ?? this.#looks.at(-1)!;
    return {
      idleShare: (after.idle - before.idle) / Math.max(1, after.all - before.all),
      waitShare:
        after.waitedMs === null || before.waitedMs === null
          ? null
          : (after.waitedMs - before.waitedMs) / Math.max(1, after.atMs - before.atMs),
    };
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  #look(): { atMs: number; idle: number; all: number; waitedMs: number | null } {
    const total = this.#hasPressure ? /some .*total=(\d+)/.exec(readFileSync(PRESSURE, "utf8"))?.[1] : undefined;
    return {
      atMs: performance.timeOrigin + performance.now(),
      ...processorTimes(),
      waitedMs: total === undefined ? null : Number(total) / 1000,
    };
  }
}

function processorTimes(): { idle: number; all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of os.cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { idle, all };
}
