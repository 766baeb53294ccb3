/**
 * Mode `coded` at the client: how many packets of which generation each proxy is to send. Every packet that a
 * generation still needs comes from where it would come first, be it on its way already or to be ordered now. Pure.
 * Specification: docs/spec/protocol.md §8.
 */
import type { Assembly } from "../receiver/assembly";
import { Coming } from "./coming";
import { Flow } from "./flow";
import type { Geometry } from "../geometry";
import { firstPackets, runsOf } from "../sender/grants";
import type { Beginning, KnownPath } from "./known";
import { LIMITS, TIMING } from "../limits";
import { Path, type Remembered } from "./path";
import { AHEAD_MS, SLACK_MS } from "./round-trip";
import type { DataFrame, Run, Share } from "../types";

/** A proxy may always have this many packets on their way. */
const OUTSTANDING_MIN = 8;
/**
 * What is on its way is left to come unless another could bring it by so much sooner, or by as long as the proxy was
 * seen to pause.
 */
const PATIENCE_MS = 5;
/** Redundancy in standard deviations of what may get lost: while another round is possible, and when it is not. */
const SIGMAS = 1;
const SIGMAS_LAST = 3;
/** A need under this is not worth a packet: expected loss is a fraction, and coded packets may be dependent. */
const NEED_LEFT = 0.3;
/** What one proxy loses is held to be what all lose together as long as it has sent less than this. */
const LOSS_PACKETS_SHARED = 32;
/** With no time left to ask again, so many packets of those that came are supposed to have been lost at least. */
const UNSEEN_LOST = 0.25;
/** Without progress for this long and two round trips, what is missing is asked of each proxy by itself: §9.5. */
const STALL_MS = 200;

/** A proxy while grants are planned. */
interface Source {
  readonly path: Path;
  /** Nothing is expected of it. */
  readonly quiet: boolean;
  readonly loss: number;
  /** The loss that may well be there although none was seen in so few packets. */
  readonly unseen: number;
  readonly gapMs: number;
  readonly rttMs: number;
  /** When a packet that is ordered now can be here. */
  readonly soonestMs: number;
  /** When the next packet to be ordered would have come, reckoned one packet late: a slow proxy is believed less. */
  atMs: number;
  /** What is on its way from there, each at its time less the time that it is worth waiting for it. */
  readonly coming: Coming;
}

export class Planner {
  readonly #paths: Path[];
  /** By path. */
  readonly #comings: Coming[];
  /** Packets that others have overtaken and that may still come, by generation. */
  readonly #overtaken = new Map<number, number>();
  /** Generations from this one on are not all granted yet. */
  #frontier = 0;
  #progressMs: number;
  readonly #flow = new Flow();
  /** All proxies are to be granted anew this often. */
  grantEveryMs: number = TIMING.grantEveryMsMin;
  /** So many times the variance of losses, as long as few packets have shown how many are lost. */
  #doubt = 1;

  readonly #geometry: Geometry;
  readonly #assembly: Assembly;
  readonly #beginnings: readonly Beginning[];

