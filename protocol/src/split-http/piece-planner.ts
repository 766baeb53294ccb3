/**
 * PiecePlanner: says in mode `split-http` which bytes to ask of a proxy next, if any. Pieces follow the measured rates
 * and shrink towards the end. A proxy that is idle at the end takes over part of another proxy's piece, or asks again
 * for what another proxy does not send. It asks for nothing itself. Pure: time arrives as `nowMs`.
 */
import type { Stretch } from "./byte-store";
import type { Ask, Pieces } from "./pieces";
import { LANES, sumOf, TICK_MS, type Look, type ProxyViews } from "./proxy-views";

/** A browser has six HTTP/1.1 connections to a host. One of them brings digests. */
export const CONNECTIONS_MAX = 5;
/** A smaller piece costs more in requests than it gains. */
const PIECE_BYTES_MIN = 8192;
/** A larger piece would leave too much to take over when its proxy fails. */
const PIECE_BYTES_MAX = 4 * 1024 * 1024;
/** While more than this many of the smallest pieces are left for a proxy, it does not get all of them at once. */
const PIECES_LEFT = 2;
/** Taking over work costs a request, so it must bring the end forward by this time and a fifth of the answer time. */
const STEAL_GAIN_MS = 4;
const STEAL_GAIN_ANSWER_PARTS = 5;
/** A stolen piece is at least this long: the old connection may have to be closed for it. */
const STEAL_BYTES_MIN = 4096;

/** Bytes to ask for, and an answer to cancel because of that. */
export interface NextPiece extends Stretch {
  cancel?: Ask;
}

export class PiecePlanner {
  readonly #pieces: Pieces;
  readonly #proxies: ProxyViews;

  constructor(pieces: Pieces, proxies: ProxyViews) {
    this.#pieces = pieces;
    this.#proxies = proxies;
  }

  /** The next piece of this proxy, a round trip before it would have nothing to send; undefined when it has enough. */
  next(proxyIndex: number, look: Look, nowMs: number): NextPiece | undefined {
    const { failed, quiet, meter, laneCount } = this.#proxies.all[proxyIndex]!;
    const lanesUsed = look.laneCounts[proxyIndex]!;
    if (failed || quiet || lanesUsed >= CONNECTIONS_MAX) return undefined;
    const rate = look.bytesPerMs[proxyIndex]!;
    const aheadMs = this.#proxies.answerMs(proxyIndex) + TICK_MS;
    const isEnough = look.debtBytes[proxyIndex]! / rate > aheadMs;
    const areLanesBusy = laneCount === 1 || look.busyCounts[proxyIndex]! >= laneCount;
    if (lanesUsed > 0 && (!meter.isKnown || (isEnough && areLanesBusy))) return undefined;
    if (!this.#pieces.hasMore()) {
      const again = look.backlogBytes[proxyIndex]! < rate ? this.#askAgain(proxyIndex, look, nowMs) : undefined;
      return again ?? (isEnough ? undefined : this.#takeOver(proxyIndex, look));
    }
    const leastBytes = Math.max(PIECE_BYTES_MIN, (rate * aheadMs) / (lanesUsed === 0 ? 1 : LANES));
    const bytes = this.#pieceBytes(proxyIndex, look, leastBytes);
    return bytes > 0 ? this.#pieces.takeUnasked(bytes) : undefined;
  }

  /** One lane's part of what this proxy can still send if all proxies end together; all of it once that is little. */
  #pieceBytes(proxyIndex: number, { debtBytes, bytesPerMs }: Look, leastBytes: number): number {
    const pieces = this.#pieces;
    const left = pieces.unaskedBytes;
    if (left === Infinity) return pieces.aligned(leastBytes);
    const endMs = (left + sumOf(debtBytes)) / sumOf(bytesPerMs);
    const fair = endMs * bytesPerMs[proxyIndex]! - debtBytes[proxyIndex]!;
    const parts = PIECES_LEFT * this.#proxies.all[proxyIndex]!.laneCount;
    if (fair > PIECES_LEFT * leastBytes)
      return pieces.aligned(Math.min(PIECE_BYTES_MAX, Math.max(leastBytes, fair / parts)));
    return fair >= pieces.alignBytes || debtBytes[proxyIndex] === 0 ? pieces.aligned(Math.max(1, fair)) : 0;
  }

