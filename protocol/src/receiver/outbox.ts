/**
 * Outbox: which frame the receiver sends to which proxy next, and when the next one is due: requests, feedback, grants
 * and final feedback. It changes no counts and closes nothing: receiver.ts decides when a proxy or the chunk is done.
 * Pure: time arrives as `nowMs`. Rules: protocol.md §5, §7 and §8.4.
 */
import { FEEDBACK_EVERY_PACKETS_DEFAULT, TIMING } from "../limits";
import type { Beginning } from "../planner/known";
import type { Planner } from "../planner/planner";
import type { FinalReason, Frame, RequestFrame } from "../types";
import type { DigestAgreement } from "./agreement";
import type { Assembly } from "./assembly";
import { NOTHING_RECEIVED } from "./feedback";
import type { ReceiverOptions } from "./options";
import { sharingOf, type Parts } from "./parts";
import {
  handleFinalSent,
  handleRequestSent,
  isAskedOn,
  isServing,
  type FinalFeedback,
  type ProxyState,
} from "./proxy-state";
import type { ObjectProofs } from "./proofs";

export class Outbox {
  /** Feedback frames and grants sent so far. */
  feedbackFrames = 0;
  readonly #request: RequestFrame;
  readonly #beginnings: readonly Beginning[];
  readonly #proxies: readonly ProxyState[];
  readonly #everyPackets: number;
  readonly #everyMsWanted: number | undefined;
  readonly #agreement: DigestAgreement | undefined;
  readonly #proofs: ObjectProofs | undefined;
  readonly #parts: Parts | undefined;
  #assembly: Assembly | undefined;
  #planner: Planner | undefined;
  #plannedMs = -1;
  #feedbackSequence = 0;

  constructor(
    request: RequestFrame,
    beginnings: readonly Beginning[],
    proxies: readonly ProxyState[],
    options: Pick<ReceiverOptions, "feedbackEveryPackets" | "feedbackEveryMs">,
    { agreement, proofs }: { agreement: DigestAgreement | undefined; proofs: ObjectProofs | undefined },
    parts: Parts | undefined,
  ) {
    this.#request = request;
    this.#beginnings = beginnings;
    this.#proxies = proxies;
    this.#everyPackets = options.feedbackEveryPackets ?? FEEDBACK_EVERY_PACKETS_DEFAULT;
    this.#everyMsWanted = options.feedbackEveryMs;
    this.#agreement = agreement;
    this.#proofs = proofs;
    this.#parts = parts;
  }

  /** Call it when a plan is adopted. `planner` is given in mode `coded` only. */
  begin(assembly: Assembly, planner: Planner | undefined): void {
    this.#assembly = assembly;
    this.#planner = planner;
  }

  /** Feedback or a grant is due this long after progress. */
  get everyMs(): number {
    return this.#everyMsWanted ?? this.#planner?.grantEveryMs ?? TIMING.feedbackEveryMsDefault;
  }

