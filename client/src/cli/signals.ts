/**
 * Signals that end the command. The first one aborts `stopped`, so that the command can tell the proxies, keep what it
 * has and report. A second one, or GRACE_MS, ends the process. The status is the usual one of the signal.
 */
import { setMaxListeners } from "node:events";
import os from "node:os";
import { Exit } from "./exit";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
const GRACE_MS = 2000;
const controller = new AbortController();

/** Aborted by the first signal. Its reason is the `Exit` with the signal's status. */
export const stopped: AbortSignal = controller.signal;
// Each request under way listens.
setMaxListeners(0, stopped);

let first: (() => void) | undefined;

/** The first signal calls `handler`, and the next one stops. Returns a function that ends this. */
export function takeFirstSignal(handler: () => void): () => void {
  first = handler;
  return () => (first = undefined);
}

export function watchSignals(): void {
  for (const signal of SIGNALS)
    process.on(signal, () => {
      const status = 128 + os.constants.signals[signal];
      const taken = first;
      first = undefined;
      if (taken) return taken();
      if (stopped.aborted) process.exit(status);
      controller.abort(new Exit(status, "interrupted"));
      setTimeout(() => process.exit(status), GRACE_MS).unref();
    });
}

/** Resolves as `work` does, but rejects at the first signal. */
export async function unlessStopped<T>(work: Promise<T>): Promise<T> {
  stopped.throwIfAborted();
  let stop!: () => void;
  const signalled = new Promise<never>((_, reject) => {
    stop = () => reject(stopped.reason as Exit);
    stopped.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([work, signalled]);
  } finally {
    stopped.removeEventListener("abort", stop);
  }
}
