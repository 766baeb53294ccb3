/**
 * Receiver: one chunk at the client, from N proxies at once. It asks each proxy, checks that their plans agree, counts
 * degrees of freedom, sends feedback or grants, and hands bytes on in order. It opens no sessions and makes no threads.
 * Pure: time arrives as `nowMs`, packets as bytes. In: handle*, abort. Out: pollTransmit, pollTimeout, pollEvent.
 * Rules: protocol.md §5, §7 and §8.
 */
import type { Rejection } from "@tributary/contract";
import type { Codec } from "../codec";
import { geometryOf, isRejection, type Geometry } from "../geometry";
import { LIMITS, TIMING } from "../limits";
import { pathsOf } from "../planner/known";
import type { Planner } from "../planner/planner";
import type { DataFrame, FinalReason, Frame, PlanHead, ProofFrame, RequestFrame } from "../types";
import { encodeFrame, parseFrame } from "../wire/frames";
import { checkOf, DigestAgreement, Patience, undecided, verdictOf } from "./agreement";
import { Assembly } from "./assembly";
import { checkRequest, requestOf, wantsDigests, type OnPacket, type ReceiverOptions } from "./options";
import { Outbox } from "./outbox";
import { statsOf, type ReceiverEvent, type ReceiverStats } from "./outcome";
import { partsOf, type Parts } from "./parts";
import * as plans from "./plan-check";
import { proofsOf, type ObjectProofs } from "./proofs";
import { plannerFor } from "./planner-for";
import {
  finalOf,
  handleRequestHeard,
  hastenRequests,
  isServing,
  newProxy,
  startAgain,
  statsNow,
  tellsRoundTrip,
  type PacketFate,
  type ProxyState,
} from "./proxy-state";
import { isDoubtful, isOutvoted, votersOf } from "./voters";

export class Receiver {
  readonly #request: RequestFrame;
  readonly #codec: Codec;
  readonly #startMs: number;
  readonly #paths: ReturnType<typeof pathsOf>;
  readonly #proofs: ObjectProofs | undefined;
  readonly #parts: Parts | undefined;
  readonly #hash: ReceiverOptions["hash"];
  readonly #agreement: DigestAgreement | undefined;
  /** Undefined without digests, and for a chunk that proxies read together: no two of them can confirm its bytes. */
  #voting: DigestAgreement | undefined;
  readonly #patience = new Patience();
  readonly #renewsSessions: boolean;
  readonly #onPacket: OnPacket | undefined;
  readonly #proxies: ProxyState[];
  readonly #outbox: Outbox;
  readonly #events: ReceiverEvent[] = [];
  #head: PlanHead | undefined;
  /** Other proxies have confirmed the head. Until then nothing is handed on. */
  #confirmed = false;
  /** Something has come that may decide what the proxies do not agree on yet. */
  #unsettled = false;
  #geometry: Geometry | undefined;
  #assembly: Assembly | undefined;
  #planner: Planner | undefined;
  #firstPacketMs: number | undefined;
  /** The chunk is delivered, given up or failed: only final feedback is left to send. */
  #closed = false;

