/**
 * Carried request: one media request of a page that the transport answers.
 * Its events are either `native` (the site's own answer serves the page), or `head`, then `bytes` in order, then `end`
 * or `error`. If the proxies are slow, the site is asked beside them, and the first answer serves the page. If the
 * proxies fail or stall in the middle, the browser's own fetch gets the rest by a Range from the delivered offset. The
 * browser's CORS decision thus holds, and the rest must be of the same representation. A sealed request is never asked
 * of the site: without the transport it ends in `error`.
 */
import type { CarriedRequestEvents, MediaRequest, RequestHandle, SiteBody, SiteRequest } from "../shared/carry";
import type { AbortReason, Fetched, PageResponseHead, Player, ToPage, SiteHead } from "../shared/messages";
import { rangeText } from "../shared/fields";
import { options } from "../shared/primordials";
import { bytes as part, max, OwnBytes, round } from "../shared/late-primordials";
import { bodyOf, cancelBody } from "../shared/platform";
import { abort, drop, OwnAbortController, type Read, readerOfBody, signalOf } from "../shared/late-platform";
import { isPublishedUrl } from "../shared/rules";
import type { Call, Calls, Clock } from "./calls";
import { Delivered } from "./delivered";
import { bytesToSkip, isSameWhole, restOf, validatorOf } from "./representation";
import { showTransport } from "./show";
import { SiteAsker, type Asked } from "./site";

/** A transport that does not tell in this time how long to wait is slow or has hung. */
export const REPLY_MS = 500;
/** After this long without a byte the page asks the site for the rest. */
export const STALL_MS = 1000;

/** What a carried request needs from its page. */
export interface Surroundings {
  fetch: typeof fetch;
  asked: Asked;
  /** How long the transport may wait for bytes. */
  patienceMs(): number;
  /** The page's player, if it is known. */
  player(): Player | undefined;
}

/** An answer of the site to a request for the rest. */
interface Rest {
  read: Read;
  /** How many of its first bytes were delivered before. */
  skip: number;
}

export class CarriedRequest<Site extends SiteRequest> implements RequestHandle {
  readonly #calls: Calls;
  readonly #clock: Clock;
  readonly #page: Surroundings;
  readonly #request: MediaRequest;
  readonly #events: CarriedRequestEvents<Site>;
  readonly #startedMs: number;
  readonly #call: Call;
  #isCalling = true;
  #asker: SiteAsker<Site> | null = null;
  /** The site could not be asked while the proxies were. */
  #failedSite: Site | null = null;
  #hedgeTimer: unknown;
  #isCompared = false;
  #isSealed = false;
  #rest: AbortController | null = null;
  /** The site sends the bytes from here on. */
  #restOffset = 0;
  #isRestRefused = false;
  #head: PageResponseHead | null = null;
  #delivered = 0;
  readonly #proof = new Delivered();
  #credited = 0;
  #lastProgressMs: number;
  #over = false;

