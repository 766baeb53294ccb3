/**
 * Convictions: in how many networks clients have shown false packets of each proxy, and apart from that, in how many
 * they only say that it lied (hints). All Origos over one database agree on it, and it survives a restart. A network is
 * forgotten after a day. It is stored as a digest with Origo's own key, and no client is kept.
 */
import { createHmac } from "node:crypto";
import type { AccusationKind, ConvictionStore } from "./store/conviction-store";

const REMEMBERED_MS = 86_400_000;
const HINT_EVERY_MS = 3_600_000;
/** So many pairs of a proxy and a network are remembered. */
const HINTS_MAX = 10_000;

export interface ConvictionsOptions {
  store: ConvictionStore;
  /** A secret. */
  key: string;
  nowMs: () => number;
}

export class Convictions {
  /** By kind and proxy. */
  #counts = new Map<string, number>();
  /** By proxy and network: when it was last stored that clients there hint at lies. */
  readonly #hintedMs = new Map<string, number>();
  /** How often this Origo changed what is stored. */
  #changes = 0;

  readonly #options: ConvictionsOptions;

  constructor(options: ConvictionsOptions) {
    this.#options = options;
  }

  /** Reads what is stored, here or by other Origos. */
  async refresh(): Promise<void> {
    for (;;) {
      const changes = this.#changes;
      const counts = await this.#options.store.counts(this.#sinceMs);
      if (changes !== this.#changes) continue;
      this.#counts = new Map(counts.map(({ kind, proxyId, networks }) => [placeOf(kind, proxyId), networks]));
      return;
    }
  }

  /** Deletes what no longer counts. */
  drop(): Promise<void> {
    return this.#options.store.drop(this.#sinceMs);
  }

  /** In how many networks clients accused this proxy, as far as this Origo knows. */
  countOf(proxyId: string, kind: AccusationKind = "evidence"): number {
    return this.#counts.get(placeOf(kind, proxyId)) ?? 0;
  }

  /** Resolves to the number of networks, before and now. */
  async note(proxyId: string, network: string, kind: AccusationKind = "evidence"): Promise<[number, number]> {
    const { store, key, nowMs } = this.#options;
    const digest = createHmac("sha256", key).update(network).digest("base64url");
    const counts = await store.note({ kind, proxyId, network: digest }, nowMs(), this.#sinceMs);
    this.#changes++;
    this.#counts.set(placeOf(kind, proxyId), counts[1]);
    return counts;
  }

  /** Notes what a client only says. The store is asked once in an hour for each proxy and network. */
  async hint(proxyId: string, network: string): Promise<void> {
    const place = `${proxyId} ${network}`;
    const nowMs = this.#options.nowMs();
    const hintedMs = this.#hintedMs.get(place) ?? -Infinity;
    if (nowMs - hintedMs < HINT_EVERY_MS) return;
    this.#hintedMs.delete(place);
    this.#hintedMs.set(place, nowMs);
    if (this.#hintedMs.size > HINTS_MAX) this.#hintedMs.delete(this.#hintedMs.keys().next().value!);
    await this.note(proxyId, network, "hint");
  }

  async forget(proxyId: string): Promise<void> {
    await this.#options.store.forget(proxyId);
    this.#changes++;
    this.#hintedMs.clear();
    for (const kind of ["evidence", "hint"] as const) this.#counts.delete(placeOf(kind, proxyId));
  }

  get #sinceMs(): number {
    return this.#options.nowMs() - REMEMBERED_MS;
  }
}

const placeOf = (kind: AccusationKind, proxyId: string): string => `${kind} ${proxyId}`;
