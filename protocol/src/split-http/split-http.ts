/**
 * SplitHttp: mode `split-http`, one body by byte ranges over persistent HTTP from several proxies: which range to ask
 * of which proxy and when, what is in vain, and what can be handed on. Pieces follow the measured rates and shrink
 * towards the end; the next one is asked for a round trip before a proxy would have nothing to send; who is idle at the
 * end takes over the end of the piece that would be the last, or asks again for one that is silent: the first answer
 * wins. Pure: time arrives as `nowMs`, answers as heads and bytes. In: handle*. Out: pollCommand, pollTimeout,
 * pollEvent. HTTP itself is the caller's. The same code runs in the client and in the simulator.
 */
import {
  headerDifference,
  parseContentRange,
  VALIDATOR_HEADERS,
  type ByteRange,
  type ContentRange,
  type ResponseHead,
} from "@tributary/contract";
import { ByteStore, type Stretch } from "./byte-store";
import { TIMING } from "../limits";
import { RateMeter } from "./rate-meter";
import type { Rejection } from "../types";

export interface SplitHttpOptions {
  proxyCount: number;
  /** Of the resource; all of it without. */
  range?: ByteRange | undefined;
  nowMs: number;
  /** Pieces begin and end at multiples of this. */
  alignBytes?: number;
  /** No piece begins further than this beyond the first missing byte. */
  aheadBytesMax?: number;
}

/** `range` undefined: all of the resource. Both ends inclusive, as HTTP has it. */
export type SplitHttpCommand =
  { kind: "ask"; askId: number; proxyIndex: number; range: ByteRange | undefined } | { kind: "cancel"; askId: number };

export type SplitHttpEvent =
  /** Before any bytes. `whole`: what the pieces make up; without it the answer to `askId` is the answer, as it is. */
  | { kind: "head"; askId: number; whole: ByteRange | undefined }
  | { kind: "bytes"; bytes: Uint8Array }
  | { kind: "proxyFailed"; proxyIndex: number; rejection: Rejection }
  | { kind: "complete" }
  | { kind: "failed"; rejection: Rejection };

/** HTTP/1.1 in a browser: six connections to a host. */
export const CONNECTIONS_MAX = 6;
/** Asked of each proxy before anything is known. */
const OPENING_BYTES = [8192, 16_384, 16_384, 32_768, 65_536];
/** Answers under way at once where one of them, with its TCP window, cannot fill the link. */
const LANES = 4;
/** Bytes on their way, or waiting behind a lost packet, are no more than came in so many round trips. */
const HELD_ROUND_TRIPS = 2;
/** One answer at a time has been slower than several by this. */
const LANES_GAIN = 0.75;
const PIECE_BYTES_MIN = 8192;
const PIECE_BYTES_MAX = 4 * 1024 * 1024;
const TICK_MS = 5;
/** Bytes that come sooner after the last look at the whole change little. */
const PLAN_MS = 1;
/** Work is taken over only where the end comes sooner by this, and so much of it: it may cost a connection. */
const STEAL_GAIN_MS = 4;
const STEAL_BYTES_MIN = 4096;
/** Before a proxy has answered anything. */
const ANSWER_MS_GUESS = 300;
/** It owes something and was silent for so many times its answer time, and this. */
const QUIET_ANSWERS = 2;
const QUIET_MS = 50;
/** At the end an answer is asked for again once it was silent, or late, by this part of the answer time. */
const SILENT_ANSWERS = 0.25;
const FAILURES_MAX = 2;

interface Ask {
  readonly id: number;
  readonly proxy: number;
  readonly start: number;
  /** Exclusive; Infinity for an answer that is taken as it is. */
  readonly end: number;
  /** Up to where it is still wanted: others took over what follows. */
  wantedEnd: number;
  /** The next byte that it brings. */
  position: number;
  /** Up to where others were asked for the same. */
  repeatedEnd: number;
  readonly askedMs: number;
  heardMs: number;
  answered: boolean;
}

