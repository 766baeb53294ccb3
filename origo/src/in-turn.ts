/** `work` one at a time: a call's begins when those of the calls before have ended, however they did. */
export function inTurn(work: () => Promise<void>): () => Promise<void> {
  let last = Promise.resolve();
  return () => {
    const done = last.then(work);
    last = done.catch(() => undefined);
    return done;
  };
}
