/**
 * ArrivalRate: how fast packets of one proxy arrive. It tells pauses from real changes. It knows sequences and times,
 * but neither generations nor grants. Pure: time arrives as `nowMs`. Rule: protocol.md §8.6.
 */

/**
 * The rate is measured over this many samples or, if that is longer, this many round trips. Over less time than a grant
 * takes to have an effect, grants and rates would drive each other up.
 */
const RATE_SAMPLES = 32;
const RATE_ROUNDS = 3;
/** Packets that arrive within this time of each other are one sample. */
const RATE_STEP_MS = 0.2;
/** With fewer samples than this the earlier rate stays valid. */
const RATE_SAMPLES_MIN = 3;
/** The rate has changed when one of this many latest stretches is off by this many standard deviations. */
const CHANGE_SAMPLES = 16;
const CHANGE_SIGMAS = 4;
/** A delay of up to this long is no change: a scheduler at either end may cause it. */
const HICCUP_MS = 5;
/**
 * A late packet was held up by a pause if, this many packets later, the proxy is at most this many times the lateness
 * behind.
 */
const PAUSE_SEEN_PACKETS = 3;
const PAUSE_BEHIND = 1.5;
/** A rate below this part of the one before a pause was the pause itself. */
const PAUSE_FALL = 0.5;
/** A pause is forgotten over about this many packets. */
const PAUSE_PACKETS = 256;
/** A longer pause counts as this, or a proxy could make others wait for it. */
const PAUSE_MS_MAX = 100;
/** A packet is overdue once it is later than this many gaps. */
const OVERDUE_GAPS = 2;
/** A first silence counts as at least this long, so that the rate stays finite. */
const SILENCE_MS_MIN = 1;

interface Arrival {
  atMs: number;
  sequence: number;
}

/** A packet that came late for the rate of that time. */
interface LatePacket {
  sequence: number;
  dueMs: number;
  lateMs: number;
  perMs: number;
}

export class ArrivalRate {
  /**
   * The longest recent pause after which packets came at the old rate again. A busy processor at either end can cause
   * one, and a radio link can too. In that case the rate of the proxy is unchanged.
   */
  pauseMs = 0;
  /** The last measured rate in packets per ms. Before the first, the remembered rate, or 0 without one. */
  measuredPerMs: number;
  readonly #arrivals: Arrival[] = [];
  /** The rate before the last arrival. */
  #steadyPerMs = 0;
  #late: LatePacket | undefined;
  readonly #onRise: () => void;

  /** `onRise` is called when the rate is found to have risen. */
  constructor(rememberedPerMs: number, onRise: () => void) {
    this.measuredPerMs = rememberedPerMs;
    this.#onRise = onRise;
  }

  /** The first frame came. Data follows it closely, so the rate can be measured from here on. */
  begin(nowMs: number): void {
    this.#arrivals.push({ atMs: nowMs, sequence: -1 });
  }

