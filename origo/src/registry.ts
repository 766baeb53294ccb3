/**
 * Registry: which proxies are live, here and at other Origos, what was decided about each, and which ones a client
 * gets. Pure: time arrives as `nowMs`, randomness as `rng` (u32), sockets as an opaque connection id. A proxy is live
 * until it misses two heartbeats (by default 4 s after its last message) or its connection closes. Its id belongs
 * to its key (enrolment.ts), so it survives reconnects and restarts of Origo and of the proxy.
 */
import { SETTINGS } from "@tributary/contract/settings";
import { inOrder, type SelectionInput } from "./selection";
import {
  type ApiError,
  type FleetProxy,
  type ListedProxy,
  type ProxyHello,
  type ProxyStatus,
} from "@tributary/contract/schema";
import type { StoredDecision } from "./store/admin-store";

/** A proxy that misses this many heartbeats counts as gone. */
const BEATS_MISSED_MAX = 2;

export interface RegistryRules {
  heartbeatMs: () => number;
  /** At most this many proxies may be connected. A further hello is refused. */
  proxiesMax: () => number;
  /**
   * How long this process has stood still in total. Messages wait meanwhile, so this time does not count as silence.
   */
  stalledMs: () => number;
}

const RULES: RegistryRules = {
  heartbeatMs: () => SETTINGS["proxy.heartbeatMs"].default,
  proxiesMax: () => SETTINGS["origo.proxiesMax"].default,
  stalledMs: () => 0,
};

interface Entry {
  connectionId: string;
  proxy: FleetProxy;
  /** `stalledMs` of this process when the last message of the proxy arrived. */
  stalledMs: number;
  /**
   * The heartbeat when the last message arrived. The proxy sends its next report by it, even if the setting changed.
   */
  heartbeatMs: number;
}

const UNDECIDED: StoredDecision = { state: "live", name: null, isConvicted: false };
const AT_RANDOM: SelectionInput = { select: "random", nearKm: 0 };

/** The hello of a proxy that is enrolled under `id`. */
export type EnrolledHello = ProxyHello & { id: string };