  /** At the end: asks again for what a silent answer still owes. The first answer wins. */
  #askAgain(proxyIndex: number, { backlogBytes, bytesPerMs }: Look, nowMs: number): NextPiece | undefined {
    const pieces = this.#pieces;
    const isRepeatable = (ask: Ask) =>
      ask.proxyIndex !== proxyIndex && this.#proxies.isSilent(ask, nowMs) && pieces.repeatableOf(ask).length > 0;
    const silent = [...pieces.asks.values()].filter(isRepeatable);
    const ask = silent.sort((a, b) => a.heardMs - b.heardMs)[0];
    if (!ask) return undefined;
    const idleCount = this.#proxies.all.filter(
      ({ failed, quiet }, index) => !failed && !quiet && backlogBytes[index]! < bytesPerMs[index]!,
    ).length;
    const owedBytes = sumOf(silent.map((one) => pieces.wantedOf(one)));
    const [gap] = pieces.repeatableOf(ask);
    const bytes = Math.max(PIECE_BYTES_MIN, owedBytes / idleCount, bytesPerMs[proxyIndex]! * TICK_MS);
    const end = Math.min(gap!.end, gap!.start + pieces.aligned(bytes));
    ask.repeatedEnd = end;
    pieces.hasOverlaps = true;
    return { start: gap!.start, end };
  }

  /** At the end: splits the last piece of the proxy that would end last, so that both halves end together. */
  #takeOver(proxyIndex: number, { owedBytes, debtBytes, bytesPerMs }: Look): NextPiece | undefined {
    const pieces = this.#pieces;
    const endsMs = debtBytes.map((bytes, index) => (index === proxyIndex ? 0 : bytes / bytesPerMs[index]!));
    const lastMs = Math.max(...endsMs);
    const other = endsMs.indexOf(lastMs);
    const isDivisible = (one: Ask) => one.repeatedEnd <= one.position && pieces.wantedOf(one) > 0;
    const ask = pieces.asksOf(other).findLast(isDivisible);
    if (!ask || other === proxyIndex) return undefined;
    const [ourRate, theirRate] = [bytesPerMs[proxyIndex]!, bytesPerMs[other]!];
    const answerMs = this.#proxies.answerMs(proxyIndex);
    const isQuiet = this.#proxies.all[other]!.quiet;
    const readyMs = Math.max(answerMs, debtBytes[proxyIndex]! / ourRate);
    const wantedBytes = pieces.wantedOf(ask);
    const underWayBytes = isQuiet ? 0 : theirRate * this.#proxies.answerMs(other);
    const fairBytes = isQuiet ? wantedBytes : (lastMs - readyMs) / (1 / ourRate + 1 / theirRate);
    const bytes = Math.min(fairBytes, wantedBytes, owedBytes[other]! - underWayBytes);
    const gainMs = lastMs - (readyMs + bytes / ourRate);
    if (bytes < Math.min(STEAL_BYTES_MIN, wantedBytes)) return undefined;
    if (gainMs < Math.max(STEAL_GAIN_MS, answerMs / STEAL_GAIN_ANSWER_PARTS)) return undefined;
    return this.#cut(ask, bytes);
  }

  /** Takes the last `bytes` of an ask, aligned. */
  #cut(ask: Ask, bytes: number): NextPiece | undefined {
    const pieces = this.#pieces;
    const end = ask.wantedEnd;
    const start = Math.max(ask.position, ask.start + pieces.aligned(end - bytes - ask.start));
    if (start >= end) return undefined;
    ask.wantedEnd = start;
    pieces.hasOverlaps = true;
    return pieces.wantedOf(ask) === 0 ? { start, end, cancel: ask } : { start, end };
  }
}
