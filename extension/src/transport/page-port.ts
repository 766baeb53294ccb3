/**
 * Page port: the transport's end of one page's port. Every message on it is taken as hostile. It is parsed, its URL
 * must pass the same rule as in the page, and the requests at once and per second are limited. A page receives an
 * answer only if its origin may read it. A request that does not pass is answered `native`: the page then asks the site
 * itself.
 */
import type { OwnRest } from "@tributary/client";
import type { ResponseHead } from "@tributary/contract";
import { exposeTo } from "../shared/cors";
import {
  CREDIT_BYTES,
  PIECE_BYTES_MAX,
  parseToTransport,
  type AbortReason,
  type PortLike,
  type ToPage,
  type ToTransport,
} from "../shared/messages";
import { carriedAddress, isObjectUrl, mediaUrl, pageMediaUrl } from "../shared/rules";
import { refusalOf } from "./comparison";
import { PortComparisons } from "./port-comparisons";
import { isRefusal } from "./detours";
import { tellsLimit } from "./allowance";
import {
  kindOf,
  optionsOf,
  otherStatus,
  placeOf,
  statusOf,
  textOf,
  type CarriedDownload,
  type PagePortHost,
} from "./port-host";
import { OwnRests, type Reason } from "./own-rests";
import { isWithin, routeOf, type Route } from "./route";
import { formOf, type Asking } from "./trust";

export const REQUESTS_PER_PORT_MAX = 16;
const REQUESTS_MAX = 64;
/**
 * How many messages that cause work elsewhere (get, warm, compare) a page may send in a second. A player that fills its
 * buffer over a fast line asks for some dozens of chunks. Beyond the limit, a get is declined and the others are
 * dropped.
 */
export const ASKS_PER_SEC_MAX = 100;
/** A port is closed after this many messages that do not parse. */
export const INVALID_MESSAGES_MAX = 100;

type Get = Extract<ToTransport, { type: "get" }>;

/** A shorter patience would only make a page's own requests fail. */
const PATIENCE_MS_MIN = 1000;
/** A request of a kind that is being compared waits at most this long for the verdict. */
export const VERDICT_MS = 300;
/** While bytes are held until their digest is right, the page hears so often that they come. */
export const HELD_MS = 250;

interface CarriedRequest {
  download: CarriedDownload;
  target: URL;
  startedMs: number;
  /** Only checked bytes may serve the page. */
  isSealed: boolean;
  isHeadSent: boolean;
  heldToldMs: number;
  creditBytes: number;
  /** Wakes the pump when credit comes or the request ends. */
  wake: (() => void) | null;
  sentBytes: number;
  over: boolean;
  /** Tells the record what the page fetched itself. */
  tellRest(rest: OwnRest | undefined): void;
}

export class PagePort {
  readonly #port: PortLike<ToPage>;
  readonly pageOrigin: string;
  readonly #host: PagePortHost;
  readonly #requests = new Map<number, CarriedRequest>();
  /** Requests that wait for a verdict. */
  readonly #waiting = new Set<number>();
  readonly #comparisons: PortComparisons;
  readonly #ownRests = new OwnRests();
  #invalidCount = 0;
  #isWarming = false;
  #askCount = 0;
  #askSecondMs = -Infinity;

