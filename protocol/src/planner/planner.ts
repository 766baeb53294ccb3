/**
 * Planner: mode `coded` at the client. It decides how many packets of which generation each proxy sends next. Each
 * packet that a generation needs is expected from the proxy that brings it first: a packet on its way, or a new order.
 * The planner knows no frames and no payloads. Pure: time arrives as `nowMs`. Rules: protocol.md §8.7 to §8.9.
 */
import type { Geometry } from "../geometry";
import { LIMITS, TIMING } from "../limits";
import { firstPackets, runsOf } from "../packet-order";
import type { Assembly } from "../receiver/assembly";
import { firstOfSpans, Holdings } from "../sharing";
import type { DataFrame, GenerationSpan, GrantedRun, Share } from "../types";
import { Coming } from "./coming";
import { Flow } from "./flow";
import type { Beginning, KnownPath } from "./known";
import { Path, type Remembered } from "./path";
import { SLACK_MS } from "./round-trip";
import {
  expectedSource,
  liveSource,
  LOSS_PACKETS_SHARED,
  orderFrom,
  OUTSTANDING_MIN,
  quietSource,
  soonestComing,
  soonestFree,
  soonestNew,
  type Source,
} from "./sources";

/** Redundancy in standard deviations of what may get lost: while another round is possible, and when it is not. */
const SIGMAS = 1;
const SIGMAS_LAST = 3;
/** A smaller need is not worth a packet. Expected losses are fractions, and coded packets may be dependent. */
const NEED_LEFT = 0.3;
/** Others get a shared generation if its readers bring nothing for this long, or would be ready this much later. */
const LATE_MS = 500;
/** After this time and two round trips without progress, each proxy must send everything that is missing (§9.6). */
const STALL_MS = 200;
const STALL_ROUND_TRIPS = 2;

export interface PlannerOptions {
  geometry: Geometry;
  assembly: Assembly;
  /** The first packets of each proxy. */
  beginnings: readonly Beginning[];
  /** Earlier measurements of each proxy. */
  known: readonly (KnownPath | undefined)[];
  /** When each proxy was first asked. Undefined before that. */
  askedMs: readonly (number | undefined)[];
  packetBytes: number;
  nowMs: number;
  /** The proxies share the reading: what each is expected to read. */
  parts?: readonly (readonly GenerationSpan[])[] | undefined;
}

/** What a packet was worth. It is also useful if its generation needed nothing more. */
interface Worth {
  useful: boolean;
  innovative: boolean;
}

/** How the losses seen so far are taken into account in one plan. */
interface Losses {
  /** The chance that a packet of this path brings nothing. */
  of(path: Path): number;
  /** The variance of losses is this many times larger, since few packets have shown how many are lost. */
  doubt: number;
}

/** What decides the margin of one plan. */
interface Margin {
  nowMs: number;
  /** After this time nothing can be asked for again before the chunk's end. */
  lastCallMs: number;
  doubt: number;
}

export class Planner {
  /** All proxies get a new grant this often. */
  grantEveryMs: number = TIMING.grantEveryMsMin;
  readonly #geometry: Geometry;
  readonly #assembly: Assembly;
  readonly #beginnings: readonly Beginning[];
  readonly #packetBytes: number;
  readonly #paths: Path[];
  /** By path. */
  readonly #comings: Coming[];
  /** Packets that others have overtaken and that may still come, by generation. */
  readonly #overtaken = new Map<number, number>();
  readonly #flow = new Flow();
  /** Generations from this one on are not all granted yet. */
  #frontier = 0;
  /** Who can send which generation. Undefined if each proxy reads them all. */
  readonly #holdings: Holdings | undefined;
  /** By proxy, when it last brought something new or was given a generation. */
  readonly #broughtMs: number[];
  readonly #parts: (readonly GenerationSpan[] | undefined)[] | undefined;
  #progressMs: number;

