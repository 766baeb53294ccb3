/**
 * Page port: the transport's end of one page's port. Every message on it is taken as hostile. It is parsed, its URL
 * must pass the same rule as in the page, and the requests at once and per second are limited. A page receives an
 * answer only if its origin may read it. A request that does not pass is answered `native`: the page then asks the site
 * itself.
 */
import type { Download, GetOptions } from "@tributary/client";
import { HOPS_HEADER, parseHops, type Hop, type ResponseHead } from "@tributary/contract";
import { exposeTo, passedStatusText } from "../shared/cors";
import {
  CREDIT_BYTES,
  PIECE_BYTES_MAX,
  parseToTransport,
  type PortLike,
  type ToPage,
  type ToTransport,
} from "../shared/messages";
import { carriedAddress, mediaUrl } from "../shared/rules";
import type { Settings } from "../shared/settings";
import { REFUSED_MS, type Detours } from "./detours";

export const REQUESTS_PER_PORT_MAX = 16;
const REQUESTS_MAX = 64;
/**
 * How many messages that cause work elsewhere (get, warm, wrong) a page may send in a second. A player that fills its
 * buffer over a fast line asks for some dozens of chunks. Beyond the limit, a get is declined and the others are
 * dropped.
 */
export const ASKS_PER_SEC_MAX = 100;
/** A port is closed after this many messages that do not parse. */
export const INVALID_MESSAGES_MAX = 100;

export type CarriedDownload = Pick<Download, "head" | "body" | "abort">;

/** A shorter patience would only make a page's own requests fail. */
const PATIENCE_MS_MIN = 1000;

/** What all page ports share. */
export interface PagePortHost {
  settings(): Settings;
  /** Starts a download. Throws if the request cannot be a download. */
  get(url: string, options: GetOptions): CarriedDownload;
  detours: Detours;
  /** Requests being carried on all ports. */
  activeCount(): number;
  /** Tells Origo that `url` came with wrong bytes, if the viewer allows records. */
  reportWrong(url: string): void;
  changed(): void;
  /** Opens sessions to the proxies before the first request. Resolves when they are open or have failed. */
  warm(): Promise<void>;
  /** The port was closed, by either side. */
  closed(port: PagePort): void;
  nowMs(): number;
}

interface CarriedRequest {
  download: CarriedDownload;
  creditBytes: number;
  /** Wakes the pump when credit comes or the request ends. */
  wake: (() => void) | null;
  sentBytes: number;
  over: boolean;
}

export class PagePort {
  readonly #port: PortLike<ToPage>;
  readonly #pageOrigin: string;
  readonly #host: PagePortHost;
  readonly #requests = new Map<number, CarriedRequest>();
  #invalidCount = 0;
  #isWarming = false;
  #askCount = 0;
  #askSecondMs = -Infinity;

  constructor(port: PortLike<ToPage>, pageOrigin: string, host: PagePortHost) {
    this.#port = port;
    this.#pageOrigin = pageOrigin;
    this.#host = host;
    port.onmessage = (event) => this.#handle(event.data);
    this.#post({ type: "hello" });
  }

  get activeCount(): number {
    return this.#requests.size;
  }

