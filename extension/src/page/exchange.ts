/**
 * Exchange: one media request of the page, carried by the transport and, where that fails, finished natively.
 * Events: either `native` (nothing was delivered, the caller asks for itself), or `head`, then `bytes` in order, then
 * `end` or `error`. When the transport fails in the middle, the rest is fetched by Range from the delivered offset with
 * the browser's own fetch, so its CORS decision holds, and only if it is the same representation.
 */
import type { ByteRange, ToPage } from "../shared/messages";
import type { Link, LinkCall } from "./link";

/** The transport knows of the page's patience and ends by itself: so much later it is taken for hung. */
export const GRACE_MS = 1000;

const CONTENT_RANGE = /^bytes (\d+)-\d+\/(\d+)$/;

export interface ExchangeHead {
  status: number;
  statusText: string;
  headers: [string, string][];
  responseType: ResponseType;
  url: string;
  redirected: boolean;
  totalBytes: number | null;
}

export interface ExchangeEvents {
  native(): void;
  head(head: ExchangeHead): void;
  bytes(bytes: Uint8Array<ArrayBuffer>): void;
  end(): void;
  /** Like a network error: the body can't be finished. */
  error(): void;
}

export interface ExchangeRequest {
  url: string;
  range: ByteRange | null;
}

export class Exchange {
  readonly #link: Link;
  readonly #fetch: typeof fetch;
  readonly #request: ExchangeRequest;
  readonly #events: ExchangeEvents;
  #call: LinkCall | null;
  #resume: AbortController | null = null;
  #head: ExchangeHead | null = null;
  #delivered = 0;
  #credited = 0;
  #lastProgressMs: number;
  readonly #patienceMs: number;
  #over = false;

