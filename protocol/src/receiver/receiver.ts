/**
 * Receiver: one chunk at the client, from N proxies at once. Asks each proxy, checks that their plans agree, counts
 * degrees of freedom, feeds back, and hands bytes on in order. Any useful packet from any proxy counts.
 * Pure: time arrives as `nowMs`, packets as bytes. In: handle*, abort. Out: pollTransmit, pollTimeout, pollEvent.
 * Rules: docs/spec/protocol.md §5 and §7.
 */
import { headDifference, type ByteRange, type Rejection } from "@tributary/contract";
import { Assembly } from "./assembly";
import type { Codec } from "../codec";
import { dataHeaderBytes, encodeFrame, parseFrame } from "../wire/frames";
import { Planner } from "../planner/planner";
import { geometryOf, isRejection, type Geometry } from "../geometry";
import { beginningsOf, type Beginning, type KnownPath } from "../planner/known";
import { FEEDBACK_EVERY_PACKETS_DEFAULT, LIMITS, TIMING } from "../limits";
import type { DataFrame, FinalReason, Frame, MutpMode, RequestFrame, PlanHead } from "../types";
import type { Trusted } from "./verification";

export type ReceiverEvent =
  | { kind: "head"; head: PlanHead }
  | { kind: "bytes"; offset: number; bytes: Uint8Array }
  | { kind: "complete" }
  | { kind: "failed"; rejection: Rejection };

/** Counts of data frames; packets = innovative + duplicate + late + rejected, always. */
export interface ProxyStats {
  bytes: number;
  packets: number;
  innovative: number;
  /** Valid but linearly dependent on what had come before. */
  duplicate: number;
  /** Came after the chunk was complete or given up. */
  late: number;
  /** Unreadable, or not what the plan allows. */
  rejected: number;
  /** Gaps in the sequence numbers. */
  lost: number;
  rttMs: number | null;
  /** Mode `coded`: what a later chunk may be told as `known`. */
  path?: KnownPath;
  state: "waiting" | "active" | "failed" | "ended";
  error?: Rejection;
}

/** What a data frame was good for. */
export type PacketFate = "innovative" | "duplicate" | "late" | "rejected";

/**
 * Told of each data frame as it is counted, with the time that it came; generation 0 for one that could not be read.
 */
export type OnPacket = (atMs: number, proxyIndex: number, generationIndex: number, fate: PacketFate) => void;

export interface ReceiverStats {
  deliveredBytes: number;
  grossBytes: number;
  rank: number;
  symbolCount: number;
  generationCount: number;
  /** From the start of the receiver to the first data frame. */
  firstPacketMs?: number;
  feedbackFrames: number;
  proxies: ProxyStats[];
}

export interface ReceiverOptions {
  requestId: number;
  /** Shown to every proxy. */
  token?: string;
  url: string;
  range?: ByteRange;
  mode: MutpMode;
  proxyCount: number;
  codec: Codec;
  nowMs: number;
  symbolBytes?: number;
  generationSize?: number;
  /** The paper's w, in packets. */
  windowPackets?: number;
  /** Feedback to a proxy after this many packets from it (F) ... */
  feedbackEveryPackets?: number;
  /** ... or this long after the first progress not yet reported to it (T). */
  feedbackEveryMs?: number;
  /**
   * Does whoever runs the receiver make a new session to a proxy that fell silent? Then silence alone fails no request.
   */
  renewsSessions?: boolean;
  /** Mode `coded`: what is known of each proxy. */
  known?: readonly (KnownPath | undefined)[];
  /** With it only bytes that have these digests are handed on; without it proxies are believed. */
  trusted?: Trusted;
  onPacket?: OnPacket;
}

interface Proxy {
  readonly stats: ProxyStats;
  asked: boolean;
  /** It was sent the request along with its session's, so that no answer tells the round trip. */
  askedFirst: boolean;
  planned: boolean;
  /** Failed by silence only: a valid frame brings it back. */
  silent: boolean;
  /** Failed because its session went: a new session brings it back. */
  lost: boolean;
  /** A new session is being made. */
  away: boolean;
  requestDueMs: number;
  requestEveryMs: number;
  /** The first time. */
  requestSentMs: number;
  requestTries: number;
  lastHeardMs: number;
  dataFrames: number;
  nextSequence: number;
  packetsSinceFeedback: number;
  feedbackDueMs: number;
  /** Data that came before the plan, and when. */
  early: { frame: DataFrame; atMs: number }[];
  final: { reason: FinalReason; tries: number; dueMs: number } | undefined;
}

