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
import type { DataFrame, Run, Share } from "./types";

/** Rates are measured over at most this many packets and this long. */
const RATE_PACKETS = 32;
const RATE_PACKETS_MIN = 8;
const RATE_MS_MAX = 200;
/** A short spell this much slower than the long one is a change, less is chance. */
const RATE_RECENT = 1.5;
/** Grants reach this far beyond the round trip: room for a late or lost grant, and bounds the queue on the way. */
const AHEAD_MS = 40;
/** A grant takes effect this much later than the round trip says. */
const SLACK_MS = 3;
const RTT_MS_UNKNOWN = 100;
const PER_MS_UNKNOWN = 0.5;
/** A proxy may always have this many packets on their way. */
const OUTSTANDING_MIN = 8;
/** A proxy with packets due that sends none for this long, or for so many packets' time, has fallen quiet. */
const QUIET_MS_MIN = 20;
const QUIET_PACKETS = 6;
/** The time between two askings of a quiet proxy doubles so often. */
const QUIET_DOUBLINGS = 2;
/** Redundancy in standard deviations of what may get lost, and for the chance that coded packets are dependent. */
const MARGIN_SIGMAS = 2;
const MARGIN_PACKETS = 0.3;
/** What loss may leave of a generation's need before more is asked for: the margin sees to the rest. */
const NEED_LEFT = 0.25;
/** A packet is useful as long as it comes within this factor of the time that the rest needs, and this long. */
const USEFUL_FACTOR = 1.2;
const USEFUL_MS = 10;
/** Loss is measured over about this many packets. */
const LOSS_PACKETS = 256;
/** Grants whose time of sending is kept, to see the round trip by their echo. */
const GRANTS_KEPT = 128;
/** The rate at which a proxy sends is measured over so many grants. */
const ECHOES = 6;
/** Without progress for this long and two round trips, what is missing is asked of each proxy by itself: §9.5. */
const STALL_MS = 200;

interface Arrival {
  atMs: number;
  sequence: number;
}

interface ProxyPlan {
  /** Generation of each packet by sequence; its length is the quota. */
  readonly order: number[];
  /** The longest that its order has been: no packet with a sequence beyond it was asked for. */
  quota: number;
  /** One more than the highest sequence received. */
  next: number;
  /** Sequences passed over and not given up yet, with when that was seen. */
  readonly gaps: Map<number, number>;
  receivedCount: number;
  lostCount: number;
  /** Latest arrivals, oldest first: what the rate is measured on. */
  readonly arrivals: Arrival[];
  /** When it was last heard, or asked again after it had fallen quiet. */
  lastArrivalMs: number;
  /** When it was last asked for more although it was quiet, and how often since it was heard. */
  askedMs: number;
  askedCount: number;
  /** Packets per ms, as last measured; 0 before. */
  perMs: number;
  /** The least round trip seen, and the latest: a grant's from its sending to the first packet that knows of it. */
  leastRttMs: number;
  rttMs: number;
  /**
   * When grants were sent, and the first packet that knew of each: where the proxy had come to when a grant reached it.
   * While there is none, all that it began with counts as sent.
   */
  readonly echoes: { grantSentMs: number; sequence: number }[];
  /** When each of the last grants was sent, by the low byte of its sequence; echoed ones are gone. */
  readonly grantSentMs: Map<number, number>;
  /** How long packets were seen to come after later ones. */
  reorderMs: number;
  gone: boolean;
  grantSequence: number;
}

export class Planner {
  private readonly proxies: ProxyPlan[];
  private progressMs: number;

  constructor(
    private readonly geometry: Geometry,
    private readonly assembly: Assembly,
    shares: readonly Share[],
    firstPacketsMax: number,
    nowMs: number,
  ) {
    this.progressMs = nowMs;
    this.proxies = shares.map((share) => ({
      order: firstPackets(geometry, share, firstPacketsMax),
      quota: firstPackets(geometry, share, firstPacketsMax).length,
      next: 0,
      gaps: new Map(),
      receivedCount: 0,
      lostCount: 0,
      arrivals: [],
      lastArrivalMs: nowMs,
      askedMs: -Infinity,
      askedCount: 0,
      perMs: 0,
      leastRttMs: RTT_MS_UNKNOWN,
      rttMs: RTT_MS_UNKNOWN,
      echoes: [],
      grantSentMs: new Map(),
      reorderMs: 1,
      gone: false,
      grantSequence: 1,
    }));
  }

  handleRoundTrip(proxyIndex: number, rttMs: number): void {
    Object.assign(this.proxies[proxyIndex]!, { rttMs, leastRttMs: rttMs });
  }

  /** The proxy sends nothing any more, or does so again. */
  handleGone(proxyIndex: number, gone: boolean): void {
    this.proxies[proxyIndex]!.gone = gone;
  }