  /** Closes the port and ends all its requests. */
  close(): void {
    this.#port.onmessage = null;
    this.#port.close();
    for (const id of [...this.#requests.keys()]) this.#abort(id);
    this.#host.closed(this);
  }

  #handle(data: unknown): void {
    const message = parseToTransport(data);
    switch (message.type) {
      case "ping":
        return this.#post({ type: "pong", token: message.token });
      case "warm":
        return this.#warm();
      case "direct":
        this.#host.detours.noteDirect(message.bytes);
        return;
      case "wrong":
        return this.#noteWrong(message.url);
      case "abort":
        return this.#abort(message.id);
      case "credit":
        return this.#credit(message.id, message.bytes);
      case "get":
        return this.#get(message);
      case "invalid":
        if (++this.#invalidCount >= INVALID_MESSAGES_MAX) this.close();
    }
  }

  #get({ id, url, range, cache, patienceMs, player, targets }: Extract<ToTransport, { type: "get" }>): void {
    if (this.#requests.has(id)) return;
    const target = mediaUrl(url);
    if (target === null) return this.#goNative(id, "rule", "not a media address");
    const { enabled, mode, connections } = this.#host.settings();
    if (!enabled) return this.#goNative(id, "off", "");
    if (mode === "direct") return this.#goNative(id, "direct-mode", "");
    if (!this.#mayAsk()) return this.#goNative(id, "busy", `more than ${ASKS_PER_SEC_MAX} requests in a second`);
    if (this.#requests.size >= REQUESTS_PER_PORT_MAX || this.#host.activeCount() >= REQUESTS_MAX) {
      return this.#goNative(id, "busy", `${this.#requests.size} requests at once`);
    }
    if (this.#host.detours.isSmall(target, this.#pageOrigin, this.#host.nowMs()))
      return this.#goNative(id, "small", "too small to gain");
    if (this.#host.detours.isDirect(target.host, this.#pageOrigin, this.#host.nowMs()))
      return this.#post({ type: "native", id });
    let download: CarriedDownload;
    try {
      download = this.#host.get(carriedAddress(target), {
        mode,
        connections,
        ...(range === null ? {} : { range }),
        ...(cache === undefined ? {} : { cache }),
        ...(player === undefined ? {} : { player }),
        allowFallback: "proxies",
        patienceMs: Math.max(PATIENCE_MS_MIN, patienceMs),
      });
    } catch (error) {
      return this.#goNative(id, kindOf(error), textOf(error));
    }
    this.#requests.set(id, { download, creditBytes: CREDIT_BYTES, wake: null, sentBytes: 0, over: false });
    this.#host.changed();
    void this.#carry(id, target, targets);
  }

  /** Counts a message that causes work. False if there were too many within a second. */
  #mayAsk(): boolean {
    const nowMs = this.#host.nowMs();
    if (nowMs - this.#askSecondMs >= 1000) [this.#askSecondMs, this.#askCount] = [nowMs, 0];
    return ++this.#askCount <= ASKS_PER_SEC_MAX;
  }

  #warm(): void {
    if (this.#isWarming || !this.#mayAsk()) return;
    this.#isWarming = true;
    void this.#host.warm().finally(() => (this.#isWarming = false));
  }

  /** The page's claim counts only for pages of its own origin. */
  #noteWrong(url: string): void {
    const target = mediaUrl(url);
    if (
      target === null ||
      !this.#mayAsk() ||
      !this.#host.detours.noteWrong(target.host, this.#pageOrigin, this.#host.nowMs())
    )
      return;
    this.#host.reportWrong(target.href);
  }

  async #carry(id: number, target: URL, targets: readonly string[]): Promise<void> {
    const request = this.#requests.get(id);
    if (request === undefined) return;
    let headSent = false;
    try {
      const head = await request.download.head;
      const route = routeOf(head, target);
      if (route === undefined || !isWithin(route, [target.origin, ...targets]))
        return this.#giveUp(id, request, "rule", "a redirect that the page's browser has not followed");
      const problem = this.#problemWith(head, target, route);
      if (problem !== null) {
        this.#host.detours.noteFailure(target.host, this.#pageOrigin, this.#host.nowMs(), REFUSED_MS);
        return this.#giveUp(id, request, problem.kind, problem.detail);
      }
      if (request.over) return;
      // The head goes at once, because a player measures the rate of an answer from its head on.
      this.#postHead(id, head, route);
      headSent = true;
      const reader = request.download.body.getReader();
      for (let piece = await reader.read(); piece.value !== undefined && !request.over; piece = await reader.read()) {
        await this.#sendBytes(id, request, piece.value);
      }
      if (!request.over) this.#complete(id, request, target);
    } catch (error) {
      if (!request.over) this.#fail(id, request, target, headSent, error);
    }
  }

  /**
   * Why the page must not get this answer to `target`, which came by `route`; null if the page may get it. At its own
   * origin a page may have cookies and a service worker, so an error or an HTML page may be meant for strangers only.
   * A cookie that its own origin sets is the browser's to keep.
   */
  #problemWith(
    { status, headers }: ResponseHead,
    target: URL,
    { hops, answered }: Route,
  ): { kind: string; detail: string } | null {
    const { host } = answered;
    const isOwn = target.origin === this.#pageOrigin;
    const cookies = [...hops, { origin: answered.origin, setsCookie: headers["set-cookie"] !== undefined }];
    if (cookies.some(({ origin, setsCookie }) => setsCookie && origin === this.#pageOrigin))
      return { kind: "status", detail: `${target.host} sets cookies` };
    if (passedStatusText(status) === undefined || (isOwn && status >= 400))
      return { kind: "status", detail: `${host} answered ${status} through the proxies` };
    if (isOwn && /^\s*text\/html\b/i.test(headers["content-type"] ?? ""))
      return { kind: "status", detail: `${target.host} sent the proxies to another page` };
    if (exposeTo(this.#pageOrigin, answered, headers, hops) === undefined)
      return { kind: "cors", detail: `${host} does not share with ${this.#pageOrigin}` };
    return null;
  }

  #postHead(id: number, head: ResponseHead, { answered, hops }: Route): void {
    const withLength =
      head.totalBytes === null ? head.headers : { ...head.headers, "content-length": String(head.totalBytes) };
    const exposure = exposeTo(this.#pageOrigin, answered, withLength, hops);
    if (exposure === undefined) throw new Error("the answer was exposed and is not any more");
    const { status, totalBytes } = head;
    const statusText = passedStatusText(status) ?? "";
    const { headers, type: responseType } = exposure;
    this.#post({
      type: "head",
      id,
      status,
      statusText,
      headers,
      responseType,
      url: answered.href,
      redirected: hops.length > 0,
      totalBytes,
    });
  }

  /** Sends pieces of at most 64 KiB while the page has credit, then waits for more credit. */
  async #sendBytes(id: number, request: CarriedRequest, bytes: Uint8Array): Promise<void> {
    for (let at = 0; at < bytes.length;) {
      while (request.creditBytes <= 0 && !request.over) await new Promise<void>((resolve) => (request.wake = resolve));
      if (request.over) return;
      const piece = bytes.subarray(at, at + PIECE_BYTES_MAX);
      const isWhole = piece.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer;
      const buffer = (isWhole ? bytes.buffer : piece.slice().buffer) as ArrayBuffer;
      at += piece.length;
      request.creditBytes -= piece.length;
      request.sentBytes += piece.length;
      this.#post({ type: "data", id, buffer }, [buffer]);
    }
  }

  #credit(id: number, bytes: number): void {
    const request = this.#requests.get(id);
    if (request === undefined) return;
    request.creditBytes = Math.min(CREDIT_BYTES, request.creditBytes + bytes);
    wake(request);
  }

