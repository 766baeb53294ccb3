/**
 * Registry: which proxies are live, here and at other Origos, what was decided about each, and a choice among them.
 * Pure: time arrives as `nowMs`, randomness as `rng` (u32), sockets as an opaque connection id.
 * A proxy is live until two heartbeats are missed (4 s after the last word from it, by default) or its connection
 * closes. Its id is a digest of name and instance, so it stays the same over reconnects and over restarts of Origo and
 * of the proxy.
 */
import { createHash } from "node:crypto";
import { inOrder, type SelectionInput } from "./selection";
import { HEARTBEAT_MS } from "@tributary/contract";
import {
  type ApiError,
  type FleetProxy,
  type ListedProxy,
  type ProxyHello,
  type ProxyStatus,
} from "@tributary/contract/schema";

export interface RegistryRules {
  heartbeatMs: () => number;
  /** A proxy silent for this many heartbeats is gone. */
  beatsMissedMax: () => number;
  /** Proxies known at once; a hello beyond it is refused. */
  proxiesMax: () => number;
  /**
   * How long this process has stood still, all in all: that is no silence of the proxies, whose words wait to be read.
   */
  stalledMs: () => number;
}

const RULES: RegistryRules = {
  heartbeatMs: () => HEARTBEAT_MS,
  beatsMissedMax: () => 2,
  proxiesMax: () => 1024,
  stalledMs: () => 0,
};

interface Entry {
  connectionId: string;
  proxy: FleetProxy;
  /** Of this process, when the proxy was heard last. */
  stalledMs: number;
  /** As it was then: by it the next report comes, whatever is decided meanwhile. */
  heartbeatMs: number;
}

/** What was decided about a proxy, live or not. */
export interface Decision {
  state: FleetProxy["state"];
  /** In place of the name it gave itself. */
  name: string | null;
}

const UNDECIDED: Decision = { state: "live", name: null };
const AT_RANDOM: SelectionInput = { select: "random", nearKm: 0 };

export class Registry {
  readonly #entries = new Map<string, Entry>();
  /** Id of the proxy that a connection registered. */
  readonly #byConnection = new Map<string, string>();
  readonly #decisions = new Map<string, Decision>();
  /** Live proxies that are connected to other Origos, and until when that is believed. */
  #elsewhere: { proxies: readonly FleetProxy[]; untilMs: number } = { proxies: [], untilMs: -Infinity };

  readonly #rules: RegistryRules;

  constructor(rules: RegistryRules = RULES) {
    this.#rules = rules;
  }

  /** A proxy introduced itself. The same name and instance on a newer connection replaces the older one. */
  handleHello(connectionId: string, hello: ProxyHello, nowMs: number): { id: string } | { error: ApiError } {
    const id = proxyIdOf(hello);
    const known = this.#entries.get(id);
    const limit = this.#rules.proxiesMax();
    if (known === undefined && this.#entries.size >= limit) {
      return {
        error: {
          kind: "tooManyProxies",
          message: `this Origo holds ${limit} proxies and takes no more`,
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
      id,
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

  decisionOn(id: string): Decision {
    return this.#decisions.get(id) ?? UNDECIDED;
  }

  /** Holds for the proxy now, and whenever it comes back. */
  decide(id: string, decision: Decision): void {
    this.#decisions.set(id, decision);
    const entry = this.#entries.get(id);
    if (entry !== undefined)
      entry.proxy = { ...entry.proxy, state: decision.state, name: decision.name ?? entry.proxy.name };
  }

  /** Over which the proxy can be told something; undefined when it has none. */
  connectionOf(id: string): string | undefined {
    return this.#entries.get(id)?.connectionId;
  }

  /** A heartbeat. One from a connection that has not said hello, or was replaced, is an error for its sender. */
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

  /** The connection closed; what it registered is gone at once. */
  handleClosed(connectionId: string): void {
    const id = this.#byConnection.get(connectionId);
    this.#byConnection.delete(connectionId);
    if (id !== undefined) this.#entries.delete(id);
  }

  /** Those that are connected to other Origos. */
  setElsewhere(proxies: readonly FleetProxy[], untilMs: number): void {
    this.#elsewhere = { proxies, untilMs };
  }

  /** All that are connected to this Origo, be they silent. */
  connectedIds(): string[] {
    return [...this.#entries.keys()];
  }

  /** Live proxies that are connected to this Origo. */
  own(nowMs: number): FleetProxy[] {
    const [missedMax, heartbeatMs, stalledMs] = [
      this.#rules.beatsMissedMax(),
      this.#rules.heartbeatMs(),
      this.#rules.stalledMs(),
    ];
    const isLive = (entry: Entry): boolean =>
      nowMs - entry.proxy.lastSeenMs - (stalledMs - entry.stalledMs) <
      missedMax * Math.max(heartbeatMs, entry.heartbeatMs);
    return [...this.#entries.values()].filter(isLive).map(({ proxy }) => proxy);
  }

  /** Live proxies, by name, then id. */
  fleet(nowMs: number): FleetProxy[] {
    return this.#live(nowMs).sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id));
  }

  /** `count` live proxies, each at most once, fewer if fewer are live; `rng` gives a u32 a call. */
  pick(
    count: number,
    excludedIds: ReadonlySet<string>,
    rng: () => number,
    nowMs: number,
    selection = AT_RANDOM,
  ): ListedProxy[] {
    const pool = this.#live(nowMs).filter((proxy) => proxy.state === "live" && !excludedIds.has(proxy.id));
    return inOrder(pool, selection, rng).slice(0, count).map(listed);
  }

  /** Those of `ids` that clients may be told. */
  usable(ids: readonly string[], nowMs: number): string[] {
    const known = new Set(
      this.#live(nowMs)
        .filter((proxy) => proxy.state === "live")
        .map((proxy) => proxy.id),
    );
    return ids.filter((id) => known.has(id));
  }

  #live(nowMs: number): FleetProxy[] {
    const own = this.own(nowMs);
    if (nowMs >= this.#elsewhere.untilMs || this.#elsewhere.proxies.length === 0) return own;
    const ids = new Set(own.map(({ id }) => id));
    const others = this.#elsewhere.proxies
      .filter(({ id }) => !ids.has(id))
      .map((proxy) => {
        const decision = this.#decisions.get(proxy.id);
        return decision === undefined ? proxy : { ...proxy, state: decision.state, name: decision.name ?? proxy.name };
      });
    return [...own, ...others];
  }

  #entryOf(connectionId: string): Entry | undefined {
    const id = this.#byConnection.get(connectionId);
    return id === undefined ? undefined : this.#entries.get(id);
  }
}

function listed({ id, name, url, webTransport, udp }: FleetProxy): ListedProxy {
  return { id, name, url, ...(webTransport ? { webTransport } : {}), ...(udp ? { udp } : {}) };
}

/**
 * 16 hex digits, the same for the same name and instance; for the same name and address where a proxy names no
 * instance.
 */
export function proxyIdOf({ name, url, instance }: Pick<ProxyHello, "name" | "url" | "instance">): string {
  return createHash("sha256")
    .update(JSON.stringify([name, instance ?? url]))
    .digest("hex")
    .slice(0, 16);
}

/**
 * Bytes a second between two reports by the proxy's own clock; null without two reports or when a counter went back.
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