/** What a final feedback says of what was received. */
const NOTHING = { base: 0, received: { kind: "symbols", count: 0, bitmap: new Uint8Array(0) } } as const;

export class Receiver {
  readonly #request: RequestFrame;
  readonly #codec: Codec;
  readonly #startMs: number;
  readonly #packetBytes: number;
  readonly #known: readonly (KnownPath | undefined)[];
  readonly #beginnings: readonly Beginning[];
  readonly #everyPackets: number;
  readonly #everyMsWanted: number | undefined;
  readonly #trusted: Trusted | undefined;
  readonly #renewsSessions: boolean;
  readonly #onPacket: OnPacket | undefined;
  readonly #proxies: Proxy[];
  readonly #events: ReceiverEvent[] = [];
  #head: PlanHead | undefined;
  #geometry: Geometry | undefined;
  #assembly: Assembly | undefined;
  /** Mode `coded` only. */
  #planner: Planner | undefined;
  #plannedMs = -1;
  #firstPacketMs: number | undefined;
  #feedbackSequence = 0;
  #feedbackFrames = 0;
  /** Set once the chunk is delivered, given up or failed: only final feedback is left to do. */
  #closed = false;

  constructor(options: ReceiverOptions) {
    const coded = options.mode === "coded";
    this.#request = {
      type: "request",
      requestId: options.requestId,
      mode: options.mode,
      symbolBytes: options.symbolBytes ?? LIMITS.symbolBytesDefault,
      generationSize:
        options.generationSize ?? (coded ? LIMITS.codedGenerationSizeDefault : LIMITS.generationSizeDefault),
      windowPackets: options.windowPackets ?? (coded ? LIMITS.firstPacketsDefault : LIMITS.windowPacketsDefault),
      url: options.url,
      ...(options.range ? { range: options.range } : {}),
      ...(options.token === undefined ? {} : { token: options.token }),
    };
    this.#packetBytes = this.#request.symbolBytes + dataHeaderBytes("seed", 0);
    this.#known = Array.from({ length: options.proxyCount }, (_, index) => options.known?.[index]);
    this.#beginnings = beginningsOf(this.#known, this.#request, this.#packetBytes);
    const checked = parseFrame(
      encodeFrame(coded ? { ...this.#request, share: this.#beginnings[0]!.share } : this.#request),
    );
    if (checked.type === "parseError") throw new RangeError(checked.rejection.message);
    this.#codec = options.codec;
    this.#startMs = options.nowMs;
    this.#everyPackets = options.feedbackEveryPackets ?? FEEDBACK_EVERY_PACKETS_DEFAULT;
    this.#everyMsWanted = options.feedbackEveryMs;
    this.#proxies = Array.from({ length: options.proxyCount }, () => newProxy());
    this.#trusted = options.trusted;
    this.#renewsSessions = options.renewsSessions ?? false;
    this.#onPacket = options.onPacket;
    if (this.#trusted) checkDigests(this.#trusted, this.#request);
  }

  /** Delivered, given up or failed: packets are of no use any more. */
  get decided(): boolean {
    return this.#closed;
  }

  /** Nothing is left to send or to wait for. */
  get finished(): boolean {
    return this.#closed && this.#proxies.every((proxy) => !proxy.final);
  }

  /**
   * The request as this proxy may be sent it before its session is up; undefined when it is not to be asked any more.
   * `handleProxyReady` sends it again, unless the plan is here by then.
   */
  firstRequest(proxyIndex: number, nowMs: number): Uint8Array | undefined {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy || this.#closed || proxy.asked || proxy.planned || proxy.stats.state === "failed") return undefined;
    proxy.askedFirst = true;
    return encodeFrame(this.#requestTo(proxyIndex, nowMs));
  }

  /**
   * Whoever answered the request that went before the session (`firstRequest`) is gone: the session that comes up knows
   * nothing of it.
   */
  handleFirstGone(proxyIndex: number, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy || this.#closed || proxy.asked || !proxy.askedFirst || proxy.stats.state === "failed") return;
    for (const { frame, atMs } of proxy.early.splice(0)) this.#count(proxy, 0, "rejected", atMs, frame);
    startAgain(proxy);
    this.#planner?.handleBack(proxyIndex, nowMs);
  }

  /** The session to this proxy is up, for the first time or again after it was lost. */
  handleProxyReady(proxyIndex: number, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy || this.#closed) return;
    if (proxy.lost) {
      startAgain(proxy);
      this.#planner?.handleBack(proxyIndex, nowMs);
    } else if (proxy.asked || proxy.stats.state === "failed") return;
    proxy.asked = true;
    proxy.requestDueMs = nowMs;
    proxy.lastHeardMs = nowMs;
  }

  /**
   * The session to this proxy is gone, or could not be had. While one is `away`, a new session being made, the request
   * does not fail for want of proxies: `handleProxyReady` follows, or this again without it.
   */
  handleProxyLost(proxyIndex: number, reason: string, nowMs: number, away = false): void {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy) return;
    proxy.away = away;
    proxy.final = undefined;
    proxy.lost ||= proxy.silent || proxy.stats.state !== "failed";
    proxy.silent = false;
    if (this.#closed) return;
    this.#failProxy(proxy, { kind: "proxyLost", message: reason }, nowMs, false);
  }

  handleFrame(proxyIndex: number, bytes: Uint8Array, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy) return;
    const frame = parseFrame(bytes);
    if (frame.type === "parseError" || !("requestId" in frame) || frame.requestId !== this.#request.requestId) {
      this.#count(proxy, bytes.length, "rejected", nowMs);
      return;
    }
    proxy.lastHeardMs = nowMs;
    if (proxy.silent) this.#revive(proxy);
    this.#dispatch(proxy, frame, bytes.length, nowMs);
  }

  /** True when a proxy has fallen silent. */
  handleTimeout(nowMs: number): boolean {
    let isNews = false;
    for (const proxy of this.#proxies) {
      if (this.#closed || !isServing(proxy)) continue;
      if (nowMs - proxy.lastHeardMs < TIMING.proxySilenceMs) continue;
      isNews = proxy.silent = true;
      proxy.away = this.#renewsSessions;
      const text = `The proxy was silent for ${TIMING.proxySilenceMs} ms.`;
      this.#failProxy(proxy, { kind: "proxySilent", message: text }, nowMs, true);
    }
    return isNews;
  }

  /** Gives the chunk up: no more events; each proxy asked is told so. */
  abort(nowMs: number): void {
    this.#close("aborted", nowMs);
    this.#events.length = 0;
  }

  pollTransmit(nowMs: number): { proxyIndex: number; bytes: Uint8Array } | undefined {
    if (this.#planner && !this.#closed) this.#replanWhenDue(this.#planner, nowMs);
    for (let proxyIndex = 0; proxyIndex < this.#proxies.length; proxyIndex++) {
      const frame = this.#nextFrame(this.#proxies[proxyIndex]!, nowMs);
      if (frame) return { proxyIndex, bytes: encodeFrame(frame) };
    }
    return undefined;
  }

  pollTimeout(): number | undefined {
    let at = Infinity;
    for (const proxy of this.#proxies) {
      if (proxy.final) at = Math.min(at, proxy.final.dueMs);
      if (!this.#closed && isAskedOn(proxy)) at = Math.min(at, proxy.requestDueMs);
      if (this.#closed || !isServing(proxy)) continue;
      at = Math.min(at, proxy.lastHeardMs + TIMING.proxySilenceMs);
      at = Math.min(at, proxy.planned ? proxy.feedbackDueMs : proxy.requestDueMs);
    }
    return at === Infinity ? undefined : at;
  }

  pollEvent(): ReceiverEvent | undefined {
    return this.#events.shift();
  }

  stats(): ReceiverStats {
    const proxies = this.#proxies.map(({ stats, nextSequence, dataFrames }, index) => {
      const path = this.#planner?.knownOf(index, this.#packetBytes);
      return { ...stats, lost: stats.lost + Math.max(0, nextSequence - dataFrames), ...(path ? { path } : {}) };
    });
    return {
      deliveredBytes: this.#assembly?.deliveredBytes ?? 0,
      grossBytes: proxies.reduce((sum, proxy) => sum + proxy.bytes, 0),
      rank: this.#assembly?.rank ?? 0,
      symbolCount: this.#geometry?.symbolCount ?? 0,
      generationCount: this.#geometry?.generationCount ?? 0,
      ...(this.#firstPacketMs === undefined ? {} : { firstPacketMs: this.#firstPacketMs }),
      feedbackFrames: this.#feedbackFrames,
      proxies,
    };
  }

  free(): void {
    this.#assembly?.free();
    for (const proxy of this.#proxies) proxy.early.length = 0;
  }

  #dispatch(proxy: Proxy, frame: Frame, frameBytes: number, nowMs: number): void {
    switch (frame.type) {
      case "data":
        this.#handleData(proxy, frame, frameBytes, nowMs);
        return;
      case "pending":
        this.#measureRoundTrip(proxy, nowMs);
        return;
      case "plan":
        this.#measureRoundTrip(proxy, nowMs);
        if (!this.#closed && !proxy.planned && proxy.stats.state !== "failed")
          this.#handlePlan(proxy, frame.head, nowMs);
        return;
      case "reject":
        if (this.#closed || proxy.stats.state === "failed") proxy.final ??= finalOf("rejected", nowMs);
        else this.#failProxy(proxy, frame.rejection, nowMs, true);
        return;
      case "end":
        if (!proxy.final) return;
        proxy.final = undefined;
        if (proxy.stats.state !== "failed") proxy.stats.state = "ended";
        return;
      default:
        this.#count(proxy, frameBytes, "rejected", nowMs);
    }
  }

  #measureRoundTrip(proxy: Proxy, nowMs: number): void {
    if (proxy.stats.rttMs === null && !proxy.askedFirst && proxy.requestTries <= 2) {
      proxy.stats.rttMs = nowMs - proxy.requestSentMs;
      this.#hastenRequests(proxy.stats.rttMs, nowMs);
      this.#planner?.handleRoundTrip(this.#proxies.indexOf(proxy), proxy.stats.rttMs);
    }
    if (!proxy.planned && proxy.requestEveryMs < TIMING.requestRepeatMsMax) {
      proxy.requestEveryMs = TIMING.requestRepeatMsMax;
      proxy.requestDueMs = nowMs + TIMING.requestRepeatMsMax;
    }
  }

  /** One proxy has answered: a request that another has not by now may be lost, and is not left to the first timer. */
  #hastenRequests(rttMs: number, nowMs: number): void {
    const dueMs = nowMs + TIMING.requestHastenMs + rttMs / 4;
    for (const proxy of this.#proxies) {
      if (proxy.asked && !proxy.planned && proxy.requestTries <= 2 && proxy.stats.rttMs === null)
        proxy.requestDueMs = Math.min(proxy.requestDueMs, dueMs);
    }
  }

  #handlePlan(proxy: Proxy, head: PlanHead, nowMs: number): void {
    const known = this.#trusted?.head ?? this.#head;
    const wrong = (known && differenceOf(known, head)) ?? (this.#head ? undefined : this.#adopt(head, nowMs));
    if (wrong) {
      this.#failProxy(proxy, wrong, nowMs, true);
      return;
    }
    proxy.planned = true;
    proxy.stats.state = "active";
    proxy.feedbackDueMs = nowMs + this.#everyMs;
    this.#planner?.handleHeard(this.#proxies.indexOf(proxy), proxy.early[0]?.atMs ?? nowMs);
    for (const { frame, atMs } of proxy.early.splice(0)) this.#addData(proxy, frame, atMs);
    if (this.#assembly!.isComplete) this.#complete(nowMs);
  }

  /** The first plan is the one that the others must agree with. */
  #adopt(head: PlanHead, nowMs: number): Rejection | undefined {
    const { range, symbolBytes, generationSize, mode } = this.#request;
    if (head.status === 206 && range && head.totalBytes > range.end - range.start + 1) {
      const limit = range.end - range.start + 1;
      return {
        kind: "rangeExceeded",
        message: `The answer is longer than the range: got ${head.totalBytes}, limit ${limit}.`,
        got: head.totalBytes,
        limit,
      };
    }
    const geometry = geometryOf(head.totalBytes, symbolBytes, generationSize);
    if (isRejection(geometry)) return geometry;
    this.#head = head;
    this.#geometry = geometry;
    this.#assembly = new Assembly(geometry, mode, this.#codec, this.#trusted);
    if (mode === "coded") {
      const askedMs = this.#proxies.map(({ requestTries, requestSentMs }) =>
        requestTries > 0 ? requestSentMs : undefined,
      );
      this.#planner = new Planner({
        geometry,
        assembly: this.#assembly,
        beginnings: this.#beginnings,
        known: this.#known,
        askedMs,
        packetBytes: this.#packetBytes,
        nowMs,
      });
      this.#proxies.forEach((proxy, index) => {
        if (proxy.stats.rttMs !== null) this.#planner!.handleRoundTrip(index, proxy.stats.rttMs);
      });
    }
    this.#events.push({ kind: "head", head });
    return undefined;
  }

