/** Site fetch: a request to the site by the browser's own fetch. */
import type { SiteBody, SiteEnd, SiteRequest } from "../shared/carry";
import type { SiteHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import { OwnPromise } from "../shared/primordials";
import { bodyOf, headerOf, responseOf } from "../shared/platform";
import {
  abort,
  cloneOf,
  headerTable,
  OwnAbortController,
  readerOfBody,
  reasonOf,
  signalOf,
} from "../shared/late-platform";

export type FetchNatively = (signal: AbortSignal) => Promise<Response>;

export class SiteFetch implements SiteRequest {
  readonly response: Promise<Response>;
  readonly head: Promise<SiteHead>;
  readonly end: Promise<SiteEnd>;
  readonly #controller: AbortController;
  #answer: Response | null = null;

  #tellEnd!: (end: SiteEnd) => void;

  /** `signal` is the page's. */
  constructor(natives: Natives, fetchNatively: FetchNatively, signal: AbortSignal) {
    const controller = (this.#controller = new OwnAbortController());
    natives.listen(signal, "abort", () => abort(controller, reasonOf(signal)));
    this.end = new OwnPromise((resolve) => (this.#tellEnd = resolve));
    // How many bytes of an aborted body the page had is not known.
    natives.listen(signalOf(controller), "abort", () => this.#tellEnd({ bytes: 0, outcome: "aborted" }));
    this.response = fetchNatively(signalOf(controller));
    this.head = this.#askHead();
  }

  async #askHead(): Promise<SiteHead> {
    try {
      this.#answer = await this.response;
      return headOf(this.#answer);
    } catch (error) {
      this.#tellEnd({ bytes: 0, outcome: "failed" });
      throw error;
    }
  }

  /** The body has ended after `bytes`; 0 if the browser does not tell. */
  noteEnd(bytes: number): void {
    const told = this.#answer && headerOf(responseOf(this.#answer).headers, "content-length");
    const length = +(told ?? bytes);
    this.#tellEnd({ bytes: bytes || length, outcome: bytes > 0 && bytes < length ? "failed" : "complete" });
  }

  copy(): SiteBody {
    return copyOf(this.#answer);
  }

  abort(): void {
    abort(this.#controller);
  }
}

export function headOf(answer: Response): SiteHead {
  const { status, url, headers } = responseOf(answer);
  return { status, url, headers: headerTable(headers) };
}

const EMPTY: SiteBody = { read: async () => undefined, stop: () => undefined };

/** A copy of the body. The answer is cloned at once, before the page reads it. */
export function copyOf(answer: Response | null): SiteBody {
  const body = answer === null ? null : bodyOf(cloneOf(answer));
  return body === null ? EMPTY : readerOfBody(body);
}
