/**
 * Carried request: one media request of a page that the transport answers.
 * Its events are either `native` (nothing was delivered and the caller asks the site itself), or `head`, then `bytes`
 * in order, then `end` or `error`. If the transport fails in the middle, the browser's own fetch gets the rest by a
 * Range from the delivered offset. The browser's CORS decision thus holds, and the rest must be of the same
 * representation. While a check of the host runs (checks.ts), the end waits for it. Wrong bytes end in `error`.
 */
import type { RequestHandle, CarriedRequestEvents, MediaRequest } from "../shared/carry";
import type { PageResponseHead } from "../shared/messages";
import type { Player, ToPage } from "../shared/messages";
import type { Link, LinkCall } from "../page/link";
import type { Check, Checks } from "./checks";
import { bytesToSkip, restOf } from "./representation";

/** The transport knows the page's patience and gives up by itself. A transport that is this much later has hung. */
export const GRACE_MS = 1000;

/** What a carried request needs from its page. */
export interface Surroundings {
  fetch: typeof fetch;
  checks: Pick<Checks, "begin" | "verdict">;
  /** How long a request that begins now may receive nothing. */
  patienceMs(): number;
  /** The page's player, if it is known. */
  player(): Player | undefined;
}

export class CarriedRequest implements RequestHandle {
  readonly #link: Link;
  readonly #fetch: typeof fetch;
  readonly #checks: Pick<Checks, "begin" | "verdict">;
  readonly #request: MediaRequest;
  readonly #events: CarriedRequestEvents;
  #call: LinkCall | null;
  #resume: AbortController | null = null;
  #check: Check | undefined;
  #head: PageResponseHead | null = null;
  #delivered = 0;
  #credited = 0;
  #lastProgressMs: number;
  readonly #patienceMs: number;
  #over = false;

  /** Starts at once. The link must be in state `ready`. The constructor itself calls no event. */
  constructor(link: Link, page: Surroundings, request: MediaRequest, events: CarriedRequestEvents) {
    this.#link = link;
    this.#fetch = page.fetch;
    this.#checks = page.checks;
    this.#request = request;
    this.#events = events;
    this.#lastProgressMs = link.env.nowMs();
    this.#patienceMs = page.patienceMs();
    const player = page.player();
    this.#call = link.call(
      { ...request, patienceMs: this.#patienceMs, ...(player === undefined ? {} : { player }) },
      {
        message: (message) => this.#handle(message),
        lost: () => this.#failOver(),
        tick: (nowMs) => this.#handleTick(nowMs),
      },
    );
  }

  credit(): void {
    const bytes = this.#delivered - this.#credited;
    if (bytes === 0 || this.#call === null) return;
    this.#lastProgressMs = this.#link.env.nowMs();
    this.#credited = this.#delivered;
    this.#call.credit(bytes);
  }

  abort(): void {
    this.#over = true;
    this.#check?.end(false);
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

  #deliverHead(head: PageResponseHead): void {
    this.#head = head;
    this.#check = this.#checks.begin(this.#request, head);
    this.#events.head(head);
  }

  #deliver(bytes: Uint8Array<ArrayBuffer>): void {
    this.#check?.note(this.#delivered, bytes);
    this.#delivered += bytes.length;
    this.#events.bytes(bytes);
  }

  #isWhole(): boolean {
    return this.#head !== null && (this.#head.totalBytes === null || this.#head.totalBytes === this.#delivered);
  }

  #finish(): void {
    this.#check?.end(true);
    const verdict = this.#checks.verdict(this.#request.url);
    if (typeof verdict === "boolean") this.#finishAs(verdict);
    else void verdict.then((isWrong) => this.#over || this.#finishAs(isWrong));
  }

  #finishAs(isWrong: boolean): void {
    if (isWrong) this.#link.noteWrong(this.#request.url);
    this.#close(isWrong ? "error" : "end");
  }

  #close(event: "end" | "error" | "native"): void {
    this.#over = true;
    this.#check?.end(false);
    this.#events[event]();
  }

  #failOver(): void {
    if (this.#over) return;
    this.#call?.abort();
    this.#call = null;
    if (this.#head === null) return this.#close("native");
    if (this.#isWhole() && this.#head.totalBytes !== null) return this.#finish();
    this.#finishNatively(this.#head)
      .catch(() => false)
      .then((isWhole) => {
        if (this.#over) return;
        if (isWhole) this.#finish();
        else this.#close("error");
      });
  }

  /** Fetches the rest. False if no Range can ask for it, the file has changed, or the rest ends early. */
  async #finishNatively(head: PageResponseHead): Promise<boolean> {
    this.#resume = new AbortController();
    const offset = this.#delivered;
    const range = restOf(this.#request.range, head, offset);
    if (range === undefined) return false;
    const response = await this.#fetch(this.#request.url, {
      headers: { Range: range },
      cache: this.#request.cache ?? "default",
      signal: this.#resume.signal,
    });
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