  /** The proxy begins anew, with nothing granted beyond its share. */
  handleBack(proxyIndex: number, share: Share, firstPacketsMax: number, nowMs: number): void {
    const proxy = this.proxies[proxyIndex]!;
    proxy.order.splice(0, proxy.order.length, ...firstPackets(this.geometry, share, firstPacketsMax));
    Object.assign(proxy, { quota: proxy.order.length, next: 0, gone: false, grantSequence: 1, lastArrivalMs: nowMs });
    proxy.echoes.length = 0;
    proxy.grantSentMs.clear();
    proxy.gaps.clear();
    proxy.arrivals.length = 0;
  }

  /** True when the proxy may have sent a packet with this sequence. */
  allows(proxyIndex: number, sequence: number): boolean {
    return sequence < this.proxies[proxyIndex]!.quota;
  }

  /** A packet was innovative. */
  handleProgress(nowMs: number): void {
    this.progressMs = nowMs;
  }

  handleData(proxyIndex: number, { sequence, generationIndex, coding }: DataFrame, nowMs: number): void {
    const proxy = this.proxies[proxyIndex]!;
    proxy.receivedCount++;
    if (coding.kind === "seed") noteEcho(proxy, coding.grant, sequence, nowMs);
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
    proxy.askedCount = 0;
    proxy.arrivals.push({ atMs: nowMs, sequence });
    proxy.perMs = rateOf(proxy, nowMs) || proxy.perMs;
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
    const usefulMs = this.usefulMs();
    const able = this.proxies.filter((proxy) => !proxy.gone).map((proxy) => ({ proxy, assignee: this.keep(proxy, nowMs, usefulMs, cover) }));
    const heard = able.filter(({ assignee }) => !assignee.quiet);
    for (const { proxy } of heard.length > 0 ? [] : able) proxy.lastArrivalMs = nowMs;
    for (const { proxy, assignee } of able) this.askAlone(proxy, assignee, nowMs);
    this.spread((heard.length > 0 ? heard : able).map(({ assignee }) => assignee), need, cover, uncertain);
  }

  /** Packets that come later than this would hold the chunk up: others can bring them sooner. */
  private usefulMs(): number {
    const perMs = this.proxies.reduce((sum, proxy) => sum + (proxy.gone ? 0 : proxy.perMs), 0);
    if (perMs === 0) return Infinity;
    let left = 0;
    for (let index = this.assembly.base; index < this.geometry.generationCount; index++) left += this.assembly.missing(index);
    return USEFUL_FACTOR * (left / perMs) + USEFUL_MS;
  }

  /** What the proxy is to send from its next packet on. */
  grantFor(proxyIndex: number, nowMs: number): { grantSequence: number; fromSequence: number; base: number; runs: Run[] } {
    const proxy = this.proxies[proxyIndex]!;
    proxy.quota = Math.max(proxy.quota, proxy.order.length);
    const runs = runsOf(proxy.order, proxy.next, LIMITS.grantRunsMax);
    proxy.grantSentMs.delete((proxy.grantSequence - GRANTS_KEPT) & 0xff);
    proxy.grantSentMs.set(proxy.grantSequence & 0xff, nowMs);
    return { grantSequence: proxy.grantSequence++, fromSequence: proxy.next, base: this.assembly.base, runs };
  }

  /**
   * Counts what is on its way from this proxy and can no longer be changed; what can is taken back. Nothing counts
   * from a quiet one, and it gets work only when all are quiet.
   */
  private keep(proxy: ProxyPlan, nowMs: number, usefulMs: number, cover: (index: number, loss: number) => void): Assignee {
    for (const [sequence, missedMs] of proxy.gaps) {
      if (nowMs - missedMs <= proxy.reorderMs) {
        cover(proxy.order[sequence]!, 0);
        continue;
      }
      proxy.gaps.delete(sequence);
      proxy.lostCount++;
      if (proxy.lostCount + proxy.receivedCount > LOSS_PACKETS) {
        proxy.lostCount /= 2;
        proxy.receivedCount /= 2;
      }
    }
    const loss = proxy.lostCount / (proxy.receivedCount + proxy.lostCount || 1);
    const { rttMs, reorderMs, order } = proxy;
    if (proxy.next === order.length) proxy.arrivals.length = 0;
    const quietMs = proxy.perMs ? Math.max(QUIET_MS_MIN + reorderMs, QUIET_PACKETS / proxy.perMs) : QUIET_MS_MIN + reorderMs + rttMs / 2;
    const quiet = proxy.next < order.length && nowMs - proxy.lastArrivalMs > quietMs;
    const perMs = (proxy.next < order.length && rateOf(proxy, nowMs)) || proxy.perMs || PER_MS_UNKNOWN;
    if (!quiet) {
      if (proxy.askedCount === 0) order.length = Math.min(order.length, sentBy(proxy, perMs, nowMs + SLACK_MS));
      const counted = Math.min(order.length, proxy.next + Math.ceil(perMs * usefulMs));
      for (let sequence = proxy.next; sequence < counted; sequence++) cover(order[sequence]!, loss);
    }
    const ahead = Math.max(OUTSTANDING_MIN, perMs * (proxy.leastRttMs + SLACK_MS + AHEAD_MS));
    const limit = quiet ? this.limitOfQuiet(proxy, quietMs, nowMs) : proxy.next + ahead;
    const atMs = Math.max((order.length - proxy.next) / perMs, rttMs);
    return { order, loss, quiet, gapMs: 1 / perMs, atMs, limit, rttMs };
  }