  #handleData(proxy: Proxy, frame: DataFrame, frameBytes: number, nowMs: number): void {
    this.#firstPacketMs ??= nowMs - this.#startMs;
    proxy.dataFrames++;
    proxy.nextSequence = Math.max(proxy.nextSequence, frame.sequence + 1);
    proxy.packetsSinceFeedback++;
    if (this.#closed || proxy.stats.state === "failed") {
      this.#count(proxy, frameBytes, "late", nowMs, frame);
      return;
    }
    if (proxy.planned) {
      proxy.stats.bytes += frameBytes;
      this.#addData(proxy, frame, nowMs);
      if (this.#assembly!.isComplete) this.#complete(nowMs);
    } else if (proxy.early.length < LIMITS.earlyFramesMax) {
      proxy.stats.bytes += frameBytes;
      proxy.early.push({ frame, atMs: nowMs });
    } else this.#count(proxy, frameBytes, "rejected", nowMs, frame);
  }

  /** Counts the packet, its bytes are counted already. */
  #addData(proxy: Proxy, frame: DataFrame, nowMs: number): void {
    const assembly = this.#assembly!;
    const proxyIndex = this.#proxies.indexOf(proxy);
    if (this.#closed || proxy.stats.state === "failed") {
      this.#count(proxy, 0, "late", nowMs, frame);
      return;
    }
    const allowed = this.#planner?.allows(proxyIndex, frame.sequence) ?? true;
    if (!allowed || !assembly.accepts(frame.generationIndex, frame.coding, frame.payload.length)) {
      this.#count(proxy, 0, "rejected", nowMs, frame);
      return;
    }
    const needed = assembly.missingFrom(proxyIndex, frame.generationIndex) > 0;
    const innovative = assembly.add(proxyIndex, frame.generationIndex, frame.coding, frame.payload);
    this.#planner?.handleData(proxyIndex, frame, innovative || !needed, nowMs);
    this.#count(proxy, 0, innovative ? "innovative" : "duplicate", nowMs, frame);
    if (!innovative) return;
    for (const [liar, generationIndex] of assembly.liars) this.#excludeLiar(liar, generationIndex, nowMs);
    this.#noteProgress(nowMs);
  }

  #count(proxy: Proxy, bytes: number, fate: PacketFate, atMs: number, frame?: DataFrame): void {
    proxy.stats.bytes += bytes;
    proxy.stats.packets++;
    proxy.stats[fate]++;
    this.#onPacket?.(atMs, this.#proxies.indexOf(proxy), frame?.generationIndex ?? 0, fate);
  }

  /** A proxy that has sent false packets is done with, and what it sent counts for nothing: protocol.md §9. */
  #excludeLiar(proxyIndex: number, generationIndex: number, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex]!;
    const dropped = this.#assembly!.exclude(proxyIndex);
    proxy.stats.innovative -= dropped;
    proxy.stats.rejected += dropped;
    proxy.lost = proxy.silent = false;
    const message = `The proxy sent false packets of generation ${generationIndex}: its bytes do not have the digest.`;
    this.#failProxy(proxy, { kind: "digestMismatch", message }, nowMs, true);
  }

  #noteProgress(nowMs: number): void {
    this.#planner?.handleProgress(nowMs);
    for (let next = this.#assembly!.takeBytes(); next; next = this.#assembly!.takeBytes()) {
      this.#events.push({ kind: "bytes", ...next });
    }
    for (const proxy of this.#proxies) {
      if (proxy.planned) proxy.feedbackDueMs = Math.min(proxy.feedbackDueMs, nowMs + this.#everyMs);
    }
  }

  #complete(nowMs: number): void {
    if (this.#closed) return;
    this.#events.push({ kind: "complete" });
    this.#close("complete", nowMs);
  }

  #close(reason: FinalReason, nowMs: number): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#assembly?.free();
    for (const proxy of this.#proxies) {
      for (const { frame, atMs } of proxy.early.splice(0)) this.#count(proxy, 0, "late", atMs, frame);
      if (proxy.asked && (proxy.stats.state !== "failed" || proxy.silent)) proxy.final = finalOf(reason, nowMs);
    }
  }

  #failProxy(proxy: Proxy, rejection: Rejection, nowMs: number, tell: boolean): void {
    if (proxy.stats.state === "failed") return this.#failWithoutProxies(rejection, nowMs);
    proxy.stats.state = "failed";
    this.#planner?.handleGone(this.#proxies.indexOf(proxy), true);
    proxy.stats.error = rejection;
    for (const { frame, atMs } of proxy.early.splice(0)) this.#count(proxy, 0, "rejected", atMs, frame);
    if (tell && proxy.asked && !proxy.silent) proxy.final = finalOf("rejected", nowMs);
    this.#failWithoutProxies(rejection, nowMs);
  }

  #failWithoutProxies(rejection: Rejection, nowMs: number): void {
    if (
      this.#closed ||
      this.#assembly?.isComplete ||
      this.#proxies.some(({ stats, away }) => away || stats.state !== "failed")
    )
      return;
    this.#events.push({ kind: "failed", rejection });
    this.#close("aborted", nowMs);
  }

  #revive(proxy: Proxy): void {
    proxy.silent = proxy.away = false;
    if (this.#closed || proxy.stats.state !== "failed") return;
    proxy.stats.state = proxy.planned ? "active" : "waiting";
    this.#planner?.handleGone(this.#proxies.indexOf(proxy), false);
    delete proxy.stats.error;
  }

  #nextFrame(proxy: Proxy, nowMs: number): Frame | undefined {
    if (proxy.final) return this.#nextFinal(proxy, proxy.final, nowMs);
    if (this.#closed || !(isServing(proxy) || isAskedOn(proxy))) return undefined;
    if (!proxy.planned) return this.#nextRequest(proxy, nowMs);
    if (this.#planner) return this.#nextGrant(this.#planner, proxy, nowMs);
    if (proxy.packetsSinceFeedback < this.#everyPackets && nowMs < proxy.feedbackDueMs) return undefined;
    proxy.packetsSinceFeedback = 0;
    proxy.feedbackDueMs = nowMs + TIMING.feedbackKeepaliveMs;
    return this.#feedback(proxy, false, "none");
  }

  /** All proxies are granted anew together: what one gets, another does not. */
  #replanWhenDue(planner: Planner, nowMs: number): void {
    if (
      nowMs === this.#plannedMs ||
      !this.#proxies.some((proxy) => isServing(proxy) && proxy.planned && nowMs >= proxy.feedbackDueMs)
    )
      return;
    this.#plannedMs = nowMs;
    planner.replan(nowMs);
    for (const proxy of this.#proxies) if (proxy.planned) proxy.feedbackDueMs = nowMs;
  }

  get #everyMs(): number {
    return this.#everyMsWanted ?? this.#planner?.grantEveryMs ?? TIMING.feedbackEveryMsDefault;
  }

  #nextGrant(planner: Planner, proxy: Proxy, nowMs: number): Frame | undefined {
    if (nowMs < proxy.feedbackDueMs) return undefined;
    this.#feedbackFrames++;
    proxy.feedbackDueMs = nowMs + this.#everyMs;
    return {
      type: "grant",
      requestId: this.#request.requestId,
      ...planner.grantFor(this.#proxies.indexOf(proxy), nowMs),
    };
  }

  #nextRequest(proxy: Proxy, nowMs: number): Frame | undefined {
    if (nowMs < proxy.requestDueMs) return undefined;
    if (++proxy.requestTries === 1) {
      proxy.requestSentMs = nowMs;
      proxy.requestDueMs = nowMs + TIMING.requestTwinMs;
    } else {
      proxy.requestDueMs = nowMs + proxy.requestEveryMs;
      proxy.requestEveryMs = Math.min(proxy.requestEveryMs * 2, TIMING.requestRepeatMsMax);
    }
    return this.#requestTo(this.#proxies.indexOf(proxy), nowMs);
  }

  #requestTo(proxyIndex: number, nowMs: number): RequestFrame {
    if (this.#request.mode !== "coded") return this.#request;
    const beginning = this.#beginnings[proxyIndex]!;
    return { ...this.#request, ...beginning, share: this.#planner?.shareFor(proxyIndex, nowMs) ?? beginning.share };
  }

  #nextFinal(proxy: Proxy, final: NonNullable<Proxy["final"]>, nowMs: number): Frame | undefined {
    if (nowMs < final.dueMs) return undefined;
    if (final.tries === TIMING.finalTries) {
      proxy.final = undefined;
      return undefined;
    }
    final.dueMs = nowMs + TIMING.finalRepeatMs * 2 ** Math.min(final.tries, 3);
    final.tries++;
    return this.#feedback(proxy, true, final.reason);
  }

  #feedback(proxy: Proxy, final: boolean, reason: FinalReason): Frame {
    this.#feedbackFrames++;
    return {
      type: "feedback",
      requestId: this.#request.requestId,
      feedbackSequence: this.#feedbackSequence++,
      epoch: this.#assembly?.epoch ?? 0,
      final,
      reason,
      nextSequence: proxy.nextSequence,
      receivedPackets: proxy.dataFrames,
      ...(this.#assembly && !final ? this.#assembly.report(this.#proxies.indexOf(proxy)) : NOTHING),
    };
  }
}

