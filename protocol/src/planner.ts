/**
 * Mode `coded` at the client: how many packets of which generation each proxy is to send. Spreads what is missing
 * over the proxies so that all finish together, never asks again for what is on its way, adds redundancy by the
 * loss measured and only where no time is left to ask again, and takes a quiet proxy's share away at once.
 * Pure. Specification: docs/protocol.md §8.
 */
import type { Assembly } from "./assembly";
import type { Geometry } from "./geometry";
import { firstPackets, runsOf } from "./grants";
import { LIMITS } from "./limits";
import type { Run, Share } from "./types";

/** Rates are measured over at most this many packets and this long. */
const RATE_PACKETS = 64;
const RATE_PACKETS_MIN = 8;
const RATE_MS_MAX = 250;
/** Grants reach this far beyond the round trip: room for a late or lost grant. */
const AHEAD_MS = 40;
/** A grant takes effect this much later than the round trip says. */
const SLACK_MS = 3;
const RTT_MS_UNKNOWN = 100;
const PER_MS_UNKNOWN = 0.5;
/** A proxy with packets due that sends none for this long, or for so many packets' time, has fallen quiet. */
const QUIET_MS_MIN = 20;
const QUIET_PACKETS = 6;
/** Redundancy in standard deviations of what may get lost. */
const MARGIN_SIGMAS = 2;

interface ProxyPlan {
  /** Generation of each packet by sequence; its length is the quota. */
  readonly order: number[];
  /** One more than the highest sequence received. */
  next: number;
  /** Sequences passed over and not given up yet, with when that was seen. */
  readonly gaps: Map<number, number>;
  receivedCount: number;
  lostCount: number;
  /** Latest arrivals, oldest first: what the rate is measured on. */
  readonly arrivals: { atMs: number; sequence: number }[];
  /** When it was last heard, or asked again after it had fallen quiet. */
  lastArrivalMs: number;
  /** Packets per ms, as last measured; 0 before. */
  perMs: number;
  rttMs: number;
  /** How long packets were seen to come after later ones. */
  reorderMs: number;
  gone: boolean;
  grantSequence: number;
}

export class Planner {
  private readonly proxies: ProxyPlan[];

  constructor(
    private readonly geometry: Geometry,
    private readonly assembly: Assembly,
    shares: readonly Share[],
    firstPacketsMax: number,
    nowMs: number,
  ) {
    this.proxies = shares.map((share) => ({
      order: firstPackets(geometry, share, firstPacketsMax),
      next: 0,
      gaps: new Map(),
      receivedCount: 0,
      lostCount: 0,
      arrivals: [],
      lastArrivalMs: nowMs,
      perMs: 0,
      rttMs: RTT_MS_UNKNOWN,
      reorderMs: 1,
      gone: false,
      grantSequence: 0,
    }));
  }

  handleRoundTrip(proxyIndex: number, rttMs: number): void {
    this.proxies[proxyIndex]!.rttMs = rttMs;
  }

  /** The proxy sends nothing any more, or does so again. */
  handleGone(proxyIndex: number, gone: boolean): void {
    this.proxies[proxyIndex]!.gone = gone;
  }

  /** The proxy begins anew, with nothing granted beyond its share. */
  handleBack(proxyIndex: number, share: Share, firstPacketsMax: number, nowMs: number): void {
    const proxy = this.proxies[proxyIndex]!;
    proxy.order.splice(0, proxy.order.length, ...firstPackets(this.geometry, share, firstPacketsMax));
    Object.assign(proxy, { next: 0, gone: false, grantSequence: 0, lastArrivalMs: nowMs });
    proxy.gaps.clear();
    proxy.arrivals.length = 0;
  }

  handleData(proxyIndex: number, sequence: number, generationIndex: number, nowMs: number): void {
    const proxy = this.proxies[proxyIndex]!;
    proxy.receivedCount++;
    if (sequence < proxy.next) {
      const missedMs = proxy.gaps.get(sequence);
      if (missedMs !== undefined) proxy.reorderMs = Math.max(proxy.reorderMs, 1.5 * (nowMs - missedMs));
      proxy.gaps.delete(sequence);
      return;
    }
    for (let missed = proxy.next; missed < sequence; missed++) proxy.gaps.set(missed, nowMs);
    while (proxy.order.length <= sequence) proxy.order.push(generationIndex);
    proxy.order[sequence] = generationIndex;
    proxy.next = sequence + 1;
    proxy.lastArrivalMs = nowMs;
    proxy.arrivals.push({ atMs: nowMs, sequence });
    proxy.perMs = rateOf(proxy) || proxy.perMs;
    while (proxy.arrivals.length > RATE_PACKETS || nowMs - proxy.arrivals[0]!.atMs > RATE_MS_MAX) proxy.arrivals.shift();
  }

