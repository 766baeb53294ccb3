/** What the machine was up to during a measurement: whether the links or the processors were the limit. */
import os from "node:os";
import type { Links } from "../../links/links";
import type { Host } from "./rows";

function cpuTimes(): { idle: number; all: number } {
  let [idle, all] = [0, 0];
  for (const { times } of os.cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.irq + times.idle;
  }
  return { idle, all };
}

/** Starts watching; what it returns ends it. */
export async function watchHost(links: Links): Promise<() => Promise<Host>> {
  const before = cpuTimes();
  const dropsOf = async (): Promise<number> => Object.values((await links.stats()).hosts).reduce((sum, { interfaceDrops }) => sum + interfaceDrops, 0);
  const dropsBefore = await dropsOf();
  return async () => {
    const after = cpuTimes();
    const { lateUs } = await links.stats();
    return { busy: 1 - (after.idle - before.idle) / Math.max(1, after.all - before.all), lateUs, interfaceDrops: (await dropsOf()) - dropsBefore };
  };
}
