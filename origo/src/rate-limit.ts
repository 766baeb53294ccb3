/**
 * Rate limit: counts by key, in a window of time: attempts to sign in, guesses at a code, bytes that arrive. In memory
 * and bounded: when the table is full, the key that was counted longest ago is forgotten. Pure: time arrives as
 * `nowMs`.
 */
export interface RateLimitOptions {
  /** The most that one key may count in a window. */
  limit: () => number;
  windowMs: () => number;
  keysMax: number;
}

export class RateLimit {
  /** The key that was counted longest ago comes first. */
  readonly #counts = new Map<string, { count: number; startMs: number }>();

  readonly #options: RateLimitOptions;

  constructor(options: RateLimitOptions) {
    this.#options = options;
  }

  /** How long to wait. 0 when the key has not reached the limit. */
  waitMs(key: string, nowMs: number, limit = this.#options.limit()): number {
    const entry = this.#counts.get(key);
    if (entry === undefined || entry.count < limit) return 0;
    return Math.max(0, entry.startMs + this.#options.windowMs() - nowMs);
  }

  add(key: string, nowMs: number, amount = 1): void {
    const known = this.#counts.get(key);
    const entry =
      known !== undefined && nowMs < known.startMs + this.#options.windowMs() ? known : { count: 0, startMs: nowMs };
    entry.count += amount;
    this.#counts.delete(key);
    this.#counts.set(key, entry);
    if (this.#counts.size > this.#options.keysMax) this.#counts.delete(this.#counts.keys().next().value ?? key);
  }

  clear(key: string): void {
    this.#counts.delete(key);
  }
}
