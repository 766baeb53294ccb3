/** Counts the received bytes and packets by proxy, for the record of a download and for the client's live totals. */
import type { Rejection } from "@tributary/contract";
import type { Voucher } from "@tributary/contract/record-fields";
import type { TransportName } from "@tributary/contract/schema";
import type { ProxyStats, ReceiverStats } from "@tributary/protocol";
import { putLast } from "./memory";
import type { LiveProxy, ProxyInfo, Publisher, Vouched } from "./api";

export type ProxyCounts = Pick<
  ProxyStats,
  "bytes" | "packets" | "innovative" | "duplicate" | "late" | "rejected" | "lost"
>;

export interface ProxyTally extends ProxyCounts {
  readonly id: string;
  readonly name: string;
  rttMs: number | null;
  /** The transport of its session. */
  transport?: TransportName;
  state: "used" | "failed";
  error?: Rejection;
}

/** So many publications are remembered for the popup. */
const VOUCHED_MAX = 16;
const FIELDS = ["bytes", "packets", "innovative", "duplicate", "late", "rejected", "lost"] as const;

const TOTALS = ["symbolCount", "generationCount", "feedbackFrames"] as const;

export type OnProxy = (proxy: ProxyInfo, counts: ProxyCounts, rttMs: number | null) => void;

export class Tally {
  readonly proxies: ProxyTally[];
  /** Bytes that came directly from the origin. */
  directBytes = 0;
  readonly #last = new Map<number, ReceiverStats>();

  readonly #infos: readonly ProxyInfo[];
  readonly #onProxy: OnProxy;

  /** Calls `onProxy` for each increase. */
  constructor(infos: readonly ProxyInfo[], onProxy: OnProxy) {
    this.#infos = infos;
    this.#onProxy = onProxy;

    this.proxies = infos.map(({ id, name }) => ({ id, name, ...noCounts(), rttMs: null, state: "used" }));
  }

  /** The totals of all requests of the download. Undefined before the first counts. */
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
   * Takes the counts of one request. They are cumulative, so each call replaces the one before. A proxy that found the
   * chunk too large has not failed: the client cuts the request into ranges and asks again.
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

  /** Adds bytes of an HTTP response through a proxy. */
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

/** The totals of all downloads of a client. */
export class LiveBoard {
  downloads = 0;
  deliveredBytes = 0;
  directBytes = 0;
  fallbacks = 0;
  readonly #proxies = new Map<string, LiveProxy>();
  readonly #vouched = new Map<string, Omit<Vouched, "ageMs"> & { atMs: number }>();

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
      proxy = { id, name, state: "idle", bytes: 0, packets: 0, innovative: 0, duplicate: 0, rttMs: null, lies: 0 };
      this.#proxies.set(id, proxy);
    }
    return proxy;
  }

  noteVouched(by: Voucher, publisher: Publisher | undefined, atMs: number): void {
    const key = publisher === undefined ? by : `${publisher.key}/${publisher.name}`;
    putLast(this.#vouched, key, { by, ...(publisher === undefined ? {} : { publisher }), atMs }, VOUCHED_MAX);
  }

  vouched(nowMs: number): Vouched[] {
    return [...this.#vouched.values()].map(({ atMs, ...vouched }) => ({ ...vouched, ageMs: nowMs - atMs }));
  }

  snapshot(stateOf: (proxyId: string) => LiveProxy["state"] | undefined): LiveProxy[] {
    return [...this.#proxies.values()].map((proxy) => ({ ...proxy, state: stateOf(proxy.id) ?? proxy.state }));
  }
}

function noCounts(): ProxyCounts {
  return { bytes: 0, packets: 0, innovative: 0, duplicate: 0, late: 0, rejected: 0, lost: 0 };
}