  constructor(port: PortLike<ToPage>, pageOrigin: string, host: PagePortHost) {
    this.#port = port;
    this.pageOrigin = pageOrigin;
    this.#host = host;
    this.#comparisons = new PortComparisons(pageOrigin, host, (message) => this.#post(message));
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
    for (const id of [...this.#requests.keys()]) this.#abort(id, "abandoned");
    this.#ownRests.close();
    this.#waiting.clear();
    this.#comparisons.close();
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
      case "unchecked":
        return this.#noteUnchecked(message.url, message.bytes);
      case "limited":
        return this.#noteLimited(message.url);
      case "compare":
        return this.#mayAsk() ? this.#comparisons.begin(message) : this.#post({ type: "enough", id: message.id });
      case "site-bytes":
        return this.#comparisons.push(message.id, message.buffer);
      case "site-end":
        return this.#comparisons.end(message.id, message.isWhole);
      case "abort":
        return this.#abort(message.id, message.why);
      case "fetched":
        return this.#ownRests.note(message.id, message);
      case "credit":
        return this.#credit(message.id, message.bytes);
      case "get":
        return this.#get(message);
      case "invalid":
        if (++this.#invalidCount >= INVALID_MESSAGES_MAX) this.close();
    }
  }

  #get(message: Get): void {
    const { id } = message;
    if (this.#requests.has(id) || this.#waiting.has(id)) return;
    const target = pageMediaUrl(message.url, this.pageOrigin);
    if (target === null) return this.#goNative(id, "rule", "not a media address");
    const { enabled, mode } = this.#host.settings();
    if (!enabled) return this.#goNative(id, "off", "");
    if (mode === "direct") return this.#goNative(id, "direct-mode", "");
    if (!this.#mayAsk()) return this.#goNative(id, "busy", `more than ${ASKS_PER_SEC_MAX} requests in a second`);
    const atOnce = this.#requests.size + this.#waiting.size;
    if (atOnce >= REQUESTS_PER_PORT_MAX || this.#host.activeCount() >= REQUESTS_MAX) {
      return this.#goNative(id, "busy", `${atOnce} requests at once`);
    }
    if (this.#host.isPublished(target.href)) return this.#start(message, target, true);
    const { detours, pace, trust } = this.#host;
    const nowMs = this.#host.nowMs();
    if (detours.isSmall(target, this.pageOrigin, nowMs)) return this.#goNative(id, "small", "too small to gain");
    if (detours.isDirect(target.host, this.pageOrigin, nowMs)) return this.#askSite(id, target);
    if (pace.isSlow(this.#placeOf(target))) return this.#goDirectAsSlow(id, target);
    const decision = trust.decide(this.#askingOf(target, message), this.#host.proxyIds(), nowMs);
    if (decision === "carry") return this.#start(message, target);
    if (decision === "compare") return this.#post({ type: "native", id, compare: true });
    void this.#waitFor(decision, message, target);
  }

  /** Other sites' files are never checked as a whole, so nothing is said of them. */
  #noteUnchecked(url: string, bytes: number): void {
    const target = pageMediaUrl(url, this.pageOrigin);
    if (isObjectUrl(url) || (target !== null && this.#host.isPublished(target.href)))
      this.#host.detours.noteUnchecked(bytes);
  }

  /** The page asks the site itself. */
  #askSite(id: number, target: URL): void {
    this.#host.allowance.note(this.#placeOf(target), 1, this.#host.nowMs());
    this.#post({ type: "native", id, compare: false });
  }

  #askingOf(url: URL, { range }: Pick<Get, "range">): Asking {
    return { pageOrigin: this.pageOrigin, url, range };
  }

  #placeOf(target: URL): string {
    return placeOf(this.pageOrigin, target);
  }

  #goDirectAsSlow(id: number, target: URL): void {
    const { host } = target;
    this.#host.pace.forget(this.#placeOf(target));
    this.#host.detours.noteDirectHost(host, this.pageOrigin, "slow", host, this.#host.nowMs());
    this.#post({ type: "native", id, compare: false });
  }

  /** Waits a moment for the verdict on this kind. Without one the page asks the site. */
  async #waitFor(ended: Promise<void>, message: Get, target: URL): Promise<void> {
    this.#waiting.add(message.id);
    let timer: ReturnType<typeof setTimeout> | undefined;
    const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, VERDICT_MS)));
    await Promise.race([ended, late]);
    clearTimeout(timer);
    if (!this.#waiting.delete(message.id)) return;
    const { trust, detours } = this.#host;
    const nowMs = this.#host.nowMs();
    const isCarried =
      !detours.isDirect(target.host, this.pageOrigin, nowMs) &&
      trust.decide(this.#askingOf(target, message), this.#host.proxyIds(), nowMs) === "carry";
    if (isCarried) this.#start(message, target);
    else this.#askSite(message.id, target);
  }

  #start(message: Get, target: URL, isSealed = false): void {
    const { id, patienceMs, player } = message;
    const place = this.#placeOf(target);
    const { connections } = this.#host.settings();
    const isAllowed = isSealed || this.#host.allowance.allows(place, target, connections, this.#host.nowMs());
    if (!isAllowed) return this.#askSite(id, target);
    let download: CarriedDownload;
    let tellRest!: CarriedRequest["tellRest"];
    const ownRest = new Promise<OwnRest | undefined>((resolve) => (tellRest = resolve));
    try {
      download = this.#host.get(carriedAddress(target), {
        ...optionsOf(this.pageOrigin, this.#host, message, target),
        onHeld: () => this.#noteHeld(id),
        ...(player === undefined ? {} : { player }),
        ...(isSealed ? {} : { patienceMs: Math.max(PATIENCE_MS_MIN, patienceMs), ownRest }),
      });
    } catch (error) {
      return this.#goNative(id, kindOf(error), textOf(error));
    }
    const startedMs = this.#host.nowMs();
    this.#host.allowance.note(place, connections, startedMs);
    const request: CarriedRequest = {
      download,
      target,
      startedMs,
      isSealed,
      isHeadSent: false,
      heldToldMs: -Infinity,
      creditBytes: CREDIT_BYTES,
      wake: null,
      sentBytes: 0,
      over: false,
      tellRest,
    };
    this.#requests.set(id, request);
    if (isSealed) this.#post({ type: "sealed", id });
    else this.#post({ type: "wait", id, hedgeMs: this.#host.pace.hedgeMs(place) });
    this.#host.changed();
    void this.#carry(id, request, this.#askingOf(target, message), message.targets);
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
  #noteLimited(url: string): void {
    const target = mediaUrl(url);
    if (target !== null && this.#mayAsk()) this.#goDirectAsLimited(target);
  }

  #goDirectAsLimited({ host }: URL): void {
    this.#host.detours.noteDirectHost(host, this.pageOrigin, "limited", host, this.#host.nowMs());
  }

