/**
 * Stalls: measures how long this process could not run, because no processor was free or because its machine stood
 * still.
 */

export interface Stalls {
  /** The total up to now. */
  stalledMs(): number;
  close(): void;
}

const TICK_MS = 100;
/** A timer may be this late in normal operation. */
const LATE_MS = 50;

export function watchStalls(nowMs: () => number): Stalls {
  let [lastMs, beforeMs] = [nowMs(), 0];
  // After a stall, waiting messages are read before the late timer runs. So the time since the last tick counts too.
  const stalledMs = (): number => beforeMs + Math.max(0, nowMs() - lastMs - TICK_MS - LATE_MS);
  const timer = setInterval(() => ([beforeMs, lastMs] = [stalledMs(), nowMs()]), TICK_MS).unref();
  return { stalledMs, close: () => clearInterval(timer) };
}
