/**
 * The packet trace as CSV: one line for each event of a packet, in the order of time. Columns: timeMs, source (proxy,
 * or `shared` for the viewer's own downlink), direction, event, bytes, frame, sequence, generation, coding (systematic
 * symbol or seed).
 */
import { parseFrame } from "@tributary/protocol";
import type { LinkEvent } from "./event-log";
import { SHARED_DOWNLINK } from "./network";

export const TRACE_HEADER = "timeMs,source,direction,event,bytes,frame,sequence,generation,coding\n";

export function traceLine(
  nowMs: number,
  event: LinkEvent,
  link: number,
  bytes: number,
  message: Uint8Array | undefined,
): string {
  const source = link === SHARED_DOWNLINK ? "shared" : link >> 1;
  const direction = link !== SHARED_DOWNLINK && link & 1 ? "up" : "down";
  return `${nowMs.toFixed(3)},${source},${direction},${event},${bytes},${message ? describe(message) : "segment,,,"}\n`;
}

function describe(message: Uint8Array): string {
  const frame = parseFrame(message);
  if (frame.type === "feedback") return `${frame.final ? "final" : "feedback"},${frame.feedbackSequence},,`;
  if (frame.type !== "data") return `${frame.type},,,`;
  const { coding } = frame;
  const how =
    coding.kind === "systematic"
      ? `symbol ${coding.symbolIndex}`
      : coding.kind === "seed"
        ? `seed ${coding.seed}`
        : coding.kind;
  return `data,${frame.sequence},${frame.generationIndex},${how}`;
}
