/**
 * Link: the page's way to the transport. It waits once per page for one, carries requests over the
 * port, and notices when the transport is gone (a closed offscreen document says nothing).
 * Clock, timers and the call for a port are handed in, so it runs in a test. No timer runs while nothing is asked for.
 */
import type { Carrier } from "../shared/carry";
import type { PortLike, ToPage, ToTransport } from "../shared/messages";

/**
 * Requests wait so long for the port, once per page: it takes 0.1-0.35 s on an idle machine, and a `<video>` or a
 * manifest that came before has started it already. A port that comes later serves the requests after it.
 */
export const PORT_READY_MS = 1500;
const TICK_MS = 500;
/** Pings unanswered before the transport is taken for gone. */
const MISSED_PINGS_MAX = 4;
/** Lost transports after which the page stays native. */
const LOSSES_MAX = 3;

/** `late`: requests are native until the port comes. */
export type LinkState = "idle" | "connecting" | "late" | "ready" | "native" | "off";

/** What a carried request hears. `lost`: the transport is gone; nothing more comes. */
export interface LinkListener {
  message(message: ToPage): void;
  lost(): void;
  /** Called every half second while the request is carried. */
  tick(nowMs: number): void;
}

/** One carried request on the port. */
export interface LinkCall {
  credit(bytes: number): void;
  /** Ends the request on both sides; nothing more is heard of it. */
  abort(): void;
}

export interface LinkEnvironment {
  /** Asks the content script for a port. */
  summon(): void;
  /** Tells the content script that the port works: its frame can go. */
  connected(): void;
  nowMs(): number;
  setTimeout(callback: () => void, ms: number): unknown;
  clearTimeout(timer: unknown): void;
}

export class Link {
  #state: LinkState = "idle";
  #port: PortLike<ToTransport> | null = null;
  #nextId = 1;
  #carrier: Carrier | null = null;
  /** The transport has said hello on this port. */
  #isGreeted = false;
  /** Media was about to be asked for before it had. */
  #isWarmWanted = false;
  #losses = 0;
  #missedPings = 0;
  #deadline: unknown;
  #ticker: unknown;
  readonly #waiting: ((carrier: Carrier | null) => void)[] = [];
  readonly #calls = new Map<number, LinkListener>();

  constructor(readonly env: LinkEnvironment) {}

  get state(): LinkState {
    return this.#state;
  }

  /** True when requests have to stay native, decided already. */
  get isNative(): boolean {
    return this.#state === "late" || this.#state === "native" || this.#state === "off";
  }

  get #isAwaited(): boolean {
    return this.#state === "connecting" || this.#state === "late";
  }

  /** There may be media one day: have a port made. */
  prepare(): void {
    if (this.#state !== "idle") return;
    this.#state = "connecting";
    this.env.summon();
  }

  /** Media is about to be asked for: have sessions opened. */
  warm(): void {
    this.prepare();
    if (this.#isGreeted) this.#post({ type: "warm" });
    else this.#isWarmWanted = true;
  }

  /** Resolves when the way is decided: with what carries over a working port, or null for native. */
  ready(): Promise<Carrier | null> {
    this.prepare();
    if (this.#state === "ready" || this.isNative) return Promise.resolve(this.isNative ? null : this.#carrier);
    this.#deadline ??= this.env.setTimeout(() => this.#decide("late"), PORT_READY_MS);
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** The carrying script is there, for good. */
  equip(carrier: Carrier): void {
    this.#carrier ??= carrier;
    this.#decideIfWhole();
  }

  /** A port from the extension's frame. It counts once the transport says hello on it. */
  attach(port: PortLike<ToTransport>): void {
    if (!this.#isAwaited || this.#port !== null) return port.close();
    this.#port = port;
    port.onmessage = (event: MessageEvent) => this.#handle(event.data as ToPage);
  }

  /** The viewer turned the extension off (`on` false), or on again. */
  switch(on: boolean): void {
    if (!on) this.#decide("off");
    else if (this.#state === "off") this.#state = "idle";
  }

  /** Starts a carried request. Only in state `ready`. */
  call(request: Omit<Extract<ToTransport, { type: "get" }>, "type" | "id">, listener: LinkListener): LinkCall {
    const id = this.#nextId++;
    this.#calls.set(id, listener);
    this.#post({ type: "get", id, ...request });
    this.#startTicking();
    return {
      credit: (bytes) => {
        if (this.#calls.has(id)) this.#post({ type: "credit", id, bytes });
      },
      abort: () => {
        if (this.#calls.delete(id)) this.#post({ type: "abort", id });
      },
    };
  }

  /** Tells the transport of bytes that the page fetched by itself. */
  noteDirect(bytes: number): void {
    if (this.#state === "ready") this.#post({ type: "direct", bytes });
  }

  /** Tells the transport of bytes that were not the site's own. */
  noteWrong(url: string): void {
    this.#post({ type: "wrong", url });
  }

  #decideIfWhole(): void {
    if (this.#isAwaited && this.#isGreeted && this.#carrier !== null) this.#decide("ready");
  }

  #decide(state: "ready" | "late" | "off"): void {
    this.#state = state;
    this.env.clearTimeout(this.#deadline);
    this.#deadline = undefined;
    if (state === "off") this.#drop();
    for (const resolve of this.#waiting.splice(0)) resolve(state === "ready" ? this.#carrier : null);
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
    const listener = this.#calls.get(message.id);
    if (listener === undefined) return;
    if (message.type === "native" || message.type === "end" || message.type === "failed")
      this.#calls.delete(message.id);
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
    if (++this.#missedPings > MISSED_PINGS_MAX) return this.#lose();
    this.#post({ type: "ping", token: this.#missedPings });
    this.#ticker = this.env.setTimeout(() => this.#tick(), TICK_MS);
    for (const listener of [...this.#calls.values()]) listener.tick(this.env.nowMs());
  }

  /** The transport is gone: everything under way is told, and a later need may try again, a few times. */
  #lose(): void {
    this.#losses += 1;
    this.#state = this.#losses < LOSSES_MAX ? "idle" : "native";
    this.#drop();
  }

  #drop(): void {
    this.#port?.close();
    this.#port = null;
    this.#isGreeted = false;
    const listeners = [...this.#calls.values()];
    this.#calls.clear();
    for (const listener of listeners) listener.lost();
  }

  #post(message: ToTransport): void {
    this.#port?.postMessage(message);
  }
}
