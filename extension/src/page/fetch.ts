/**
 * Fetch: the page's `fetch` with media requests going through the transport. Anything that the transport can't repeat
 * exactly (another method, credentials, unusual headers, `no-cors`, integrity, ...) stays with the native function.
 */
import { carriedHeaders, isManifestUrl, mediaUrl } from "../shared/rules";
import { Exchange, type ExchangeHead, type ExchangeRequest } from "./exchange";
import type { Link } from "./link";
import { NativeHeaders, NativeRequest, NativeResponse, NativeStream, nativeFetch, wrapFunction } from "./natives";

interface Candidate extends ExchangeRequest {
  /** The request as the browser understands it: what the page passed may change while it waits. */
  request: Request;
}

/** `window.fetch` with the transport in front of it. */
export function patchFetch(link: Link): typeof fetch {
  return wrapFunction(window.fetch, (target, receiver, args) => {
    const candidate = link.isNative ? null : candidateOf(args, link);
    if (candidate === null) return Reflect.apply(target, receiver, args);
    return carry(candidate, link);
  });
}

function candidateOf(args: unknown[], link: Link): Candidate | null {
  const [input, init] = args as [RequestInfo | URL, RequestInit | undefined];
  const isRequest = input instanceof NativeRequest;
  if (!isRequest && typeof input !== "string" && !(input instanceof URL)) return null;
  const address = isRequest ? input.url : String(input);
  const url = mediaUrl(address, document.baseURI);
  if (url === null) {
    if (isManifestUrl(address, document.baseURI)) link.warm();
    return null;
  }
  let request: Request;
  try {
    if (init?.body !== undefined && init.body !== null) return null;
    request = new NativeRequest(input, init);
  } catch {
    return null;
  }
  const carried = carriedHeaders(request.headers);
  if (carried === undefined || request.signal.aborted || !isPlain(request, url)) return null;
  url.hash = "";
  return { request, url: url.href, range: carried.range };
}

function isPlain(request: Request, url: URL): boolean {
  const isReadable = request.mode === "cors" || (request.mode === "same-origin" && url.origin === location.origin);
  return (
    request.method === "GET" &&
    isReadable &&
    request.credentials !== "include" &&
    request.redirect === "follow" &&
    request.integrity === "" &&
    !request.keepalive &&
    request.cache !== "only-if-cached"
  );
}

async function carry(candidate: Candidate, link: Link): Promise<Response> {
  const { request } = candidate;
  if (!(await link.ready()) || request.signal.aborted) return nativeFetch(request);
  return new Promise((resolve, reject) => {
    let answer: Answer | null = null;
    const exchange = new Exchange(link, nativeFetch, candidate, {
      native: () => resolve(fetchDirect(request, link)),
      head: (head) => {
        answer = new Answer(head, request.signal, () => exchange.credit(), () => end(() => exchange.abort()));
        resolve(answer.response);
      },
      bytes: (bytes) => answer?.push(bytes),
      end: () => end(() => answer?.close()),
      error: () => end(() => answer?.fail(new TypeError("network error"))),
    });
    const end = (last: () => void): void => {
      request.signal.removeEventListener("abort", onAbort);
      last();
    };
    const onAbort = (): void => {
      exchange.abort();
      answer?.fail(request.signal.reason);
      reject(request.signal.reason);
    };
    request.signal.addEventListener("abort", onAbort, { once: true });
  });
}

async function fetchDirect(request: Request, link: Link): Promise<Response> {
  const response = await nativeFetch(request);
  const bytes = Number(response.headers.get("content-length") ?? 0);
  link.noteDirect(Number.isSafeInteger(bytes) && bytes >= 0 ? bytes : 0);
  return response;
}

/** A Response whose body is pushed in as it arrives. */
class Answer {
  readonly response: Response;
  #controller!: ReadableByteStreamController;
  #failure: { reason: unknown } | null = null;
  #closed = false;

  /** `taken` is called when the page has read all that was pushed, `cancelled` when it gives the body up. */
  constructor(head: ExchangeHead, signal: AbortSignal, taken: () => void, cancelled: () => void) {
    const stream = new NativeStream({
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
    const headers = new NativeHeaders(head.headers);
    const response = new NativeResponse(stream, { status: head.status, statusText: head.statusText, headers });
    this.response = dress(response, head, () => this.#failure);
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

  fail(reason: unknown): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#failure = { reason };
    this.#controller.error(reason);
  }
}

const READERS = ["arrayBuffer", "blob", "bytes", "formData", "json", "text"] as const;

/**
 * Gives a made Response what only the browser's own have: url, type, redirected; and readers that reject with the
 * abort's reason, where those of a made one reject with a TypeError.
 */
function dress(response: Response, head: ExchangeHead, failure: () => { reason: unknown } | null): Response {
  const own = (name: string, value: unknown): void => {
    Object.defineProperty(response, name, { value, configurable: true });
  };
  own("url", head.url);
  own("type", head.responseType);
  own("redirected", head.redirected);
  const nativeClone = response.clone.bind(response);
  own("clone", () => dress(nativeClone(), head, failure));
  for (const name of READERS) {
    const read = (response as unknown as Record<string, (() => Promise<unknown>) | undefined>)[name]?.bind(response);
    if (read === undefined) continue;
    own(name, () => read().catch((error: unknown) => Promise.reject(failure()?.reason ?? error)));
  }
  return response;
}
