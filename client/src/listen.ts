/** Small helpers on signals and timers that leave nothing behind in the program that uses the library. */

const aborts = new WeakMap<AbortSignal, Set<() => void>>();

/**
 * Calls `handler` when the signal aborts. Returns a function that ends that. A signal gets one listener for all
 * handlers, because Node warns about more than ten.
 */
export function onAbort(signal: AbortSignal, handler: () => void): () => void {
  const known = aborts.get(signal);
  const handlers = known ?? new Set();
  if (!known) {
    aborts.set(signal, handlers);
    signal.addEventListener("abort", () => [...handlers].forEach((each) => each()), { once: true });
  }
  handlers.add(handler);
  return () => handlers.delete(handler);
}

/** A timer that does not keep a program alive. */
export function quietTimeout(task: () => void, ms: number): ReturnType<typeof setTimeout> {
  const timer = setTimeout(task, ms);
  (timer as { unref?(): void }).unref?.();
  return timer;
}
