/**
 * GrantedSchedule: mode `coded` at the proxy. It sends only granted packets, in the granted order.
 * Before the first grant, the proxy's share gives the order. It does not pace or code packets. Rules: protocol.md §8.1
 * to §8.4.
 */
import { symbolsIn, type Geometry } from "../geometry";
import { LIMITS } from "../limits";
import { firstPackets, runsOf, symbolsOf } from "../packet-order";
import { firstOfSpans } from "../sharing";
import type { ChunkSource, GenerationSpan, GrantedRun, GrantFrame, Share } from "../types";
import type { Schedule } from "./schedule";

const WHOLE: Share = { start: 0, end: 65535, firstGeneration: 0 };

export class GrantedSchedule implements Schedule {
  /** 0 before the first grant: grants count from 1. */
  lastGrantSequence = 0;
  /**
   * The source symbol that the packet taken last carries. A proxy first sends the symbols of its share as they are,
   * since no other proxy has them. Later packets are coded, and this is undefined.
   */
  symbolIndex: number | undefined;
  /** Up to the end of what comes next or was sent, or of the first generation that the client lacks. */
  wantedBytes = 0;
  #sent = 0;
  /** The packets that are not sent yet, from `#at` on. */
  #runs: GrantedRun[];
  #at = 0;
  /** How many packets of the run at `#at` are sent. */
  #taken = 0;
  /** The sequences at which packets of a generation were sent, in ascending order. */
  readonly #sequences: (number[] | undefined)[];
  /** The share's symbols in a generation of `count`. They are the same in all generations but the last one. */
  #symbols: { count: number; own: Uint8Array } = { count: 0, own: new Uint8Array(0) };
  /** Source symbols sent, by generation. */
  readonly #symbolsSent: Uint8Array;
  readonly #geometry: Geometry;
  readonly #share: Share;
  /** The proxy reads only these generations. It sends their source symbols first, and others coded. */
  readonly #reads: readonly GenerationSpan[] | undefined;

  /** `limit`: how many packets may be sent before the first grant. `reads`: what the proxy reads, if it is not all. */
  constructor(geometry: Geometry, share: Share, limit: number, reads?: readonly GenerationSpan[]) {
    this.#geometry = geometry;
    this.#share = reads ? WHOLE : share;
    this.#reads = reads;
    const first = reads ? firstOfSpans(geometry, reads, limit) : firstPackets(geometry, share, limit);
    this.#runs = runsOf(first, 0, Infinity);
    this.#sequences = new Array<number[] | undefined>(geometry.generationCount);
    this.#symbolsSent = new Uint8Array(geometry.generationCount);
  }

  next(availableBytes: number, source?: Pick<ChunkSource, "has" | "want">): number | undefined {
    if (source?.has && !this.#turnTo(source)) return undefined;
    const run = this.#runs[this.#at];
    if (run === undefined) return undefined;
    const index = run.generationIndex;
    const { own, endBytes } = this.#needOf(index);
    this.wantedBytes = Math.max(this.wantedBytes, endBytes);
    if (availableBytes < endBytes) return undefined;
    this.symbolIndex = own;
    if (own !== undefined) this.#symbolsSent[index]!++;
    (this.#sequences[index] ??= []).push(this.#sent++);
    if (++this.#taken === run.count) {
      this.#at++;
      this.#taken = 0;
    }
    return index;
  }

  /** The source symbol of the generation that comes next, if one does, and the bytes that the next packet needs. */
  #needOf(index: number): { own: number | undefined; startBytes: number; endBytes: number } {
    const { generationSize, symbolBytes, totalBytes } = this.#geometry;
    const own = this.#ownSymbol(index);
    const first = index * generationSize + (own ?? 0);
    const end = own === undefined ? (index + 1) * generationSize : first + 1;
    return { own, startBytes: first * symbolBytes, endBytes: Math.min(end * symbolBytes, totalBytes) };
  }

  /** Takes the first granted packet whose bytes are there out of its turn. The source may get those of the others. */
  #turnTo(source: Pick<ChunkSource, "has" | "want">): boolean {
    for (let at = this.#at; at < this.#runs.length; at++) {
      const run = this.#runs[at]!;
      const { startBytes, endBytes } = this.#needOf(run.generationIndex);
      if (!source.has!(startBytes, endBytes)) source.want?.(startBytes, endBytes);
      else if (at === this.#at) return true;
      else {
        const current = this.#runs[this.#at]!;
        this.#runs[this.#at] = { ...current, count: current.count - this.#taken };
        this.#runs.splice(at, 1);
        this.#runs.splice(this.#at, 0, run);
        this.#taken = 0;
        return true;
      }
    }
    return false;
  }

  following(index: number, limit: number): number {
    let count = -this.#taken;
    for (let at = this.#at; count < limit && this.#runs[at]?.generationIndex === index; at++)
      count += this.#runs[at]!.count;
    return Math.max(0, Math.min(count, limit));
  }

  /**
   * Replaces the packets that are not sent yet. Packets of the grant that were sent since `fromSequence` are left out,
   * at any place in it, so the first remaining packet comes next. An old grant changes nothing, and neither does a
   * grant that begins after the last sent packet. At most the packets that the chunk and a window could need are kept.
   * The cost grows with the runs of the grant, not with their packets or with what was sent before.
   */
  grant({ grantSequence, fromSequence, base, runs }: GrantFrame): void {
    if (grantSequence <= this.lastGrantSequence || fromSequence > this.#sent) return;
    this.lastGrantSequence = grantSequence;
    const { generationSize, symbolBytes, totalBytes } = this.#geometry;
    this.wantedBytes = Math.max(this.wantedBytes, Math.min((base + 1) * generationSize * symbolBytes, totalBytes));
    const kept: GrantedRun[] = [];
    const sentOf = new Map<number, number>();
    const granted = runs.reduce((sum, { count }) => sum + count, fromSequence - this.#sent);
    let left = Math.min(granted, this.#geometry.symbolCount + LIMITS.windowPacketsMax);
    for (const { generationIndex, count } of runs) {
      if (left <= 0) break;
      if (generationIndex >= this.#geometry.generationCount) continue;
      const sent = sentOf.get(generationIndex) ?? this.#sentSince(generationIndex, fromSequence);
      sentOf.set(generationIndex, Math.max(0, sent - count));
      const unsent = Math.min(count - sent, left);
      if (unsent <= 0) continue;
      kept.push({ generationIndex, count: unsent });
      left -= unsent;
    }
    this.#runs = kept;
    this.#at = this.#taken = 0;
  }

  /** How many packets of the generation were sent at `fromSequence` or later. */
  #sentSince(index: number, fromSequence: number): number {
    const sequences = this.#sequences[index] ?? [];
    let [first, end] = [0, sequences.length];
    while (first < end) {
      const middle = (first + end) >> 1;
      if (sequences[middle]! < fromSequence) first = middle + 1;
      else end = middle;
    }
    return sequences.length - first;
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
    if (this.#reads && !this.#reads.some(({ from, end }) => index >= from && index < end)) return undefined;
    const symbolCount = symbolsIn(this.#geometry, index);
    if (this.#symbols.count !== symbolCount)
      this.#symbols = { count: symbolCount, own: symbolsOf(this.#share, symbolCount) };
    return this.#symbols.own[this.#symbolsSent[index]!];
  }
}
