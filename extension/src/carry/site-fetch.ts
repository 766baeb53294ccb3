/** Site fetch: a request to the site by the browser's own fetch. */
import type { SiteEnd, SiteRequest } from "../shared/carry";
import type { SiteHead } from "../shared/messages";
import type { Natives } from "../page/natives";

type Body = ReadableStream<Uint8Array<ArrayBuffer>> | null;
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
    const controller = (this.#controller = new natives.AbortController());
    signal.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
    this.end = new Promise((resolve) => (this.#tellEnd = resolve));
    // How many bytes of an aborted body the page had is not known.
    controller.signal.addEventListener("abort", () => this.#tellEnd({ bytes: 0, outcome: "aborted" }));
    this.response = fetchNatively(controller.signal);
    this.head = this.response.then((answer) => {
      this.#answer = answer;
      return headOf(answer, natives);
    });
    this.head.catch(() => this.#tellEnd({ bytes: 0, outcome: "failed" }));
  }

  /** The body has ended after `bytes`; 0 if the browser does not tell. */
  noteEnd(bytes: number): void {
    const length = Number(this.#answer?.headers.get("content-length") ?? bytes);
    this.#tellEnd({ bytes: bytes || length, outcome: bytes > 0 && bytes < length ? "failed" : "complete" });
  }

  copy(): AsyncIterable<Uint8Array<ArrayBuffer>> {
    return copyOf(this.#answer);
  }

  abort(): void {
    this.#controller.abort();
  }
}

export function headOf(answer: Response, natives: Natives): SiteHead {
  return { status: answer.status, url: natives.responseUrl(answer), headers: Object.fromEntries(answer.headers) };
}

/** A copy of the body. The answer is cloned at once, before the page reads it. */
export function copyOf(answer: Response | null): AsyncIterable<Uint8Array<ArrayBuffer>> {
  return piecesOf(answer?.clone().body ?? null);
}

async function* piecesOf(body: Body): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  const reader = body?.getReader();
  if (reader === undefined) return;
  try {
    for (let piece = await reader.read(); !piece.done; piece = await reader.read()) yield piece.value;
  } finally {
    reader.cancel().catch(() => undefined);
  }
}
