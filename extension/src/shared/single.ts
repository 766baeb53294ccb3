/** Single: work that runs once at a time. */

/** Calls `work`. A call while it runs returns the result of the running one. */
export function single<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () =>
    (running ??= work().finally(() => {
      running = null;
    }));
}
