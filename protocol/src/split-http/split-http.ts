/**
 * SplitHttp: mode `split-http` gets one body by byte ranges over persistent HTTP from several proxies. It says which
 * range to ask of which proxy and when, which answers to cancel, and which bytes come next in order. The caller speaks
 * HTTP. The same code runs in the client and in the simulator.
 * Pure: time arrives as `nowMs`, answers as heads and bytes. In: handle*. Out: pollCommand, pollTimeout, pollEvent.
 */
import {
  isSameVersion,
  parseContentRange,
  strongValidator,
  type ByteRange,
  type Rejection,
  type ResponseHead,
} from "@tributary/contract";
import { LIMITS, TIMING } from "../limits";
import { bodyShort, differenceOf, differs, rangeFault } from "./answer-check";
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
  /** The wanted part of the resource; all of it by default. */
  range?: ByteRange | undefined;
  nowMs: number;
  /** Pieces begin and end at multiples of this. */
  alignBytes?: number;
  /** No piece begins further than this beyond the first missing byte. */
  aheadBytesMax?: number;
}

/** An `ask` without a `range` is for the whole resource. */
export type SplitHttpCommand =
  { kind: "ask"; askId: number; proxyIndex: number; range: ByteRange | undefined } | { kind: "cancel"; askId: number };

export type SplitHttpEvent =
  /** Comes before any bytes. `whole`: the range of all pieces. Without it the answer to `askId` is delivered as is. */
  | { kind: "head"; askId: number; whole: ByteRange | undefined }
  | { kind: "bytes"; bytes: Uint8Array }
  | { kind: "proxyFailed"; proxyIndex: number; rejection: Rejection }
  | { kind: "complete" }
  | { kind: "failed"; rejection: Rejection };

/** `opening`: it is not known how the body comes. `single`: as one answer, from one proxy at a time. */
type Phase = "opening" | "pieces" | "single" | "over";

export class SplitHttp {
  #phase: Phase = "opening";
  readonly #range: ByteRange | undefined;
  readonly #pieces: Pieces;
  readonly #proxies: ProxyViews;
  readonly #planner: PiecePlanner;
  readonly #commands: SplitHttpCommand[] = [];
  readonly #events: SplitHttpEvent[] = [];
  #head: ResponseHead | undefined;
  #singleRange: ByteRange | undefined;
  #lastFailure: Rejection = { kind: "proxiesFailed", message: "No proxy answered." };
  #askCount = 0;
  #hasRoom = true;
  #plannedMs: number;

