/**
 * Stalls: how long this process did not get to run, be it for want of a processor or because its machine stood still.
 */

export interface Stalls {
  /** In all, up to now. */
  stalledMs(): number;
  close(): void;
}

const TICK_MS = 100;
/** A timer may be so late without anything having stood still. */
const LATE_MS = 50;

export function watchStalls(nowMs: () => number): Stalls {
  let [lastMs, beforeMs] = [nowMs(), 0];
  // What came meanwhile is read before a timer that is due by then is called, so the time since the last one counts
  // too.
  const stalledMs = (): number => beforeMs + Math.max(0, nowMs() - lastMs - TICK_MS - LATE_MS);
  const timer = setInterval(() => ([beforeMs, lastMs] = [stalledMs(), nowMs()]), TICK_MS).unref();
  return { stalledMs, close: () => clearInterval(timer) };
}
