/**
 * Pacer: a token bucket in bytes that says when a message may go. It sends nothing itself. Pure: time arrives as
 * `nowMs`.
 */
/** A rate of 0 means no limit. */
export class Pacer {
  #tokens: number;
  #lastMs: number;

  constructor(
    readonly bytesPerSec: number,
    readonly burstBytes: number,
    nowMs: number,
  ) {
    this.#tokens = burstBytes;
    this.#lastMs = nowMs;
  }

  /** True when `bytes` may go now. A message larger than the burst may go when the bucket is full. */
  canSend(bytes: number, nowMs: number): boolean {
    if (this.bytesPerSec === 0) return true;
    this.#refill(nowMs);
    return this.#tokens >= Math.min(bytes, this.burstBytes);
  }

  /** Takes `bytes`. What exceeds the bucket's content is owed and delays what follows. */
  take(bytes: number, nowMs: number): void {
    if (this.bytesPerSec === 0) return;
    this.#refill(nowMs);
    this.#tokens -= bytes;
  }

  /** The time in ms from which `canSend(bytes)` holds if nothing is taken before. */
  nextMs(bytes: number, nowMs: number): number {
    if (this.canSend(bytes, nowMs)) return nowMs;
    const missing = Math.min(bytes, this.burstBytes) - this.#tokens;
    return nowMs + (missing * 1000) / this.bytesPerSec;
  }

  #refill(nowMs: number): void {
    if (nowMs <= this.#lastMs) return;
    this.#tokens = Math.min(this.burstBytes, this.#tokens + ((nowMs - this.#lastMs) * this.bytesPerSec) / 1000);
    this.#lastMs = nowMs;
  }
}
