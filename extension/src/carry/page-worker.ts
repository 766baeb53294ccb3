/**
 * Page worker: whether the page's own service worker may answer the page's requests. Such a worker may decrypt, rewrite
 * or keep segments, so the requests of a page that it controls belong to it. It does not matter if it hears no requests
 * at all. The times of the browser's own requests show that: `workerStart` is 0 where no worker was asked.
 */
import { firstOf, isOneOf, OwnURL, those, url as part } from "../shared/primordials";
import { entryOf, pageMs } from "../shared/platform";
import { controllerOf, resourceOf, resources } from "../shared/late-platform";

/** What starts the requests that the page's worker hears. */
const OWN_REQUESTS = ["fetch", "xmlhttprequest", "script", "link", "css", "img"];

export class PageWorker {
  #worker: unknown;
  #controlledMs = 0;
  #hearsNothing = false;

  /** `container` is undefined in a page that can have no worker. */
  constructor(readonly container: ServiceWorkerContainer | undefined) {
    this.#worker = this.#current();
  }

  mayAnswer(): boolean {
    const worker = this.#current();
    if (worker === null) return false;
    if (worker !== this.#worker) {
      this.#worker = worker;
      this.#controlledMs = pageMs();
      this.#hearsNothing = false;
    }
    this.#hearsNothing ||= this.#isDeaf();
    return !this.#hearsNothing;
  }

  #current(): unknown {
    return this.container === undefined ? null : controllerOf(this.container);
  }

  #isDeaf(): boolean {
    const since = those(resources(), (entry) => entryOf(entry).startTime >= this.#controlledMs);
    const heard = firstOf(since, (entry) => resourceOf(entry).workerStart !== 0);
    return heard === undefined && firstOf(since, isOwnNetworkRequest) !== undefined;
  }
}

/** Whether a worker would have been asked. None is for a file that is in the page's memory. */
function isOwnNetworkRequest(entry: PerformanceResourceTiming): boolean {
  const { initiatorType, transferSize } = resourceOf(entry);
  const origin = part.origin(new OwnURL(entryOf(entry).name));
  return origin === location.origin && isOneOf(OWN_REQUESTS, initiatorType) && transferSize > 0;
}
