/**
 * ProxyState: what the receiver keeps of one proxy: how far its request has come, what was received, and when something
 * is due. Plain data and small functions over it: receiver.ts decides. Rules: protocol.md §5 and §7.
 */
import type { Rejection } from "@tributary/contract";
import { TIMING } from "../limits";
import type { KnownPath } from "../planner/known";
import type { DataFrame, FinalReason, PlanHead } from "../types";

/** Counts of data frames. Always: packets = innovative + duplicate + late + rejected (protocol.md §1.3). */
export interface ProxyStats {
  bytes: number;
  packets: number;
  innovative: number;
  /** Valid, but linearly dependent on what had come before. */
  duplicate: number;
  /** Came after the chunk was complete or given up. */
  late: number;
  /** Unreadable, or not allowed by the plan. */
  rejected: number;
  /** Gaps in the sequence numbers. */
  lost: number;
  rttMs: number | null;
  /** Mode `coded`: the measurements that a later chunk may use as `known`. */
  path?: KnownPath;
  state: "waiting" | "active" | "failed" | "ended";
  error?: Rejection;
}

/** The use of a received data frame. */
export type PacketFate = "innovative" | "duplicate" | "late" | "rejected";

/** A final feedback that is repeated until the proxy's END. */
export interface FinalFeedback {
  reason: FinalReason;
  tries: number;
  dueMs: number;
}

export interface ProxyState {
  /** Whose word this proxy's is (voters.ts). */
  readonly voter: number;
  readonly stats: ProxyStats;
  asked: boolean;
  /** The request went along with the session's own, so no answer tells the round trip. */
  askedFirst: boolean;
  /** Its plan, which may still have to be confirmed by another proxy. */
  plan: PlanHead | undefined;
  /** Its plan is the one that the chunk is assembled by. */
  planned: boolean;
  /** Its plan was the confirmed one, in this session or one before it. */
  hasAgreed: boolean;
  /** It has sent digests, and it is to hear which of them have come. */
  announced: boolean;
  /** The proxy has failed only by silence: a valid frame brings it back. */
  silent: boolean;
  /** The proxy has failed because its session went: a new session brings it back. */
  lost: boolean;
  /** A new session is being made. */
  away: boolean;
  requestDueMs: number;
  requestEveryMs: number;
  /** When the request was sent for the first time. */
  requestSentMs: number;
  requestTries: number;
  lastHeardMs: number;
  dataFrames: number;
  nextSequence: number;
  packetsSinceFeedback: number;
  feedbackDueMs: number;
  /** Data that came before the plan, with its times. */
  early: { frame: DataFrame; atMs: number }[];
  final: FinalFeedback | undefined;
}

export function newProxy(voter: number): ProxyState {
  return {
    voter,
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
    plan: undefined,
    planned: false,
    hasAgreed: false,
    announced: false,
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

/** The counts, with the gaps of this session. */
export function statsNow({ stats, nextSequence, dataFrames }: ProxyState, path: KnownPath | undefined): ProxyStats {
  return { ...stats, lost: stats.lost + Math.max(0, nextSequence - dataFrames), ...(path ? { path } : {}) };
}

/** The proxy was asked, and something is expected of it. */
export function isServing({ asked, stats }: ProxyState): boolean {
  return asked && stats.state !== "failed";
}

/** The proxy fell silent before it had answered. The request may have been lost, so it is sent again. */
export function isAskedOn({ silent, planned }: ProxyState): boolean {
  return silent && !planned;
}

/** Prepares for a new session: a new sender, whose sequence starts at 0. The counts stay. */
export function startAgain(proxy: ProxyState): void {
  const { stats, nextSequence, dataFrames, hasAgreed } = proxy;
  stats.lost += Math.max(0, nextSequence - dataFrames);
  stats.state = "waiting";
  delete stats.error;
  Object.assign(proxy, { ...newProxy(proxy.voter), stats, hasAgreed });
}

/** A request leaves: the second one soon, the later ones at growing intervals. */
export function handleRequestSent(proxy: ProxyState, nowMs: number): void {
  if (++proxy.requestTries === 1) {
    proxy.requestSentMs = nowMs;
    proxy.requestDueMs = nowMs + TIMING.requestTwinMs;
    return;
  }
  proxy.requestDueMs = nowMs + proxy.requestEveryMs;
  proxy.requestEveryMs = Math.min(proxy.requestEveryMs * 2, TIMING.requestRepeatMsMax);
}

/** An answer that is not a plan yet: the request has arrived, so it is repeated rarely. */
export function handleRequestHeard(proxy: ProxyState, nowMs: number): void {
  if (proxy.planned || proxy.requestEveryMs >= TIMING.requestRepeatMsMax) return;
  proxy.requestEveryMs = TIMING.requestRepeatMsMax;
  proxy.requestDueMs = nowMs + TIMING.requestRepeatMsMax;
}

/** One proxy has answered. The requests to the others may be lost, so their repeats come sooner than their timers. */
export function hastenRequests(proxies: readonly ProxyState[], rttMs: number, nowMs: number): void {
  const dueMs = nowMs + TIMING.requestHastenMs + TIMING.requestHastenRoundTrips * rttMs;
  for (const proxy of proxies) {
    if (proxy.asked && !proxy.planned && tellsRoundTrip(proxy))
      proxy.requestDueMs = Math.min(proxy.requestDueMs, dueMs);
  }
}

/** The first two requests are twins. An answer after more of them does not tell which one it answers. */
export function tellsRoundTrip({ stats, requestTries }: ProxyState): boolean {
  return stats.rttMs === null && requestTries <= TIMING.requestTwins;
}

export function finalOf(reason: FinalReason, nowMs: number): FinalFeedback {
  return { reason, tries: 0, dueMs: nowMs };
}

/** A final feedback leaves; the next one is due after a growing interval. */
export function handleFinalSent(final: FinalFeedback, nowMs: number): void {
  final.dueMs = nowMs + TIMING.finalRepeatMs * 2 ** Math.min(final.tries, TIMING.finalDoublings);
  final.tries++;
}