  constructor({ geometry, assembly, beginnings, known, askedMs, packetBytes, nowMs, parts }: PlannerOptions) {
    this.#geometry = geometry;
    this.#assembly = assembly;
    this.#beginnings = beginnings;
    this.#packetBytes = packetBytes;
    this.#progressMs = nowMs;
    this.#parts = parts?.slice();
    this.#broughtMs = beginnings.map(() => nowMs);
    this.#holdings = parts && new Holdings(beginnings.length, geometry.generationCount);
    parts?.forEach((spans, index) => this.#holdings!.handleReads(index, spans));
    this.#paths = beginnings.map(({ share, windowPackets }, index) => {
      const begin = this.#beginOf(index, share, windowPackets);
      return new Path(begin, nowMs, askedMs[index], rememberedOf(known[index], packetBytes));
    });
    this.#comings = this.#paths.map(() => new Coming());
  }

  /** What the proxy sends before the first grant. */
  #beginOf(proxyIndex: number, share: Share, windowPackets: number): number[] {
    const spans = this.#parts?.[proxyIndex];
    return spans
      ? firstOfSpans(this.#geometry, spans, windowPackets)
      : firstPackets(this.#geometry, share, windowPackets);
  }

  /** What the proxy's plan says that it holds or reads. Without spans it is all. */
  #learnReads(proxyIndex: number, spans: readonly GenerationSpan[] | undefined, nowMs: number): void {
    if (!this.#holdings || !this.#parts) return;
    this.#parts[proxyIndex] = spans;
    this.#holdings.handleReads(proxyIndex, spans ?? [{ from: 0, end: this.#geometry.generationCount }]);
    const { share, windowPackets } = this.#beginnings[proxyIndex]!;
    this.#paths[proxyIndex]!.handleAsked(this.#beginOf(proxyIndex, share, windowPackets), nowMs);
  }

  handleRoundTrip(proxyIndex: number, rttMs: number): void {
    this.#paths[proxyIndex]!.roundTrip.handleSample(rttMs);
  }

  /** The proxy's plan has come. `reads`: what it holds or reads, if that is not all. */
  handleHeard(proxyIndex: number, nowMs: number, reads?: readonly GenerationSpan[]): void {
    this.#learnReads(proxyIndex, reads, nowMs);
    this.#paths[proxyIndex]!.handleHeard(nowMs);
  }

  /** `gone`: the proxy has stopped sending. Otherwise it sends again. */
  handleGone(proxyIndex: number, gone: boolean): void {
    this.#paths[proxyIndex]!.gone = gone;
  }

  /** A new sender answers for this proxy. */
  handleBack(proxyIndex: number, nowMs: number): void {
    this.#paths[proxyIndex]!.restart(nowMs);
  }

  /** The first share of a proxy that is asked at `nowMs`. It begins where the others' grants end. */
  shareFor(proxyIndex: number, nowMs: number): Share {
    const { share: whole, windowPackets } = this.#beginnings[proxyIndex]!;
    const share = { ...whole, firstGeneration: this.#frontier };
    this.#paths[proxyIndex]!.handleAsked(this.#beginOf(proxyIndex, share, windowPackets), nowMs);
    return share;
  }

  /** True when the proxy may have sent a packet with this sequence. */
  allows(proxyIndex: number, sequence: number): boolean {
    return sequence < this.#paths[proxyIndex]!.quota;
  }

  /** A packet was innovative. */
  handleProgress(nowMs: number): void {
    this.#progressMs = nowMs;
  }

  handleData(proxyIndex: number, frame: DataFrame, { useful, innovative }: Worth, nowMs: number): void {
    if (innovative) this.#broughtMs[proxyIndex] = nowMs;
    this.#flow.packets++;
    this.#paths[proxyIndex]!.handleData(frame, useful, nowMs);
  }

  /** The measurements of a proxy to remember. Undefined while too few packets came. */
  knownOf(proxyIndex: number): KnownPath | undefined {
    return this.#paths[proxyIndex]!.toRemember(this.#packetBytes);
  }

  /** Makes a new plan for all proxies; `grantFor` then gives each one its part. */
  replan(nowMs: number): void {
    const able = this.#paths.filter((path) => !path.gone && path.heard);
    if (this.#flow.hasFallen(nowMs)) for (const path of able) path.handleLess();
    this.#setGrantInterval(able);
    for (const path of able) path.loss.settle(nowMs);
    this.#noteOvertaken(able);
    const losses = this.#losses();
    const sharedMs = Math.max(0, Math.min(...able.map(({ roundTrip }) => roundTrip.latestMs - roundTrip.leastMs)));
    const sources = able.map((path) => this.#sourceOf(path, losses.of(path), sharedMs, nowMs));
    const live = sources.filter(({ quiet }) => !quiet);
    if (live.length === 0) for (const path of able) this.#askAnew(path, nowMs);
    for (const source of sources) this.#askAlone(source, nowMs);
    const all = live.length > 0 ? [...live, ...this.#expected(live, losses, nowMs)] : sources;
    if (this.#holdings) this.#spreadHeld(this.#holdings, all, losses.doubt, nowMs);
    else this.#spread(all, losses.doubt, nowMs);
  }

  /** The grant that orders the packets of a proxy from its next one on. */
  grantFor(
    proxyIndex: number,
    nowMs: number,
  ): { grantSequence: number; fromSequence: number; base: number; runs: GrantedRun[] } {
    const path = this.#paths[proxyIndex]!;
    const runs = runsOf(path.order, path.next, LIMITS.grantRunsMax);
    return {
      grantSequence: path.nextGrant(path.order.length >= path.limit, nowMs),
      fromSequence: path.next,
      base: this.#assembly.base,
      runs,
    };
  }

  #setGrantInterval(able: readonly Path[]): void {
    const roundMs = Math.min(...able.map(({ roundTrip }) => roundTrip.leastMs));
    const everyMs = Math.min(roundMs / TIMING.grantsPerRoundTrip, TIMING.grantEveryMsMax);
    this.grantEveryMs = Math.max(TIMING.grantEveryMsMin, everyMs);
  }

  /** A path's loss is what was seen on it, leaning on what was seen on all of them. */
  #losses(): Losses {
    const lost = this.#paths.reduce((sum, path) => sum + path.loss.lost, 0);
    const received = this.#paths.reduce((sum, path) => sum + path.loss.received, 0);
    const shared = lost / (lost + received + LOSS_PACKETS_SHARED);
    return {
      of: ({ loss }) => {
        const leaning = loss.lost + shared * LOSS_PACKETS_SHARED;
        return 1 - loss.usefulShare * (1 - leaning / (loss.lost + loss.received + LOSS_PACKETS_SHARED));
      },
      doubt: 1 + this.#geometry.generationSize / (lost + received + LOSS_PACKETS_SHARED),
    };
  }

  #noteOvertaken(able: readonly Path[]): void {
    this.#overtaken.clear();
    for (const { loss, order } of able) {
      for (const sequence of loss.gaps.keys())
        this.#overtaken.set(order[sequence]!, 1 + (this.#overtaken.get(order[sequence]!) ?? 0));
    }
  }

  #sourceOf(path: Path, loss: number, sharedMs: number, nowMs: number): Source {
    const coming = this.#comings[this.#paths.indexOf(path)]!;
    const perMs = path.perMs(sharedMs, nowMs);
    if (!path.loss.isUseless && !path.isQuiet(perMs, nowMs))
      return liveSource(path, coming, loss, perMs, sharedMs, nowMs);
    const source = quietSource(path, coming, loss, perMs, nowMs);
    if (path.isToBeAsked(perMs, nowMs)) this.#askMore(path);
    return source;
  }

  /** Proxies that have not answered yet and are remembered. */
  #expected(live: readonly Source[], losses: Losses, nowMs: number): Source[] {
    const meanMs = live.reduce((sum, { gapMs }) => sum + gapMs, 0) / live.length;
    return this.#paths.flatMap((path, index) => {
      const firstMs = path.gone ? undefined : path.expectedMs(nowMs);
      if (firstMs === undefined) return [];
      const perMs = path.perMs(0, nowMs);
      return expectedSource(path, this.#comings[index]!, losses.of(path), perMs > 0 ? 1 / perMs : meanMs, firstMs);
    });
  }

  /** Grants at least one packet more than the proxy was ever granted. */
  #askMore(path: Path): void {
    const open = this.#holdings ? this.#firstHeld(this.#holdings, path) : this.#assembly.base;
    if (open === undefined) return;
    do path.orderMore(Math.min(open, this.#geometry.generationCount - 1));
    while (path.order.length <= path.quota);
    path.limit = path.order.length + OUTSTANDING_MIN;
  }

  /** The first open generation that the proxy can send. */
  #firstHeld(holdings: Holdings, path: Path): number | undefined {
    const proxyIndex = this.#paths.indexOf(path);
    for (let index = this.#assembly.base; index < this.#geometry.generationCount; index++)
      if (holdings.holds(proxyIndex, index) && this.#assembly.missing(index) > 0) return index;
    return undefined;
  }

  /** All proxies are quiet, so this one is treated as if it were not. */
  #askAnew(path: Path, nowMs: number): void {
    if (path.loss.isUseless) return;
    path.lastArrivalMs = nowMs;
    path.limit = path.order.length + OUTSTANDING_MIN;
  }

  /** Orders packets that every proxy must send: disputed generations and, in a stall, everything that is missing. */
  #askAlone({ path, loss, quiet }: Source, nowMs: number): void {
    const stalled = nowMs - this.#progressMs > STALL_MS + STALL_ROUND_TRIPS * path.roundTrip.latestMs;
    if (!stalled && this.#assembly.disputed.size === 0) return;
    const proxyIndex = this.#paths.indexOf(path);
    for (let index = this.#assembly.base; index < this.#geometry.generationCount; index++) {
      if (!stalled && !this.#assembly.isDisputed(index)) continue;
      if (this.#holdings?.holds(proxyIndex, index) === false) continue;
      const sent = quiet ? [] : path.order.slice(path.next);
      const underWay = sent.filter((other) => other === index).length * (1 - loss);
      for (let left = this.#assembly.missingFrom(proxyIndex, index, stalled) - underWay; left > 0; left -= 1 - loss) {
        if (path.order.length >= path.limit) return;
        path.orderMore(index);
      }
    }
  }

  /** Serves the generations in their order, until no proxy may be given more. */
  #spread(sources: readonly Source[], doubt: number, nowMs: number): void {
    if (sources.length === 0) return;
    const lastCallMs = this.#lastCallMs(sources, nowMs);
    for (let index = this.#assembly.base; index < this.#geometry.generationCount; index++) {
      const need = this.#assembly.missing(index);
      this.#frontier = index;
      if (need > 0 && !this.#fill(index, need, sources, { nowMs, lastCallMs, doubt })) return;
    }
  }

  /**
   * Each generation comes from the proxies that hold it. When they are late or gone, another proxy that has nothing
   * else to send gets it: protocol.md §11.3.
   */
  #spreadHeld(holdings: Holdings, sources: readonly Source[], doubt: number, nowMs: number): void {
    if (sources.length === 0) return;
    const margin = { nowMs, lastCallMs: this.#lastCallMs(sources, nowMs), doubt };
    const indexes = sources.map(({ path }) => this.#paths.indexOf(path));
    const orphans: number[] = [];
    /** For each source, the generations that it alone holds. */
    const alone: number[][] = sources.map(() => []);
    for (let index = this.#assembly.base; index < this.#geometry.generationCount; index++) {
      const need = this.#assembly.missing(index);
      if (need <= 0) continue;
      if (this.#isOrphan(holdings, index, nowMs)) {
        orphans.push(index);
        continue;
      }
      const holders = sources.filter((_, at) => holdings.holds(indexes[at]!, index));
      if (holders.length === 0) continue;
      if (holders.length === 1) alone[sources.indexOf(holders[0]!)]!.push(index);
      // What may not be granted yet takes its time, too.
      if (!this.#fill(index, need, holders, margin))
        for (const holder of holders) holder.atMs += (need * holder.gapMs) / holders.length;
    }
    for (const index of orphans) {
      const others = sources.filter((_, at) => !holdings.holds(indexes[at]!, index));
      const source = soonestFree(others);
      if (source) this.#give(holdings, source, index, nowMs);
      if (source || others.length === 0)
        this.#fill(index, this.#assembly.missing(index), source ? [source] : sources, margin);
    }
    this.#relieve(holdings, sources, alone, nowMs);
  }

  /** No proxy that holds the generation has brought anything new for long. */
  #isOrphan(holdings: Holdings, index: number, nowMs: number): boolean {
    return this.#paths.every(
      (path, at) => !holdings.holds(at, index) || path.gone || nowMs - this.#broughtMs[at]! > LATE_MS,
    );
  }

  /** From now on the proxy may be granted this generation. */
  #give(holdings: Holdings, { path }: Source, index: number, nowMs: number): void {
    const proxyIndex = this.#paths.indexOf(path);
    holdings.add(proxyIndex, index);
    this.#broughtMs[proxyIndex] = nowMs;
  }

  /**
   * Proxies with nothing to send take over the last generations of the proxy that would be ready last, while they would
   * be ready well before it.
   */
  #relieve(holdings: Holdings, sources: readonly Source[], alone: readonly number[][], nowMs: number): void {
    for (;;) {
      const free = soonestFree(sources);
      const [late] = [...sources.keys()]
        .filter((at) => alone[at]!.length > 0)
        .sort((a, b) => sources[b]!.atMs - sources[a]!.atMs);
      if (!free || late === undefined) return;
      const index = alone[late]!.pop()!;
      const missing = this.#assembly.missing(index);
      if (sources[late]!.atMs <= free.atMs + LATE_MS + missing * free.gapMs) return;
      this.#give(holdings, free, index, nowMs);
      sources[late]!.atMs -= missing * sources[late]!.gapMs;
      free.atMs += missing * free.gapMs;
    }
  }

  /** A packet that comes after this time leaves none to ask again before the chunk's end. */
  #lastCallMs(sources: readonly Source[], nowMs: number): number {
    let missing = 0;
    for (let index = this.#assembly.base; index < this.#geometry.generationCount; index++)
      missing += this.#assembly.missing(index);
    const endMs = nowMs + missing / sources.reduce((sum, { gapMs, loss }) => sum + (1 - loss) / gapMs, 0);
    return endMs - this.grantEveryMs - SLACK_MS - Math.min(...sources.map(({ rttMs }) => rttMs));
  }

  /**
   * Takes or orders packets of a generation until its need and a margin are met. The margin is larger when no time is
   * left to ask again. Returns false when no proxy may be given more.
   */
  #fill(index: number, need: number, sources: readonly Source[], { nowMs, lastCallMs, doubt }: Margin): boolean {
    let overtaken = this.#overtaken.get(index) ?? 0;
    let variance = 0;
    let sigmas = SIGMAS;
    for (const { coming } of sources) coming.select(index);
    let known = soonestComing(sources);
    let source = soonestNew(sources);
    while (need + sigmas * Math.sqrt(variance) > (variance > 0 ? NEED_LEFT : 0)) {
      const knownMs = Math.min(known?.coming.atMs ?? Infinity, overtaken > 0 ? nowMs : Infinity);
      const newMs = source?.atMs ?? Infinity;
      if (Math.min(knownMs, newMs) >= lastCallMs) sigmas = SIGMAS_LAST;
      let [loss, unseen] = [0, 0];
      if (knownMs > newMs) {
        ({ loss, unseen } = source!);
        orderFrom(source!, index);
        source = soonestNew(sources);
      } else if (known?.coming.atMs === knownMs) {
        ({ loss, unseen } = known);
        known.coming.take();
        known = soonestComing(sources);
      } else if (overtaken > 0) overtaken--;
      else return false;
      need -= 1 - loss;
      const assumed = sigmas === SIGMAS_LAST ? Math.max(loss, unseen) : loss;
      variance += assumed * (1 - assumed) * doubt;
    }
    return true;
  }
}

function rememberedOf(known: KnownPath | undefined, packetBytes: number): Remembered | undefined {
  return known && { rttMs: known.rttMs, perMs: (known.bytesPerSec ?? 0) / 1000 / packetBytes, loss: known.loss };
}