  #complete(id: number, request: CarriedRequest, target: URL): void {
    this.#end(id, request);
    this.#host.detours.noteSuccess(target.host, this.#pageOrigin);
    this.#host.detours.noteSize(target, this.#pageOrigin, request.sentBytes, this.#host.nowMs());
    this.#post({ type: "end", id });
  }

  #fail(id: number, request: CarriedRequest, target: URL, headSent: boolean, error: unknown): void {
    this.#host.detours.noteFailure(target.host, this.#pageOrigin, this.#host.nowMs());
    if (!headSent) return this.#giveUp(id, request, kindOf(error), textOf(error));
    this.#end(id, request);
    this.#host.detours.noteFallback(kindOf(error), textOf(error));
    this.#post({ type: "failed", id });
  }

  #giveUp(id: number, request: CarriedRequest, kind: string, detail: string): void {
    this.#end(id, request);
    request.download.body.cancel().catch(() => undefined);
    request.download.abort("the page asks for itself");
    this.#goNative(id, kind, detail);
  }

  #goNative(id: number, kind: string, detail: string): void {
    this.#host.detours.noteFallback(kind, detail);
    this.#post({ type: "native", id });
  }

  #abort(id: number): void {
    const request = this.#requests.get(id);
    if (request === undefined) return;
    this.#end(id, request);
    request.download.abort("the page gave it up");
  }

  #end(id: number, request: CarriedRequest): void {
    request.over = true;
    this.#requests.delete(id);
    wake(request);
    this.#host.changed();
  }

  #post(message: ToPage, transfer?: Transferable[]): void {
    this.#port.postMessage(message, transfer ?? []);
  }
}

/** How an answer came: the redirects, and the address that answered in the end. */
interface Route {
  hops: readonly Hop[];
  answered: URL;
}

/** undefined if the proxy does not tell the whole route, for example because an address is too long. */
function routeOf({ headers }: ResponseHead, target: URL): Route | undefined {
  const { location } = headers;
  const hops = parseHops(headers[HOPS_HEADER]);
  if (hops?.length === 0 && location === undefined) return { hops, answered: target };
  if (hops?.[0]?.origin !== target.origin || location === undefined || !URL.canParse(location)) return undefined;
  const answered = new URL(location);
  answered.hash = "";
  return { hops, answered };
}

function isWithin({ hops, answered }: Route, origins: readonly string[]): boolean {
  return [...hops, answered].every(({ origin }) => origins.includes(origin));
}

function wake(request: CarriedRequest): void {
  request.wake?.();
  request.wake = null;
}

function kindOf(error: unknown): string {
  const { kind } = (error ?? {}) as { kind?: unknown };
  return typeof kind === "string" ? kind : "failed";
}

function textOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
