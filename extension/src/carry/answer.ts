/**
 * Answer: the Response that the page's `fetch` gives for a carried request. It looks like the browser's own, and its
 * body grows as bytes arrive.
 */
import type { Carrier, MediaRequest } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import { getterOf, globalOf, methodOf, options, OwnPromise } from "../shared/primordials";
import { OwnTypeError } from "../shared/late-primordials";
import { pageMs, requestOf } from "../shared/platform";
import { reasonOf } from "../shared/late-platform";
import { dress } from "./dress";
import type { Endings } from "./endings";
import { SiteFetch, type FetchNatively } from "./site-fetch";
import { WORDS } from "./words";

const OwnHeaders = globalOf("Headers");
const OwnResponse = globalOf("Response");
const OwnStream = globalOf("ReadableStream");

type Controller = ReadableByteStreamController;
const STREAM = "ReadableByteStreamController";
const enqueue = methodOf<Controller, [Uint8Array<ArrayBuffer>], void>(STREAM, "enqueue");
const close = methodOf<Controller, [], void>(STREAM, "close");
const fail = methodOf<Controller, [unknown], void>(STREAM, "error");
const pendingOf = getterOf(STREAM, "byobRequest");
const respondTo = methodOf<ReadableStreamBYOBRequest, [number], void>("ReadableStreamBYOBRequest", "respond");

/** Answers `request`, carried as `wanted`. `fetchNatively` asks the site itself. */
export function respond(
  request: Request,
  wanted: MediaRequest,
  fetchNatively: FetchNatively,
  natives: Natives,
  carry: Carrier["carry"],
  endings: Endings,
): Promise<Response> {
  const { signal } = requestOf(request);
  return new OwnPromise((resolve, reject) => {
    let answer: Answer | null = null;
    let isOver = false;
    const carried = carry(wanted, {
      askSite: () => {
        const ended = endings.next(wanted.url, pageMs());
        const site = new SiteFetch(natives, fetchNatively, signal);
        void noteEnd(site, ended);
        return site;
      },
      native: ({ response }) => {
        isOver = true;
        resolve(response);
      },
      head: (head) => {
        answer = new Answer(
          head,
          () => carried.credit(),
          () => end(() => carried.abort()),
        );
        resolve(answer.response);
      },
      bytes: (bytes) => answer?.push(bytes),
      end: () => end(() => answer?.close()),
      error: () =>
        end(() => {
          answer?.fail(new OwnTypeError(WORDS.inStream), new OwnTypeError(WORDS.inWhole));
          reject(new OwnTypeError(WORDS.noAnswer));
        }),
    });
    const end = (last: () => void): void => {
      isOver = true;
      last();
    };
    natives.listen(signal, "abort", () => {
      if (isOver) return;
      isOver = true;
      carried.abort();
      answer?.fail(reasonOf(signal));
      reject(reasonOf(signal));
    });
  });
}

async function noteEnd(site: SiteFetch, ended: Promise<number>): Promise<void> {
  site.noteEnd(await ended);
}

/** A Response whose body grows by `push`. */
class Answer {
  readonly response: Response;
  #controller!: ReadableByteStreamController;
  #failure: { reason: unknown } | null = null;
  #closed = false;

  /** `taken` is called when the page has read all pushed bytes, `cancelled` when the page cancels the body. */
  constructor(head: PageResponseHead, taken: () => void, cancelled: () => void) {
    const source: UnderlyingByteSource = {
      type: "bytes",
      start: (controller) => {
        this.#controller = controller;
      },
      pull: () => taken(),
      cancel: () => {
        this.#closed = true;
        cancelled();
      },
    };
    const stream = new OwnStream(options(source));
    const { status, statusText } = head;
    const headers = new OwnHeaders(options(head.headers));
    const response = new OwnResponse(stream, options({ status, statusText, headers }));
    this.response = dress(response, { head, failure: () => this.#failure });
  }

  push(bytes: Uint8Array<ArrayBuffer>): void {
    if (!this.#closed) enqueue(this.#controller, bytes);
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    close(this.#controller);
    const pending = pendingOf(this.#controller);
    if (pending !== null) respondTo(pending, 0);
  }

  /** `toReaders` is the reason for those who read the whole body. */
  fail(reason: unknown, toReaders = reason): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#failure = { reason: toReaders };
    fail(this.#controller, reason);
  }
}
