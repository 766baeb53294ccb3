/**
 * Registry: which proxies are live, and a random choice among them.
 * Pure: time arrives as `nowMs`, randomness as `rng` (u32), sockets as an opaque connection id.
 * A proxy is live until two heartbeats are missed (4 s after the last word from it) or its connection closes.
 * Its id is a digest of name and address, so it stays the same over reconnects and over restarts of Origo.
 */
import { createHash } from "node:crypto";
import { HEARTBEAT_MS, type ApiError, type FleetProxy, type ListedProxy, type ProxyHello, type ProxyStatus } from "./schema";

/** A proxy silent for this long is gone. */
export const SILENCE_MS_MAX = 2 * HEARTBEAT_MS;
/** Proxies known at once; a hello beyond it is refused. */
export const PROXY_COUNT_MAX = 1024;

interface Entry {
  connectionId: string;
  proxy: FleetProxy;
}

export class Registry {
  private readonly entries = new Map<string, Entry>();

  /** A proxy introduced itself. The same name and address on a newer connection replaces the older one. */
  handleHello(connectionId: string, hello: ProxyHello, nowMs: number): { id: string } | { error: ApiError } {
    const id = proxyIdOf(hello);
    const known = this.entries.get(id);
    if (known === undefined && this.entries.size >= PROXY_COUNT_MAX) {
      const message = `this Origo holds ${PROXY_COUNT_MAX} proxies and takes no more`;
      return { error: { kind: "tooManyProxies", message, got: this.entries.size + 1, limit: PROXY_COUNT_MAX } };
    }
    this.handleClosed(connectionId);
    const proxy = { ...hello, id, connectedAtMs: nowMs, lastSeenMs: nowMs, status: null, sentBytesPerSec: null, originBytesPerSec: null };
    this.entries.set(id, { connectionId, proxy });
    return { id };
  }

  /** A heartbeat. One from a connection that has not said hello, or was replaced, is an error for its sender. */
  handleStatus(connectionId: string, status: ProxyStatus, nowMs: number): { id: string } | { error: ApiError } {
    const entry = this.entryOf(connectionId);
    if (entry === undefined) {
      return { error: { kind: "helloMissing", message: "no proxy is registered on this connection: send hello first" } };
    }
    const { proxy } = entry;
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
    const entry = this.entryOf(connectionId);
    if (entry !== undefined) this.entries.delete(entry.proxy.id);
  }

  /** Live proxies, by name, then id. */
  fleet(nowMs: number): FleetProxy[] {
    return [...this.entries.values()]
      .map((entry) => entry.proxy)
      .filter((proxy) => nowMs - proxy.lastSeenMs < SILENCE_MS_MAX)
      .sort((a, b) => compare(a.name, b.name) || compare(a.id, b.id));
  }

  /** `count` live proxies at random, each at most once, fewer if fewer are live; `rng` gives a u32 a call. */
  pick(count: number, excludedIds: ReadonlySet<string>, rng: () => number, nowMs: number): ListedProxy[] {
    const pool = this.fleet(nowMs).filter((proxy) => !excludedIds.has(proxy.id));
    const picked: ListedProxy[] = [];
    while (picked.length < count && pool.length > 0) {
      const [proxy] = pool.splice(Math.floor((rng() / 2 ** 32) * pool.length), 1);
      if (proxy !== undefined) picked.push(listed(proxy));
    }
    return picked;
  }

  private entryOf(connectionId: string): Entry | undefined {
    for (const entry of this.entries.values()) if (entry.connectionId === connectionId) return entry;
    return undefined;
  }
}

function listed({ id, name, url, webTransport, udp }: FleetProxy): ListedProxy {
  return { id, name, url, ...(webTransport ? { webTransport } : {}), ...(udp ? { udp } : {}) };
}

/** 16 hex digits, the same for the same name and address. */
export function proxyIdOf(hello: { name: string; url: string }): string {
  return createHash("sha256").update(JSON.stringify([hello.name, hello.url])).digest("hex").slice(0, 16);
}

/** Bytes a second between two reports by the proxy's own clock; null without two reports or when a counter went back. */
function rateBetween(before: ProxyStatus | null, after: ProxyStatus, counter: "sentBytes" | "originBytes"): number | null {
  if (before === null) return null;
  const elapsedMs = after.uptimeMs - before.uptimeMs;
  const bytes = after[counter] - before[counter];
  return elapsedMs > 0 && bytes >= 0 ? (bytes * 1000) / elapsedMs : null;
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
