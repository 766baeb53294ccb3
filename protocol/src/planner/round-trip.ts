/**
 * RoundTrip: the latest and the least round trip of one proxy, and whether the way to it has become longer for good.
 * The caller measures each round trip and reports it. Pure: time arrives as `nowMs`.
 * Rules: protocol.md §8.6 and §8.7.
 */

/** Assumed until a round trip is measured: a value between those of a near and of a far proxy. */
const RTT_MS_UNKNOWN = 100;
/**
 * A grant takes effect this much later than the round trip says: a grant may be 3 ms late because of timers at both
 * ends.
 */
export const SLACK_MS = 3;
/**
 * Grants reach this far beyond the round trip. This leaves room for a late or lost grant, and it bounds the queue on
 * the way.
 */
export const AHEAD_MS = 40;
/** The way counts as longer once grants have taken longer than they reach ahead for this many round trips. */
const LONGER_ROUNDS = 0.5;

/** Grants that took longer than they reach ahead and found the proxy without work. */
interface LongerWay {
  firstMs: number;
  lastMs: number;
  leastRttMs: number;
}

export class RoundTrip {
  /** From the latest grant to the first packet sent after it arrived. Before the first grant, the request counts. */
  latestMs: number;
  #leastSeenMs = Infinity;
  #longerWay: LongerWay | undefined;

  constructor(rememberedMs = RTT_MS_UNKNOWN) {
    this.latestMs = rememberedMs;
  }

  /** The least round trip seen. Before the first one, the assumed round trip. */
  get leastMs(): number {
    return Math.min(this.#leastSeenMs, this.latestMs);
  }

  /** Undefined until a round trip was measured. */
  get leastMeasuredMs(): number | undefined {
    return this.#leastSeenMs === Infinity ? undefined : this.#leastSeenMs;
  }

  handleSample(rttMs: number): void {
    this.latestMs = rttMs;
    this.#leastSeenMs = Math.min(this.#leastSeenMs, rttMs);
  }

  /** `wasIdle`: the proxy had sent its whole order before the grant reached it. */
  handleGrantSample(rttMs: number, wasIdle: boolean, nowMs: number): void {
    this.handleSample(rttMs);
    const longerWay = this.#longerWay;
    if (rttMs <= this.#leastSeenMs + SLACK_MS + AHEAD_MS) this.#longerWay = undefined;
    else if (wasIdle)
      this.#longerWay = {
        firstMs: longerWay?.firstMs ?? nowMs,
        lastMs: nowMs,
        leastRttMs: Math.min(longerWay?.leastRttMs ?? Infinity, rttMs),
      };
  }

  /**
   * All proxies together bring less than before. If grants have been finding this proxy without work for long enough,
   * the way has become longer, and the least round trip is measured again. Returns true in that case.
   */
  handleLess(): boolean {
    const longerWay = this.#longerWay;
    if (!longerWay || longerWay.lastMs - longerWay.firstMs < LONGER_ROUNDS * longerWay.leastRttMs) return false;
    this.#leastSeenMs = longerWay.leastRttMs;
    this.#longerWay = undefined;
    return true;
  }

  /** The sender at the other end is a new one. What was measured of the way stays. */
  restart(): void {
    this.#longerWay = undefined;
  }
}
