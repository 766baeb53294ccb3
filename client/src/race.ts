/** Runs a race. Each runner starts some time after the previous one, or as soon as the previous one fails. */
import { messageOf } from "./errors";

/** `discard` takes the result back if another runner won. */
export interface Runner<T> {
  run(signal: AbortSignal): Promise<T>;
  discard(made: T): void;
}

/**
 * Returns the result of the first runner that succeeds. The other runners are aborted. If one still succeeds, its
 * result is discarded. Rejects with all reasons if all runners fail. `signal` stops the race.
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
    super(failures.map((failure) => messageOf(failure).replace(/\.$/, "")).join("; "));
  }
}
