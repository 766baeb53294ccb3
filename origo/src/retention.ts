/**
 * Retention: deletes old records, reports and traces at the start, when the configuration changes, and every hour. What
 * an Origo whose clock runs years ahead deletes is lost, so it first compares its clock with those of the clients.
 */
import type { Configuration } from "./configuration";
import type { Store } from "./store/index";
import type { Log } from "./telemetry";

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;
/**
 * If no client's clock was later than this many days ago, then Origo's clock may be wrong. It deletes nothing until a
 * client reports again.
 */
export const GAP_DAYS_MAX = 365;

export interface RetentionOptions {
  store: Pick<Store, "deleteBefore" | "newestClientMs">;
  configuration: Configuration;
  /** Used when the setting `origo.retentionDays` is 0. Undefined means that nothing is deleted. */
  daysDefault: number | undefined;
  nowMs: () => number;
  log: Log;
}

/** Resolves after the first deletion. */
export async function startRetention(options: RetentionOptions): Promise<{ close(): void }> {
  const { store, configuration, daysDefault, nowMs, log } = options;
  const deleteOld = async (): Promise<void> => {
    const days = configuration.value("origo.retentionDays") || daysDefault;
    if (days === undefined) return;
    const atMs = nowMs();
    try {
      const newestMs = await store.newestClientMs();
      const gapDays = newestMs === undefined ? 0 : Math.floor((atMs - newestMs) / DAY_MS);
      if (gapDays > GAP_DAYS_MAX) log.warn({ event: "retentionHeld", reason: heldFor(gapDays, atMs) });
      else await store.deleteBefore(atMs - days * DAY_MS);
    } catch (error) {
      log.warn({ event: "retentionFailed", reason: (error as Error).message });
    }
  };
  await deleteOld();
  configuration.on("change", () => void deleteOld());
  const timer = setInterval(() => void deleteOld(), EVERY_MS);
  return { close: () => clearInterval(timer) };
}

const heldFor = (gapDays: number, atMs: number): string =>
  `nothing was deleted: the newest record began ${gapDays} days before this machine's clock ` +
  `(${new Date(atMs).toISOString()}), and the limit is ${GAP_DAYS_MAX}. Set the clock if it is wrong. ` +
  "If it is right, old records are deleted once a client sends a new one.";
