/**
 * Parts of the receiver's feedback frames (protocol.md §7). receiver.ts fills in the rest and says when they are due.
 */
import type { FeedbackFrame } from "../types";
import { encodeFrame } from "../wire/frames";

/** The report in a final feedback. It is empty because the sender needs nothing more. */
export const NOTHING_RECEIVED: Pick<FeedbackFrame, "base" | "received"> = {
  base: 0,
  received: { kind: "symbols", count: 0, bitmap: new Uint8Array(0) },
};

/** Tells a proxy that a request is over when no receiver is left to tell it. */
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
    ...NOTHING_RECEIVED,
  });
}
