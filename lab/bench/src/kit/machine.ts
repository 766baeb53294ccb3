/** What this machine is, how busy its processors are, and when that sets the pace of a measurement. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import os from "node:os";
import type { Links } from "@tributary/lab-links";

export function machineText(): string {
  const processors = os.cpus();
  return (
    `${processors[0]?.model.trim() ?? "unknown processor"}, ${processors.length} cores, Linux ` +
    `${os.release()}, node ${process.versions.node}`
  );
}

/** With less idle time, programs wait for a processor. */
const IDLE_SHARE_MIN = 0.1;
const LATE_US_MAX = 2000;

/** Whether the machine set the pace, not the links. `lateUs`: how late the emulator handed packets over (99 %). */
export const isHostLimited = (idleShare: number, lateUs: number): boolean =>
  idleShare < IDLE_SHARE_MIN || lateUs > LATE_US_MAX;

/** The function that it returns gives the share of all processors' time, 0..1, that was idle since the start. */
export function watchIdleShare(): () => number {
  const before = processorTimes();
  return () => {
    const after = processorTimes();
    return (after.idle - before.idle) / Math.max(1, after.all - before.all);
  };
}

/**
 * Shares of a stretch of time: `idleShare` is of all processors' time. In `waitShare` of it, a program that could run
 * waited for a processor (null if the kernel does not count that).
 */
export interface Load {
  idleShare: number;
  waitShare: number | null;
}

const LOOK_MS = 10;
/** Pressure Stall Information: `some avg10=... total=MICROSECONDS`. */
const PRESSURE = "/proc/pressure/cpu";

/** Looks at the processors every 10 ms, for stretches of time that are known only afterwards. */
export class LoadWatch {
  readonly #hasPressure = existsSync(PRESSURE);
  readonly #looks = [this.#look()];
  readonly #timer = setInterval(() => this.#looks.push(this.#look()), LOOK_MS).unref();

  /** Both in ms since the epoch. Nothing is known before the first look and after the last one. */
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

/** User and system time of a process, its threads and its children, s (proc(5), schedstat). */
export function processorSecOf(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const read = (task: string, file: string): string => readFileSync(`/proc/${pid}/task/${task}/${file}`, "utf8");
  const ownSec = tasks.reduce((sum, task) => sum + Number(read(task, "schedstat").split(" ")[0]) / 1e9, 0);
  const children = tasks.flatMap((task) =>
    read(task, "children")
      .split(" ")
      .filter((word) => word.trim() !== ""),
  );
  return children.reduce((sum, child) => sum + processorSecOf(Number(child)), ownSec);
}

/** The numbers in a list of processors as taskset takes it: `0,2-3`. */
export const coresIn = (list: string): number[] =>
  list.split(",").flatMap((part) => {
    const [first, last = first] = part.split("-").map(Number);
    return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index);
  });

/** The processors that this process may use. */
export const allowedCores = (): number[] =>
  coresIn(/^Cpus_allowed_list:\s*(\S+)/m.exec(readFileSync("/proc/self/status", "utf8"))![1]!);

/** Linux counts in hundredths of a second (proc(5), stat). */
const TICKS_PER_SEC = 100;

/** The time that these processors were busy since the machine started, s. Time that a host machine took counts too. */
export function coresBusySec(cores: readonly number[]): number {
  const lines = readFileSync("/proc/stat", "utf8").split("\n");
  return cores.reduce((sum, core) => {
    const [user = 0, nice = 0, system = 0, , , irq = 0, softirq = 0, steal = 0] = (
      lines.find((line) => line.startsWith(`cpu${core} `)) ?? ""
    )
      .split(" ")
      .slice(1)
      .map(Number);
    return sum + (user + nice + system + irq + softirq + steal) / TICKS_PER_SEC;
  }, 0);
}

/** The machine while a measurement over links went on. */
export interface Host {
  /** Share of all cores that was not idle. */
  busy: number;
  /** How late the emulator handed packets over, microseconds. */
  lateUs: { p50: number; p99: number; max: number };
  /** Packets that the machine dropped, not the model. */
  interfaceDrops: number;
}

/** Starts to watch. The result of the function that it returns covers the time until that call. */
export async function watchHost(links: Links): Promise<() => Promise<Host>> {
  const idleShare = watchIdleShare();
  const dropsOf = async (): Promise<number> =>
    Object.values((await links.stats()).hosts).reduce((sum, { interfaceDrops }) => sum + interfaceDrops, 0);
  const dropsBefore = await dropsOf();
  return async () => {
    const busy = 1 - idleShare();
    const { lateUs } = await links.stats();
    return { busy, lateUs, interfaceDrops: (await dropsOf()) - dropsBefore };
  };
}
