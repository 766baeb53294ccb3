/**
 * Answer: the Response that the page's `fetch` gives for a carried request. It looks like the browser's own, and its
 * body grows as bytes arrive.
 */
import type { Carrier, MediaRequest } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Natives } from "../page/natives";
import type { Endings } from "./endings";
import { SiteFetch, type FetchNatively } from "./site-fetch";

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
      // As Chromium says it: to who reads the stream, and to who reads the whole body.
      error: () => end(() => answer?.fail(new TypeError("network error"), new TypeError("Failed to fetch"))),
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
    const headers = new natives.Headers(head.headers);
    const response = new natives.Response(stream, { status: head.status, statusText: head.statusText, headers });
    this.response = dress(response, head, natives.Response.error().headers, () => this.#failure);
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

const READERS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const;

/**
 * Gives a constructed Response what only the browser's own Responses have: `url`, `type` and `redirected`. Its readers
 * reject with the reason of the abort; the readers of a constructed Response would reject with a TypeError.
 */
function dress(
  response: Response,
  head: PageResponseHead,
  immutable: Headers,
  failure: () => { reason: unknown } | null,
): Response {
  const own = (name: string, value: unknown): void => {
    Object.defineProperty(response, name, { value, configurable: true });
  };
  // The headers of the browser's own answers are immutable. The constructor of Response cannot make such headers.
  for (const change of ["append", "delete", "set"] as const)
    Object.defineProperty(response.headers, change, { value: immutable[change].bind(immutable), configurable: true });
  own("url", head.url);
  own("type", head.responseType);
  own("redirected", head.redirected);
  const nativeClone = response.clone.bind(response);
  own("clone", () => dress(nativeClone(), head, immutable, failure));
  for (const name of READERS) {
    const read = (response as unknown as Record<string, (() => Promise<unknown>) | undefined>)[name]?.bind(response);
    if (read === undefined) continue;
    // Not by `catch`, which a page can replace.
    own(name, async () => {
      try {
        return await read();
      } catch (error) {
        throw failure()?.reason ?? error;
      }
    });
  }
  return response;
}