  /** `closed`: only final feedback is left to send. */
  poll(closed: boolean, nowMs: number): { proxyIndex: number; frame: Frame } | undefined {
    if (this.#planner && !closed) this.#replanWhenDue(this.#planner, nowMs);
    for (let proxyIndex = 0; proxyIndex < this.#proxies.length; proxyIndex++) {
      const frame = this.#nextFrame(this.#proxies[proxyIndex]!, proxyIndex, closed, nowMs);
      if (frame) return { proxyIndex, frame };
    }
    return undefined;
  }

  pollTimeout(closed: boolean): number | undefined {
    let at = Infinity;
    for (const proxy of this.#proxies) {
      if (proxy.final) at = Math.min(at, proxy.final.dueMs);
      if (!closed && isAskedOn(proxy)) at = Math.min(at, proxy.requestDueMs);
      if (closed || !isServing(proxy)) continue;
      at = Math.min(at, proxy.lastHeardMs + TIMING.proxySilenceMs);
      at = Math.min(at, proxy.planned ? proxy.feedbackDueMs : proxy.requestDueMs);
    }
    return at === Infinity ? undefined : at;
  }

  /** The request to this proxy. In mode `coded` it asks for what was not granted to the others. */
  requestTo(proxyIndex: number, nowMs: number): RequestFrame {
    if (this.#request.mode !== "coded") return this.#request;
    const beginning = this.#beginnings[proxyIndex]!;
    const share = this.#planner?.shareFor(proxyIndex, nowMs) ?? beginning.share;
    const sharing = this.#parts && { sharing: sharingOf(this.#parts, proxyIndex) };
    return { ...this.#request, ...beginning, share, ...sharing };
  }

  #nextFrame(proxy: ProxyState, proxyIndex: number, closed: boolean, nowMs: number): Frame | undefined {
    if (proxy.final) return this.#nextFinal(proxy, proxyIndex, proxy.final, nowMs);
    if (closed || !(isServing(proxy) || isAskedOn(proxy))) return undefined;
    if (!proxy.planned) return this.#nextRequest(proxy, proxyIndex, nowMs);
    if (proxy.announced) return this.#nextHeard(proxy, proxyIndex);
    if (this.#planner) return this.#nextGrant(this.#planner, proxy, proxyIndex, nowMs);
    if (proxy.packetsSinceFeedback < this.#everyPackets && nowMs < proxy.feedbackDueMs) return undefined;
    proxy.packetsSinceFeedback = 0;
    proxy.feedbackDueMs = nowMs + TIMING.feedbackKeepaliveMs;
    return this.#feedback(proxy, proxyIndex, false, "none");
  }

  /** All proxies get new grants together, because no two of them should send the same part. */
  #replanWhenDue(planner: Planner, nowMs: number): void {
    const isDue = (proxy: ProxyState) => isServing(proxy) && proxy.planned && nowMs >= proxy.feedbackDueMs;
    if (nowMs === this.#plannedMs || !this.#proxies.some(isDue)) return;
    this.#plannedMs = nowMs;
    planner.replan(nowMs);
    for (const proxy of this.#proxies) if (proxy.planned) proxy.feedbackDueMs = nowMs;
  }

  #nextHeard(proxy: ProxyState, proxyIndex: number): Frame {
    proxy.announced = false;
    const { requestId } = this.#request;
    if (this.#proofs) return { type: "proofHeard", requestId, digestCount: this.#proofs.heardFrom(proxyIndex) };
    return { type: "digestsHeard", requestId, digestCount: this.#agreement!.countOf(proxyIndex) };
  }

  #nextGrant(planner: Planner, proxy: ProxyState, proxyIndex: number, nowMs: number): Frame | undefined {
    if (nowMs < proxy.feedbackDueMs) return undefined;
    this.feedbackFrames++;
    proxy.feedbackDueMs = nowMs + this.everyMs;
    return { type: "grant", requestId: this.#request.requestId, ...planner.grantFor(proxyIndex, nowMs) };
  }

  #nextRequest(proxy: ProxyState, proxyIndex: number, nowMs: number): Frame | undefined {
    if (nowMs < proxy.requestDueMs) return undefined;
    handleRequestSent(proxy, nowMs);
    return this.requestTo(proxyIndex, nowMs);
  }

  #nextFinal(proxy: ProxyState, proxyIndex: number, final: FinalFeedback, nowMs: number): Frame | undefined {
    if (nowMs < final.dueMs) return undefined;
    if (final.tries === TIMING.finalTries) {
      proxy.final = undefined;
      return undefined;
    }
    handleFinalSent(final, nowMs);
    return this.#feedback(proxy, proxyIndex, true, final.reason);
  }

  #feedback(proxy: ProxyState, proxyIndex: number, final: boolean, reason: FinalReason): Frame {
    this.feedbackFrames++;
    return {
      type: "feedback",
      requestId: this.#request.requestId,
      feedbackSequence: this.#feedbackSequence++,
      epoch: this.#assembly?.epoch ?? 0,
      final,
      reason,
      nextSequence: proxy.nextSequence,
      receivedPackets: proxy.dataFrames,
      ...(this.#assembly && !final ? this.#assembly.report(proxyIndex) : NOTHING_RECEIVED),
    };
  }
}
