/**
 * Answer: the Response that the page's `fetch` gives for a carried request. It looks like the browser's own, and its
 * body grows as bytes arrive.
 */
import type { Carrier, MediaRequest } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import { dress } from "./dress";
import type { Endings } from "./endings";
import { SiteFetch, type FetchNatively } from "./site-fetch";
import { WORDS } from "./words";

/** Answers `request`, carried as `wanted`. `fetchNatively` asks the site itself. */
export function respond(
  request: Request,
  wanted: MediaRequest,
  fetchNatively: FetchNatively,
  natives: Natives,
  carry: Carrier["carry"],
  endings: Endings,
): Promise<Response> {
  return new Promise((resolve, reject) => {
    let answer: Answer | null = null;
    const carried = carry(wanted, {
      askSite: () => {
        const ended = endings.next(wanted.url, performance.now());
        const site = new SiteFetch(natives, fetchNatively, request.signal);
        void ended.then((bytes) => site.noteEnd(bytes));
        return site;
      },
      native: ({ response }) => {
        request.signal.removeEventListener("abort", onAbort);
        resolve(response);
      },
      head: (head) => {
        answer = new Answer(
          head,
          natives,
          () => carried.credit(),
          () => end(() => carried.abort()),
        );
        resolve(answer.response);
      },
      bytes: (bytes) => answer?.push(bytes),
      end: () => end(() => answer?.close()),
      error: () => end(() => answer?.fail(new TypeError(WORDS.inStream), new TypeError(WORDS.inWhole))),
    });
    const end = (last: () => void): void => {
      request.signal.removeEventListener("abort", onAbort);
      last();
    };
    const onAbort = (): void => {
      carried.abort();
      answer?.fail(request.signal.reason);
      reject(request.signal.reason);
    };
    request.signal.addEventListener("abort", onAbort, { once: true });
  });
}

/** A Response whose body grows by `push`. */
class Answer {
  readonly response: Response;
  #controller!: ReadableByteStreamController;
  #failure: { reason: unknown } | null = null;
  #closed = false;

  /** `taken` is called when the page has read all pushed bytes, `cancelled` when the page cancels the body. */
  constructor(head: PageResponseHead, natives: Natives, taken: () => void, cancelled: () => void) {
    const stream = new natives.ReadableStream({
      type: "bytes",
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => taken(),
      cancel: () => {
        this.#closed = true;
        cancelled();
      },
    });
    const { status, statusText } = head;
    const response = new natives.Response(stream, { status, statusText, headers: new natives.Headers(head.headers) });
    this.response = dress(response, { head, failure: () => this.#failure });
  }

  push(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#closed) this.#controller.enqueue(bytes);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#controller.close();
    this.#controller.byobRequest?.respond(0);
  }

  /** `toReaders` is the reason for those who read the whole body. */
  fail(reason: unknown, toReaders = reason): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#failure = { reason: toReaders };
    this.#controller.error(reason);
  }
}
