/** Retention: deletes old records, reports and traces at the start, when the configuration changes, and every hour. */
import type { Configuration } from "./configuration";
import type { Store } from "./store/index";
import type { Log } from "./telemetry";

const EVERY_MS = 3_600_000;
const DAY_MS = 86_400_000;

export interface RetentionOptions {
  store: Pick<Store, "deleteBefore">;
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
    await store
      .deleteBefore(nowMs() - days * DAY_MS)
      .catch((error: Error) => log.warn({ event: "retentionFailed", reason: error.message }));
  };
  await deleteOld();
  configuration.on("change", () => void deleteOld());
  const timer = setInterval(() => void deleteOld(), EVERY_MS);
  return { close: () => clearInterval(timer) };
}
