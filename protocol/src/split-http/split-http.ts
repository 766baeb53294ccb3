/**
 * SplitHttp: mode `split-http` gets one body in parts over persistent HTTP from several proxies. It says which part to
 * ask of which proxy and when, which answers to cancel, and which bytes come next in order. With `check` it hands on
 * only blocks whose digest is right, and finds out who sent a false one. The caller speaks HTTP, and it compares heads.
 * The same code runs in the client and in the simulator.
 * Pure: time arrives as `nowMs`, answers as bytes. In: handle*. Out: pollCommand, pollTimeout, pollEvent.
 */
import type { ByteRange, Rejection } from "@tributary/contract";
import { LIMITS } from "../limits";
import type { ByteCheck } from "../receiver/assembly";
import { sameBytes } from "../receiver/verification";
import { cut, type Part } from "./byte-store";
import { PiecePlanner } from "./piece-planner";
import { Pieces, type Ask } from "./pieces";
import { ProxyViews, TICK_MS } from "./proxy-views";

/**
 * Each proxy is asked for these before anything is known: small pieces first, so that a small body is shared, then
 * larger ones that fill the links until the first answer.
 */
const OPENING_BYTES = [8192, 16_384, 16_384, 32_768, 65_536];
/** Bytes that come sooner than this after a plan change little, so no new plan is made. */
const PLAN_EVERY_MS = 1;
/** One broken answer may be chance. The second one is the proxy's fault. */
const FAILURES_MAX = 2;

export interface SplitHttpOptions {
  proxyCount: number;
  nowMs: number;
  /** Pieces begin and end at multiples of this. */
  alignBytes?: number;
  /** No piece begins further than this beyond the first missing byte. */
  aheadBytesMax?: number;
  /** Tells true blocks of LIMITS.httpBlockBytes from false ones. Without it every byte is believed. */
  check?: ByteCheck | undefined;
}

/** `part` counts from the start of the body. */
export type SplitHttpCommand =
  { kind: "ask"; askId: number; proxyIndex: number; part: ByteRange } | { kind: "cancel"; askId: number };

export type SplitHttpEvent =
  | { kind: "bytes"; bytes: Uint8Array }
  | { kind: "proxyFailed"; proxyIndex: number; rejection: Rejection }
  | { kind: "complete" }
  | { kind: "failed"; rejection: Rejection };

export class SplitHttp {
  readonly #pieces: Pieces;
  readonly #proxies: ProxyViews;
  readonly #planner: PiecePlanner;
  readonly #check: ByteCheck | undefined;
  readonly #commands: SplitHttpCommand[] = [];
  readonly #events: SplitHttpEvent[] = [];
  /** The parts of false blocks that came from several proxies, by block. */
  readonly #disputed = new Map<number, Part[]>();
  #handedOnBytes = 0;
  #lastFailure: Rejection = { kind: "proxiesFailed", message: "No proxy answered." };
  #askCount = 0;
  #hasRoom = true;
  #isOver = false;
  #plannedMs: number;

  constructor({ proxyCount, nowMs, alignBytes = 1, aheadBytesMax = LIMITS.chunkBytesMax, check }: SplitHttpOptions) {
    this.#pieces = new Pieces({ alignBytes, aheadBytesMax });
    this.#proxies = new ProxyViews(proxyCount, nowMs);
    this.#planner = new PiecePlanner(this.#pieces, this.#proxies);
    this.#check = check;
    this.#plannedMs = nowMs;
    this.#open(nowMs);
  }

  pollCommand(): SplitHttpCommand | undefined {
    return this.#commands.shift();
  }

  pollEvent(): SplitHttpEvent | undefined {
    return this.#events.shift();
  }

  /** When to call `handleTimeout`; undefined after the end. */
  pollTimeout(): number | undefined {
    return this.#isOver ? undefined : this.#plannedMs + TICK_MS;
  }