/** Tells a proxy that a request of which it is not told otherwise is over. */
export function farewell(requestId: number): Uint8Array {
  return encodeFrame({
    type: "feedback",
    requestId,
    feedbackSequence: 0,
    epoch: 0,
    final: true,
    reason: "aborted",
    nextSequence: 0,
    receivedPackets: 0,
    ...NOTHING,
  });
}

function checkDigests({ head, digests }: Trusted, { symbolBytes, generationSize }: RequestFrame): void {
  const geometry = geometryOf(head.totalBytes, symbolBytes, generationSize);
  if (isRejection(geometry)) throw new RangeError(geometry.message);
  if (geometry.generationCount === digests.length) return;
  throw new RangeError(
    `There must be a digest for each generation: got ${digests.length}, limit ${geometry.generationCount}.`,
  );
}

function newProxy(): Proxy {
  return {
    stats: {
      bytes: 0,
      packets: 0,
      innovative: 0,
      duplicate: 0,
      late: 0,
      rejected: 0,
      lost: 0,
      rttMs: null,
      state: "waiting",
    },
    asked: false,
    askedFirst: false,
    planned: false,
    silent: false,
    lost: false,
    away: false,
    requestDueMs: 0,
    requestEveryMs: TIMING.requestRepeatMs,
    requestSentMs: 0,
    requestTries: 0,
    lastHeardMs: 0,
    dataFrames: 0,
    nextSequence: 0,
    packetsSinceFeedback: 0,
    feedbackDueMs: Infinity,
    early: [],
    final: undefined,
  };
}

