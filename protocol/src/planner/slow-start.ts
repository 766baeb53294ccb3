/**
 * SlowStart: tells whether congestion control at a proxy is still opening its window, so that the rate seen so far says
 * little. Pure: time arrives as `nowMs`. Rule: protocol.md §8.7.
 */

/**
 * In slow start a sender brings up to twice as many packets in each round trip as in the one before. A proxy that
 * brought over 1.75 times as many is in slow start.
 */
const OPENING_GROWTH = 1.75;
/** A window in slow start doubles each round trip. */
const WINDOW_GROWTH = 2;

export class SlowStart {
  /** Samples of the last round trip: the next sequence, and the packets of the round trip that ended there. */
  readonly #marks: { atMs: number; nextSequence: number; packets: number }[] = [];

  /**
   * Packets that may be on their way because the window is still opening: twice those of the last round trip. 0 when
   * the proxy is not in slow start. Call it with each plan: each call is a sample.
   */
  packetsAllowed(nextSequence: number, rttMs: number, nowMs: number): number {
    const marks = this.#marks;
    while (marks[1] && nowMs - marks[1].atMs >= rttMs) marks.shift();
    const [first] = marks;
    const packets = nextSequence - (first?.nextSequence ?? 0);
    const packetsBefore = first && nowMs - first.atMs >= rttMs ? first.packets : 0;
    marks.push({ atMs: nowMs, nextSequence, packets });
    return packets > OPENING_GROWTH * packetsBefore ? WINDOW_GROWTH * packets : 0;
  }

  restart(): void {
    this.#marks.length = 0;
  }
}
