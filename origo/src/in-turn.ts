/** Runs `work` one call at a time. A call starts when all earlier calls have ended, even if they failed. */
export function inTurn(work: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  return () => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}