  /** Starts at once. The link must be in state `ready`. The constructor itself calls no event. */
  constructor(calls: Calls, page: Surroundings, request: MediaRequest, events: CarriedRequestEvents<Site>) {
    this.#calls = calls;
    this.#clock = calls.clock;
    this.#page = page;
    this.#request = request;
    this.#events = events;
    this.#startedMs = this.#lastProgressMs = this.#clock.nowMs();
    const player = page.player();
    this.#call = calls.call(
      { ...request, patienceMs: page.patienceMs(), ...(player === undefined ? {} : { player }) },
      {
        message: (message) => this.#heed(message),
        lost: () => this.#failOver(),
        tick: (nowMs) => this.#handleTick(nowMs),
      },
    );
    // Nobody would check the site's answer. A transport that has vanished is found by its silence (calls.ts).
    if (!isPublishedUrl(request.url)) this.#setHedge(REPLY_MS);
  }

  credit(): void {
    const bytes = this.#delivered - this.#credited;
    if (bytes === 0 || !this.#isCalling) return;
    this.#lastProgressMs = this.#clock.nowMs();
    this.#credited = this.#delivered;
    this.#call.credit(bytes);
  }

  abort(): void {
    if (!this.#over && !this.#isCalling) this.#tell("aborted");
    this.#over = true;
    this.#endCall();
    this.#endAsker();
    this.#endRest();
  }

  useSite(): void {
    if (this.#over) return;
    this.#endCall("form");
    this.#endAsker();
    this.#endRest();
    if (this.#isSealed) return this.#finish("error");
    this.#serveSite(this.#events.askSite());
  }

  /** If functions of the page make this fail before the page has an answer, the site answers. */
  #heed(message: ToPage): void {
    try {
      this.#handle(message);
    } catch {
      if (this.#head === null) this.useSite();
      else if (!this.#over) this.#close("error");
    }
  }

  #handle(message: ToPage): void {
    if (this.#over || !this.#isCalling) return;
    this.#lastProgressMs = this.#clock.nowMs();
    switch (message.type) {
      case "wait":
        if (this.#head !== null) return;
        this.#page.asked.note(this.#request.url, this.#lastProgressMs);
        return this.#setHedge(message.hedgeMs);
      case "sealed":
        this.#isSealed = true;
        this.#failedSite = null;
        return this.#endAsker();
      case "native":
        this.#isCalling = false;
        this.#isCompared = message.compare;
        return this.#failOver();
      case "head":
        return this.#deliverHead(message);
      case "data":
        return this.#deliver(new OwnBytes(message.buffer));
      case "end":
        this.#isCalling = false;
        return this.#isWhole() ? this.#finish("end") : this.#failOver();
      case "failed":
        this.#isCalling = false;
        this.#restOffset = this.#delivered;
        return this.#failOver();
      default:
    }
  }

  #setHedge(ms: number): void {
    this.#clock.clearTimeout(this.#hedgeTimer);
    this.#hedgeTimer = this.#clock.setTimeout(() => this.#askSite(), ms);
  }

  #handleTick(nowMs: number): void {
    const isWaiting = !this.#isSealed && this.#head !== null && this.#delivered === this.#credited;
    if (isWaiting && !this.#isRestRefused && nowMs - this.#lastProgressMs > STALL_MS) this.#askForRest();
  }

  #deliverHead(head: PageResponseHead): void {
    this.#endAsker();
    this.#events.head(head);
    this.#head = head;
  }

  #deliver(bytes: Uint8Array<ArrayBuffer>): void {
    this.#delivered += part.count(bytes);
    this.#proof.note(bytes);
    this.#events.bytes(bytes);
  }

  #isWhole(): boolean {
    return this.#head !== null && (this.#head.totalBytes === null || this.#head.totalBytes === this.#delivered);
  }

  /** Ends a request that the site had to finish. */
  #close(event: "end" | "error"): void {
    this.#endCall();
    this.#tell(event === "end" ? "complete" : "failed");
    this.#finish(event);
  }

  #finish(event: "end" | "error"): void {
    this.#over = true;
    this.#endRest();
    this.#events[event]();
  }

  #endRest(): void {
    if (this.#rest !== null) abort(this.#rest);
  }

  #endCall(why?: AbortReason): void {
    if (this.#isCalling) this.#call.abort(why);
    this.#isCalling = false;
  }

  /** Tells the transport what the site sent in place of the proxies. */
  #tell(outcome: Fetched["outcome"]): void {
    const offset = this.#restOffset;
    const status = this.#head?.status ?? 0;
    this.#call.tell({ offset, bytes: this.#delivered - offset, status, headMs: this.#elapsedMs(), outcome });
  }

  #elapsedMs(): number {
    return round(this.#clock.nowMs() - this.#startedMs);
  }

  #endAsker(): void {
    this.#clock.clearTimeout(this.#hedgeTimer);
    this.#asker?.abort();
    this.#asker = null;
  }

  #failOver(): void {
    if (this.#over) return;
    this.#endCall();
    if (this.#isSealed) return this.#finish("error");
    if (this.#head === null) return this.#failedSite === null ? this.#askSite() : this.#serveSite(this.#failedSite);
    if (this.#isWhole() && this.#head.totalBytes !== null) return this.#close("end");
    this.#askForRest();
  }

  #askSite(): void {
    this.#clock.clearTimeout(this.#hedgeTimer);
    const { url } = this.#request;
    this.#asker ??= new SiteAsker(
      this.#clock,
      () => this.#events.askSite(),
      () => this.#page.asked.isRecent(url, this.#clock.nowMs()),
      {
        answered: (site, head) => this.#handleSite(site, head),
        failed: (site) => {
          // The proxies may still answer.
          if (!this.#isCalling) this.#serveSite(site);
          else this.#failedSite = site;
        },
        limited: () => this.#calls.noteLimited(url),
        refused: () => this.#page.asked.forget(url),
      },
    );
  }

  #handleSite(site: Site, head: SiteHead): void {
    this.#endCall("late");
    if (this.#isCompared) {
      const copy = (): SiteBody => site.copy();
      void showTransport(this.#calls, this.#page.asked, this.#request, { head, startedMs: this.#startedMs, copy });
    }
    this.#serveSite(site);
  }

  #serveSite(site: Site): void {
    this.#over = true;
    this.#events.native(site);
    void this.#tellOf(site);
  }

  async #tellOf(site: Site): Promise<void> {
    let status = 0;
    try {
      ({ status } = await site.head);
    } catch {
      // The browser got no answer.
    }
    const headMs = this.#elapsedMs();
    this.#call.tell({ offset: 0, status, headMs, ...(await site.end) });
  }

  /** Asks the site for what follows the delivered bytes. If the proxies go on meanwhile, its answer is not used. */
  #askForRest(): void {
    if (this.#rest !== null || this.#head === null) return;
    const rest = (this.#rest = new OwnAbortController());
    void this.#bringRest(rest, this.#head, this.#delivered);
  }

  async #bringRest(rest: AbortController, head: PageResponseHead, offset: number): Promise<void> {
    let found: Rest | undefined;
    try {
      found = await this.#fetchRest(head, offset, signalOf(rest));
    } catch {
      // The site gives none.
    }
    try {
      await this.#handleRest(rest, found, offset);
    } catch {
      if (!this.#over) this.#close("error");
    }
  }

  async #handleRest(rest: AbortController, found: Rest | undefined, offset: number): Promise<void> {
    if (this.#over) return;
    if (this.#delivered !== offset) {
      abort(rest);
      this.#rest = null;
      // The proxies brought more before they failed.
      if (!this.#isCalling) this.#failOver();
      return;
    }
    if (found === undefined) {
      abort(rest);
      this.#rest = null;
      this.#isRestRefused = true;
      // Proxies that stall may still go on.
      if (!this.#isCalling) this.#close("error");
      return;
    }
    this.#endCall("late");
    this.#restOffset = offset;
    await this.#pump(found);
    if (this.#over) return;
    this.#calls.link.noteDirect(this.#delivered - offset);
    this.#close(this.#isWhole() ? "end" : "error");
  }

  /**
   * Undefined if the site does not give the rest of the same file. Only a strong validator that the page may see tells
   * that a part belongs to what was delivered.
   */
  async #fetchRest(head: PageResponseHead, offset: number, signal: AbortSignal): Promise<Rest | undefined> {
    const range = restOf(this.#request.range, head, offset);
    if (range === undefined || validatorOf(head.headers) === undefined) return await this.#fetchAgain(head, signal);
    const { url, cache } = this.#request;
    const response = await this.#page.fetch(url, options({ headers: options({ Range: range }), cache, signal }));
    const skip = bytesToSkip(response, head, offset, this.#request.range);
    const body = bodyOf(response);
    if (skip !== undefined && body !== null) return { read: readerOfBody(body).read, skip };
    if (body !== null) void drop(cancelBody(body));
    return await this.#fetchAgain(head, signal);
  }

  /**
   * The site's whole answer, if it begins with the delivered bytes. Servers behind one name may give the same bytes
   * other validators or none.
   */
  async #fetchAgain(head: PageResponseHead, signal: AbortSignal): Promise<Rest | undefined> {
    if (!this.#proof.isPossible) return undefined;
    const { url, range, cache } = this.#request;
    const headers = options(range === null ? {} : { Range: rangeText(range.start, range.end) });
    const response = await this.#page.fetch(url, options({ headers, cache, signal }));
    const body = bodyOf(response);
    if (!isSameWhole(response, head) || body === null) return undefined;
    const read = await this.#proof.restOf(readerOfBody(body).read);
    return read === undefined ? undefined : { read, skip: 0 };
  }

  async #pump({ read, skip }: Rest): Promise<void> {
    let left = skip;
    for (let piece = await read(); piece !== undefined && !this.#over; piece = await read()) {
      const bytes = part.part(piece, left);
      left = max(0, left - part.count(piece));
      if (part.count(bytes) > 0) this.#deliver(part.copy(bytes));
    }
  }
}
