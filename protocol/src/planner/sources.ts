/**
 * Sources: each proxy as one plan sees it. A source tells what is on its way from the proxy, when more could come, and
 * how much gets lost. It decides nothing: planner.ts chooses. Pure: time arrives as `nowMs`. Rules: protocol.md §8.7 to
 * §8.10.
 */
import type { Coming } from "./coming";
import type { Path } from "./path";
import { AHEAD_MS, SLACK_MS } from "./round-trip";

/** A proxy may always have this many packets on their way. */
export const OUTSTANDING_MIN = 8;
/** The loss of all proxies counts in a proxy's loss as if this many of its own packets had shown it. */
export const LOSS_PACKETS_SHARED = 32;
/**
 * A packet on its way is preferred to a new one unless the new one would come sooner by this, or by the longest pause
 * of the proxy.
 */
const PATIENCE_MS = 5;
/** When no time is left to ask again, at least this many of the packets that came count as lost. */
const UNSEEN_LOST = 0.25;

export interface Source {
  readonly path: Path;
  /** Nothing is expected of the proxy. */
  readonly quiet: boolean;
  /** The chance that a packet brings nothing. */
  readonly loss: number;
  /** The loss that may well exist although too few packets came to show it. */
  readonly unseen: number;
  readonly gapMs: number;
  readonly rttMs: number;
  /** When a packet that is ordered now can be here. */
  readonly soonestMs: number;
  /** When the next packet to be ordered would come. It is one packet late, so that a slow proxy is believed less. */
  atMs: number;
  /** The packets on their way. Each counts as earlier than expected, so that a new one rarely replaces it. */
  readonly coming: Coming;
}

/** A proxy that is quiet or useless. No packet is on its way, and the plan gives it no packets. */
export function quietSource(path: Path, coming: Coming, loss: number, perMs: number, nowMs: number): Source {
  const rttMs = path.delayMs;
  path.limit = 0;
  coming.clear();
  const soonestMs = nowMs + rttMs;
  return { ...sourceBase(path, coming, loss), quiet: true, gapMs: 1 / perMs, rttMs, soonestMs, atMs: soonestMs };
}

/**
 * Collects the packets on their way from this proxy that a new grant cannot change. The other packets are removed from
 * its order.
 */
export function liveSource(
  path: Path,
  coming: Coming,
  loss: number,
  perMs: number,
  sharedMs: number,
  nowMs: number,
): Source {
  const { order } = path;
  const rttMs = path.delayMs;
  const gapMs = 1 / perMs;
  const young = path.isYoung(nowMs);
  if (!young && !path.isAsked) order.length = Math.min(order.length, path.sentBy(perMs, nowMs + SLACK_MS));
  coming.begin(order, path.next);
  const patienceMs = Math.max(PATIENCE_MS, path.rate.pauseMs);
  let atMs = Math.max(path.lastArrivalMs + gapMs, nowMs);
  for (let sequence = path.next; sequence < order.length; sequence++) {
    atMs = Math.max(atMs + gapMs, path.soonestMs[sequence] ?? 0);
    coming.setTime(sequence, atMs - patienceMs - sharedMs);
  }
  path.limit = young ? 0 : path.next + reachOf(path, perMs, nowMs);
  const soonestMs = nowMs + rttMs + SLACK_MS;
  const nextMs = Math.max(atMs + gapMs, soonestMs);
  return { ...sourceBase(path, coming, loss), quiet: false, gapMs, rttMs, soonestMs, atMs: nextMs };
}

/** A known proxy that has not answered yet. The plan expects only the packets of its first share. */
export function expectedSource(path: Path, coming: Coming, loss: number, gapMs: number, firstMs: number): Source {
  coming.begin(path.order, 0);
  for (let sequence = 0; sequence < path.order.length; sequence++)
    coming.setTime(sequence, firstMs + sequence * gapMs - PATIENCE_MS);
  path.limit = 0;
  const rttMs = path.roundTrip.latestMs;
  return { ...sourceBase(path, coming, loss), quiet: false, gapMs, rttMs, soonestMs: Infinity, atMs: Infinity };
}

function sourceBase(path: Path, coming: Coming, loss: number) {
  const { received, lost } = path.loss;
  return { path, coming, loss, unseen: UNSEEN_LOST / (received + lost + LOSS_PACKETS_SHARED) };
}

/**
 * How many packets beyond the last one received a proxy may be granted. A rate is believed for as long as it has been
 * seen, and a rate that congestion control still holds down says little. A grant has to reach beyond a pause, since no
 * grant grows during it.
 */
function reachOf(path: Path, perMs: number, nowMs: number): number {
  const aheadMs = Math.min(AHEAD_MS + path.rate.pauseMs, path.rate.seenMs(nowMs));
  return Math.max(OUTSTANDING_MIN, perMs * (path.roundTrip.leastMs + SLACK_MS + aheadMs), path.openingPackets(nowMs));
}

/** The source whose packet of the selected generation comes first among those on their way. */
export function soonestComing(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  for (const source of sources) if (source.coming.atMs <= (best?.coming.atMs ?? Number.MAX_VALUE)) best = source;
  return best;
}

/**
 * The source that could bring a new packet first. Undefined when no source may get more packets. A source that may not
 * get more yet still counts, because it will get the packet later. So the plan does not ask a far proxy for a packet
 * that a near one brings sooner.
 */
export function soonestNew(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  let isAnyFree = false;
  for (const source of sources) {
    isAnyFree ||= isFree(source);
    if (!best || source.atMs < best.atMs) best = source;
  }
  return isAnyFree ? best : undefined;
}

/** The source that could bring a new packet first, among those that may get more. */
export function soonestFree(sources: readonly Source[]): Source | undefined {
  let best: Source | undefined;
  for (const source of sources) if (isFree(source) && source.atMs < (best?.atMs ?? Infinity)) best = source;
  return best;
}

/** Gives the source the next packet; if it may not have more yet, the packet only takes its time there. */
export function orderFrom(source: Source, generationIndex: number): void {
  if (isFree(source)) source.path.orderMore(generationIndex, source.soonestMs);
  source.atMs += source.gapMs;
}

function isFree({ path }: Source): boolean {
  return path.order.length < path.limit;
}
