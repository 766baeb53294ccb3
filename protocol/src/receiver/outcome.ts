/** What a receiver reports to its caller: its events, and its counts. */
import type { Rejection } from "@tributary/contract";
import type { Evidence } from "@tributary/contract/evidence";
import type { Geometry } from "../geometry";
import type { PlanHead } from "../types";
import type { Assembly } from "./assembly";
import type { ProxyStats } from "./proxy-state";

/** Evidence against one of the proxies. */
export interface ShownEvidence extends Evidence {
  proxyIndex: number;
}

export type ReceiverEvent =
  | { kind: "conviction"; evidence: ShownEvidence }
  | { kind: "head"; head: PlanHead }
  | { kind: "bytes"; offset: number; bytes: Uint8Array }
  | { kind: "complete" }
  | { kind: "failed"; rejection: Rejection };

export interface ReceiverStats {
  deliveredBytes: number;
  grossBytes: number;
  rank: number;
  symbolCount: number;
  generationCount: number;
  /** From the start of the receiver to the first data frame. */
  firstPacketMs?: number;
  feedbackFrames: number;
  /** How many operators have announced the digests of all that was handed on. 0 if nobody was asked for them. */
  agreeingOperators: number;
  proxies: ProxyStats[];
}

/** Without geometry and assembly no plan has come. */
export function statsOf(
  counts: Pick<ReceiverStats, "proxies" | "agreeingOperators" | "feedbackFrames">,
  firstPacketMs: number | undefined,
  geometry: Geometry | undefined,
  assembly: Assembly | undefined,
): ReceiverStats {
  return {
    deliveredBytes: assembly?.deliveredBytes ?? 0,
    grossBytes: counts.proxies.reduce((sum, { bytes }) => sum + bytes, 0),
    rank: assembly?.rank ?? 0,
    symbolCount: geometry?.symbolCount ?? 0,
    generationCount: geometry?.generationCount ?? 0,
    ...(firstPacketMs === undefined ? {} : { firstPacketMs }),
    ...counts,
  };
}
