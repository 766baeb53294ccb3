/**
 * Calls: the requests and comparisons on the page's port. It notices a transport that has vanished, because a closed
 * offscreen document does not say so. No timer runs without a request.
 */
import type { Link } from "../page/link";
import { newTable, type Table } from "../shared/primordials";
import { bytes as part } from "../shared/late-primordials";
import { soon } from "../shared/late-platform";
import type { AbortReason, Fetched, ToPage, ToTransport } from "../shared/messages";

const TICK_MS = 500;
/** After this many unanswered pings the transport counts as lost. */
const MISSED_PINGS_MAX = 4;

/** What a carried request hears. */
export interface CallListener {
  message(message: ToPage): void;
  /** The transport is lost. No other call follows. */
  lost(): void;
  /** Called every half second while the request is carried. */
  tick(nowMs: number): void;
}

/** One carried request on the port. */
export interface Call {
  credit(bytes: number): void;
  /** Ends the request on both sides. Only `tell` may follow. */
  abort(why?: AbortReason): void;
  /** Tells what the page got from the site itself. */
  tell(fetched: Fetched): void;
}

/** The site's answer, on its way to the transport. */
export interface Comparing {
  /** False if the transport needs no more. */
  send(bytes: Uint8Array<ArrayBuffer>): boolean;
  end(isWhole: boolean): void;
}

export interface Clock {
  nowMs(): number;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

export class Calls {
  #nextId = 1;
  #missedPings = 0;
  #ticker: unknown;
  #calls: Table<CallListener> = newTable();
  #comparing: Table<true> = newTable();

  constructor(
    readonly link: Pick<Link, "ask" | "post" | "lose" | "noteDirect" | "phraseOf" | "isThere" | "allows" | "willAllow">,
    readonly clock: Clock,
  ) {}

  /** Starts a carried request, or answers `native` if the document may not fetch that. The link must be `ready`. */
  call(request: Omit<Extract<ToTransport, { type: "get" }>, "type" | "id" | "targets">, listener: CallListener): Call {
    const id = this.#nextId++;
    const { link } = this;
    if (link.ask({ id, ...request })) {
      this.#calls[id] = listener;
      this.#startTicking();
    } else void soon(() => listener.message({ type: "native", id, compare: true }));
    return {
      credit: (bytes) => {
        if (id in this.#calls) link.post({ type: "credit", id, bytes });
      },
      abort: (why = "abandoned") => {
        if (!(id in this.#calls)) return;
        delete this.#calls[id];
        link.post({ type: "abort", id, why });
      },
      tell: (fetched) => link.post({ type: "fetched", id, ...fetched }),
    };
  }

  /** Shows the transport the site's own answer. */
  compare(answer: Omit<Extract<ToTransport, { type: "compare" }>, "type" | "id">): Comparing {
    const id = this.#nextId++;
    this.#comparing[id] = true;
    this.link.post({ type: "compare", id, ...answer });
    return {
      send: (bytes) => {
        if (!(id in this.#comparing)) return false;
        const buffer = part.buffer(part.copy(bytes));
        this.link.post({ type: "site-bytes", id, buffer }, [buffer]);
        return true;
      },
      end: (isWhole) => {
        if (!(id in this.#comparing)) return;
        delete this.#comparing[id];
        this.link.post({ type: "site-end", id, isWhole });
      },
    };
  }

  /** Tells the transport that the site wants fewer requests. */
  noteLimited(url: string): void {
    this.link.post({ type: "limited", url });
  }

  handle(message: ToPage): void {
    this.#missedPings = 0;
    if (message.type === "hello" || message.type === "pong") return;
    if (message.type === "enough") {
      delete this.#comparing[message.id];
      return;
    }
    const listener = this.#calls[message.id];
    if (listener === undefined) return;
    if (message.type === "native" || message.type === "end" || message.type === "failed")
      delete this.#calls[message.id];
    if (message.type === "head")
      message.statusText = this.link.phraseOf(message.url, message.status) ?? message.statusText;
    listener.message(message);
  }

  /** The port is closed. */
  lost(): void {
    const calls = this.#calls;
    this.#calls = newTable();
    this.#comparing = newTable();
    for (const id in calls) calls[id]?.lost();
  }

  get #isCalling(): boolean {
    for (const _ in this.#calls) return true;
    return false;
  }

  #startTicking(): void {
    if (this.#ticker !== undefined) return;
    this.#missedPings = 0;
    this.#ticker = this.clock.setTimeout(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    this.#ticker = undefined;
    if (!this.#isCalling) return;
    if (++this.#missedPings > MISSED_PINGS_MAX || !this.link.isThere()) return this.link.lose();
    this.link.post({ type: "ping", token: this.#missedPings });
    this.#ticker = this.clock.setTimeout(() => this.#tick(), TICK_MS);
    for (const id in this.#calls) this.#calls[id]?.tick(this.clock.nowMs());
  }
}