  /** Starts at once; the link has to be in state `ready`. Events come later, never from inside the constructor. */
  constructor(link: Link, nativeFetch: typeof fetch, request: ExchangeRequest, events: ExchangeEvents) {
    this.#link = link;
    this.#fetch = nativeFetch;
    this.#request = request;
    this.#events = events;
    this.#lastProgressMs = link.env.nowMs();
    this.#patienceMs = link.env.patienceMs();
    this.#call = link.call(request.url, request.range, this.#patienceMs, {
      message: (message) => this.#handle(message),
      lost: () => this.#failOver(),
      tick: (nowMs) => this.#handleTick(nowMs),
    });
  }

  /** The caller has taken everything that was delivered so far. */
  credit(): void {
    const bytes = this.#delivered - this.#credited;
    if (bytes === 0 || this.#call === null) return;
    this.#lastProgressMs = this.#link.env.nowMs();
    this.#credited = this.#delivered;
    this.#call.credit(bytes);
  }

  /** Ends it; no event follows. */
  abort(): void {
    this.#over = true;
    this.#call?.abort();
    this.#call = null;
    this.#resume?.abort();
  }

  #handle(message: ToPage): void {
    if (this.#over || this.#call === null) return;
    this.#lastProgressMs = this.#link.env.nowMs();
    switch (message.type) {
      case "native":
        this.#call = null;
        return this.#failOver();
      case "head":
        return this.#deliverHead(message);
      case "data":
        return this.#deliver(new Uint8Array(message.buffer));
      case "end":
        this.#call = null;
        return this.#isWhole() ? this.#finish() : this.#failOver();
      case "failed":
        this.#call = null;
        return this.#failOver();
      default:
    }
  }

  #handleTick(nowMs: number): void {
    const silentMs = nowMs - this.#lastProgressMs;
    const isWaiting = this.#head === null || this.#delivered === this.#credited;
    if (isWaiting && silentMs > this.#patienceMs + GRACE_MS) this.#failOver();
  }

  #deliverHead(head: ExchangeHead): void {
    this.#head = head;
    this.#events.head(head);
  }

  #deliver(bytes: Uint8Array<ArrayBuffer>): void {
    this.#delivered += bytes.length;
    this.#events.bytes(bytes);
  }

  #isWhole(): boolean {
    return this.#head !== null && (this.#head.totalBytes === null || this.#head.totalBytes === this.#delivered);
  }

  #finish(): void {
    this.#over = true;
    this.#events.end();
  }

  #failOver(): void {
    if (this.#over) return;
    this.#call?.abort();
    this.#call = null;
    if (this.#head === null) {
      this.#over = true;
      return this.#events.native();
    }
    if (this.#isWhole() && this.#head.totalBytes !== null) return this.#finish();
    this.#finishNatively(this.#head)
      .catch(() => false)
      .then((isWhole) => {
        if (this.#over) return;
        if (isWhole) return this.#finish();
        this.#over = true;
        this.#events.error();
      });
  }

  /** Fetches the rest; false when it can't be asked for, has changed, or ended early. */
  async #finishNatively(head: ExchangeHead): Promise<boolean> {
    this.#resume = new AbortController();
    const offset = this.#delivered;
    const range = restOf(this.#request.range, head, offset);
    if (range === undefined) return false;
    const response = await this.#fetch(this.#request.url, { headers: { Range: range }, signal: this.#resume.signal });
    const skip = bytesToSkip(response, head, offset, this.#request.range);
    if (skip === undefined || response.body === null) return false;
    await this.#pump(response.body, skip);
    this.#link.noteDirect(this.#delivered - offset);
    return this.#isWhole();
  }

  async #pump(body: ReadableStream<Uint8Array<ArrayBuffer>>, skip: number): Promise<void> {
    const reader = body.getReader();
    let left = skip;
    for (;;) {
      const { done, value } = await reader.read();
      if (done || this.#over) return;
      const bytes = value.subarray(Math.min(left, value.length));
      left -= value.length - bytes.length;
      if (bytes.length > 0) this.#deliver(bytes.slice());
    }
  }
}

/** The Range header that asks for the rest of the answer `head` after `offset` bytes of it. */
function restOf(asked: ByteRange | null, head: ExchangeHead, offset: number): string | undefined {
  if (head.status === 206 && asked !== null) return `bytes=${asked.start + offset}-${asked.end}`;
  return head.status === 200 ? `bytes=${offset}-` : undefined;
}

/** How many bytes of `response` were delivered already, or undefined when it is not the rest of `head`'s representation. */
function bytesToSkip(response: Response, head: ExchangeHead, offset: number, asked: ByteRange | null): number | undefined {
  if (!hasSameValidators(response.headers, head.headers)) return undefined;
  const length = Number(response.headers.get("content-length") ?? NaN);
  if (response.status === 206) {
    const isRest = head.totalBytes === null || Number.isNaN(length) || length === head.totalBytes - offset;
    return isRest && isSamePart(response.headers.get("content-range"), head, (asked?.start ?? 0) + offset) ? 0 : undefined;
  }
  if (response.status !== 200 || (head.status === 206 && asked !== null)) return undefined;
  return head.totalBytes === null || Number.isNaN(length) || length === head.totalBytes ? offset : undefined;
}

/** Whether a Content-Range, where the page may see it, begins at `start` and is of a file as long as before. */
function isSamePart(contentRange: string | null, head: ExchangeHead, start: number): boolean {
  const now = CONTENT_RANGE.exec(contentRange ?? "");
  if (now === null) return true;
  const before = CONTENT_RANGE.exec(head.headers.find(([name]) => name === "content-range")?.[1] ?? "");
  const totalBefore = before?.[2] ?? (head.status === 200 && head.totalBytes !== null ? String(head.totalBytes) : now[2]);
  return Number(now[1]) === start && now[2] === totalBefore;
}

function hasSameValidators(now: Headers, before: readonly [string, string][]): boolean {
  return ["etag", "last-modified"].every((name) => {
    const was = before.find(([known]) => known === name)?.[1];
    const is = now.get(name);
    return was === undefined || is === null || was === is;
  });
}