export class Registry {
  readonly #entries = new Map<string, Entry>();
  /** The id of the proxy that registered on a connection. */
  readonly #byConnection = new Map<string, string>();
  readonly #decisions = new Map<string, StoredDecision>();
  /** Live proxies of other Origos, and until when this list is believed. */
  #elsewhere: { proxies: ReadonlyMap<string, FleetProxy>; untilMs: number } = {
    proxies: new Map(),
    untilMs: -Infinity,
  };

  readonly #rules: RegistryRules;

  constructor(rules: RegistryRules = RULES) {
    this.#rules = rules;
  }

  /** Registers a proxy. The same proxy on a newer connection replaces the older connection. */
  handleHello(connectionId: string, hello: EnrolledHello, nowMs: number): { id: string } | { error: ApiError } {
    const { id } = hello;
    const known = this.#entries.get(id);
    const limit = this.#rules.proxiesMax();
    if (known === undefined && this.#entries.size >= limit) {
      return {
        error: {
          kind: "tooManyProxies",
          message: `this Origo has ${limit} proxies already, which is its limit`,
          got: this.#entries.size + 1,
          limit,
        },
      };
    }
    this.handleClosed(connectionId);
    if (known !== undefined) this.#byConnection.delete(known.connectionId);
    const { state, name } = this.decisionOn(id);
    const proxy: FleetProxy = {
      ...hello,
      name: name ?? hello.name,
      connectedAtMs: nowMs,
      lastSeenMs: nowMs,
      status: null,
      sentBytesPerSec: null,
      originBytesPerSec: null,
      state,
    };
    this.#entries.set(id, {
      connectionId,
      proxy,
      stalledMs: this.#rules.stalledMs(),
      heartbeatMs: this.#rules.heartbeatMs(),
    });
    this.#byConnection.set(connectionId, id);
    return { id };
  }

  decisionOn(id: string): StoredDecision {
    return this.#decisions.get(id) ?? UNDECIDED;
  }

  /** Stores a decision. It holds now and whenever the proxy comes back. */
  decide(id: string, decision: StoredDecision): void {
    this.#decisions.set(id, decision);
    const entry = this.#entries.get(id);
    if (entry !== undefined)
      entry.proxy = { ...entry.proxy, state: decision.state, name: decision.name ?? entry.proxy.name };
  }

  /** The connection of a proxy. Undefined when the proxy is not connected to this Origo. */
  connectionOf(id: string): string | undefined {
    return this.#entries.get(id)?.connectionId;
  }

  /** The id of the proxy that registered on this connection and was not replaced. */
  idOf(connectionId: string): string | undefined {
    return this.#byConnection.get(connectionId);
  }

  /** Takes a heartbeat. It is an error if its connection sent no hello or was replaced. */
  handleStatus(connectionId: string, status: ProxyStatus, nowMs: number): { id: string } | { error: ApiError } {
    const entry = this.#entryOf(connectionId);
    if (entry === undefined) {
      return {
        error: { kind: "helloMissing", message: "no proxy is registered on this connection: send hello first" },
      };
    }
    const { proxy } = entry;
    entry.stalledMs = this.#rules.stalledMs();
    entry.heartbeatMs = this.#rules.heartbeatMs();
    entry.proxy = {
      ...proxy,
      status,
      lastSeenMs: nowMs,
      sentBytesPerSec: rateBetween(proxy.status, status, "sentBytes"),
      originBytesPerSec: rateBetween(proxy.status, status, "originBytes"),
    };
    return { id: proxy.id };
  }

  /** A connection closed. Its proxy is gone at once. */
  handleClosed(connectionId: string): void {
    const id = this.#byConnection.get(connectionId);
    this.#byConnection.delete(connectionId);
    if (id !== undefined) this.#entries.delete(id);
  }

  /** Sets the live proxies of other Origos. */
  setElsewhere(proxies: readonly FleetProxy[], untilMs: number): void {
    this.#elsewhere = { proxies: new Map(proxies.map((proxy) => [proxy.id, proxy])), untilMs };
  }

  /** All proxies that are connected to this Origo, also silent ones. */
  connectedIds(): string[] {
    return [...this.#entries.keys()];
  }

  /** Live proxies that are connected to this Origo. */
  own(nowMs: number): FleetProxy[] {
    return [...this.#entries.values()].filter((entry) => this.#isLive(entry, nowMs)).map(({ proxy }) => proxy);
  }

  #isLive({ proxy, stalledMs, heartbeatMs }: Entry, nowMs: number): boolean {
    const silentMs = nowMs - proxy.lastSeenMs - (this.#rules.stalledMs() - stalledMs);
    return silentMs < BEATS_MISSED_MAX * Math.max(this.#rules.heartbeatMs(), heartbeatMs);
  }

  /** All live proxies, sorted by name, then by id. */
  fleet(nowMs: number): FleetProxy[] {
    return this.#live(nowMs).sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id));
  }

  /**
   * Chooses `count` different live proxies, or fewer if fewer are live; those in `first` come before the others. Each
   * call of `rng` gives a u32.
   */
  pick(
    count: number,
    excludedIds: ReadonlySet<string>,
    rng: () => number,
    nowMs: number,
    selection = AT_RANDOM,
    first: ReadonlySet<string> = new Set(),
  ): ListedProxy[] {
    const pool = this.#live(nowMs).filter((proxy) => proxy.state === "live" && !excludedIds.has(proxy.id));
    const parts = [pool.filter(({ id }) => first.has(id)), pool.filter(({ id }) => !first.has(id))];
    return parts
      .flatMap((part) => inOrder(part, selection, rng))
      .slice(0, count)
      .map(listed);
  }

  /** The URLs by id of the proxies among `ids` that clients may use and that the operator of proxy `id` runs. */
  peersOf(id: string, ids: readonly string[], nowMs: number): Record<string, string> {
    const live = this.#live(nowMs).filter(({ state }) => state === "live");
    const own = live.find((proxy) => proxy.id === id);
    const peers = live.filter(
      (proxy) => own && proxy.id !== id && ids.includes(proxy.id) && proxy.operator === own.operator,
    );
    return Object.fromEntries(peers.map(({ id: peerId, url }) => [peerId, url]));
  }

  /** The live proxy with this id. */
  find(id: string, nowMs: number): FleetProxy | undefined {
    const entry = this.#entries.get(id);
    if (entry !== undefined && this.#isLive(entry, nowMs)) return entry.proxy;
    const proxy = nowMs < this.#elsewhere.untilMs ? this.#elsewhere.proxies.get(id) : undefined;
    return proxy && this.#decided(proxy);
  }

  /** The proxies among `ids` that clients may use. */
  usable(ids: readonly string[], nowMs: number): string[] {
    return ids.filter((id) => this.find(id, nowMs)?.state === "live");
  }

  #live(nowMs: number): FleetProxy[] {
    const own = this.own(nowMs);
    if (nowMs >= this.#elsewhere.untilMs || this.#elsewhere.proxies.size === 0) return own;
    const ids = new Set(own.map(({ id }) => id));
    const others = [...this.#elsewhere.proxies.values()].filter(({ id }) => !ids.has(id));
    return [...own, ...others.map((proxy) => this.#decided(proxy))];
  }

  #decided(proxy: FleetProxy): FleetProxy {
    const decision = this.#decisions.get(proxy.id);
    return decision === undefined ? proxy : { ...proxy, state: decision.state, name: decision.name ?? proxy.name };
  }

  #entryOf(connectionId: string): Entry | undefined {
    const id = this.#byConnection.get(connectionId);
    return id === undefined ? undefined : this.#entries.get(id);
  }
}

function listed({ id, name, url, webTransport, udp, operator }: FleetProxy): ListedProxy {
  const known = operator === undefined ? {} : { operator };
  return { id, name, url, ...(webTransport ? { webTransport } : {}), ...(udp ? { udp } : {}), ...known };
}

/**
 * Bytes per second between two reports, by the proxy's own clock. Null for a first report, and when a counter went
 * back.
 */
function rateBetween(
  before: ProxyStatus | null,
  after: ProxyStatus,
  counter: "sentBytes" | "originBytes",
): number | null {
  if (before === null) return null;
  const elapsedMs = after.uptimeMs - before.uptimeMs;
  const bytes = after[counter] - before[counter];
  return elapsedMs > 0 && bytes >= 0 ? (bytes * 1000) / elapsedMs : null;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
