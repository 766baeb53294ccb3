/**
 * Mode `coded` at the proxy: packets are sent in the order that the client granted, and no further. Before the first
 * grant the order follows from the proxy's share. Specification: docs/protocol.md §8.
 */
import { symbolsIn, type Geometry } from "./geometry";
import type { Schedule } from "./schedule";
import type { GrantFrame, Run, Share } from "./types";

const SHARE_WHOLE = 65535;

/**
 * The generation of each packet that a proxy with this share begins with, `limit` packets at most; one more packet of
 * the last generation closes it, so that a short chunk outlives a loss without asking again.
 */
export function firstPackets(geometry: Geometry, share: Share, limit: number): number[] {
  const order: number[] = [];
  for (let index = 0; index < geometry.generationCount && order.length < limit; index++) {
    const symbols = symbolsIn(geometry, index);
    const upTo = (part: number) => Math.floor((symbols * part) / SHARE_WHOLE);
    for (let left = upTo(share.end) - upTo(share.start); left > 0 && order.length < limit; left--) order.push(index);
  }
  if (order.length < limit && geometry.generationCount > 0) order.push(geometry.generationCount - 1);
  return order;
}

/** Equal shares of `count` proxies; every packet of a generation is in exactly one of them. */
export function equalShare(proxyIndex: number, count: number): Share {
  const at = (index: number) => Math.floor((index * SHARE_WHOLE) / count);
  return { start: at(proxyIndex), end: at(proxyIndex + 1) };
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
  private sent = 0;

  constructor(
    private readonly geometry: Geometry,
    private readonly order: number[],
  ) {}

  next(availableBytes: number): number | undefined {
    const index = this.order[this.sent];
    if (index === undefined) return undefined;
    const { generationSize, symbolBytes, totalBytes } = this.geometry;
    const end = Math.min((index + 1) * generationSize * symbolBytes, totalBytes);
    if (availableBytes < end) return undefined;
    this.sent++;
    return index;
  }

  following(index: number, limit: number): number {
    let count = 0;
    while (count < limit && this.order[this.sent + count] === index) count++;
    return count;
  }

  /** Replaces what is not sent yet. An old grant, or one that leaves a hole, changes nothing. */
  grant({ grantSequence, fromSequence, runs }: GrantFrame): void {
    if (grantSequence <= this.lastGrantSequence || fromSequence > this.order.length) return;
    this.lastGrantSequence = grantSequence;
    this.order.length = Math.max(this.sent, fromSequence);
    let sequence = fromSequence;
    for (const { generationIndex, count } of runs) {
      for (let i = 0; i < count; i++, sequence++) {
        if (sequence >= this.order.length && generationIndex < this.geometry.generationCount) this.order.push(generationIndex);
      }
    }
  }

  acknowledge(): void {}
  release(): void {}
  decided(): boolean {
    return true;
  }
}