  constructor(
    geometry: Geometry,
    assembly: Assembly,
    beginnings: readonly Beginning[],
    known: readonly (KnownPath | undefined)[],
    /** When each proxy was asked first; undefined: it was not yet. */
    askedMs: readonly (number | undefined)[],
    packetBytes: number,
    nowMs: number,
  ) {
    this.#geometry = geometry;
    this.#assembly = assembly;
    this.#beginnings = beginnings;

    this.#progressMs = nowMs;
    this.#paths = beginnings.map(
      ({ share, windowPackets }, index) =>
        new Path(
          firstPackets(geometry, share, windowPackets),
          nowMs,
          askedMs[index],
          rememberedOf(known[index], packetBytes),
        ),
    );
    this.#comings = this.#paths.map(() => new Coming());
  }

  handleRoundTrip(proxyIndex: number, rttMs: number): void {
    this.#paths[proxyIndex]!.roundTrip.handleSample(rttMs);
  }

  handleHeard(proxyIndex: number, nowMs: number): void {
    this.#paths[proxyIndex]!.handleHeard(nowMs);
  }

  /** The proxy sends nothing any more, or does so again. */
  handleGone(proxyIndex: number, gone: boolean): void {
    this.#paths[proxyIndex]!.gone = gone;
  }

  /** The proxy begins anew. */
  handleBack(proxyIndex: number, nowMs: number): void {
    this.#paths[proxyIndex]!.restart(nowMs);
  }

  /** The share with which a proxy is to begin that is asked now: of what the others are not granted yet. */
  shareFor(proxyIndex: number, nowMs: number): Share {
    const { share: all, windowPackets } = this.#beginnings[proxyIndex]!;
    const share = { ...all, firstGeneration: this.#frontier };
    this.#paths[proxyIndex]!.handleAsked(firstPackets(this.#geometry, share, windowPackets), nowMs);
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

  handleData(proxyIndex: number, frame: DataFrame, useful: boolean, nowMs: number): void {
    this.#flow.packets++;
    this.#paths[proxyIndex]!.handleData(frame, useful, nowMs);
  }

  /** What is worth remembering of a proxy; undefined as long as too little has come. */
  knownOf(proxyIndex: number, packetBytes: number): KnownPath | undefined {
    return this.#paths[proxyIndex]!.toRemember(packetBytes);
  }

  /** A fresh plan for all; `grantFor` then gives each proxy its part. */
  replan(nowMs: number): void {
    const able = this.#paths.filter((path) => !path.gone && path.heard);
    if (this.#flow.hasFallen(nowMs)) for (const path of able) path.handleLess();
    const roundMs = Math.min(...able.map((path) => path.roundTrip.leastMs));
    this.grantEveryMs = Math.max(
      TIMING.grantEveryMsMin,
      Math.min(roundMs / TIMING.grantsPerRoundTrip, TIMING.grantEveryMsMax),
    );
    for (const path of able) path.loss.settle(nowMs);
    this.#noteOvertaken(able);
    const losses = this.#losses();
    const sharedMs = Math.max(0, Math.min(...able.map((path) => path.roundTrip.latestMs - path.roundTrip.leastMs)));
    const sources = able.map((path) => this.#sourceOf(path, losses(path), sharedMs, nowMs));
    const live = sources.filter(({ quiet }) => !quiet);
    if (live.length === 0) for (const path of able) this.#askAnew(path, nowMs);
    for (const source of sources) this.#askAlone(source, nowMs);
    this.#spread(live.length > 0 ? [...live, ...this.#expected(live, losses, nowMs)] : sources, nowMs);
  }

  /** What the proxy is to send from its next packet on. */
  grantFor(
    proxyIndex: number,
    nowMs: number,
  ): { grantSequence: number; fromSequence: number; base: number; runs: Run[] } {
    const path = this.#paths[proxyIndex]!;
    const runs = runsOf(path.order, path.next, LIMITS.grantRunsMax);
    return {
      grantSequence: path.nextGrant(path.order.length >= path.limit, nowMs),
      fromSequence: path.next,
      base: this.#assembly.base,
      runs,
    };
  }

  /**
   * The chance that a packet of a path brings nothing. Loss is what was seen there, leaning on what was seen on all.
   */
  #losses(): (path: Path) => number {
    const lost = this.#paths.reduce((sum, path) => sum + path.loss.lost, 0);
    const received = this.#paths.reduce((sum, path) => sum + path.loss.received, 0);
    const shared = lost / (lost + received + LOSS_PACKETS_SHARED);
    this.#doubt = 1 + this.#geometry.generationSize / (lost + received + LOSS_PACKETS_SHARED);
    return (path) =>
      1 -
      path.loss.usefulShare *
        (1 -
          (path.loss.lost + shared * LOSS_PACKETS_SHARED) /
            (path.loss.lost + path.loss.received + LOSS_PACKETS_SHARED));
  }

  #noteOvertaken(able: readonly Path[]): void {
    this.#overtaken.clear();
    for (const { loss, order } of able) {
      for (const sequence of loss.gaps.keys())
        this.#overtaken.set(order[sequence]!, 1 + (this.#overtaken.get(order[sequence]!) ?? 0));
    }
  }

  /**
   * Collects what is on its way from there and can no longer be changed; what can is taken back. Of a quiet or useless
   * one nothing is expected.
   */
  #sourceOf(path: Path, loss: number, sharedMs: number, nowMs: number): Source {
    const { order } = path;
    const rttMs = path.delayMs;
    const coming = this.#comings[this.#paths.indexOf(path)]!;
    const perMs = path.perMs(sharedMs, nowMs);
    const gapMs = 1 / perMs;
    if (path.loss.isUseless || path.isQuiet(perMs, nowMs)) {
      path.limit = 0;
      if (path.isToBeAsked(perMs, nowMs)) this.#askMore(path);
      coming.clear();
      return {
        path,
        quiet: true,
        loss,
        unseen: unseenOf(path),
        gapMs,
        rttMs,
        soonestMs: nowMs + rttMs,
        atMs: nowMs + rttMs,
        coming,
      };
    }
    const young = path.isYoung(nowMs);
    if (!young && !path.isAsked) order.length = Math.min(order.length, path.sentBy(perMs, nowMs + SLACK_MS));
    coming.begin(order, path.next);
    let atMs = Math.max(path.lastArrivalMs + gapMs, nowMs);
    for (let sequence = path.next; sequence < order.length; sequence++) {
      atMs = Math.max(atMs + gapMs, path.soonestMs[sequence] ?? 0);
      coming.setTime(sequence, atMs - Math.max(PATIENCE_MS, path.rate.pauseMs) - sharedMs);
    }
    path.limit = young ? 0 : path.next + reachOf(path, perMs, nowMs);
    return {
      path,
      quiet: false,
      loss,
      unseen: unseenOf(path),
      gapMs,
      rttMs,
      soonestMs: nowMs + rttMs + SLACK_MS,
      atMs: Math.max(atMs + gapMs, nowMs + rttMs + SLACK_MS),
      coming,
    };
  }

  /**
   * Proxies that have not answered yet and will, by what is known of them: they bring what they were asked for first.
   */
  #expected(live: readonly Source[], losses: (path: Path) => number, nowMs: number): Source[] {
    const meanMs = live.reduce((sum, { gapMs }) => sum + gapMs, 0) / live.length;
    return this.#paths.flatMap((path, index) => {
      const firstMs = path.gone ? undefined : path.expectedMs(nowMs);
      if (firstMs === undefined) return [];
      const perMs = path.perMs(0, nowMs);
      const gapMs = perMs > 0 ? 1 / perMs : meanMs;
      const coming = this.#comings[index]!;
      coming.begin(path.order, 0);
      for (let sequence = 0; sequence < path.order.length; sequence++)
        coming.setTime(sequence, firstMs + sequence * gapMs - PATIENCE_MS);
      path.limit = 0;
      return {
        path,
        quiet: false,
        loss: losses(path),
        unseen: unseenOf(path),
        gapMs,
        rttMs: path.roundTrip.latestMs,
        soonestMs: Infinity,
        atMs: Infinity,
        coming,
      };
    });
  }

  /** One packet more than it was ever granted, at least. */
  #askMore(path: Path): void {
    do path.orderMore(Math.min(this.#assembly.base, this.#geometry.generationCount - 1));
    while (path.order.length <= path.quota);
    path.limit = path.order.length + OUTSTANDING_MIN;
  }

  /** As one that is not quiet. */
  #askAnew(path: Path, nowMs: number): void {
    if (path.loss.isUseless) return;
    path.lastArrivalMs = nowMs;
    path.limit = path.order.length + OUTSTANDING_MIN;
  }

  /** What each proxy is to give by itself: disputed generations and, in a stall, all that is missing. */
  #askAlone({ path, loss, quiet }: Source, nowMs: number): void {
    const stalled = nowMs - this.#progressMs > STALL_MS + 2 * path.roundTrip.latestMs;
    const proxyIndex = this.#paths.indexOf(path);
    if (!stalled && this.#assembly.disputed.size === 0) return;
    for (let index = this.#assembly.base; index < this.#geometry.generationCount; index++) {
      if (!stalled && !this.#assembly.isDisputed(index)) continue;
      const sent = quiet ? [] : path.order.slice(path.next);
      const underWay = sent.filter((other) => other === index).length * (1 - loss);
      for (let left = this.#assembly.missingFrom(proxyIndex, index) - underWay; left > 0; left -= 1 - loss) {
        if (path.order.length >= path.limit) return;
        path.orderMore(index);
      }
    }
  }

  /** In the order of the generations: each its need, and a margin, larger where no time is left to ask again. */
  #spread(sources: readonly Source[], nowMs: number): void {
    const { generationCount } = this.#geometry;
    if (sources.length === 0) return;
    let left = 0;
    for (let index = this.#assembly.base; index < generationCount; index++) left += this.#assembly.missing(index);
    const endMs = nowMs + left / sources.reduce((sum, { gapMs, loss }) => sum + (1 - loss) / gapMs, 0);
    const lastCallMs = endMs - this.grantEveryMs - SLACK_MS - Math.min(...sources.map(({ rttMs }) => rttMs));
    for (let index = this.#assembly.base; index < generationCount; index++) {
      const need = this.#assembly.missing(index);
      this.#frontier = index;
      if (need > 0 && !this.#fill(index, need, sources, { nowMs, lastCallMs })) return;
    }
  }

  /** Orders packets of a generation until its need is met; false when no proxy may be given more. */
  #fill(
    index: number,
    need: number,
    sources: readonly Source[],
    { nowMs, lastCallMs }: { nowMs: number; lastCallMs: number },
  ): boolean {
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
        order(source!, index);
        source = soonestNew(sources);
      } else if (known?.coming.atMs === knownMs) {
        ({ loss, unseen } = known);
        known.coming.take();
        known = soonestComing(sources);
      } else if (overtaken > 0) overtaken--;
      else return false;
      need -= 1 - loss;
      const supposed = sigmas === SIGMAS_LAST ? Math.max(loss, unseen) : loss;
      variance += supposed * (1 - supposed) * this.#doubt;
    }
    return true;
  }
}

