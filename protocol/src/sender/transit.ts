/**
 * Transit: a sender's packets that the client has not reported yet, and when they count as lost. It decides nothing
 * else: the schedule says what to send instead. Pure: time arrives as `nowMs`. Rules: protocol.md §6.2, RFC 6298 §2.
 */
import { TIMING } from "../limits";
import type { Schedule } from "./schedule";

/** RFC 6298 §2: weights of a new sample, and how many variations the timer waits beyond the round trip. */
const SMOOTHED_WEIGHT = 1 / 8;
const VARIATION_WEIGHT = 1 / 4;
const VARIATIONS = 4;
/** Without feedback the timer doubles up to this factor. */
const BACKOFF_MAX = 8;

interface SentPacket {
  sequence: number;
  /** The schedule's name for the packet: the index of a symbol or of a generation. */
  item: number;
  sentMs: number;
}

export class Transit {
  readonly #packets: SentPacket[] = [];
  #roundTrip: { smoothedMs: number; variationMs: number } | undefined;
  #backoff = 1;

  add(packet: SentPacket): void {
    this.#packets.push(packet);
  }

  clear(): void {
    this.#packets.length = 0;
  }

  /** When the oldest packet counts as lost; undefined when nothing is in transit. */
  pollTimeout(): number | undefined {
    const oldest = this.#packets[0];
    return oldest && oldest.sentMs + this.#retransmitMs();
  }

  /** The client has reported all packets before `nextSequence`: those that are decided leave transit. */
  handleReport(nextSequence: number, schedule: Schedule, nowMs: number): void {
    const packets = this.#packets;
    let kept = 0;
    for (const packet of packets) {
      const since = nextSequence - 1 - packet.sequence;
      if (since === 0) this.#measureRoundTrip(nowMs - packet.sentMs);
      if (since >= 0 && schedule.decided(packet.item, since)) schedule.release(packet.item);
      else packets[kept++] = packet;
    }
    if (kept < packets.length) this.#backoff = 1;
    packets.length = kept;
  }

  /** Packets that were in transit for too long leave it as lost. */
  handleTimeout(schedule: Schedule, nowMs: number): void {
    const limitMs = nowMs - this.#retransmitMs();
    let lost = 0;
    while (lost < this.#packets.length && this.#packets[lost]!.sentMs <= limitMs) lost++;
    if (lost === 0) return;
    for (const packet of this.#packets.splice(0, lost)) schedule.release(packet.item);
    this.#backoff = Math.min(this.#backoff * 2, BACKOFF_MAX);
  }

  /** The client's feedback is the acknowledgement. */
  #measureRoundTrip(sampleMs: number): void {
    if (!this.#roundTrip) {
      this.#roundTrip = { smoothedMs: sampleMs, variationMs: sampleMs / 2 };
      return;
    }
    const { smoothedMs, variationMs } = this.#roundTrip;
    const deviationMs = Math.abs(smoothedMs - sampleMs);
    this.#roundTrip.variationMs = (1 - VARIATION_WEIGHT) * variationMs + VARIATION_WEIGHT * deviationMs;
    this.#roundTrip.smoothedMs = (1 - SMOOTHED_WEIGHT) * smoothedMs + SMOOTHED_WEIGHT * sampleMs;
  }

  #retransmitMs(): number {
    const roundTrip = this.#roundTrip;
    const base = roundTrip ? roundTrip.smoothedMs + VARIATIONS * roundTrip.variationMs : TIMING.retransmitMsInitial;
    const bounded = Math.max(TIMING.retransmitMsMin, base) * this.#backoff;
    return Math.min(TIMING.retransmitMsMax, bounded);
  }
}