  /** How long the present rate has been seen. */
  seenMs(nowMs: number): number {
    return nowMs - (this.#arrivals[0]?.atMs ?? nowMs);
  }

  /**
   * Packets per ms; 0 while nothing is known. `dueFromMs`: the earliest time at which the next packet can come, or
   * undefined when none is due. `doubtMs`: how long reordering and the queue that all proxies share may delay packets.
   */
  perMs(dueFromMs: number | undefined, doubtMs: number, nowMs: number): number {
    const last = this.#arrivals.at(-1);
    if (!last || (this.#arrivals.length < RATE_SAMPLES_MIN && this.measuredPerMs > 0)) return this.measuredPerMs;
    const silentMs = dueFromMs === undefined ? 0 : nowMs - Math.max(last.atMs, dueFromMs);
    return this.#measure(last.atMs + Math.max(0, silentMs), doubtMs);
  }

  /**
   * Notes whether a packet is late, and whether an earlier late one was only a pause. Call it before `handleArrival`.
   * `isNext`: no packet before it is missing.
   */
  notePause(sequence: number, isNext: boolean, lastArrivalMs: number, soonestMs: number, nowMs: number): void {
    const late = this.#late;
    const perMs = this.#steadyPerMs;
    this.pauseMs *= 1 - 1 / PAUSE_PACKETS;
    if (late && sequence >= late.sequence + PAUSE_SEEN_PACKETS) {
      const behindMs = nowMs - late.dueMs - (sequence - late.sequence) / late.perMs;
      if (behindMs < PAUSE_BEHIND * late.lateMs) this.#handlePause(late.lateMs, late.perMs);
      this.#late = undefined;
    }
    const dueMs = Math.max(lastArrivalMs + 1 / perMs, soonestMs);
    const lateMs = nowMs - dueMs;
    if (perMs > 0 && isNext && lateMs > Math.max(HICCUP_MS, this.#late?.lateMs ?? 0))
      this.#late = { sequence, dueMs, lateMs, perMs };
  }

  /** `wasIdle`: the proxy had come to the end of its order and waited, so the time before this packet says nothing. */
  handleArrival(sequence: number, wasIdle: boolean, rttMs: number, doubtMs: number, nowMs: number): void {
    const arrivals = this.#arrivals;
    if (wasIdle) arrivals.length = 0;
    const last = arrivals.at(-1);
    if (last && last.sequence >= 0 && nowMs - last.atMs < RATE_STEP_MS) last.sequence = sequence;
    else arrivals.push({ atMs: nowMs, sequence });
    const { length } = arrivals;
    while (arrivals.length > RATE_SAMPLES && nowMs - arrivals[1]!.atMs > RATE_ROUNDS * rttMs) arrivals.shift();
    if (length >= RATE_SAMPLES_MIN) this.measuredPerMs = this.#measure(nowMs, doubtMs);
    this.#steadyPerMs = this.measuredPerMs;
  }

  /** The way has changed, so earlier arrivals say nothing about it. */
  forget(): void {
    this.#arrivals.length = 0;
  }

  /** The sender at the other end is a new one. The rate of the way to it stays. */
  restart(): void {
    this.#arrivals.length = 0;
    this.#late = undefined;
  }

  /** Handles a pause that looked like a fall of the rate. */
  #handlePause(lateMs: number, perMs: number): void {
    this.pauseMs = Math.max(this.pauseMs, Math.min(lateMs, PAUSE_MS_MAX));
    if (this.measuredPerMs > PAUSE_FALL * perMs) return;
    this.#arrivals.length = 0;
    this.measuredPerMs = perMs;
  }

  /**
   * The mean over the samples kept. When the latest ones are far from that mean, the older ones are dropped. A proxy
   * sends at the new rate as soon as more arrives. When less arrives, it keeps the old rate until it notices.
   */
  #measure(nowMs: number, doubtMs: number): number {
    const arrivals = this.#arrivals;
    const last = arrivals.at(-1)!;
    const mean = rateSince(arrivals[0]!, last, nowMs);
    const slackMs = doubtMs + Math.max(HICCUP_MS, this.pauseMs);
    for (let back = 1; back <= CHANGE_SAMPLES && back < arrivals.length; back++) {
      const from = arrivals.at(-back)!;
      const packets = last.sequence - from.sequence;
      const spread = CHANGE_SIGMAS * Math.sqrt(packets + 1);
      const spanMs = nowMs - from.atMs;
      if (packets + spread >= mean * (spanMs - slackMs) && packets - spread <= mean * (spanMs + slackMs)) continue;
      arrivals.splice(0, arrivals.length - back);
      this.measuredPerMs = rateSince(from, last, nowMs);
      if (this.measuredPerMs > mean) this.#onRise();
      return this.measuredPerMs;
    }
    return mean;
  }
}

/** Packets per ms from one arrival to a later one, or to now if another packet is overdue. */
function rateSince(first: Arrival, last: Arrival, nowMs: number): number {
  const packets = last.sequence - first.sequence;
  if (packets === 0) return 1 / Math.max(nowMs - first.atMs, SILENCE_MS_MIN);
  const spanMs = Math.max(last.atMs - first.atMs, RATE_STEP_MS);
  const overdueMs = nowMs - last.atMs - (OVERDUE_GAPS * spanMs) / packets;
  return packets / (spanMs + Math.max(0, overdueMs));
}