function unseenOf({ loss: { received, lost } }: Path): number {
  return UNSEEN_LOST / (received + lost + LOSS_PACKETS_SHARED);
}

function rememberedOf(known: KnownPath | undefined, packetBytes: number): Remembered | undefined {
  return known && { rttMs: known.rttMs, perMs: (known.bytesPerSec ?? 0) / 1000 / packetBytes, loss: known.loss };
}

/**
 * How many packets beyond the last one received a proxy may be granted: a rate is believed for as long as it has been
 * seen, and one that congestion control still holds down says little. While packets pause no grant grows: it has to
 * reach beyond the pause.
 */
function reachOf(path: Path, perMs: number, nowMs: number): number {
  const aheadMs = Math.min(AHEAD_MS + path.rate.pauseMs, path.rate.seenMs(nowMs));
  return Math.max(OUTSTANDING_MIN, perMs * (path.roundTrip.leastMs + SLACK_MS + aheadMs), path.openingPackets(nowMs));
}

/** The proxy from which the next packet of the generation looked at comes first, of those on their way. */
function soonestComing(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  for (const source of sources) if (source.coming.atMs <= (best?.coming.atMs ?? Number.MAX_VALUE)) best = source;
  return best;
}

/**
 * The proxy from which a packet more would come first, as long as any may be given more. One that may not, yet, counts
 * all the same: it will be given it later, so that a far proxy is not asked for what a near one will have brought by
 * then.
 */
function soonestNew(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  let isAnyFree = false;
  for (const source of sources) {
    isAnyFree ||= isFree(source);
    if (!best || source.atMs < best.atMs) best = source;
  }
  return isAnyFree ? best : undefined;
}

function isFree({ path }: Source): boolean {
  return path.order.length < path.limit;
}

function order(source: Source, index: number): void {
  if (isFree(source)) source.path.orderMore(index, source.soonestMs);
  source.atMs += source.gapMs;
}
