/** What a download received, by proxy: the numbers of its record, and the live totals of its client. */
import type { Rejection } from "@tributary/contract";
import type { TransportName } from "@tributary/contract/schema";
import type { ProxyStats, ReceiverStats } from "@tributary/protocol";
import type { LiveProxy, ProxyInfo } from "./api";

export type ProxyCounts = Pick<
  ProxyStats,
  "bytes" | "packets" | "innovative" | "duplicate" | "late" | "rejected" | "lost"
>;

export interface ProxyTally extends ProxyCounts {
  readonly id: string;
  readonly name: string;
  rttMs: number | null;
  /** What its session went over. */
  transport?: TransportName;
  state: "used" | "failed";
  error?: Rejection;
}

const FIELDS = ["bytes", "packets", "innovative", "duplicate", "late", "rejected", "lost"] as const;

const TOTALS = ["symbolCount", "generationCount", "feedbackFrames"] as const;

export type OnProxy = (proxy: ProxyInfo, counts: ProxyCounts, rttMs: number | null) => void;

export class Tally {
  readonly proxies: ProxyTally[];
  /** Received from the origin itself. */
  directBytes = 0;
  readonly #last = new Map<number, ReceiverStats>();

  readonly #infos: readonly ProxyInfo[];
  readonly #onProxy: OnProxy;

  /** `onProxy` is told of each increase. */
  constructor(infos: readonly ProxyInfo[], onProxy: OnProxy) {
    this.#infos = infos;
    this.#onProxy = onProxy;

    this.proxies = infos.map(({ id, name }) => ({ id, name, ...noCounts(), rttMs: null, state: "used" }));
  }

  /** Of all requests of the download so far, or undefined before the first. */
  get totals(): Record<(typeof TOTALS)[number], number> | undefined {
    if (this.#last.size === 0) return undefined;
    const totals = { symbolCount: 0, generationCount: 0, feedbackFrames: 0 };
    for (const stats of this.#last.values()) for (const name of TOTALS) totals[name] += stats[name];
    return totals;
  }

  generationsOf(requestId: number): number {
    return this.#last.get(requestId)?.generationCount ?? 0;
  }

  get grossBytes(): number {
    return this.proxies.reduce((sum, proxy) => sum + proxy.bytes, this.directBytes);
  }

  /**
   * The counts of one request so far; cumulative, so each call replaces what the one before said. A proxy that only
   * found the chunk too large has not failed: the request is cut and comes again.
   */
  addReceiver(requestId: number, stats: ReceiverStats): void {
    const before = this.#last.get(requestId);
    this.#last.set(requestId, stats);
    stats.proxies.forEach((now, index) => {
      const proxy = this.proxies[index];
      if (!proxy) return;
      const gained = noCounts();
      for (const field of FIELDS) {
        gained[field] = now[field] - (before?.proxies[index]?.[field] ?? 0);
        proxy[field] += gained[field];
      }
      proxy.rttMs = now.rttMs ?? proxy.rttMs;
      if (now.state === "failed" && now.error && now.error.kind !== "chunkTooLarge") this.fail(index, now.error);
      this.#onProxy(this.#infos[index]!, gained, now.rttMs);
    });
  }

  /** Bytes of an HTTP response through a proxy. */
  addBytes(index: number, bytes: number): void {
    this.proxies[index]!.bytes += bytes;
    this.#onProxy(this.#infos[index]!, { ...noCounts(), bytes }, null);
  }

  carry(index: number, transport: TransportName): void {
    this.proxies[index]!.transport = transport;
  }

  fail(index: number, error: Rejection): void {
    const proxy = this.proxies[index]!;
    proxy.state = "failed";
    proxy.error = error;
  }
}

/** Totals over all downloads of a client. */
export class LiveBoard {
  downloads = 0;
  deliveredBytes = 0;
  directBytes = 0;
  fallbacks = 0;
  readonly #proxies = new Map<string, LiveProxy>();

  readonly onProxy: OnProxy = (info, counts, rttMs) => {
    const proxy = this.of(info);
    proxy.bytes += counts.bytes;
    proxy.packets += counts.packets;
    proxy.innovative += counts.innovative;
    proxy.duplicate += counts.duplicate;
    proxy.rttMs = rttMs ?? proxy.rttMs;
  };

  of({ id, name }: ProxyInfo): LiveProxy {
    let proxy = this.#proxies.get(id);
    if (!proxy) {
      proxy = { id, name, state: "idle", bytes: 0, packets: 0, innovative: 0, duplicate: 0, rttMs: null };
      this.#proxies.set(id, proxy);
    }
    return proxy;
  }

  snapshot(stateOf: (proxyId: string) => LiveProxy["state"] | undefined): LiveProxy[] {
    return [...this.#proxies.values()].map((proxy) => ({ ...proxy, state: stateOf(proxy.id) ?? proxy.state }));
  }
}

function noCounts(): ProxyCounts {
  return { bytes: 0, packets: 0, innovative: 0, duplicate: 0, late: 0, rejected: 0, lost: 0 };
}
