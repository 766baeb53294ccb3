/** Site fetch: a request to the site by the browser's own fetch. */
import type { SiteRequest } from "../shared/carry";
import type { SiteHead } from "../shared/messages";
import type { Natives } from "../page/natives";

type Body = ReadableStream<Uint8Array<ArrayBuffer>> | null;
export type FetchNatively = (signal: AbortSignal) => Promise<Response>;

export class SiteFetch implements SiteRequest {
  readonly response: Promise<Response>;
  readonly head: Promise<SiteHead>;
  readonly #controller: AbortController;
  #answer: Response | null = null;

  /** `signal` is the page's, if it has one. */
  constructor(natives: Natives, fetchNatively: FetchNatively, signal?: AbortSignal) {
    const controller = (this.#controller = new natives.AbortController());
    signal?.addEventListener("abort", () => controller.abort(signal.reason), { once: true });
    this.response = fetchNatively(controller.signal);
    this.head = this.response.then((answer) => {
      this.#answer = answer;
      return headOf(answer, natives);
    });
    this.head.catch(() => undefined);
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