  handleTimeout(nowMs: number): void {
    if (nowMs >= this.#plannedMs + TICK_MS) this.#plan(nowMs);
  }

  /** Reports whether the reader has room. Without room the client asks for nothing new. */
  handleRoom(hasRoom: boolean, nowMs: number): void {
    if (hasRoom && !this.#hasRoom) this.#forgetSilence(nowMs);
    this.#hasRoom = hasRoom;
    if (hasRoom) this.#plan(nowMs);
  }

  /** The length of the body. It comes before any bytes. Only the first call counts. */
  handleTotal(totalBytes: number, nowMs: number): void {
    const pieces = this.#pieces;
    if (this.#isOver || pieces.end < Infinity) return;
    for (const ask of [...pieces.asks.values()]) {
      if (ask.start >= totalBytes) this.#cancel(ask.id);
      ask.end = Math.min(ask.end, totalBytes);
      ask.wantedEnd = Math.min(ask.wantedEnd, totalBytes);
    }
    pieces.settle(totalBytes);
    this.#handOn(nowMs);
    if (!this.#isOver) this.#plan(nowMs);
  }

  /** An answer begins, and its head is right. */
  handleHead(askId: number, nowMs: number): void {
    const ask = this.#pieces.asks.get(askId);
    if (!ask) return;
    ask.answered = true;
    this.#proxies.handleHeard(ask, nowMs);
    this.#plan(nowMs);
  }

  handleBytes(askId: number, bytes: Uint8Array, nowMs: number): void {
    const { asks, store } = this.#pieces;
    const ask = asks.get(askId);
    if (!ask || bytes.length === 0) return;
    this.#proxies.handleHeard(ask, nowMs);
    this.#proxies.handleBytes(ask.proxyIndex, bytes.length, nowMs);
    const wanted = bytes.subarray(0, Math.min(bytes.length, ask.end - ask.position));
    store.insert(ask.position, wanted, ask.proxyIndex);
    ask.position += wanted.length;
    const isDone = ask.position >= ask.end;
    if (isDone) asks.delete(askId);
    this.#handOn(nowMs);
    if (this.#isOver) return;
    if (this.#pieces.hasOverlaps) this.#cancelUnwanted();
    if (isDone || nowMs - this.#plannedMs >= PLAN_EVERY_MS) this.#plan(nowMs);
  }

  /** The answer's body ended without an error. */
  handleEnd(askId: number, nowMs: number): void {
    const ask = this.#pieces.asks.get(askId);
    if (!ask || ask.position >= ask.end) return;
    const [got, limit] = [ask.position - ask.start, ask.end - ask.start];
    const message = `The answer ended early: got ${got} bytes, expected ${limit}.`;
    this.handleFailure(askId, { kind: "bodyShort", message, got, limit }, nowMs);
  }

  /** There was no answer, or a broken one, or an answer of the proxy itself and not of the origin. */
  handleFailure(askId: number, rejection: Rejection, nowMs: number): void {
    const ask = this.#pieces.asks.get(askId);
    if (!ask) return;
    const view = this.#proxies.all[ask.proxyIndex]!;
    this.#pieces.asks.delete(askId);
    this.#giveBack(ask);
    view.failures++;
    if (view.bytes === 0 || view.failures >= FAILURES_MAX) this.#fail(ask.proxyIndex, rejection);
    this.#goOn(nowMs);
  }

  /** Nothing more is asked of this proxy. What it brought counts if the check says that it is true. */
  handleProxyFailed(proxyIndex: number, rejection: Rejection, nowMs: number): void {
    if (this.#isOver) return;
    this.#fail(proxyIndex, rejection);
    this.#goOn(nowMs);
  }

  /** The check knows more blocks. */
  handleKnown(nowMs: number): void {
    this.#handOn(nowMs);
  }

  /** Cancels every answer. */
  stop(): void {
    for (const id of [...this.#pieces.asks.keys()]) this.#cancel(id);
    this.#isOver = true;
  }

  #forgetSilence(nowMs: number): void {
    for (const ask of this.#pieces.asks.values()) ask.heardMs = nowMs;
    this.#proxies.forgetSilence(nowMs);
  }

  // Bytes in order.

  #handOn(nowMs: number): void {
    const { store, end } = this.#pieces;
    if (this.#isOver) return;
    if (!this.#check) {
      for (const { bytes } of store.take(store.prefix)) this.#give(bytes);
    } else while (this.#handedOnBytes < end && this.#handOnBlock(this.#check, nowMs));
    if (this.#handedOnBytes >= end) this.#finish({ kind: "complete" });
  }

  #give(bytes: Uint8Array): void {
    this.#handedOnBytes += bytes.length;
    this.#events.push({ kind: "bytes", bytes });
  }

  /** Hands on the next block if it is here and true. */
  #handOnBlock(check: ByteCheck, nowMs: number): boolean {
    const { store, end: bodyEnd } = this.#pieces;
    const index = Math.floor(this.#handedOnBytes / LIMITS.httpBlockBytes);
    const block = { start: this.#handedOnBytes, end: Math.min((index + 1) * LIMITS.httpBlockBytes, bodyEnd) };
    if (store.prefix < block.end || !check.isKnown(index)) return false;
    const bytes = joined(store.peek(block.end), block.end - block.start);
    if (!check.isTrue(index, bytes)) {
      this.#dispute(index, block, nowMs);
      return false;
    }
    store.take(block.end);
    this.#convictLiars(index, block.start, bytes);
    this.#give(bytes);
    return true;
  }

  /**
   * A block is false. If it came from one proxy, that one lied. Otherwise the block is asked of one proxy alone, and
   * the true bytes will tell who lied. What failed proxies brought is forgotten first.
   */
  #dispute(index: number, { start, end }: { start: number; end: number }, nowMs: number): void {
    const parts = this.#pieces.store.peek(end);
    const sources = [...new Set(parts.map(({ source }) => source))];
    const failed = sources.filter((source) => this.#proxies.all[source]!.failed);
    if (sources.length === 1) this.#convict(sources[0]!, index);
    else if (failed.length > 0) this.#pieces.forget(({ source }) => failed.includes(source));
    else {
      this.#disputed.set(index, parts);
      this.#pieces.forget((part) => cut(part, start, end).length > 0);
    }
    if (this.#disputed.has(index)) this.#askAlone(start, end, nowMs);
    this.#goOn(nowMs);
  }

  #convictLiars(index: number, start: number, bytes: Uint8Array): void {
    for (const part of this.#disputed.get(index) ?? []) {
      const truth = bytes.subarray(part.start - start, part.start - start + part.bytes.length);
      if (!sameBytes(truth, part.bytes)) this.#convict(part.source, index);
    }
    this.#disputed.delete(index);
  }

  #convict(proxyIndex: number, index: number): void {
    const message = `The proxy's bytes differ from the agreed ones in block ${index}.`;
    this.#fail(proxyIndex, { kind: "bodyDiffers", message });
    this.#pieces.forget(({ source }) => source === proxyIndex);
  }

  /** Asks one proxy for these bytes. No other one takes over a part of them. */
  #askAlone(start: number, end: number, nowMs: number): void {
    const doubtful = new Set([...this.#disputed.values()].flat().map(({ source }) => source));
    const able = this.#proxies.all.flatMap(({ failed, quiet }, index) => (failed || quiet ? [] : [index]));
    const proxyIndex = able.find((index) => !doubtful.has(index)) ?? able[0];
    if (proxyIndex === undefined) return;
    const ask = this.#ask(proxyIndex, start, end, nowMs);
    ask.isAlone = true;
    ask.repeatedEnd = end;
    this.#pieces.askAnew();
  }

  // Failures and the end.

  #fail(proxyIndex: number, rejection: Rejection): void {
    const view = this.#proxies.all[proxyIndex]!;
    if (view.failed) return;
    view.failed = true;
    this.#lastFailure = rejection;
    this.#events.push({ kind: "proxyFailed", proxyIndex, rejection });
    for (const ask of this.#pieces.asksOf(proxyIndex)) {
      this.#cancel(ask.id);
      this.#giveBack(ask);
    }
  }

  #goOn(nowMs: number): void {
    if (this.#isOver) return;
    if (this.#proxies.all.every(({ failed }) => failed))
      return this.#finish({ kind: "failed", rejection: this.#lastFailure });
    this.#plan(nowMs);
  }

  #finish(event: SplitHttpEvent): void {
    this.stop();
    this.#events.push(event);
  }

  // Asking.

  #open(nowMs: number): void {
    const pieces = this.#pieces;
    for (const bytes of OPENING_BYTES) {
      for (let proxyIndex = 0; proxyIndex < this.#proxies.all.length; proxyIndex++) {
        const next = pieces.takeUnasked(pieces.aligned(bytes));
        if (next) this.#ask(proxyIndex, next.start, next.end, nowMs);
      }
    }
    pieces.openedEnd = pieces.firstUnasked ?? pieces.end;
  }

  #plan(nowMs: number): void {
    this.#plannedMs = nowMs;
    if (this.#isOver) return;
    if (!this.#hasRoom) return;
    this.#proxies.noteQuiet(this.#pieces, nowMs);
    this.#releaseSilent();
    let look = this.#proxies.look(this.#pieces, nowMs);
    this.#proxies.noteRates(look.bytesPerMs);
    for (let proxyIndex = 0; proxyIndex < this.#proxies.all.length; proxyIndex++) {
      for (;;) {
        const next = this.#planner.next(proxyIndex, look, nowMs);
        if (!next) break;
        this.#ask(proxyIndex, next.start, next.end, nowMs);
        if (next.cancel) this.#cancel(next.cancel.id);
        look = this.#proxies.look(this.#pieces, nowMs);
      }
    }
  }

  #ask(proxyIndex: number, start: number, end: number, nowMs: number): Ask {
    const id = this.#askCount++;
    this.#proxies.handleAsked(proxyIndex, end - start, this.#pieces.asksOf(proxyIndex).length === 0, nowMs);
    const ask: Ask = {
      id,
      proxyIndex,
      start,
      end,
      wantedEnd: end,
      position: start,
      repeatedEnd: start,
      isAlone: false,
      askedMs: nowMs,
      heardMs: nowMs,
      answered: false,
    };
    this.#pieces.asks.set(id, ask);
    this.#commands.push({ kind: "ask", askId: id, proxyIndex, part: { start, end: end - 1 } });
    return ask;
  }

  /** Others bring what a proxy was asked for alone if it falls quiet. */
  #releaseSilent(): void {
    for (const ask of [...this.#pieces.asks.values()]) {
      if (!ask.isAlone || !this.#proxies.all[ask.proxyIndex]!.quiet) continue;
      this.#cancel(ask.id);
      this.#giveBack(ask);
    }
  }

  #giveBack(ask: Ask): void {
    if (!this.#isOver) this.#pieces.giveBack(ask);
  }

  #cancel(id: number): void {
    if (this.#pieces.asks.delete(id)) this.#commands.push({ kind: "cancel", askId: id });
  }

  /** Cancels answers that bring no missing bytes. */
  #cancelUnwanted(): void {
    for (const ask of [...this.#pieces.asks.values()]) if (this.#pieces.wantedOf(ask) === 0) this.#cancel(ask.id);
  }
}

function joined(parts: readonly Part[], byteCount: number): Uint8Array {
  const [first] = parts;
  if (first?.bytes.length === byteCount) return first.bytes;
  const bytes = new Uint8Array(byteCount);
  let at = 0;
  for (const part of parts) {
    bytes.set(part.bytes, at);
    at += part.bytes.length;
  }
  return bytes;
}