  async #carry(id: number, request: CarriedRequest, asking: Asking, targets: readonly string[]): Promise<void> {
    const { target } = request;
    try {
      const head = await request.download.head;
      if (request.over) return;
      this.#noteHeadTime(request);
      const status = otherStatus(head);
      if (status !== undefined && !request.isSealed) return this.#refuseStatus(id, request, asking, status);
      const route = routeOf(head, target);
      if (route === undefined || !isWithin(route, [target.origin, ...targets])) {
        return this.#giveUp(id, request, notShown("a redirect that the page's browser has not followed"));
      }
      const refusal = refusalOf(head, route, target, this.pageOrigin);
      if (refusal !== null) return this.#refuse(id, request, refusal);
      if (!request.isSealed && !this.#host.trust.isKnown(asking, formOf(route.answered, head.headers))) {
        this.#host.trust.compareNext(asking);
        return this.#giveUp(id, request, notShown("an answer of a form that was not compared before"));
      }
      if (tellsLimit(head.headers)) this.#goDirectAsLimited(target);
      // The head goes at once, because a player measures the rate of an answer from its head on.
      this.#postHead(id, head, route);
      request.isHeadSent = true;
      const reader = request.download.body.getReader();
      for (let piece = await reader.read(); piece.value !== undefined && !request.over; piece = await reader.read()) {
        await this.#sendBytes(id, request, piece.value);
      }
      if (!request.over) this.#complete(id, request, target);
    } catch (error) {
      if (!request.over) this.#fail(id, request, asking, error);
    }
  }

  /** The page hears that bytes come, so it does not take the proxies for stalled. */
  #noteHeld(id: number): void {
    const request = this.#requests.get(id);
    const nowMs = this.#host.nowMs();
    if (request?.isHeadSent !== true || nowMs - request.heldToldMs < HELD_MS) return;
    request.heldToldMs = nowMs;
    this.#post({ type: "wait", id, hedgeMs: HELD_MS });
  }

  #noteHeadTime({ target, startedMs }: CarriedRequest): void {
    this.#host.pace.note(this.#placeOf(target), this.#host.nowMs() - startedMs);
  }

  /** The site may treat the page otherwise than the proxies, so the page asks it, from now on for long. */
  #refuse(id: number, request: CarriedRequest, { kind, what }: { kind: "status" | "cors"; what: string }): void {
    const { isSealed, target } = request;
    if (!isSealed) this.#host.detours.noteDirectHost(target.host, this.pageOrigin, kind, what, this.#host.nowMs());
    this.#giveUp(id, request, notShown(what));
  }

  /** A site that refuses the proxies may do so only after some requests. So it is compared when it is asked again. */
  #refuseStatus(id: number, request: CarriedRequest, asking: Asking, status: number): void {
    const { href } = request.target;
    if (isRefusal(status)) this.#host.trust.forget(asking);
    this.#host.detours.noteStatus({ url: href, status }, this.pageOrigin, this.#host.nowMs());
    const message = `Through the proxies the answer has status ${status}.`;
    this.#giveUp(id, request, { kind: "otherStatus", message });
  }

  #postHead(id: number, head: ResponseHead, { answered, hops }: Route): void {
    const withLength =
      head.totalBytes === null ? head.headers : { ...head.headers, "content-length": String(head.totalBytes) };
    const exposure = exposeTo(this.pageOrigin, answered, withLength, hops);
    if (exposure === undefined) throw new Error("the answer was exposed and is not any more");
    const { status, totalBytes } = head;
    const statusText = STATUS_TEXTS[status] ?? "OK";
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
    this.#host.detours.noteSuccess(target.host, this.pageOrigin);
    this.#host.detours.noteSize(target, this.pageOrigin, request.sentBytes, this.#host.nowMs());
    this.#post({ type: "end", id });
  }

  #fail(id: number, request: CarriedRequest, asking: Asking, error: unknown): void {
    if (request.isSealed) return this.#giveUp(id, request, { kind: kindOf(error), message: textOf(error) });
    const { host } = request.target;
    const status = statusOf(error);
    if (status !== undefined && !request.isHeadSent) return this.#refuseStatus(id, request, asking, status);
    if (kindOf(error) === "stalled" && !request.isHeadSent) this.#noteHeadTime(request);
    const reason = { kind: kindOf(error), message: textOf(error) };
    this.#host.noteProxyFailure(host, this.pageOrigin, reason.kind, reason.message);
    if (!request.isHeadSent) return this.#giveUp(id, request, reason);
    this.#end(id, request, reason);
    this.#post({ type: "failed", id });
  }

  /** The page asks the site. If the proxies did not fail, it shows the site's answer to be compared. */
  #giveUp(id: number, request: CarriedRequest, reason: Reason): void {
    this.#end(id, request, reason);
    request.download.body.cancel().catch(() => undefined);
    request.download.abort("the page asks for itself");
    if (request.isSealed) this.#host.detours.noteFallback(reason.kind, reason.message);
    this.#post(request.isSealed ? { type: "failed", id } : { type: "native", id, compare: SHOWN.has(reason.kind) });
  }

  #goNative(id: number, kind: string, detail: string): void {
    this.#host.detours.noteFallback(kind, detail);
    this.#post({ type: "native", id, compare: false });
  }

  #abort(id: number, why: AbortReason): void {
    this.#waiting.delete(id);
    const request = this.#requests.get(id);
    if (request === undefined) return;
    const reason = abortReason(why, request);
    this.#end(id, request, reason);
    if (why === "late") this.#noteLate(request);
    request.download.abort(reason?.message ?? "the page gave it up");
  }

  #noteLate(request: CarriedRequest): void {
    if (!request.isHeadSent) this.#noteHeadTime(request);
    const { host } = request.target;
    this.#host.allowance.note(this.#placeOf(request.target), 1, this.#host.nowMs());
    const ms = Math.round(this.#host.nowMs() - request.startedMs);
    this.#host.noteProxyFailure(host, this.pageOrigin, "late", `${host} itself answered first, after ${ms} ms`);
  }

  /** With a `reason` the page asks the site for what is missing. */
  #end(id: number, request: CarriedRequest, reason?: Reason): void {
    request.over = true;
    this.#requests.delete(id);
    if (reason === undefined || request.isSealed) request.tellRest(undefined);
    else this.#ownRests.wait(id, reason, request.tellRest);
    wake(request);
    this.#host.changed();
  }

  #post(message: ToPage, transfer?: Transferable[]): void {
    this.#port.postMessage(message, transfer ?? []);
  }
}

const STATUS_TEXTS: Record<number, string> = { 206: "Partial Content", 404: "Not Found", 416: "Range Not Satisfiable" };
/** With these reasons the proxies did not fail. */
const SHOWN = new Set(["notShown", "otherStatus"]);

/** The page may not have what the proxies brought. */
function notShown(message: string): Reason {
  return { kind: "notShown", message };
}

/** undefined if the page needs no answer. */
function abortReason(why: AbortReason, { isHeadSent }: CarriedRequest): Reason | undefined {
  if (why === "form") return notShown("the page wants a form that only the browser can give");
  if (why === "abandoned") return undefined;
  return isHeadSent
    ? { kind: "stalled", message: "the proxies stopped in the middle, and the site sent the rest" }
    : { kind: "siteFirst", message: "the site answered before the proxies" };
}

function wake(request: CarriedRequest): void {
  request.wake?.();
  request.wake = null;
}
