/** What a receiver reports to its caller: its events, and its counts. */
import type { Rejection } from "@tributary/contract";
import type { PlanHead } from "../types";
import type { ProxyStats } from "./proxy-state";

export type ReceiverEvent =
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