interface ProxyView {
  failed: boolean;
  failures: number;
  bytes: number;
  /** The shortest time from asking to the first byte. */
  answerMs: number;
  heardMs: number;
  quiet: boolean;
  readonly meter: RateMeter;
  /** What it has not sent yet, were it sending at its rate since it was asked; since when. */
  unsent: number;
  unsentMs: number;
  /** Answers that are to be under way at once: 1 or LANES. */
  lanes: number;
  /** The highest rate so far. */
  peak: number;
}

/** What is known at one moment, by proxy. */
interface Look {
  /** Bytes that it was asked for and that are still wanted of it. */
  owed: number[];
  /**
   * Of these, what it has yet to send; and that with what may be on its way. `owed` is more while bytes wait behind a
   * lost packet.
   */
  backlog: number[];
  debt: number[];
  /** Answers under way, and those that still will be a round trip from now. */
  lanes: number[];
  busy: number[];
  /** Bytes a ms. */
  rates: number[];
}

/** How the body comes: not known yet; in pieces; as one answer, from one proxy at a time. */
type Phase = "opening" | "pieces" | "single" | "over";

export class SplitHttp {
  #phase: Phase = "opening";
  readonly #proxies: ProxyView[];
  readonly #asks = new Map<number, Ask>();
  readonly #commands: SplitHttpCommand[] = [];
  readonly #events: SplitHttpEvent[] = [];
  readonly #store: ByteStore;
  /** Never asked for, or given back by who failed; in order. */
  #unasked: Stretch[];
  /** Exclusive; of the range asked for until the resource's length is known. */
  #end: number;
  #head: ResponseHead | undefined;
  #singleRange: ByteRange | undefined;
  #lastFailure: Rejection = { kind: "proxiesFailed", message: "No proxy answered." };
  #made = 0;
  /** Some bytes were asked for twice, or are no longer wanted of whom they were asked. */
  #overlaps = false;
  #hasRoom = true;
  #plannedMs: number;
  /** Nothing beyond it is asked for before the length is known. */
  #openedEnd = Infinity;
  readonly #start: number;
  readonly #alignBytes: number;
  readonly #aheadBytesMax: number;

  readonly #options: SplitHttpOptions;

  constructor(options: SplitHttpOptions) {
    this.#options = options;

    const { proxyCount, range, nowMs, alignBytes = 1, aheadBytesMax = 32 * 1024 * 1024 } = options;
    this.#start = range?.start ?? 0;
    this.#end = range ? range.end + 1 : Infinity;
    this.#unasked = [{ start: this.#start, end: this.#end }];
    this.#store = new ByteStore(this.#start);
    this.#alignBytes = alignBytes;
    this.#aheadBytesMax = aheadBytesMax;
    this.#plannedMs = nowMs;
    const view = (): ProxyView => ({
      failed: false,
      failures: 0,
      bytes: 0,
      answerMs: Infinity,
      heardMs: nowMs,
      quiet: false,
      meter: new RateMeter(),
      unsent: 0,
      unsentMs: nowMs,
      lanes: 1,
      peak: 0,
    });
    this.#proxies = Array.from({ length: proxyCount }, view);
    this.#open(nowMs);
  }

  pollCommand(): SplitHttpCommand | undefined {
    return this.#commands.shift();
  }

  pollEvent(): SplitHttpEvent | undefined {
    return this.#events.shift();
  }

  /** When to call `handleTimeout`; undefined once all is over. */
  pollTimeout(): number | undefined {
    return this.#phase === "over" ? undefined : this.#plannedMs + TICK_MS;
  }

