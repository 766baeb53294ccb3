/**
 * Link: the page's connection to the transport. It asks once per page for a port, carries requests over it, and
 * notices a transport that has vanished, because a closed offscreen document does not say so. No timer runs without a
 * request. Clock, timers and the call for a port are handed in.
 */
import type { Carrier } from "../shared/carry";
import type { AbortReason, Fetched, PortLike, ToPage, ToTransport } from "../shared/messages";
import type { Natives } from "./natives";
import type { Permits } from "./permits";

const TICK_MS = 500;
/** After this many unanswered pings the transport counts as lost. */
const MISSED_PINGS_MAX = 4;
/** After this many lost transports the page stays native. */
const LOSSES_MAX = 3;

export type LinkState = "idle" | "connecting" | "ready" | "native" | "off";

/** What a carried request hears. */
export interface LinkListener {
  message(message: ToPage): void;
  /** The transport is lost. No other call follows. */
  lost(): void;
  /** Called every half second while the request is carried. */
  tick(nowMs: number): void;
}

/** One carried request on the port. */
export interface LinkCall {
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

export interface LinkEnvironment {
  /** Asks the content script for a port. */
  summon(): void;
  /** Tells the content script that the port works, so that it can remove the frame. */
  connected(): void;
  /** False once the extension is disabled, removed or updated: then nothing answers on the port. */
  isThere(): boolean;
  permits: Pick<Permits, "allows" | "targets" | "phraseOf">;
  nowMs(): number;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

/** What the carrying script gives the page. `natives` are the browser's own functions. */
export type MakeCarrier = (link: Link, natives: Natives) => Carrier;

export class Link {
  #state: LinkState = "idle";
  #port: PortLike<ToTransport> | null = null;
  #nextId = 1;
  #carrier: Carrier | null = null;
  /** The transport said hello on this port. */
  #isGreeted = false;
  /** The page announced media before the hello. */
  #isWarmWanted = false;
  #losses = 0;
  #missedPings = 0;
  #ticker: unknown;
  readonly #calls = new Map<number, LinkListener>();
  readonly #comparing = new Set<number>();

  constructor(readonly env: LinkEnvironment) {}

  get state(): LinkState {
    return this.#state;
  }

  /** True if the page gets no port soon. */
  get isNative(): boolean {
    return this.#state === "native" || this.#state === "off";
  }

