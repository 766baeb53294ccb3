/**
 * Page worker: whether the page's own service worker may answer the page's requests. Such a worker may decrypt, rewrite
 * or keep segments, so the requests of a page that it controls belong to it. It does not matter if it hears no requests
 * at all. The times of the browser's own requests show that: `workerStart` is 0 where no worker was asked.
 */

/** What starts the requests that the page's worker hears. */
const OWN_REQUESTS = new Set(["fetch", "xmlhttprequest", "script", "link", "css", "img"]);

export class PageWorker {
  #worker: unknown = null;
  #controlledMs = 0;
  #hearsNothing = false;

  /** `container` is undefined in a page that can have no worker. */
  constructor(
    readonly container: Pick<ServiceWorkerContainer, "controller"> | undefined,
    readonly times: Pick<Performance, "getEntriesByType" | "now">,
  ) {
    this.#worker = container?.controller ?? null;
  }

  mayAnswer(): boolean {
    const worker = this.container?.controller ?? null;
    if (worker === null) return false;
    if (worker !== this.#worker)
      [this.#worker, this.#controlledMs, this.#hearsNothing] = [worker, this.times.now(), false];
    this.#hearsNothing ||= this.#isDeaf();
    return !this.#hearsNothing;
  }

  #isDeaf(): boolean {
    const entries = this.times.getEntriesByType("resource") as PerformanceResourceTiming[];
    const since = entries.filter(({ startTime }) => startTime >= this.#controlledMs);
    return since.every(({ workerStart }) => workerStart === 0) && since.some((entry) => isOwnNetworkRequest(entry));
  }
}

/** Whether a worker would have been asked. None is for a file that is in the page's memory. */
function isOwnNetworkRequest({ name, initiatorType, transferSize }: PerformanceResourceTiming): boolean {
  return new URL(name).origin === location.origin && OWN_REQUESTS.has(initiatorType) && transferSize > 0;
}
