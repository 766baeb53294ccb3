/**
 * A session to one proxy: one channel over the transport that opened first. It opens on first use, stays warm between
 * downloads, and opens again after a loss. It does not read frames. The pool passes them to the engine.
 */
import { LIMITS } from "@tributary/protocol";
import type { TransportName } from "@tributary/contract/schema";
import type { ProxyInfo } from "./api";
import type { Choice } from "./choice";
import { Refused, messageOf } from "./errors";
import { quietTimeout } from "./listen";
import { pause } from "./pause";
import type { Channel, Platform, Transport } from "./platform";
import { race, RaceError, type Runner } from "./race";
import type { Settings } from "./settings";

/** A session that nobody uses is checked at most once in this time. */
const CHECK_EVERY_MS = 1000;
/** Whether the browser has got a proxy of its own is looked up this often while sessions are open. */
const LOOK_EVERY_MS = 10_000;
/** A proxy has failed after this many attempts to connect. */
const CONNECT_TRIES = 3;

export type SessionState = "idle" | "connecting" | "open" | "closed";

export interface SessionHooks {
  /** The token that opens the proxy. */
  token?(proxy: ProxyInfo): string | undefined;
  onMessage(session: Session, bytes: Uint8Array): void;
  /** Asks the proxy whether it is there. The answer is `handleSilence`, or nothing. */
  ask(session: Session): void;
  /** Called when the session cannot be made, or is lost while it is in use. */
  onFailed(session: Session, reason: string): void;
  /** Called when a failed session is open again. */
  onRecovered(session: Session): void;
  /** Called when sessions were closed because the environment refuses new connections to their proxies. */
  onShut(): void;
}

export class Session {
  state: SessionState = "idle";
  /** The transport of the current channel, or of the last one. */
  transport: TransportName | undefined;
  #channel: Channel | undefined;
  #connecting: Promise<void> | undefined;
  #attempt = new AbortController();
  #users = 0;
  #checkedMs = -Infinity;
  /** True from `onFailed` until `onRecovered`. */
  #hasFailed = false;
  #idleTimer: ReturnType<typeof setTimeout> | undefined;
  readonly #lostHandlers = new Set<(reason: string) => void>();

  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #choice: Choice;
  readonly #hooks: SessionHooks;

  constructor(
    /** The name of the session in the engine. */
    readonly key: number,
    /** Each download sets it as Origo lists it, because addresses and certificates change. */
    public proxy: ProxyInfo,
    platform: Platform,
    settings: Settings,
    choice: Choice,
    hooks: SessionHooks,
  ) {
    this.#platform = platform;
    this.#settings = settings;
    this.#choice = choice;
    this.#hooks = hooks;
  }

