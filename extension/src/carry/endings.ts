/**
 * Endings: when the browser's own requests have ended, and how many bytes each one brought. The page's Resource Timing
 * tells it, because a `Response` does not.
 */

/** Times of a page are rounded. */
const ROUNDED_MS = 2;

interface Waiting {
  url: string;
  fromMs: number;
  tell(bytes: number): void;
}

export class Endings {
  readonly #waiting = new Set<Waiting>();

  constructor(observer: typeof PerformanceObserver) {
    new observer((list) => {
      for (const entry of list.getEntries()) this.#note(entry as PerformanceResourceTiming);
    }).observe({ type: "resource" });
  }

  /** Resolves with the bytes of the body of the request for `url` that begins now. 0 if the browser does not tell. */
  next(url: string, nowMs: number): Promise<number> {
    return new Promise((tell) => this.#waiting.add({ url, fromMs: nowMs - ROUNDED_MS, tell }));
  }

  #note({ name, startTime, decodedBodySize }: PerformanceResourceTiming): void {
    const found = [...this.#waiting].find(({ url, fromMs }) => url === name && fromMs <= startTime);
    if (found === undefined) return;
    this.#waiting.delete(found);
    found.tell(decodedBodySize);
  }
}