  /** A fresh plan for all; `grantFor` then gives each proxy its part. */
  replan(nowMs: number): void {
    const missing = new Map<number, number>();
    const uncertain = new Map<number, number>();
    const need = (index: number) => missing.get(index) ?? this.assembly.missing(index);
    const cover = (index: number, loss: number) => {
      missing.set(index, need(index) - (1 - loss));
      uncertain.set(index, (uncertain.get(index) ?? 0) + loss * (1 - loss));
    };
    const able = this.proxies.filter((proxy) => !proxy.gone).map((proxy) => ({ proxy, assignee: this.keep(proxy, nowMs, cover) }));
    const heard = able.filter(({ assignee }) => !assignee.quiet);
    for (const { proxy } of heard.length > 0 ? [] : able) proxy.lastArrivalMs = nowMs;
    this.spread((heard.length > 0 ? heard : able).map(({ assignee }) => assignee), need, cover, uncertain);
  }

  /** What the proxy is to send from its next packet on. */
  grantFor(proxyIndex: number): { grantSequence: number; fromSequence: number; base: number; runs: Run[] } {
    const proxy = this.proxies[proxyIndex]!;
    const runs = runsOf(proxy.order, proxy.next, LIMITS.grantRunsMax);
    return { grantSequence: proxy.grantSequence++, fromSequence: proxy.next, base: this.assembly.base, runs };
  }

  /**
   * Counts what is on its way from this proxy and can no longer be changed; what can is taken back. Nothing counts
   * from a quiet one, and it gets work only when all are quiet.
   */
  private keep(proxy: ProxyPlan, nowMs: number, cover: (index: number, loss: number) => void): Assignee {
    for (const [sequence, missedMs] of proxy.gaps) {
      if (nowMs - missedMs <= proxy.reorderMs) {
        cover(proxy.order[sequence]!, 0);
        continue;
      }
      proxy.gaps.delete(sequence);
      proxy.lostCount++;
    }
    const loss = proxy.lostCount / (proxy.receivedCount + proxy.lostCount || 1);
    const perMs = proxy.perMs || PER_MS_UNKNOWN;
    const { rttMs, reorderMs, order } = proxy;
    if (proxy.next === order.length) proxy.arrivals.splice(0, proxy.arrivals.length - 1);
    const quietMs = proxy.perMs ? Math.max(QUIET_MS_MIN + reorderMs, QUIET_PACKETS / perMs) : 2 * rttMs + AHEAD_MS;
    const quiet = proxy.next < order.length && nowMs - proxy.lastArrivalMs > quietMs;
    if (!quiet) {
      if (proxy.perMs) order.length = Math.min(order.length, proxy.next + Math.ceil(perMs * (rttMs + SLACK_MS)));
      for (let sequence = proxy.next; sequence < order.length; sequence++) cover(order[sequence]!, loss);
    }
    const atMs = Math.max((order.length - proxy.next) / perMs, rttMs);
    return { order, loss, quiet, gapMs: 1 / perMs, atMs, untilMs: rttMs + SLACK_MS + AHEAD_MS, rttMs };
  }

  /** In the order of the generations, each packet to the proxy from which it would come first. */
  private spread(free: Assignee[], need: (index: number) => number, cover: (index: number, loss: number) => void, uncertain: Map<number, number>): void {
    if (free.length === 0) return;
    const soonestRepairMs = Math.min(...free.map((proxy) => proxy.rttMs)) + SLACK_MS;
    const count = this.geometry.generationCount;
    const firstOpen = this.assembly.base;
    const arrivesMs: number[] = [];
    let index = firstOpen;
    for (; index < count; index++) {
      let lastMs = 0;
      while (need(index) > (uncertain.get(index) ? 0.25 : 0)) {
        const sentMs = assign(free, index, cover);
        if (sentMs === undefined) return;
        lastMs = sentMs;
      }
      arrivesMs.push(lastMs);
    }
    const endMs = Math.max(...free.map((proxy) => proxy.atMs));
    for (index = firstOpen; index < count; index++) {
      if (this.assembly.missing(index) === 0 || Math.max(arrivesMs[index - firstOpen]!, 0) + soonestRepairMs < endMs) continue;
      let margin = Math.ceil(MARGIN_SIGMAS * Math.sqrt(uncertain.get(index) ?? 0) + need(index));
      for (; margin > 0; margin--) if (assign(free, index, cover) === undefined) return;
    }
  }
}

interface Assignee {
  readonly order: number[];
  readonly loss: number;
  readonly quiet: boolean;
  readonly gapMs: number;
  /** When its next packet would arrive, from now. */
  atMs: number;
  readonly untilMs: number;
  readonly rttMs: number;
}

function assign(free: Assignee[], index: number, cover: (index: number, loss: number) => void): number | undefined {
  let best: Assignee | undefined;
  for (const proxy of free) {
    if (proxy.atMs < proxy.untilMs && (!best || proxy.atMs < best.atMs)) best = proxy;
  }
  if (!best) return undefined;
  best.order.push(index);
  best.atMs += best.gapMs;
  cover(index, best.loss);
  return best.atMs;
}

/** Packets per ms between the oldest and the newest arrival kept; 0 while there are too few. */
function rateOf({ arrivals }: ProxyPlan): number {
  if (arrivals.length < RATE_PACKETS_MIN) return 0;
  const [first, last] = [arrivals[0]!, arrivals.at(-1)!];
  return last.atMs > first.atMs ? (last.sequence - first.sequence) / (last.atMs - first.atMs) : 0;
}
