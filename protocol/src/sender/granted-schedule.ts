/**
 * GrantedSchedule: mode `coded` at the proxy. It sends only granted packets, in the granted order.
 * Before the first grant, the proxy's share gives the order. It does not pace or code packets. Rules: protocol.md §8.1
 * to §8.4.
 */
import { symbolsIn, type Geometry } from "../geometry";
import { LIMITS } from "../limits";
import { firstPackets, symbolsOf } from "../packet-order";
import type { GrantFrame, Share } from "../types";
import type { Schedule } from "./schedule";

export class GrantedSchedule implements Schedule {
  /** 0 before the first grant: grants count from 1. */
  lastGrantSequence = 0;
  /**
   * The source symbol that the packet taken last carries. A proxy first sends the symbols of its share as they are,
   * since no other proxy has them. Later packets are coded, and this is undefined.
   */
  symbolIndex: number | undefined;
  #sent = 0;
  readonly #order: number[];
  /** The share's symbols in a generation of `count`. They are the same in all generations but the last one. */
  #symbols: { count: number; own: Uint8Array } = { count: 0, own: new Uint8Array(0) };
  /** Source symbols sent, by generation. */
  readonly #symbolsSent: Uint8Array;
  readonly #geometry: Geometry;
  readonly #share: Share;

  /** `limit`: how many packets may be sent before the first grant. */
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

  /**
   * Replaces the packets that are not sent yet. Packets of the grant that were sent since `fromSequence` are left out,
   * at any place in it, so the first remaining packet comes next. An old grant changes nothing, and neither does a
   * grant that begins after the last sent packet. The order keeps at most the packets that the chunk and a window could
   * need.
   */
  grant({ grantSequence, fromSequence, runs }: GrantFrame): void {
    const order = this.#order;
    if (grantSequence <= this.lastGrantSequence || fromSequence > this.#sent) return;
    this.lastGrantSequence = grantSequence;
    order.length = this.#sent;
    const sentOf = new Map<number, number>();
    for (const index of order.slice(fromSequence)) sentOf.set(index, 1 + (sentOf.get(index) ?? 0));
    const grantedEnd = runs.reduce((sum, { count }) => sum + count, fromSequence);
    const end = Math.min(grantedEnd, this.#sent + this.#geometry.symbolCount + LIMITS.windowPacketsMax);
    for (const { generationIndex, count } of runs) {
      if (generationIndex >= this.#geometry.generationCount) continue;
      const sent = sentOf.get(generationIndex) ?? 0;
      sentOf.set(generationIndex, Math.max(0, sent - count));
      for (let left = Math.min(count - sent, end - order.length); left > 0; left--) order.push(generationIndex);
    }
  }

  /** Grants alone decide: feedback and losses change nothing here. */
  acknowledge(): void {}
  release(): void {}
  decided(): boolean {
    return true;
  }

  /** The next source symbol of the share in this generation; undefined when a coded packet is due. */
  #ownSymbol(index: number): number | undefined {
    if (index < this.#share.firstGeneration) return undefined;
    const symbolCount = symbolsIn(this.#geometry, index);
    if (this.#symbols.count !== symbolCount)
      this.#symbols = { count: symbolCount, own: symbolsOf(this.#share, symbolCount) };
    return this.#symbols.own[this.#symbolsSent[index]!];
  }
}
