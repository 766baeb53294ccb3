/** Repeat: runs work again and again. The pause is counted from the end of each run. */
export interface Repeated {
  close(): void;
}

/** Runs `work` first after `pauseMs()`. `work` must not reject. */
export function repeat(work: () => Promise<void> | void, pauseMs: () => number): Repeated {
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  const runLater = (): void => {
    timer = setTimeout(() => {
      void Promise.resolve(work()).finally(() => isClosed || runLater());
    }, pauseMs());
  };
  runLater();
  const close = (): void => {
    isClosed = true;
    clearTimeout(timer);
  };
  return { close };
}
