/**
 * Endings: when the browser's own requests have ended, and how many bytes each one brought. The page's Resource Timing
 * tells it, because a `Response` does not.
 */
import { add, firstOf, OwnPromise, those } from "../shared/primordials";
import { entryOf } from "../shared/platform";
import { hearEntries, resourceOf } from "../shared/late-platform";

/** Times of a page are rounded. */
const ROUNDED_MS = 2;

interface Waiting {
  url: string;
  fromMs: number;
  tell(bytes: number): void;
}

export class Endings {
  #waiting: Waiting[] = [];

  constructor() {
    hearEntries({ type: "resource" }, (entry) => this.#note(entry as PerformanceResourceTiming));
  }

  /** Resolves with the bytes of the body of the request for `url` that begins now. 0 if the browser does not tell. */
  next(url: string, nowMs: number): Promise<number> {
    return new OwnPromise((tell) => add(this.#waiting, { url, fromMs: nowMs - ROUNDED_MS, tell }));
  }

  #note(entry: PerformanceResourceTiming): void {
    const { name, startTime } = entryOf(entry);
    const found = firstOf(this.#waiting, ({ url, fromMs }) => url === name && fromMs <= startTime);
    if (found === undefined) return;
    this.#waiting = those(this.#waiting, (each) => each !== found);
    found.tell(resourceOf(entry).decodedBodySize);
  }
}
