/**
 * Schedules say what a sender may send next: the strict moving window (paper eq. 1) and the two schedulers of the paper
 * (section III). A `Schedule` knows what the client has, what is in transit and what has arrived from the origin. It
 * knows no frames, clock or codec. Rules: protocol.md §6.
 */
import { symbolsIn, type Geometry } from "../geometry";
import { REORDER_PACKETS } from "../limits";
import { below } from "../rng";
import type { ChunkSource, FeedbackFrame, Rng } from "../types";

/** `item` is a symbol index (uncoded) or a generation index (coded). */
export interface Schedule {
  /** The client's reports and orders give use for the first `wantedBytes` of the body. */
  readonly wantedBytes: number;
  /** The next item to send, now in transit; undefined when nothing is sendable. */
  next(availableBytes: number, source?: Pick<ChunkSource, "has" | "want">): number | undefined;
  /** How many packets of `item` come right after the one just given, as far as that is decided; at most `limit`. */
  following(item: number, limit: number): number;
  /** Takes the client's cumulative report. A stale one changes nothing. */
  acknowledge(received: FeedbackFrame["received"], base: number): void;
  /** A packet of `item` left transit: it was reported as received, or it counts as lost. */
  release(item: number): void;
  /** True when the report decides a packet of `item` that was sent `packetsSince` packets before the newest one. */
  decided(item: number, packetsSince: number): boolean;
}

/** Uncoded MUTP: a symbol drawn uniformly at random, without replacement, from the sendable list. */
export class RandomSchedule implements Schedule {
  #windowStart = 0;
  #windowEnd = 0;
  readonly #received: Uint8Array;
  /** The sendable list: symbols in the window that are neither received nor in transit. */
  readonly #sendable: number[] = [];
  /** Where each symbol is in the sendable list; -1 when it is not. */
  readonly #place: Int32Array;

  readonly #geometry: Geometry;
  readonly #windowPackets: number;
  readonly #rng: Rng;

  constructor(geometry: Geometry, windowPackets: number, rng: Rng) {
    this.#geometry = geometry;
    this.#windowPackets = windowPackets;
    this.#rng = rng;

    this.#received = new Uint8Array(geometry.symbolCount);
    this.#place = new Int32Array(geometry.symbolCount).fill(-1);
  }

  get wantedBytes(): number {
    const { symbolBytes, totalBytes } = this.#geometry;
    return Math.min((this.#windowStart + this.#windowPackets) * symbolBytes, totalBytes);
  }

  next(availableBytes: number): number | undefined {
    this.#slide(availableBytes);
    if (this.#sendable.length === 0) return undefined;
    const symbol = this.#sendable[below(this.#rng, this.#sendable.length)]!;
    this.#remove(symbol);
    return symbol;
  }

  following(): number {
    return 0;
  }

  acknowledge(received: FeedbackFrame["received"], base: number): void {
    if (received.kind !== "symbols") return;
    const last = Math.min(base, this.#geometry.symbolCount);
    for (let symbol = this.#windowStart; symbol < last; symbol++) this.#markReceived(symbol);
    const count = Math.min(received.count, this.#geometry.symbolCount - last);
    for (let i = 0; i < count; i++) {
      if (received.bitmap[i >> 3]! & (1 << (i & 7))) this.#markReceived(last + i);
    }
    while (this.#windowStart < this.#geometry.symbolCount && this.#received[this.#windowStart]) this.#windowStart++;
  }

  release(symbol: number): void {
    if (!this.#received[symbol]) this.#insert(symbol);
  }

  decided(symbol: number, packetsSince: number): boolean {
    return this.#received[symbol] === 1 || packetsSince > REORDER_PACKETS;
  }

  #slide(availableBytes: number): void {
    const { symbolBytes, symbolCount, totalBytes } = this.#geometry;
    const available = availableBytes === totalBytes ? symbolCount : Math.floor(availableBytes / symbolBytes);
    const end = Math.min(this.#windowStart + this.#windowPackets, available);
    for (; this.#windowEnd < end; this.#windowEnd++) {
      if (!this.#received[this.#windowEnd]) this.#insert(this.#windowEnd);
    }
  }

  #markReceived(symbol: number): void {
    this.#received[symbol] = 1;
    this.#remove(symbol);
  }

  #insert(symbol: number): void {
    if (this.#place[symbol] !== -1) return;
    this.#place[symbol] = this.#sendable.push(symbol) - 1;
  }

  #remove(symbol: number): void {
    const at = this.#place[symbol]!;
    if (at === -1) return;
    const last = this.#sendable.pop()!;
    if (last !== symbol) {
      this.#sendable[at] = last;
      this.#place[last] = at;
    }
    this.#place[symbol] = -1;
  }
}

/** Coded MUTP: the generation with the fewest degrees of freedom received or in transit; the first one on a tie. */
export class RarestGenerationSchedule implements Schedule {
  #windowStart = 0;
  readonly #windowGenerations: number;
  readonly #received: Uint8Array;
  readonly #inTransit: Uint16Array;

  readonly #geometry: Geometry;

  constructor(geometry: Geometry, windowPackets: number) {
    this.#geometry = geometry;

    this.#windowGenerations = Math.max(1, Math.floor(windowPackets / geometry.generationSize));
    this.#received = new Uint8Array(geometry.generationCount);
    this.#inTransit = new Uint16Array(geometry.generationCount);
  }

  get wantedBytes(): number {
    const { generationSize, symbolBytes, totalBytes } = this.#geometry;
    return Math.min((this.#windowStart + this.#windowGenerations) * generationSize * symbolBytes, totalBytes);
  }

  next(availableBytes: number): number | undefined {
    const geometry = this.#geometry;
    const generationBytes = geometry.generationSize * geometry.symbolBytes;
    const available =
      availableBytes === geometry.totalBytes ? geometry.generationCount : Math.floor(availableBytes / generationBytes);
    const end = Math.min(this.#windowStart + this.#windowGenerations, available);
    let rarest: number | undefined;
    let fewest = Infinity;
    for (let index = this.#windowStart; index < end; index++) {
      const underway = this.#received[index]! + this.#inTransit[index]!;
      if (underway < symbolsIn(geometry, index) && underway < fewest) {
        fewest = underway;
        rarest = index;
      }
    }
    if (rarest !== undefined) this.#inTransit[rarest]!++;
    return rarest;
  }

  /** The next packet usually belongs to another generation. */
  following(): number {
    return 0;
  }

  acknowledge(received: FeedbackFrame["received"], base: number): void {
    if (received.kind !== "degreesOfFreedom") return;
    const geometry = this.#geometry;
    const last = Math.min(base, geometry.generationCount);
    for (let index = this.#windowStart; index < last; index++) this.#received[index] = symbolsIn(geometry, index);
    const count = Math.min(received.counts.length, geometry.generationCount - last);
    for (let i = 0; i < count; i++) {
      const degrees = Math.min(received.counts[i]!, symbolsIn(geometry, last + i));
      if (degrees > this.#received[last + i]!) this.#received[last + i] = degrees;
    }
    while (this.#windowStart < geometry.generationCount && this.#isComplete(this.#windowStart)) this.#windowStart++;
  }

  release(index: number): void {
    this.#inTransit[index]!--;
  }

  decided(): boolean {
    return true;
  }

  #isComplete(index: number): boolean {
    return this.#received[index] === symbolsIn(this.#geometry, index);
  }
}
