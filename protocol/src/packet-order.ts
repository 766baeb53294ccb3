/**
 * Packet order of mode `coded`: which generation each packet of a proxy belongs to, by its share and in its grants.
 * Both ends compute the same order from the same share. Pure arithmetic. Rules: protocol.md §8.2 to §8.4.
 */
import { symbolsIn, type Geometry } from "./geometry";
import type { GrantedRun, Share } from "./types";

const SHARE_WHOLE = 65535;
/** Closing packets belong to this many last generations in turn, so that none of them waits for a repair. */
const CLOSING_GENERATIONS = 4;
/** The golden ratio spreads any stretch of places evenly over a generation. */
const GOLDEN_RATIO = 0.618;
/** The count of a run travels in 8 bits. */
const RUN_PACKETS_MAX = 255;

/**
 * The generation of each packet that a proxy with this share begins with, at most `limit` packets. One packet more of
 * the first generation lets the first bytes arrive without waiting for a repair. Closing packets at the end grow with
 * the square root of the share, so that a short chunk survives losses and a slow proxy without a second request.
 */
export function firstPackets(geometry: Geometry, share: Share, limit: number): number[] {
  const { generationCount } = geometry;
  const order: number[] = [];
  const add = (index: number, count: number) => {
    for (let left = Math.min(count, limit - order.length); left > 0; left--) order.push(index);
  };
  for (let index = share.firstGeneration; index < generationCount && order.length < limit; index++) {
    const { start, end } = placesOf(share, symbolsIn(geometry, index));
    add(index, end - start + (index === 0 && generationCount > 1 ? 1 : 0));
  }
  const closing = generationCount > 0 ? Math.max(1, Math.ceil(Math.sqrt(order.length))) : 0;
  for (let at = 0; at < closing; at++)
    add(generationCount - 1 - (at % Math.min(CLOSING_GENERATIONS, generationCount)), 1);
  return order;
}

/** The places of a share in a generation of `symbolCount` symbols, from `start` to before `end`. */
function placesOf({ start, end }: Share, symbolCount: number): { start: number; end: number } {
  const upTo = (part: number) => Math.floor((symbolCount * part) / SHARE_WHOLE);
  return { start: upTo(start), end: upTo(end) };
}

/**
 * The source symbols of a generation that a share holds, in ascending order. They are spread over the generation, so
 * that every proxy can send something while the body is still arriving: place p is symbol p * step modulo the count.
 * The step is the first number from 0.618 of the count on that shares no divisor with the count.
 */
export function symbolsOf(share: Share, symbolCount: number): Uint8Array {
  let step = Math.max(1, Math.round(GOLDEN_RATIO * symbolCount));
  while (greatestDivisor(step, symbolCount) > 1) step++;
  const { start, end } = placesOf(share, symbolCount);
  return Uint8Array.from({ length: end - start }, (_, at) => ((start + at) * step) % symbolCount).sort();
}

function greatestDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestDivisor(b, a % b);
}

/** Shares of proxies in proportion to their weights. Every packet of a generation is in exactly one of them. */
export function sharesOf(weights: readonly number[]): Share[] {
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  let upTo = 0;
  const ends = weights.map((weight) => Math.floor(((upTo += weight) * SHARE_WHOLE) / whole));
  return ends.map((end, index) => ({ start: ends[index - 1] ?? 0, end, firstGeneration: 0 }));
}

/** The order from sequence `from` on as runs, at most `limit` of them. */
export function runsOf(order: readonly number[], from: number, limit: number): GrantedRun[] {
  const runs: GrantedRun[] = [];
  for (let at = from; at < order.length; at++) {
    const last = runs.at(-1);
    if (last && last.generationIndex === order[at] && last.count < RUN_PACKETS_MAX) last.count++;
    else if (runs.length < limit) runs.push({ generationIndex: order[at]!, count: 1 });
    else break;
  }
  return runs;
}
