/**
 * Mode `coded` at the proxy: packets are sent in the order that the client granted, and no further. Before the first
 * grant the order follows from the proxy's share. Specification: docs/spec/protocol.md §8.
 */
import { symbolsIn, type Geometry } from "../geometry";
import { LIMITS } from "../limits";
import type { Schedule } from "./schedule";
import type { GrantFrame, Run, Share } from "../types";

const SHARE_WHOLE = 65535;
/** Closing repair: so many times the square root of the packets before it, of the last generations in turn. */
const CLOSING = 1;
const CLOSING_GENERATIONS = 4;

/**
 * The generation of each packet that a proxy with this share begins with, `limit` packets at most. What may get lost
 * before the client can say so is covered: one packet more of the first generation, so that the first bytes need not
 * wait for a repair; and after the last one repair packets that grow with the square root of the share, so that a short
 * chunk outlives losses, and delays of a proxy, without asking again.
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
  const closing = generationCount > 0 ? Math.max(1, Math.ceil(CLOSING * Math.sqrt(order.length))) : 0;
  for (let at = 0; at < closing; at++)
    add(generationCount - 1 - (at % Math.min(CLOSING_GENERATIONS, generationCount)), 1);
  return order;
}

/** The places of a generation of so many symbols that are in a share, from `start` to before `end`. */
function placesOf({ start, end }: Share, symbolCount: number): { start: number; end: number } {
  const upTo = (part: number) => Math.floor((symbolCount * part) / SHARE_WHOLE);
  return { start: upTo(start), end: upTo(end) };
}

/**
 * The source symbols that a share has of a generation, in order. They are spread over the generation, so that of a body
 * that is still arriving every proxy has something to send: place p is symbol p * step modulo the count, the step being
 * the first number from 0.618 of the count on that shares no divisor with it (the golden ratio spreads any stretch).
 */
export function symbolsOf(share: Share, symbolCount: number): Uint8Array {
  let step = Math.max(1, Math.round(0.618 * symbolCount));
  while (divisor(step, symbolCount) > 1) step++;
  const { start, end } = placesOf(share, symbolCount);
  return Uint8Array.from({ length: end - start }, (_, at) => ((start + at) * step) % symbolCount).sort();
}

function divisor(a: number, b: number): number {
  return b === 0 ? a : divisor(b, a % b);
}

/** Shares of proxies in proportion to their weights; every packet of a generation is in exactly one of them. */
export function sharesOf(weights: readonly number[]): Share[] {
  const whole = weights.reduce((sum, weight) => sum + weight, 0);
  let upTo = 0;
  const ends = weights.map((weight) => Math.floor(((upTo += weight) * SHARE_WHOLE) / whole));
  return ends.map((end, index) => ({ start: ends[index - 1] ?? 0, end, firstGeneration: 0 }));
}

/** Packets in order as runs; `limit` runs at most, of at most 255 packets each. */
export function runsOf(order: readonly number[], from: number, limit: number): Run[] {
  const runs: Run[] = [];
  for (let at = from; at < order.length; at++) {
    const last = runs.at(-1);
    if (last && last.generationIndex === order[at] && last.count < 255) last.count++;
    else if (runs.length < limit) runs.push({ generationIndex: order[at]!, count: 1 });
    else break;
  }
  return runs;
}

export class GrantedSchedule implements Schedule {
  /** 0 before the first grant: grants count from 1. */
  lastGrantSequence = 0;
  /**
   * The source symbol of its generation that the packet taken last carries: those of the share come first, as they are,
   * since no other proxy has them; after them packets are coded, and this is undefined.
   */
  symbolIndex: number | undefined;
  #sent = 0;
  readonly #order: number[];
  /** The symbols of the share in a generation of `count`: all but the last one have the same. */
  #symbols: { count: number; own: Uint8Array } = { count: 0, own: new Uint8Array(0) };
  /** Source symbols sent, by generation. */
  readonly #symbolsSent: Uint8Array;

  readonly #geometry: Geometry;
  readonly #share: Share;

  constructor(geometry: Geometry, share: Share, limit: number) {
    this.#geometry = geometry;
    this.#share = share;

    this.#order = firstPackets(geometry, share, limit);
    this.#symbolsSent = new Uint8Array(geometry.generationCount);
  }

  next(availableBytes: number): number | undefined {
    const index = this.#order[this.#sent];
    if (index === undefined) return undefined;
    const { generationSize, symbolBytes, totalBytes } = this.#geometry;
    const own = this.#ownSymbol(index);
    const upTo = own === undefined ? (index + 1) * generationSize : index * generationSize + own + 1;
    if (availableBytes < Math.min(upTo * symbolBytes, totalBytes)) return undefined;
    this.#sent++;
    this.symbolIndex = own;
    if (own !== undefined) this.#symbolsSent[index]!++;
    return index;
  }

  following(index: number, limit: number): number {
    let count = 0;
    while (count < limit && this.#order[this.#sent + count] === index) count++;
    return count;
  }

  #ownSymbol(index: number): number | undefined {
    if (index < this.#share.firstGeneration) return undefined;
    const symbolCount = symbolsIn(this.#geometry, index);
    if (this.#symbols.count !== symbolCount)
      this.#symbols = { count: symbolCount, own: symbolsOf(this.#share, symbolCount) };
    return this.#symbols.own[this.#symbolsSent[index]!];
  }

  /**
   * Replaces what is not sent yet. What is sent of it already is left out, wherever in the order it was sent: what is
   * granted first comes next. An old grant, or one that begins beyond what is sent, changes nothing: so no more is kept
   * than one grant tells, nor more than the chunk and a window could need.
   */
  grant({ grantSequence, fromSequence, runs }: GrantFrame): void {
    const order = this.#order;
    if (grantSequence <= this.lastGrantSequence || fromSequence > this.#sent) return;
    this.lastGrantSequence = grantSequence;
    order.length = this.#sent;
    const sentOf = new Map<number, number>();
    for (const index of order.slice(fromSequence)) sentOf.set(index, 1 + (sentOf.get(index) ?? 0));
    const most = this.#sent + this.#geometry.symbolCount + LIMITS.windowPacketsMax;
    const end = Math.min(
      runs.reduce((sum, { count }) => sum + count, fromSequence),
      most,
    );
    for (const { generationIndex, count } of runs) {
      if (generationIndex >= this.#geometry.generationCount) continue;
      const sent = sentOf.get(generationIndex) ?? 0;
      sentOf.set(generationIndex, Math.max(0, sent - count));
      for (let left = Math.min(count - sent, end - order.length); left > 0; left--) order.push(generationIndex);
    }
  }

  acknowledge(): void {}
  release(): void {}
  decided(): boolean {
    return true;
  }
}