  /**
   * Resolves when the channel is open. Rejects with the reason after the last try. The caller must call `release` once
   * for each call, also after a rejection. `onLost` is called at most once before the release: when the open channel is
   * lost, or when the session is closed.
   */
  async acquire(onLost: (reason: string) => void): Promise<void> {
    this.#users++;
    clearTimeout(this.#idleTimer);
    this.#lostHandlers.add(onLost);
    if (this.#channel) return;
    this.#connecting ??= this.#connect().finally(() => (this.#connecting = undefined));
    await this.#connecting;
  }

  release(onLost: (reason: string) => void): void {
    this.#lostHandlers.delete(onLost);
    this.#users--;
    if (this.#users === 0 && this.#channel)
      this.#idleTimer = quietTimeout(() => this.close("idle"), this.#settings.idleCloseMs);
  }

  /** Drops the bytes when the channel is not open: the protocol repeats what matters. */
  send(bytes: Uint8Array): void {
    this.#channel?.send(bytes);
  }

  /**
   * Asks the proxy whether it is there, because one that died without a word seems open for half a minute otherwise.
   * The engine watches the sessions in use, so they are asked only if a request got nothing and was given up.
   */
  check(why: "unused" | "suspect"): void {
    const nowMs = this.#platform.now();
    if (!this.#channel || (why === "unused" && (this.#users > 0 || nowMs - this.#checkedMs < CHECK_EVERY_MS))) return;
    this.#checkedMs = nowMs;
    this.#hooks.ask(this);
  }

  handleSilence(): void {
    if (this.#channel) this.close("The proxy does not answer.");
  }

  /** Closes the connection and tells its users that it is lost. A later `acquire` makes a new one. */
  close(reason: string): void {
    clearTimeout(this.#idleTimer);
    this.#attempt.abort(new Error(reason));
    this.#channel?.close();
    this.#channel = undefined;
    this.state = "closed";
    this.#tellLost(reason);
  }

  async #connect(): Promise<void> {
    this.#attempt = new AbortController();
    const { signal } = this.#attempt;
    this.state = "connecting";
    let error: unknown;
    for (let tries = 0; tries < CONNECT_TRIES && !signal.aborted; tries++) {
      if (tries > 0) await pause(this.#settings.connectBackoffMs * 2 ** (tries - 1), signal);
      try {
        this.#channel = await this.#raceOnce(signal);
        this.state = "open";
        if (this.#hasFailed) this.#hooks.onRecovered(this);
        this.#hasFailed = false;
        return;
      } catch (failure) {
        error = failure;
        const last = failure instanceof RaceError ? failure.failures.at(-1) : failure;
        if (last instanceof Refused) break;
      }
    }
    this.state = "closed";
    const reason = messageOf(signal.aborted ? signal.reason : error);
    if (!signal.aborted) this.#fail(reason);
    throw new Error(`No session to proxy ${this.proxy.name}: ${reason}`);
  }

  /** Tries all transports that reach the proxy, each some time after the previous one. Keeps the first that opens. */
  async #raceOnce(signal: AbortSignal): Promise<Channel> {
    const platform = this.#platform;
    const choice = this.#choice;
    const { proxy } = this;
    const order = choice.order(proxy, platform.now());
    if (order.length === 0) throw new Refused("the proxy and this client have no transport in common that is allowed");
    const runners: Runner<{ transport: Transport; channel: Channel }>[] = order.map((transport) => ({
      run: async (stop) => ({ transport, channel: await this.#tryOnce(transport, stop) }),
      discard: (made) => made.channel.close(),
    }));
    // The head start counts from here, because the worker's start would use it up.
    await order[0]!.started?.();
    const { transport, channel } = await race(runners, this.#settings.headStartMs, signal);
    this.transport = transport.name;
    choice.noteWorked(proxy, transport.name, platform.now());
    return channel;
  }

  /** Opens one channel over one transport. */
  async #tryOnce(transport: Transport, signal: AbortSignal): Promise<Channel> {
    const attempt = new AbortController();
    const stop = (): void => attempt.abort(signal.reason);
    const late = `${transport.name}: no channel within ${this.#settings.connectTimeoutMs} ms`;
    const timer = setTimeout(() => attempt.abort(new Error(late)), this.#settings.connectTimeoutMs);
    signal.addEventListener("abort", stop);
    try {
      const channel: Channel = await transport.open({
        proxy: this.proxy,
        session: this.key,
        sendOffer: (offer) => this.#sendOffer(offer, attempt.signal),
        signal: attempt.signal,
        onMessage: (bytes) => this.#hooks.onMessage(this, bytes),
        onClosed: (reason) => this.#handleClosed(channel, reason),
      });
      if (!signal.aborted) return channel;
      channel.close();
      throw signal.reason;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", stop);
    }
  }

  async #sendOffer(offerSdp: string, signal: AbortSignal): Promise<string> {
    const token = this.#hooks.token?.(this.proxy);
    const response = await this.#platform.fetch(`${this.proxy.url}/v1/sessions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ sdp: withMessageLimit(offerSdp), ...(token === undefined ? {} : { token }) }),
      credentials: "omit",
      signal,
    });
    const answer = (await response.json().catch(() => ({}))) as { sdp?: unknown; error?: { message?: unknown } };
    if (response.status === 201 && typeof answer.sdp === "string") return answer.sdp;
    throw new Refused(`the proxy answered ${response.status} ${String(answer.error?.message ?? "")}`.trim());
  }

  #handleClosed(channel: Channel, reason: string): void {
    if (this.#channel !== channel) return;
    this.#channel = undefined;
    this.state = "closed";
    clearTimeout(this.#idleTimer);
    if (this.#users > 0) this.#fail(reason);
    this.#tellLost(reason);
  }

  #fail(reason: string): void {
    this.#hasFailed = true;
    this.#hooks.onFailed(this, reason);
  }

  #tellLost(reason: string): void {
    const handlers = [...this.#lostHandlers];
    this.#lostHandlers.clear();
    for (const handler of handlers) handler(reason);
  }
}

/** All sessions of a client, one for each proxy. */
export class SessionPool {
  readonly #byKey = new Map<number, Session>();
  #lastKey = 0;
  #lookTimer: ReturnType<typeof setTimeout> | undefined;
  #looks = 0;

  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #choice: Choice;
  readonly #hooks: SessionHooks;

  constructor(platform: Platform, settings: Settings, choice: Choice, hooks: SessionHooks) {
    this.#platform = platform;
    this.#settings = settings;
    this.#choice = choice;
    this.#hooks = hooks;
  }

  /** Returns the session to this proxy. Makes one if needed. */
  of(proxy: ProxyInfo): Session {
    if (this.#platform.isShut !== undefined) this.#lookTimer ??= quietTimeout(() => void this.#look(), LOOK_EVERY_MS);
    for (const session of this.#byKey.values()) {
      if (session.proxy.id !== proxy.id || session.proxy.url !== proxy.url) continue;
      session.proxy = proxy;
      return session;
    }
    const session = new Session(++this.#lastKey, proxy, this.#platform, this.#settings, this.#choice, this.#hooks);
    this.#byKey.set(session.key, session);
    return session;
  }

  send(key: number, bytes: Uint8Array): void {
    this.#byKey.get(key)?.send(bytes);
  }

  /** The proxy did not answer a check. Users of the session open a new one. */
  handleSilence(key: number): void {
    this.#byKey.get(key)?.handleSilence();
  }

  check(): void {
    for (const session of this.#byKey.values()) session.check("unused");
  }

  stateOf(proxyId: string): SessionState | undefined {
    let state: SessionState | undefined;
    for (const session of this.#byKey.values()) if (session.proxy.id === proxyId) state = session.state;
    return state;
  }

  close(): void {
    clearTimeout(this.#lookTimer);
    for (const session of this.#byKey.values()) session.close("The client was closed.");
    this.#byKey.clear();
  }

  /**
   * Closes the sessions that could not be opened now, because the browser has got a proxy of its own. Asks about one
   * session at a time, and about all when one is shut.
   */
  async #look(): Promise<void> {
    const open = [...this.#byKey.values()].filter(({ state }) => state === "open");
    const next = open[this.#looks++ % open.length];
    const isShut = async (session: Session): Promise<boolean> => {
      const isSo = (await this.#platform.isShut?.(session.proxy)) === true;
      if (isSo) session.close("The browser refuses new connections to this proxy.");
      return isSo;
    };
    if (next && (await isShut(next))) {
      this.#hooks.onShut();
      await Promise.all(open.filter((each) => each !== next).map(isShut));
    }
    this.#lookTimer = next && this.#byKey.size > 0 ? quietTimeout(() => void this.#look(), LOOK_EVERY_MS) : undefined;
  }
}

/** Limits the proxy's message size. A smaller message limits its queue, which is wasted when the chunk is complete. */
function withMessageLimit(sdp: string): string {
  return sdp.replace(/a=max-message-size:\d+/, `a=max-message-size:${LIMITS.messageBytesMax}`);
}