  constructor({ proxyCount, range, nowMs, alignBytes = 1, aheadBytesMax = LIMITS.chunkBytesMax }: SplitHttpOptions) {
    const [start, end] = range ? [range.start, range.end + 1] : [0, Infinity];
    this.#range = range;
    this.#pieces = new Pieces({ start, end, alignBytes, aheadBytesMax });
    this.#proxies = new ProxyViews(proxyCount, nowMs);
    this.#planner = new PiecePlanner(this.#pieces, this.#proxies);
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
    return this.#phase === "over" ? undefined : this.#plannedMs + TICK_MS;
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

  handleHead(askId: number, head: ResponseHead, nowMs: number): void {
    const ask = this.#pieces.asks.get(askId);
    if (!ask) return;
    ask.answered = true;
    this.#proxies.handleHeard(ask, nowMs);
    if (this.#phase === "single") this.#checkSingle(ask, head, nowMs);
    else if (head.status === 206) this.#takePiece(ask, head, nowMs);
    else this.#takeOther(ask, head, nowMs);
  }

  handleBytes(askId: number, bytes: Uint8Array, nowMs: number): void {
    const { asks, store } = this.#pieces;
    const ask = asks.get(askId);
    if (!ask || bytes.length === 0) return;
    this.#proxies.handleHeard(ask, nowMs);
    this.#proxies.handleBytes(ask.proxyIndex, bytes.length, nowMs);
    const wanted = bytes.subarray(0, Math.min(bytes.length, ask.end - ask.position));
    store.insert(ask.position, wanted);
    ask.position += wanted.length;
    for (const next of store.take()) this.#events.push({ kind: "bytes", bytes: next });
    if (this.#phase !== "pieces") return;
    const isDone = ask.position >= ask.end;
    if (isDone) asks.delete(askId);
    if (this.#pieces.isWhole) return this.#finish({ kind: "complete" });
    if (this.#pieces.hasOverlaps) this.#cancelUnwanted();
    if (isDone || nowMs - this.#plannedMs >= PLAN_EVERY_MS) this.#plan(nowMs);
  }

  /** The answer's body ended without an error. */
  handleEnd(askId: number, nowMs: number): void {
    const ask = this.#pieces.asks.get(askId);
    if (!ask) return;
    if (this.#phase !== "single") {
      if (ask.position < ask.end)
        this.handleFailure(askId, bodyShort(ask.position - ask.start, ask.end - ask.start), nowMs);
      return;
    }
    const { totalBytes = null } = this.#head ?? {};
    if (totalBytes !== null && ask.position !== totalBytes)
      return this.handleFailure(askId, bodyShort(ask.position, totalBytes), nowMs);
    this.#pieces.asks.delete(askId);
    this.#finish({ kind: "complete" });
  }

  /** There was no answer, or a broken one, or an answer of the proxy itself and not of the origin. */
  handleFailure(askId: number, rejection: Rejection, nowMs: number): void {
    const ask = this.#pieces.asks.get(askId);
    if (!ask) return;
    const view = this.#proxies.all[ask.proxyIndex]!;
    this.#pieces.asks.delete(askId);
    this.#giveBack(ask);
    view.failures++;
    if (view.bytes === 0 || view.failures >= FAILURES_MAX || this.#phase === "single")
      this.#fail(ask.proxyIndex, rejection);
    this.#goOn(nowMs);
  }

  /** Cancels every answer. */
  stop(): void {
    this.#cancelAll();
    this.#phase = "over";
  }

  #forgetSilence(nowMs: number): void {
    for (const ask of this.#pieces.asks.values()) ask.heardMs = nowMs;
    this.#proxies.forgetSilence(nowMs);
  }

  // Handling of answers.

  #takePiece(ask: Ask, head: ResponseHead, nowMs: number): void {
    const told = parseContentRange(head.headers["content-range"]);
    if (!told) {
      const fault = differs("range", head.headers["content-range"], `${ask.start}-${ask.end - 1}`);
      return this.#reject(ask, fault, nowMs);
    }
    // Parts of several answers may be joined only by a strong validator (RFC 9110 §15.3.7.3).
    if (!this.#head && (told.resourceBytes === null || strongValidator(head) === undefined))
      return this.#goSingle(this.#range, nowMs);
    const end = Math.min(ask.end, told.resourceBytes ?? Infinity);
    const fault = (this.#head && differenceOf(this.#head, head)) ?? rangeFault(ask.start, end, told, head.totalBytes);
    if (fault) return this.#reject(ask, fault, nowMs);
    if (!this.#head) this.#begin(ask, head, told.resourceBytes!);
    if (end < ask.end) this.#pieces.asks.set(ask.id, { ...ask, end, wantedEnd: Math.min(ask.wantedEnd, end) });
    this.#plan(nowMs);
  }

  /** The first piece is here, so the length of the resource is known. */
  #begin(ask: Ask, head: ResponseHead, resourceBytes: number): void {
    this.#head = head;
    this.#phase = "pieces";
    const { start, asks } = this.#pieces;
    const end = Math.min(this.#pieces.end, resourceBytes);
    for (const other of [...asks.values()]) if (other.start >= end) this.#cancel(other.id);
    this.#pieces.settle(end);
    this.#events.push({ kind: "head", askId: ask.id, whole: { start, end: end - 1 } });
  }

  /** The answer is not a part of the resource. */
  #takeOther(ask: Ask, head: ResponseHead, nowMs: number): void {
    if (this.#head) return this.#reject(ask, differs("status", head.status, 206), nowMs);
    if (head.status !== 416) return this.#adopt(ask, head);
    if (ask.start > this.#pieces.start) return this.#cancel(ask.id);
    if (this.#range) return this.#adopt(ask, head);
    this.#goSingle(undefined, nowMs);
  }

  /** This answer is delivered unchanged: the origin does not support ranges, or it did not send the body. */
  #adopt(ask: Ask, head: ResponseHead): void {
    const { asks, start } = this.#pieces;
    for (const id of [...asks.keys()]) if (id !== ask.id) this.#cancel(id);
    this.#phase = "single";
    this.#singleRange = this.#range;
    asks.set(ask.id, { ...ask, start, position: start, end: Infinity, wantedEnd: Infinity });
    this.#settleSingle(ask.id, head);
  }

  #settleSingle(askId: number, head: ResponseHead): void {
    this.#head = { ...head, totalBytes: this.#endOf(head) };
    this.#events.push({ kind: "head", askId, whole: undefined });
  }

  #goSingle(range: ByteRange | undefined, nowMs: number): void {
    this.#cancelAll();
    this.#phase = "single";
    this.#singleRange = range;
    this.#goOn(nowMs);
  }

  #checkSingle(ask: Ask, head: ResponseHead, nowMs: number): void {
    const known = this.#head;
    if (!known) return this.#settleSingle(ask.id, head);
    const fault =
      head.status !== known.status ? differs("status", head.status, known.status) : differenceOf(known, head);
    const totalBytes = this.#endOf(head);
    const isBegun = this.#pieces.store.prefix > this.#pieces.start;
    if (fault) this.#reject(ask, fault, nowMs);
    else if (isBegun && !isSameVersion(known, head))
      this.#reject(ask, differs("validator", strongValidator(head), strongValidator(known)), nowMs);
    else if (known.totalBytes !== totalBytes) this.#reject(ask, differs("length", totalBytes, known.totalBytes), nowMs);
  }

  /** The position at which the single answer ends; null when its head does not tell. */
  #endOf({ totalBytes }: ResponseHead): number | null {
    return totalBytes === null ? null : this.#pieces.start + totalBytes;
  }

  // Failures and the end.

  /** The proxy's answer cannot be of the same bytes. From here on nothing of this proxy is trusted. */
  #reject(ask: Ask, rejection: Rejection, nowMs: number): void {
    this.#fail(ask.proxyIndex, rejection);
    this.#goOn(nowMs);
  }

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

  /** If the single answer is silent for too long, another proxy is asked for it. */
  #checkSilence(nowMs: number): void {
    const [ask] = this.#pieces.asks.values();
    const silentMs = ask && this.#hasRoom ? nowMs - ask.heardMs : 0;
    if (!ask || silentMs <= TIMING.proxySilenceMs) return;
    this.#reject(ask, { kind: "proxySilent", message: `Nothing came for ${Math.round(silentMs)} ms.` }, nowMs);
  }

  #goOn(nowMs: number): void {
    if (this.#phase === "over") return;
    const alive = this.#proxies.all.findIndex(({ failed }) => !failed);
    if (alive < 0) return this.#finish({ kind: "failed", rejection: this.#lastFailure });
    if (this.#phase !== "single") this.#plan(nowMs);
    else if (this.#pieces.asks.size === 0) this.#ask(alive, this.#pieces.start, Infinity, nowMs);
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
    if (this.#phase === "single") return this.#checkSilence(nowMs);
    if (this.#phase === "over") return;
    this.#proxies.noteQuiet(this.#pieces, nowMs);
    if (!this.#hasRoom) return;
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

  #ask(proxyIndex: number, start: number, end: number, nowMs: number): void {
    const id = this.#askCount++;
    this.#proxies.handleAsked(proxyIndex, end - start, this.#pieces.asksOf(proxyIndex).length === 0, nowMs);
    this.#pieces.asks.set(id, {
      id,
      proxyIndex,
      start,
      end,
      wantedEnd: end,
      position: start,
      repeatedEnd: start,
      askedMs: nowMs,
      heardMs: nowMs,
      answered: false,
    });
    const range = this.#phase === "single" ? this.#singleRange : { start, end: end - 1 };
    this.#commands.push({ kind: "ask", askId: id, proxyIndex, range });
  }

  #giveBack(ask: Ask): void {
    if (this.#phase !== "single" && this.#phase !== "over") this.#pieces.giveBack(ask);
  }

  #cancel(id: number): void {
    if (this.#pieces.asks.delete(id)) this.#commands.push({ kind: "cancel", askId: id });
  }

  #cancelAll(): void {
    for (const id of [...this.#pieces.asks.keys()]) this.#cancel(id);
  }

  /** Cancels answers that bring no missing bytes. */
  #cancelUnwanted(): void {
    for (const ask of [...this.#pieces.asks.values()]) if (this.#pieces.wantedOf(ask) === 0) this.#cancel(ask.id);
  }
}
