/** Single: work of which there is one at a time. */

/** Calls `work`, unless a call is under way: then what that one comes to. */
export function single<T>(work: () => Promise<T>): () => Promise<T> {
  let running: Promise<T> | null = null;
  return () =>
    (running ??= work().finally(() => {
      running = null;
    }));
}