  handleTimeout(nowMs: number): void {
    if (nowMs >= this.#plannedMs + TICK_MS) this.#plan(nowMs);
  }

  /** Whether the reader takes more; without room nothing new is asked for. */
  handleRoom(hasRoom: boolean, nowMs: number): void {
    if (hasRoom && !this.#hasRoom) this.#forgetSilence(nowMs);
    this.#hasRoom = hasRoom;
    if (hasRoom) this.#plan(nowMs);
  }

  handleHead(askId: number, head: ResponseHead, nowMs: number): void {
    const ask = this.#asks.get(askId);
    if (!ask) return;
    ask.answered = true;
    this.#hear(ask, nowMs);
    if (this.#phase === "single") this.#checkSingle(ask, head, nowMs);
    else if (head.status === 206) this.#takePiece(ask, head, nowMs);
    else this.#takeOther(ask, head, nowMs);
  }

  handleBytes(askId: number, bytes: Uint8Array, nowMs: number): void {
    const ask = this.#asks.get(askId);
    if (!ask || bytes.length === 0) return;
    const view = this.#proxies[ask.proxy]!;
    this.#hear(ask, nowMs);
    view.bytes += bytes.length;
    view.meter.note(view.bytes, nowMs, this.#answerMs(ask.proxy));
    const wanted = bytes.subarray(0, Math.min(bytes.length, ask.end - ask.position));
    this.#store.insert(ask.position, wanted);
    ask.position += wanted.length;
    for (const next of this.#store.take()) this.#events.push({ kind: "bytes", bytes: next });
    if (this.#phase !== "pieces") return;
    const isWhole = ask.position >= ask.end;
    if (isWhole) this.#asks.delete(askId);
    if (this.#store.prefix >= this.#end) return this.#finish({ kind: "complete" });
    if (this.#overlaps) this.#dropUnwanted();
    if (isWhole || nowMs - this.#plannedMs >= PLAN_MS) this.#plan(nowMs);
  }

  /** The answer's body ended, as a body should. */
  handleEnd(askId: number, nowMs: number): void {
    const ask = this.#asks.get(askId);
    if (!ask) return;
    if (this.#phase === "single") {
      const { totalBytes = null } = this.#head ?? {};
      if (totalBytes !== null && ask.position !== totalBytes)
        return this.handleFailure(askId, bodyShort(ask.position, totalBytes), nowMs);
      this.#asks.delete(askId);
      return this.#finish({ kind: "complete" });
    }
    if (ask.position < ask.end)
      this.handleFailure(askId, bodyShort(ask.position - ask.start, ask.end - ask.start), nowMs);
  }

  /** No answer, a broken one, or one that is the proxy's own and not the origin's. */
  handleFailure(askId: number, rejection: Rejection, nowMs: number): void {
    const ask = this.#asks.get(askId);
    if (!ask) return;
    const view = this.#proxies[ask.proxy]!;
    this.#asks.delete(askId);
    this.#giveBack(ask);
    view.failures++;
    if (view.bytes === 0 || view.failures >= FAILURES_MAX || this.#phase === "single") this.#fail(ask.proxy, rejection);
    this.#goOn(nowMs);
  }

  /** Drops everything: nothing is wanted any more. */
  stop(): void {
    for (const id of [...this.#asks.keys()]) this.#cancel(id);
    this.#phase = "over";
  }

  /** Nobody was listening. */
  #forgetSilence(nowMs: number): void {
    for (const ask of this.#asks.values()) ask.heardMs = nowMs;
    for (const view of this.#proxies) {
      view.heardMs = nowMs;
      view.meter.rest();
    }
  }

  #hear(ask: Ask, nowMs: number): void {
    const view = this.#proxies[ask.proxy]!;
    if (ask.heardMs === ask.askedMs) view.answerMs = Math.min(view.answerMs, nowMs - ask.askedMs);
    ask.heardMs = view.heardMs = nowMs;
    view.quiet = false;
  }

  // What answers mean.

  #takePiece(ask: Ask, head: ResponseHead, nowMs: number): void {
    const told = parseContentRange(head.headers["content-range"]);
    if (!told) {
      const fault = differs("range", head.headers["content-range"], `${ask.start}-${ask.end - 1}`);
      return this.#reject(ask, fault, nowMs);
    }
    if (told.resourceBytes === null) return this.#goSingle(this.#options.range, nowMs);
    const end = Math.min(ask.end, told.resourceBytes);
    const fault = (this.#head && differenceOf(this.#head, head)) ?? rangeFault(ask.start, end, told, head.totalBytes);
    if (fault) return this.#reject(ask, fault, nowMs);
    if (!this.#head) this.#begin(ask, head, told.resourceBytes);
    if (end < ask.end) this.#replace(ask, end);
    this.#plan(nowMs);
  }

  /** The first piece is here: the resource's length is known. */
  #begin(ask: Ask, head: ResponseHead, totalBytes: number): void {
    this.#head = head;
    this.#phase = "pieces";
    this.#end = Math.min(this.#end, totalBytes);
    for (const other of [...this.#asks.values()]) if (other.start >= this.#end) this.#cancel(other.id);
    this.#unasked = this.#uncovered({ start: this.#start, end: this.#end });
    this.#events.push({ kind: "head", askId: ask.id, whole: { start: this.#start, end: this.#end - 1 } });
  }

  /** Anything but a part of the resource. */
  #takeOther(ask: Ask, head: ResponseHead, nowMs: number): void {
    if (this.#head) return this.#reject(ask, differs("status", head.status, 206), nowMs);
    if (head.status !== 416) return this.#adopt(ask, head);
    if (ask.start > this.#start) return this.#cancel(ask.id);
    if (this.#options.range) return this.#adopt(ask, head);
    this.#goSingle(undefined, nowMs);
  }

  /** This answer is the answer: an origin without ranges, or one that says something else than the body. */
  #adopt(ask: Ask, head: ResponseHead): void {
    for (const id of [...this.#asks.keys()]) if (id !== ask.id) this.#cancel(id);
    this.#phase = "single";
    this.#singleRange = this.#options.range;
    this.#asks.set(ask.id, { ...ask, start: this.#start, position: this.#start, end: Infinity, wantedEnd: Infinity });
    this.#settleSingle(ask.id, head);
  }

  #settleSingle(askId: number, head: ResponseHead): void {
    this.#head = { ...head, totalBytes: head.totalBytes === null ? null : this.#start + head.totalBytes };
    this.#events.push({ kind: "head", askId, whole: undefined });
  }

  #goSingle(range: ByteRange | undefined, nowMs: number): void {
    for (const id of [...this.#asks.keys()]) this.#cancel(id);
    this.#phase = "single";
    this.#singleRange = range;
    this.#goOn(nowMs);
  }

  #checkSingle(ask: Ask, head: ResponseHead, nowMs: number): void {
    if (!this.#head) return this.#settleSingle(ask.id, head);
    const totalBytes = head.totalBytes === null ? null : this.#start + head.totalBytes;
    const fault =
      head.status !== this.#head.status
        ? differs("status", head.status, this.#head.status)
        : differenceOf(this.#head, head);
    if (fault) this.#reject(ask, fault, nowMs);
    else if (this.#head.totalBytes !== totalBytes)
      this.#reject(ask, differs("length", totalBytes, this.#head.totalBytes), nowMs);
  }

  /** The proxy's answer cannot be of the same bytes: nothing of it is trusted from here on. */
  #reject(ask: Ask, rejection: Rejection, nowMs: number): void {
    this.#fail(ask.proxy, rejection);
    this.#goOn(nowMs);
  }

  #fail(proxy: number, rejection: Rejection): void {
    const view = this.#proxies[proxy]!;
    if (view.failed) return;
    view.failed = true;
    this.#lastFailure = rejection;
    this.#events.push({ kind: "proxyFailed", proxyIndex: proxy, rejection });
    for (const ask of [...this.#asks.values()]) {
      if (ask.proxy !== proxy) continue;
      this.#cancel(ask.id);
      this.#giveBack(ask);
    }
  }

  /** Of the one answer: after this long another proxy is asked for it. */
  #checkSilence(nowMs: number): void {
    const [ask] = this.#asks.values();
    const silentMs = ask && this.#hasRoom ? nowMs - ask.heardMs : 0;
    if (!ask || silentMs <= TIMING.proxySilenceMs) return;
    this.#reject(ask, { kind: "proxySilent", message: `Nothing came for ${Math.round(silentMs)} ms.` }, nowMs);
  }

  #goOn(nowMs: number): void {
    if (this.#phase === "over") return;
    const alive = this.#proxies.findIndex(({ failed }) => !failed);
    if (alive < 0) return this.#finish({ kind: "failed", rejection: this.#lastFailure });
    if (this.#phase !== "single") this.#plan(nowMs);
    else if (this.#asks.size === 0) this.#ask(alive, this.#start, Infinity, nowMs);
  }

  #finish(event: SplitHttpEvent): void {
    this.stop();
    this.#events.push(event);
  }

  // Asking.

  #ask(proxy: number, start: number, end: number, nowMs: number): void {
    const id = this.#made++;
    const view = this.#proxies[proxy]!;
    if (this.#asksOf(proxy).length === 0) {
      view.meter.rest();
      view.unsent = 0;
      view.unsentMs = nowMs + (view.answerMs < Infinity ? view.answerMs : 0);
    }
    if (end < Infinity) view.unsent += end - start;
    this.#asks.set(id, {
      id,
      proxy,
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
    this.#commands.push({ kind: "ask", askId: id, proxyIndex: proxy, range });
  }

  #cancel(id: number): void {
    if (this.#asks.delete(id)) this.#commands.push({ kind: "cancel", askId: id });
  }

  /** The resource ends before what was asked for does. */
  #replace(ask: Ask, end: number): void {
    this.#asks.set(ask.id, { ...ask, end, wantedEnd: Math.min(ask.wantedEnd, end) });
  }

  /** What nobody else was asked for is to be asked for anew. */
  #giveBack(ask: Ask): void {
    if (this.#phase === "single" || this.#phase === "over") return;
    const left = this.#uncovered({ start: ask.position, end: Math.min(ask.wantedEnd, this.#end) });
    this.#unasked = [...this.#unasked, ...left].sort((a, b) => a.start - b.start);
  }

  /** What of it is missing, and not being asked for. */
  #uncovered({ start, end }: Stretch): Stretch[] {
    let left = this.#store.gaps(start, end);
    for (const ask of this.#asks.values())
      left = left.flatMap((gap) => without(gap, { start: ask.position, end: ask.wantedEnd }));
    return left;
  }

  /** Answers of which nothing is missing any more. */
  #dropUnwanted(): void {
    for (const ask of [...this.#asks.values()]) if (this.#wantedOf(ask) === 0) this.#cancel(ask.id);
  }

  /** Small pieces first, so that a small body is shared; then larger ones, to fill the links until the first answer. */
  #open(nowMs: number): void {
    for (const bytes of OPENING_BYTES) {
      for (let proxy = 0; proxy < this.#proxies.length; proxy++) {
        const next = this.#nextStretch(this.#aligned(bytes));
        if (next) this.#ask(proxy, next.start, next.end, nowMs);
      }
    }
    this.#openedEnd = this.#unasked[0]?.start ?? this.#end;
  }

  #plan(nowMs: number): void {
    this.#plannedMs = nowMs;
    if (this.#phase === "single") return this.#checkSilence(nowMs);
    if (this.#phase === "over") return;
    for (let proxy = 0; proxy < this.#proxies.length; proxy++) this.#noteQuiet(proxy, nowMs);
    if (!this.#hasRoom) return;
    let look = this.#look(nowMs);
    this.#noteRates(look.rates);
    for (let proxy = 0; proxy < this.#proxies.length; proxy++) {
      while (this.#planFor(proxy, look, nowMs)) look = this.#look(nowMs);
    }
  }

  /** Asks this proxy for more, a round trip before it would have nothing to send. True when it was asked. */
  #planFor(proxy: number, look: Look, nowMs: number): boolean {
    const view = this.#proxies[proxy]!;
    const lanes = look.lanes[proxy]!;
    if (view.failed || view.quiet || lanes >= CONNECTIONS_MAX) return false;
    const aheadMs = this.#answerMs(proxy) + TICK_MS;
    const isEnough = look.debt[proxy]! / look.rates[proxy]! > aheadMs;
    if (lanes > 0 && (!view.meter.isKnown || (isEnough && (view.lanes === 1 || look.busy[proxy]! >= view.lanes))))
      return false;
    if (!this.#hasMore())
      return (
        (look.backlog[proxy]! < look.rates[proxy]! && this.#askAgain(proxy, look, nowMs)) ||
        (!isEnough && this.#takeOver(proxy, look, nowMs))
      );
    const least = Math.max(PIECE_BYTES_MIN, (look.rates[proxy]! * aheadMs) / (lanes === 0 ? 1 : LANES));
    const size = this.#pieceBytes(proxy, look, least);
    const next = size > 0 ? this.#nextStretch(size) : undefined;
    if (next) this.#ask(proxy, next.start, next.end, nowMs);
    return next !== undefined;
  }

  /** A lane's part of what this proxy may still send so that all end together; all of it once that is little. */
  #pieceBytes(proxy: number, { debt, rates }: Look, least: number): number {
    const left = this.#unasked.reduce((sum, { start, end }) => sum + end - start, 0);
    if (left === Infinity) return this.#aligned(least);
    const endMs = (left + sumOf(debt)) / sumOf(rates);
    const fair = endMs * rates[proxy]! - debt[proxy]!;
    const pieces = 2 * this.#proxies[proxy]!.lanes;
    if (fair > 2 * least) return this.#aligned(Math.min(PIECE_BYTES_MAX, Math.max(least, fair / pieces)));
    return fair >= this.#alignBytes || debt[proxy] === 0 ? this.#aligned(Math.max(1, fair)) : 0;
  }

  /** There are bytes that may be asked for now. */
  #hasMore(): boolean {
    const limit = Math.min(
      this.#store.prefix + this.#aheadBytesMax,
      this.#phase === "opening" ? this.#openedEnd : Infinity,
    );
    return (this.#unasked[0]?.start ?? Infinity) < limit;
  }

  /** The next bytes to ask for, no longer unasked. */
  #nextStretch(size: number): Stretch | undefined {
    const first = this.#unasked[0];
    if (!first || !this.#hasMore()) return undefined;
    const { start } = first;
    const end = Math.min(first.end, start + size);
    if (end === first.end) this.#unasked.shift();
    else first.start = end;
    return { start, end };
  }

  /** End game: what an answer that fell silent still owes is asked for again; the first answer wins. */
  #askAgain(proxy: number, { backlog, rates }: Look, nowMs: number): boolean {
    const silent = [...this.#asks.values()].filter(
      (ask) => ask.proxy !== proxy && this.#isSilent(ask, nowMs) && this.#repeatable(ask).length > 0,
    );
    const ask = silent.sort((a, b) => a.heardMs - b.heardMs)[0];
    if (!ask) return false;
    const idle = this.#proxies.filter(
      ({ failed, quiet }, index) => !failed && !quiet && backlog[index]! < rates[index]!,
    ).length;
    const owed = silent.reduce((sum, one) => sum + this.#wantedOf(one), 0);
    const [gap] = this.#repeatable(ask);
    const size = this.#aligned(Math.max(PIECE_BYTES_MIN, owed / idle, rates[proxy]! * TICK_MS));
    const end = Math.min(gap!.end, gap!.start + size);
    ask.repeatedEnd = end;
    this.#overlaps = true;
    this.#ask(proxy, gap!.start, end, nowMs);
    return true;
  }

  /** Splits the last piece of the proxy that would end last so that both halves end together. */
  #takeOver(proxy: number, { owed, debt, rates }: Look, nowMs: number): boolean {
    const ends = debt.map((bytes, index) => (index === proxy ? 0 : bytes / rates[index]!));
    const lastMs = Math.max(...ends);
    const other = ends.indexOf(lastMs);
    const ask = this.#asksOf(other).findLast((one) => one.repeatedEnd <= one.position && this.#wantedOf(one) > 0);
    if (!ask || other === proxy) return false;
    const [rate, theirs] = [rates[proxy]!, rates[other]!];
    const isQuiet = this.#proxies[other]!.quiet;
    const readyMs = Math.max(this.#answerMs(proxy), debt[proxy]! / rate);
    const underway = isQuiet ? 0 : theirs * this.#answerMs(other);
    const fair = isQuiet ? this.#wantedOf(ask) : (lastMs - readyMs) / (1 / rate + 1 / theirs);
    const bytes = Math.min(fair, this.#wantedOf(ask), owed[other]! - underway);
    if (
      bytes < Math.min(STEAL_BYTES_MIN, this.#wantedOf(ask)) ||
      lastMs - (readyMs + bytes / rate) < Math.max(STEAL_GAIN_MS, this.#answerMs(proxy) / 5)
    )
      return false;
    const end = ask.wantedEnd;
    const cut = Math.max(ask.position, ask.start + this.#aligned(end - bytes - ask.start));
    if (cut >= end) return false;
    ask.wantedEnd = cut;
    this.#overlaps = true;
    this.#ask(proxy, cut, end, nowMs);
    if (this.#wantedOf(ask) === 0) this.#cancel(ask.id);
    return true;
  }

  // What is known of the proxies.

  #asksOf(proxy: number): Ask[] {
    return [...this.#asks.values()].filter((ask) => ask.proxy === proxy);
  }

  #look(nowMs: number): Look {
    const owed = this.#proxies.map(() => 0);
    const lanes = this.#proxies.map(() => 0);
    const busy = this.#proxies.map(() => 0);
    const rates = this.#rates(nowMs);
    for (const ask of this.#asks.values()) {
      const wanted = this.#wantedOf(ask);
      owed[ask.proxy]! += wanted;
      lanes[ask.proxy]!++;
      if ((wanted * this.#proxies[ask.proxy]!.lanes) / rates[ask.proxy]! > this.#answerMs(ask.proxy) + TICK_MS)
        busy[ask.proxy]!++;
    }
    const backlog = this.#proxies.map((view, proxy) => {
      view.unsent = Math.max(0, view.unsent - Math.max(0, nowMs - view.unsentMs) * rates[proxy]!);
      view.unsentMs = Math.max(nowMs, view.unsentMs);
      view.unsent = Math.max(view.unsent, owed[proxy]! - HELD_ROUND_TRIPS * rates[proxy]! * this.#answerMs(proxy));
      return Math.min(owed[proxy]!, view.unsent);
    });
    const debt = owed.map((bytes, proxy) =>
      this.#proxies[proxy]!.quiet ? bytes : Math.min(bytes, backlog[proxy]! + rates[proxy]! * this.#answerMs(proxy)),
    );
    return { owed, debt, lanes, busy, rates, backlog };
  }

  #wantedOf(ask: Ask): number {
    return this.#store.missing(ask.position, Math.min(ask.wantedEnd, this.#end));
  }

  #repeatable(ask: Ask): Stretch[] {
    return this.#store.gaps(Math.max(ask.position, ask.repeatedEnd), Math.min(ask.wantedEnd, this.#end));
  }

  #answerMs(proxy: number): number {
    const known = this.#proxies.map(({ answerMs }) => answerMs).filter((ms) => ms < Infinity);
    const own = this.#proxies[proxy]!.answerMs;
    return own < Infinity ? own : known.length > 0 ? Math.max(...known) : ANSWER_MS_GUESS;
  }

  #isSilent(ask: Ask, nowMs: number): boolean {
    const answerMs = this.#answerMs(ask.proxy);
    return nowMs - ask.heardMs > answerMs * (ask.answered ? SILENT_ANSWERS : 1 + SILENT_ANSWERS) + TICK_MS;
  }

  #noteQuiet(proxy: number, nowMs: number): void {
    const view = this.#proxies[proxy]!;
    const limitMs = QUIET_ANSWERS * this.#answerMs(proxy) + QUIET_MS;
    if (this.#asksOf(proxy).some(({ askedMs }) => nowMs - Math.max(view.heardMs, askedMs) > limitMs)) view.quiet = true;
  }

  /** Bytes a ms of each proxy; before anything came the mean of the others; next to nothing from quiet ones. */
  #rates(nowMs: number): number[] {
    const measured = this.#proxies.map(({ meter }, proxy) =>
      meter.isKnown ? meter.bytesPerMs(nowMs, this.#answerMs(proxy)) : 0,
    );
    const known = measured.filter((rate) => rate > 0);
    const mean = known.length > 0 ? sumOf(known) / known.length : 1000;
    return measured.map((rate, proxy) =>
      this.#proxies[proxy]!.failed || this.#proxies[proxy]!.quiet ? 1e-3 : rate || mean,
    );
  }

  /** The opening asks for several pieces at once: what one at a time must come near to. */
  #noteRates(rates: readonly number[]): void {
    this.#proxies.forEach((view, proxy) => {
      if (!view.meter.isKnown) return;
      view.peak = Math.max(view.peak, rates[proxy]!);
      if (rates[proxy]! < LANES_GAIN * view.peak) view.lanes = LANES;
    });
  }

  #aligned(bytes: number): number {
    return Math.ceil(bytes / this.#alignBytes) * this.#alignBytes;
  }
}

function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}

function without(gap: Stretch, covered: Stretch): Stretch[] {
  if (covered.start >= gap.end || covered.end <= gap.start) return [gap];
  const rest = [
    { start: gap.start, end: covered.start },
    { start: covered.end, end: gap.end },
  ];
  return rest.filter(({ start, end }) => end > start);
}

/** In what two answers cannot be of the same bytes. */
function differenceOf(ours: ResponseHead, theirs: ResponseHead): Rejection | undefined {
  const [a, b] = [resourceBytesOf(ours), resourceBytesOf(theirs)];
  if (a !== null && b !== null && a !== b) return differs("length", b, a);
  const header = headerDifference(ours, theirs, VALIDATOR_HEADERS);
  return header && differs(header.what, header.got, header.expected);
}

const resourceBytesOf = ({ status, headers }: ResponseHead): number | null =>
  (status === 206 ? parseContentRange(headers["content-range"])?.resourceBytes : undefined) ?? null;

function rangeFault(start: number, end: number, told: ContentRange, bytes: number | null): Rejection | undefined {
  if (told.start !== start || told.end + 1 !== end)
    return differs("range", `${told.start}-${told.end}`, `${start}-${end - 1}`);
  return bytes === null || bytes === end - start ? undefined : differs("length", bytes, end - start);
}

function differs(what: string, got: unknown, expected: unknown): Rejection {
  return {
    kind: "planMismatch",
    message: `The answer's ${what} differs from what it must be: got ${String(got)}, expected ${String(expected)}.`,
  };
}

function bodyShort(got: number, limit: number): Rejection {
  return { kind: "bodyShort", message: `The answer ended early: got ${got} bytes, expected ${limit}.`, got, limit };
}