  /** What each proxy is to give by itself: disputed generations and, in a stall, all that is missing. */
  private askAlone(proxy: ProxyPlan, assignee: Assignee, nowMs: number): void {
    const stalled = nowMs - this.progressMs > STALL_MS + 2 * proxy.rttMs;
    const proxyIndex = this.proxies.indexOf(proxy);
    if (!stalled && this.assembly.disputed.size === 0) return;
    for (let index = this.assembly.base; index < this.geometry.generationCount; index++) {
      if (!stalled && !this.assembly.isDisputed(index)) continue;
      const sent = assignee.quiet ? [] : proxy.order.slice(proxy.next);
      const underWay = sent.filter((other) => other === index).length * (1 - assignee.loss);
      for (let left = this.assembly.missingFrom(proxyIndex, index) - underWay; left > 0; left -= 1 - assignee.loss) {
        if (assign([assignee], index, () => undefined) === undefined) return;
      }
    }
  }

  /**
   * All that a quiet proxy was granted may be sent and lost, so that it has nothing to be heard by: now and then it is
   * granted a packet beyond that, and may be asked for a few.
   */
  private limitOfQuiet(proxy: ProxyPlan, quietMs: number, nowMs: number): number {
    if (nowMs - proxy.askedMs <= quietMs * 2 ** proxy.askedCount) return proxy.order.length;
    proxy.askedMs = nowMs;
    proxy.askedCount = Math.min(proxy.askedCount + 1, QUIET_DOUBLINGS);
    do proxy.order.push(Math.min(this.assembly.base, this.geometry.generationCount - 1));
    while (proxy.order.length <= proxy.quota);
    return proxy.order.length + OUTSTANDING_MIN;
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
      while (need(index) > (uncertain.get(index) ? NEED_LEFT : 0)) {
        const sentMs = assign(free, index, cover);
        if (sentMs === undefined) return;
        lastMs = sentMs;
      }
      arrivesMs.push(lastMs);
    }
    const endMs = Math.max(...free.map((proxy) => proxy.atMs));
    for (index = firstOpen; index < count; index++) {
      if (this.assembly.missing(index) === 0 || arrivesMs[index - firstOpen]! + soonestRepairMs < endMs) continue;
      let margin = Math.ceil(MARGIN_SIGMAS * Math.sqrt(uncertain.get(index) ?? 0) + need(index) + MARGIN_PACKETS);
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
  /** Its order may be this long. */
  readonly limit: number;
  readonly rttMs: number;
}

function assign(free: Assignee[], index: number, cover: (index: number, loss: number) => void): number | undefined {
  let best: Assignee | undefined;
  for (const proxy of free) {
    if (proxy.order.length < proxy.limit && (!best || proxy.atMs < best.atMs)) best = proxy;
  }
  if (!best) return undefined;
  best.order.push(index);
  best.atMs += best.gapMs;
  cover(index, best.loss);
  return best.atMs;
}

/** The first packet that knows of a grant tells how long grants take now, queues included. */
function noteEcho(proxy: ProxyPlan, grant: number, sequence: number, nowMs: number): void {
  const sentMs = proxy.grantSentMs.get(grant);
  if (sentMs === undefined) return;
  proxy.grantSentMs.delete(grant);
  if (proxy.echoes.push({ grantSentMs: sentMs, sequence }) > ECHOES) proxy.echoes.shift();
  proxy.rttMs = nowMs - sentMs;
  proxy.leastRttMs = Math.min(proxy.leastRttMs, proxy.rttMs);
}

/** How far the proxy will have come when a grant that is sent at `atMs` reaches it. */
function sentBy({ echoes, next }: ProxyPlan, perMs: number, atMs: number): number {
  const [first, last] = [echoes[0], echoes.at(-1)];
  if (!first || !last) return Infinity;
  const spanMs = last.grantSentMs - first.grantSentMs;
  const sendPerMs = spanMs > 0 ? Math.max(perMs, (last.sequence - first.sequence) / spanMs) : 2 * perMs;
  return Math.max(next, last.sequence + 1 + Math.ceil(sendPerMs * (atMs - last.grantSentMs)));
}

/** Packets per ms from the oldest arrival kept to the newest, or to now where one is overdue; 0 while too few are kept. */
function rateOf({ arrivals }: ProxyPlan, nowMs: number): number {
  if (arrivals.length < RATE_PACKETS_MIN) return 0;
  return Math.min(rateSince(arrivals[0]!, arrivals.at(-1)!, nowMs), rateSince(arrivals.at(-RATE_PACKETS_MIN)!, arrivals.at(-1)!, nowMs) * RATE_RECENT);
}

function rateSince(first: Arrival, last: Arrival, nowMs: number): number {
  const packets = last.sequence - first.sequence;
  const perMs = packets / Math.max(last.atMs - first.atMs, 0.01);
  const overdueMs = nowMs - last.atMs - 2 / perMs;
  return overdueMs > 0 ? packets / (last.atMs - first.atMs + overdueMs) : perMs;
}