  /** The carrier, or null while requests are native. The first need asks for a port. */
  get carrier(): Carrier | null {
    this.prepare();
    if (this.#state === "ready" && !this.env.isThere()) this.#lose();
    return this.#state === "ready" ? this.#carrier : null;
  }

  /** Asks for a port, because the page may need it. */
  prepare(): void {
    if (this.#state !== "idle") return;
    this.#state = "connecting";
    this.env.summon();
  }

  /** Has sessions to the proxies opened, because the page is about to ask for media. */
  warm(): void {
    this.prepare();
    if (this.#isGreeted) this.#post({ type: "warm" });
    else this.#isWarmWanted = true;
  }

  /** Takes the carrying script's service; it stays for the life of the page. */
  equip(carrier: Carrier): void {
    this.#carrier ??= carrier;
    this.#decideIfWhole();
  }

  /** Takes a port from the extension's frame. The port counts once the transport says hello on it. */
  attach(port: PortLike<ToTransport>): void {
    if (this.#state !== "connecting" || this.#port !== null) return port.close();
    this.#port = port;
    port.onmessage = (event: MessageEvent) => this.#handle(event.data as ToPage);
  }

  /** The viewer turned the extension off (`on` is false) or on again. */
  switch(on: boolean): void {
    if (on) {
      if (this.#state === "off") this.#state = "idle";
      return;
    }
    this.#state = "off";
    this.#drop();
  }

  /** Starts a carried request, or answers `native` if the document may not fetch that. The state must be `ready`. */
  call(
    request: Omit<Extract<ToTransport, { type: "get" }>, "type" | "id" | "targets">,
    listener: LinkListener,
  ): LinkCall {
    const id = this.#nextId++;
    if (this.env.permits.allows(request.url)) {
      this.#calls.set(id, listener);
      this.#post({ type: "get", id, ...request, targets: this.env.permits.targets });
      this.#startTicking();
    } else queueMicrotask(() => listener.message({ type: "native", id, compare: true }));
    return {
      credit: (bytes) => {
        if (this.#calls.has(id)) this.#post({ type: "credit", id, bytes });
      },
      abort: (why = "abandoned") => {
        if (this.#calls.delete(id)) this.#post({ type: "abort", id, why });
      },
      tell: (fetched) => this.#post({ type: "fetched", id, ...fetched }),
    };
  }

  /** Shows the transport the site's own answer. */
  compare(answer: Omit<Extract<ToTransport, { type: "compare" }>, "type" | "id">): Comparing {
    const id = this.#nextId++;
    this.#comparing.add(id);
    this.#post({ type: "compare", id, ...answer });
    return {
      send: (bytes) => {
        if (!this.#comparing.has(id)) return false;
        const { buffer } = bytes.slice();
        this.#post({ type: "site-bytes", id, buffer }, [buffer]);
        return true;
      },
      end: (isWhole) => {
        if (this.#comparing.delete(id)) this.#post({ type: "site-end", id, isWhole });
      },
    };
  }

  /** Tells the transport how many bytes the page fetched directly. */
  noteDirect(bytes: number): void {
    if (this.#state === "ready") this.#post({ type: "direct", bytes });
  }

  /** Tells the transport that the site wants fewer requests. */
  noteLimited(url: string): void {
    this.#post({ type: "limited", url });
  }

  #decideIfWhole(): void {
    if (this.#state === "connecting" && this.#isGreeted && this.#carrier !== null) this.#state = "ready";
  }

  #handle(message: ToPage): void {
    this.#missedPings = 0;
    if (message.type === "hello") {
      this.#isGreeted = true;
      if (this.#isWarmWanted) this.#post({ type: "warm" });
      this.#isWarmWanted = false;
      this.env.connected();
      return this.#decideIfWhole();
    }
    if (message.type === "pong") return;
    if (message.type === "enough") return void this.#comparing.delete(message.id);
    const listener = this.#calls.get(message.id);
    if (listener === undefined) return;
    if (message.type === "native" || message.type === "end" || message.type === "failed")
      this.#calls.delete(message.id);
    if (message.type === "head")
      message.statusText = this.env.permits.phraseOf(message.url, message.status) ?? message.statusText;
    listener.message(message);
  }

  #startTicking(): void {
    if (this.#ticker !== undefined) return;
    this.#missedPings = 0;
    this.#ticker = this.env.setTimeout(() => this.#tick(), TICK_MS);
  }

  #tick(): void {
    this.#ticker = undefined;
    if (this.#calls.size === 0 || this.#port === null) return;
    if (++this.#missedPings > MISSED_PINGS_MAX || !this.env.isThere()) return this.#lose();
    this.#post({ type: "ping", token: this.#missedPings });
    this.#ticker = this.env.setTimeout(() => this.#tick(), TICK_MS);
    for (const listener of [...this.#calls.values()]) listener.tick(this.env.nowMs());
  }

  /**
   * Ends all requests, because the transport is lost. While the extension is there, a later need may ask for a port
   * again, a few times.
   */
  #lose(): void {
    this.#losses += 1;
    this.#state = this.#losses < LOSSES_MAX && this.env.isThere() ? "idle" : "native";
    this.#drop();
  }

  #drop(): void {
    this.#port?.close();
    this.#port = null;
    this.#isGreeted = false;
    const listeners = [...this.#calls.values()];
    this.#calls.clear();
    this.#comparing.clear();
    for (const listener of listeners) listener.lost();
  }

  #post(message: ToTransport, transfer: Transferable[] = []): void {
    this.#port?.postMessage(message, transfer);
  }
}