  constructor(options: ReceiverOptions) {
    this.#request = requestOf(options);
    this.#paths = pathsOf(options, this.#request);
    const { beginnings, known } = this.#paths;
    this.#parts = partsOf(options, this.#request, beginnings, known);
    checkRequest(this.#request, beginnings[0]!, this.#parts);
    this.#codec = options.codec;
    this.#startMs = options.nowMs;
    this.#proxies = votersOf(options.proxyCount, options.operators).map(newProxy);
    this.#hash = options.hash;
    this.#agreement = wantsDigests(options) ? new DigestAgreement(options.proxyCount, options.operators) : undefined;
    this.#proofs = proofsOf(options, this.#request);
    const checks = { agreement: this.#agreement, proofs: this.#proofs };
    this.#outbox = new Outbox(this.#request, beginnings, this.#proxies, options, checks, this.#parts);
    this.#renewsSessions = options.renewsSessions ?? false;
    this.#onPacket = options.onPacket;
  }

  /** The chunk is delivered, given up or failed, so further packets are useless. */
  get decided(): boolean {
    return this.#closed;
  }

  /** Nothing is left to send or to wait for, final feedback included. */
  get finished(): boolean {
    return this.#closed && this.#proxies.every(({ final }) => !final);
  }

  /**
   * The request for this proxy, to be sent before its session is open. Undefined when the proxy must not be asked.
   * `handleProxyReady` sends the request again if the plan has not arrived before that.
   */
  firstRequest(proxyIndex: number, nowMs: number): Uint8Array | undefined {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy || this.#closed || proxy.asked || proxy.planned || proxy.stats.state === "failed") return undefined;
    proxy.askedFirst = true;
    return encodeFrame(this.#outbox.requestTo(proxyIndex, nowMs));
  }

  /** The sender that answered `firstRequest` is gone. The session that comes up knows nothing of that request. */
  handleFirstGone(proxyIndex: number, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy || this.#closed || proxy.asked || !proxy.askedFirst || proxy.stats.state === "failed") return;
    for (const { frame, atMs } of proxy.early.splice(0)) this.#count(proxy, 0, "rejected", atMs, frame);
    this.#startAgain(proxy, nowMs);
  }

  /** The session to this proxy is up, for the first time or after it was lost. */
  handleProxyReady(proxyIndex: number, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy || this.#closed) return;
    if (proxy.lost) this.#startAgain(proxy, nowMs);
    else if (proxy.asked || proxy.stats.state === "failed") return;
    proxy.asked = true;
    proxy.requestDueMs = nowMs;
    proxy.lastHeardMs = nowMs;
  }

  /**
   * The session to this proxy is gone or could not be opened. `away`: a new session is being made. Until it is up or
   * has failed, the request does not fail for lack of proxies. A call of `handleProxyReady` or of this must follow.
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
    this.#settle(nowMs);
  }

  handleFrame(proxyIndex: number, bytes: Uint8Array, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex];
    if (!proxy) return;
    const frame = parseFrame(bytes);
    if (frame.type === "parseError" || !("requestId" in frame) || frame.requestId !== this.#request.requestId)
      return this.#count(proxy, bytes.length, "rejected", nowMs);
    proxy.lastHeardMs = nowMs;
    if (proxy.silent) this.#revive(proxy);
    this.#dispatch(proxy, frame, bytes.length, nowMs);
    if (this.#unsettled) this.#settle(nowMs);
  }

  /** Returns true when a proxy has fallen silent. */
  handleTimeout(nowMs: number): boolean {
    let isNews = false;
    for (const proxy of this.#proxies) {
      if (this.#closed || !isServing(proxy)) continue;
      if (nowMs - proxy.lastHeardMs < TIMING.proxySilenceMs) continue;
      isNews = proxy.silent = true;
      proxy.away = this.#renewsSessions;
      const message = `The proxy was silent for ${TIMING.proxySilenceMs} ms.`;
      this.#failProxy(proxy, { kind: "proxySilent", message }, nowMs, true);
    }
    if (isNews || nowMs >= (this.#patience.dueMs ?? Infinity)) this.#settle(nowMs);
    return isNews;
  }

  /** Aborts the chunk. No event follows, and each asked proxy gets a final feedback. */
  abort(nowMs: number): void {
    this.#close("aborted", nowMs);
    this.#events.length = 0;
  }

  pollTransmit(nowMs: number): { proxyIndex: number; bytes: Uint8Array } | undefined {
    const next = this.#outbox.poll(this.#closed, nowMs);
    return next && { proxyIndex: next.proxyIndex, bytes: encodeFrame(next.frame) };
  }

  pollTimeout(): number | undefined {
    const outboxMs = this.#outbox.pollTimeout(this.#closed);
    const patienceMs = this.#closed ? undefined : this.#patience.dueMs;
    return patienceMs === undefined ? outboxMs : Math.min(patienceMs, outboxMs ?? Infinity);
  }

  pollEvent(): ReceiverEvent | undefined {
    return this.#proofs?.takeConviction(this.#assembly) ?? this.#events.shift();
  }

  stats(): ReceiverStats {
    const proxies = this.#proxies.map((proxy, index) => statsNow(proxy, this.#planner?.knownOf(index)));
    const agreeingOperators = this.#voting?.agreeingOperators ?? 0;
    const counts = { proxies, agreeingOperators, feedbackFrames: this.#outbox.feedbackFrames };
    return statsOf(counts, this.#firstPacketMs, this.#geometry, this.#assembly);
  }

  free(): void {
    this.#assembly?.free();
    for (const proxy of this.#proxies) proxy.early.length = 0;
  }

  #dispatch(proxy: ProxyState, frame: Frame, frameBytes: number, nowMs: number): void {
    switch (frame.type) {
      case "data":
        return this.#handleData(proxy, frame, frameBytes, nowMs);
      case "pending":
        return this.#measureRoundTrip(proxy, nowMs);
      case "plan":
        this.#measureRoundTrip(proxy, nowMs);
        if (!this.#closed && !proxy.planned && proxy.stats.state !== "failed")
          this.#handlePlan(proxy, frame.head, nowMs);
        return;
      case "digest":
        if (!this.#agreement || this.#closed || proxy.stats.state === "failed") return;
        proxy.announced = this.#unsettled = true;
        this.#agreement.handleDigests(this.#proxies.indexOf(proxy), frame.firstGeneration, frame.digests);
        return;
      case "proof":
        if (this.#proofs && !this.#closed && proxy.stats.state !== "failed") this.#handleProof(proxy, frame, nowMs);
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

  #measureRoundTrip(proxy: ProxyState, nowMs: number): void {
    if (!proxy.askedFirst && tellsRoundTrip(proxy)) {
      const rttMs = (proxy.stats.rttMs = nowMs - proxy.requestSentMs);
      hastenRequests(this.#proxies, rttMs, nowMs);
      this.#planner?.handleRoundTrip(this.#proxies.indexOf(proxy), rttMs);
    }
    handleRequestHeard(proxy, nowMs);
  }

  #handlePlan(proxy: ProxyState, head: PlanHead, nowMs: number): void {
    const wrong =
      (this.#proofs && plans.differenceOf(this.#proofs.head, head)) ??
      plans.sharingFault(head, this.#parts !== undefined) ??
      (this.#head ? undefined : this.#adopt(head, nowMs));
    if (wrong) return this.#failProxy(proxy, wrong, nowMs, true);
    proxy.plan = head;
    this.#unsettled = true;
    const isUnverified = !this.#proofs && this.#proxies.length === 1;
    const differs =
      plans.planDifference(this.#head!, head) ?? (isUnverified ? plans.otherAnswer(this.#head!, head) : undefined);
    if (!differs || head === this.#head) this.#begin(proxy, nowMs);
    else if (this.#confirmed) this.#failForGood(proxy, differs, nowMs);
  }

  /** The chunk is assembled by this proxy's plan, so its packets count. */
  #begin(proxy: ProxyState, nowMs: number): void {
    proxy.planned = true;
    proxy.stats.state = "active";
    proxy.feedbackDueMs = nowMs + this.#outbox.everyMs;
    this.#planner?.handleHeard(this.#proxies.indexOf(proxy), proxy.early[0]?.atMs ?? nowMs, proxy.plan?.reads);
    for (const { frame, atMs } of proxy.early.splice(0)) this.#addData(proxy, frame, atMs);
    if (this.#assembly!.isComplete) this.#complete(nowMs);
  }

  /** Assembles the chunk by this plan. It is the first plan, or the one that most proxies sent. */
  #adopt(head: PlanHead, nowMs: number): Rejection | undefined {
    const { symbolBytes, generationSize, mode } = this.#request;
    const exceeded = plans.rangeExceeded(this.#request, head);
    const geometry = exceeded ?? geometryOf(head.totalBytes, symbolBytes, generationSize);
    if (isRejection(geometry)) return geometry;
    this.#head = head;
    this.#voting = head.reads ? undefined : this.#agreement;
    this.#geometry = geometry;
    this.#assembly?.free();
    this.#assembly = new Assembly(geometry, mode, this.#codec, this.#proofs ?? checkOf(this.#voting, this.#hash));
    if (mode === "coded") {
      const world = { ...this.#paths, geometry, assembly: this.#assembly, nowMs };
      this.#planner = plannerFor(world, this.#proxies, head.reads && this.#parts);
    }
    this.#outbox.begin(this.#assembly, this.#planner);
    return undefined;
  }

  /** Decides what can be decided: first the plan, then the digests of one generation after the other. */
  #settle(nowMs: number): void {
    this.#unsettled = false;
    if (this.#closed) return;
    if (!this.#confirmed) this.#settlePlan(nowMs);
    if (!this.#confirmed || this.#closed) return;
    if (this.#agreement && isOutvoted(plans.wordsOn(this.#head!, this.#proxies)))
      return this.#fail(undecided("planMismatch", "plans"), nowMs);
    if (this.#voting) this.#settleDigests(this.#voting, this.#geometry!.generationCount, nowMs);
    this.#noteProgress(nowMs);
    if (this.#assembly!.isComplete) this.#complete(nowMs);
  }

  #settlePlan(nowMs: number): void {
    if (this.#proofs) return this.#head && this.#confirm(this.#head, nowMs);
    const heard = this.#proxies.filter(plans.isHeard);
    const verdict = verdictOf(
      heard.map(plans.saidBy),
      this.#patience.mayWait(nowMs),
      heard.map(({ voter }) => voter),
    );
    this.#patience.note(verdict.kind === "open", nowMs);
    if (verdict.kind === "split") this.#fail(undecided("planMismatch", "plans"), nowMs);
    if (verdict.kind !== "decided") return;
    const { plan, stats } = heard.find((proxy) => plans.saidBy(proxy) === verdict.statement)!;
    if (stats.state === "failed") this.#fail(stats.error!, nowMs);
    else this.#confirm(plan!, nowMs);
  }

  /** The proxies that said something else have failed. */
  #confirm(winner: PlanHead, nowMs: number): void {
    this.#confirmed = true;
    for (const proxy of this.#proxies) {
      const differs = plans.saidOtherwise(winner, proxy);
      if (!differs) continue;
      if (proxy.stats.state === "failed") proxy.stats.error = differs;
      proxy.stats.rejected += proxy.stats.innovative;
      proxy.stats.innovative = 0;
      this.#failForGood(proxy, differs, nowMs);
    }
    const agreeing = this.#proxies.filter(({ stats, plan }) => plan && stats.state !== "failed");
    if (plans.planDifference(winner, this.#head!)) this.#adopt(winner, nowMs);
    this.#events.push({ kind: "head", head: plans.withVersion(this.#head!, agreeing) });
    for (const proxy of agreeing) if (!proxy.planned) this.#begin(proxy, nowMs);
  }

  #settleDigests(agreement: DigestAgreement, generationCount: number, nowMs: number): void {
    for (;;) {
      const index = agreement.decidedCount;
      const disputedAt = this.#excludeDissenters(agreement, nowMs);
      const splitOn = (at: number) => this.#fail(undecided("bodyDiffers", `digests of generation ${at}`), nowMs);
      if (index === generationCount || this.#closed) return this.#patience.note(false, nowMs);
      if (disputedAt !== undefined) return splitOn(disputedAt);
      const isAsked = (proxyIndex: number) => this.#proxies[proxyIndex]!.stats.state !== "failed";
      const mayDecide = index + 1 < generationCount || this.#mayEnd(nowMs);
      const verdict = mayDecide ? agreement.decideNext(isAsked, this.#patience.mayWait(nowMs)) : "open";
      this.#patience.note(verdict === "open" && this.#assembly!.isSolved(index), nowMs);
      if (verdict === "open" || verdict === "unsaid") return;
      if (verdict === "split") return splitOn(index);
      this.#excludeDissenters(agreement, nowMs);
      this.#assembly!.recheck(index);
      this.#excludeLiars(nowMs);
    }
  }

  /** The end waits for the proxies that may still contradict the length: protocol.md §5.2. */
  #mayEnd(nowMs: number): boolean {
    if (!this.#agreement || !this.#patience.mayWait(nowMs)) return true;
    return !isDoubtful(plans.wordsOn(this.#head!, this.#proxies));
  }

  #fail(rejection: Rejection, nowMs: number): void {
    this.#events.push({ kind: "failed", rejection });
    this.#close("aborted", nowMs);
  }

  /** Returns the first generation that is outvoted. */
  #excludeDissenters(agreement: DigestAgreement, nowMs: number): number | undefined {
    for (const [proxyIndex, at] of agreement.takeDissenters())
      this.#exclude(proxyIndex, plans.bodyDiffers(`generation ${at}`), nowMs);
    return agreement.outvotedAt;
  }

  #handleData(proxy: ProxyState, frame: DataFrame, frameBytes: number, nowMs: number): void {
    this.#firstPacketMs ??= nowMs - this.#startMs;
    proxy.dataFrames++;
    proxy.nextSequence = Math.max(proxy.nextSequence, frame.sequence + 1);
    proxy.packetsSinceFeedback++;
    if (this.#closed || proxy.stats.state === "failed") return this.#count(proxy, frameBytes, "late", nowMs, frame);
    if (proxy.planned) {
      proxy.stats.bytes += frameBytes;
      this.#addData(proxy, frame, nowMs);
      if (this.#assembly!.isComplete) this.#complete(nowMs);
    } else if (proxy.early.length < LIMITS.earlyFramesMax) {
      proxy.stats.bytes += frameBytes;
      proxy.early.push({ frame, atMs: nowMs });
    } else this.#count(proxy, frameBytes, "rejected", nowMs, frame);
  }

  /** Counts the packet but not its bytes: the caller has counted them. */
  #addData(proxy: ProxyState, frame: DataFrame, nowMs: number): void {
    const assembly = this.#assembly!;
    const proxyIndex = this.#proxies.indexOf(proxy);
    if (this.#closed || proxy.stats.state === "failed") return this.#count(proxy, 0, "late", nowMs, frame);
    const allowed = this.#planner?.allows(proxyIndex, frame.sequence) ?? true;
    if (!allowed || !assembly.accepts(frame.generationIndex, frame.coding, frame.payload.length))
      return this.#count(proxy, 0, "rejected", nowMs, frame);
    const needed = assembly.missingFrom(proxyIndex, frame.generationIndex) > 0;
    const innovative = assembly.add(proxyIndex, frame.generationIndex, frame.coding, frame.payload);
    this.#planner?.handleData(proxyIndex, frame, { useful: innovative || !needed, innovative }, nowMs);
    this.#count(proxy, 0, innovative ? "innovative" : "duplicate", nowMs, frame);
    if (!innovative) return;
    this.#excludeLiars(nowMs);
    this.#noteProgress(nowMs);
    if (this.#voting && assembly.isSolved(this.#voting.decidedCount)) this.#unsettled = true;
  }

  /** A piece that has become known is confirmed to all proxies, so that they do not send its proof again. */
  #handleProof(proxy: ProxyState, { firstDigest, digests }: ProofFrame, nowMs: number): void {
    proxy.announced = this.#unsettled = true;
    const liars = this.#proofs!.handleDigests(this.#proxies.indexOf(proxy), firstDigest, digests, (first, last) => {
      for (const other of this.#proxies) other.announced = true;
      for (let index = first; index <= last; index++) this.#assembly?.recheck(index);
    });
    for (const liar of liars) this.#exclude(liar, this.#proofs!.wrong, nowMs);
    this.#excludeLiars(nowMs);
  }

  #count(proxy: ProxyState, bytes: number, fate: PacketFate, atMs: number, frame?: DataFrame): void {
    proxy.stats.bytes += bytes;
    proxy.stats.packets++;
    proxy.stats[fate]++;
    this.#onPacket?.(atMs, this.#proxies.indexOf(proxy), frame?.generationIndex ?? 0, fate);
  }

  #excludeLiars(nowMs: number): void {
    for (const [liar, generationIndex] of this.#assembly?.liars ?? []) {
      const message = `The proxy sent false packets of generation ${generationIndex}: they do not give its digest.`;
      this.#agreement?.handleConviction(liar);
      this.#exclude(liar, { kind: "digestMismatch", message }, nowMs);
    }
  }

  /** What an excluded proxy sent of open generations counts for nothing: protocol.md §9.4. */
  #exclude(proxyIndex: number, rejection: Rejection, nowMs: number): void {
    const proxy = this.#proxies[proxyIndex]!;
    const dropped = this.#assembly?.exclude(proxyIndex) ?? 0;
    proxy.stats.innovative -= dropped;
    proxy.stats.rejected += dropped;
    this.#failForGood(proxy, rejection, nowMs);
  }

  #failForGood(proxy: ProxyState, rejection: Rejection, nowMs: number): void {
    proxy.lost = proxy.silent = false;
    this.#failProxy(proxy, rejection, nowMs, true);
  }

  #noteProgress(nowMs: number): void {
    this.#planner?.handleProgress(nowMs);
    const take = () => (this.#confirmed ? this.#assembly!.takeBytes() : undefined);
    for (let next = take(); next; next = take()) this.#events.push({ kind: "bytes", ...next });
    for (const proxy of this.#proxies) {
      if (proxy.planned) proxy.feedbackDueMs = Math.min(proxy.feedbackDueMs, nowMs + this.#outbox.everyMs);
    }
  }

  #complete(nowMs: number): void {
    if (this.#closed || !this.#confirmed) return;
    if (!this.#mayEnd(nowMs)) return this.#patience.note(true, nowMs);
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

  #failProxy(proxy: ProxyState, rejection: Rejection, nowMs: number, tell: boolean): void {
    if (proxy.stats.state === "failed") return this.#failWithoutProxies(rejection, nowMs);
    proxy.stats.state = "failed";
    this.#planner?.handleGone(this.#proxies.indexOf(proxy), true);
    proxy.stats.error = rejection;
    this.#unsettled = true;
    for (const { frame, atMs } of proxy.early.splice(0)) this.#count(proxy, 0, "rejected", atMs, frame);
    if (tell && proxy.asked && !proxy.silent) proxy.final = finalOf("rejected", nowMs);
    this.#failWithoutProxies(rejection, nowMs);
  }

  #failWithoutProxies(rejection: Rejection, nowMs: number): void {
    if (this.#proxies.some(({ stats, away }) => away || stats.state !== "failed")) return;
    if (!this.#closed && !(this.#confirmed && this.#assembly?.isComplete)) this.#fail(rejection, nowMs);
  }

  #startAgain(proxy: ProxyState, nowMs: number): void {
    const proxyIndex = this.#proxies.indexOf(proxy);
    startAgain(proxy);
    this.#agreement?.forget(proxyIndex);
    this.#planner?.handleBack(proxyIndex, nowMs);
  }

  #revive(proxy: ProxyState): void {
    proxy.silent = proxy.away = false;
    if (this.#closed || proxy.stats.state !== "failed") return;
    proxy.stats.state = proxy.planned ? "active" : "waiting";
    this.#planner?.handleGone(this.#proxies.indexOf(proxy), false);
    delete proxy.stats.error;
  }
}