/** It was asked, and something is expected of it. */
function isServing({ asked, stats }: Proxy): boolean {
  return asked && stats.state !== "failed";
}

/**
 * It fell silent before it had answered, so that it may have nothing to be heard by: the request may have been lost.
 */
function isAskedOn({ silent, planned }: Proxy): boolean {
  return silent && !planned;
}

/** A new session means a new sender, whose sequence starts at 0. */
function startAgain(proxy: Proxy): void {
  const { stats, nextSequence, dataFrames } = proxy;
  stats.lost += Math.max(0, nextSequence - dataFrames);
  stats.state = "waiting";
  delete stats.error;
  Object.assign(proxy, { ...newProxy(), stats });
}

function finalOf(reason: FinalReason, nowMs: number): NonNullable<Proxy["final"]> {
  return { reason, tries: 0, dueMs: nowMs };
}

/** Two proxies must tell of the same resource: protocol.md §5.2. */
function differenceOf(ours: Trusted["head"], theirs: PlanHead): Rejection | undefined {
  const difference = headDifference(ours, theirs);
  return difference && mismatch(difference.what, String(difference.got), String(difference.expected));
}

function mismatch(what: string, got: string, expected: string): Rejection {
  return {
    kind: "planMismatch",
    message: `The proxy's plan differs in its ${what}: got ${got}, expected ${expected}.`,
  };
}
