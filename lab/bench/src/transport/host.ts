/** What the machine was up to during a measurement: whether the links or the processors were the limit. */
import type { Links } from "@tributary/lab-links";
import { watchIdleShare } from "../machine";
import type { Host } from "./rows";

/** Starts watching; what it returns ends it. */
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
