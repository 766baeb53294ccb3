/** A race in which each runner starts some time after the one before, or as soon as that one has given up. */
import { messageOf } from "./errors";

/** Takes what it made back when another was first. */
export interface Runner<T> {
  run(signal: AbortSignal): Promise<T>;
  discard(made: T): void;
}

/**
 * What the first to succeed has made; the others are aborted, and discarded should they still succeed. Rejects, when
 * all have failed, with all their reasons. `signal` stops it.
 */
export async function race<T>(runners: readonly Runner<T>[], headStartMs: number, signal: AbortSignal): Promise<T> {
  const stop = new AbortController();
  const onAbort = (): void => stop.abort(signal.reason);
  signal.addEventListener("abort", onAbort);
  if (signal.aborted) onAbort();
  const failures: unknown[] = [];
  let hasWinner = false;
  try {
    return await new Promise<T>((resolve, reject) => {
      const start = (index: number): void => {
        const runner = runners[index];
        if (!runner || hasWinner || stop.signal.aborted) return;
        let hasStartedNext = false;
        const startNext = (): void => {
          clearTimeout(timer);
          if (!hasStartedNext) start(index + 1);
          hasStartedNext = true;
        };
        const timer = setTimeout(startNext, headStartMs);
        stop.signal.addEventListener("abort", () => clearTimeout(timer));
        runner.run(stop.signal).then(
          (made) => {
            if (hasWinner) return runner.discard(made);
            hasWinner = true;
            resolve(made);
          },
          (error: unknown) => {
            failures.push(error);
            startNext();
            if (failures.length === runners.length) reject(failures.length === 1 ? error : new RaceError(failures));
          },
        );
      };
      stop.signal.addEventListener("abort", () => reject(stop.signal.reason as Error));
      if (stop.signal.aborted) reject(stop.signal.reason as Error);
      start(0);
    });
  } finally {
    signal.removeEventListener("abort", onAbort);
    stop.abort(new Error("another was first"));
  }
}

export class RaceError extends Error {
  constructor(readonly failures: readonly unknown[]) {
    super(failures.map(messageOf).join("; "));
  }
}
