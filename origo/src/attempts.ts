/**
 * Attempts: counts failed attempts by key, in a window of time. In memory and bounded: when the table is full, the key
 * whose last attempt is oldest is forgotten. Pure: time arrives as `nowMs`.
 */
export interface AttemptsOptions {
  limit: () => number;
  windowMs: () => number;
  keysMax: number;
}

export class Attempts {
  /** The key whose last attempt is oldest comes first. */
  readonly #counts = new Map<string, { count: number; startMs: number }>();

  readonly #options: AttemptsOptions;

  constructor(options: AttemptsOptions) {
    this.#options = options;
  }

  /** How long to wait before the next attempt. 0 when an attempt is allowed now. */
  waitMs(key: string, nowMs: number): number {
    const entry = this.#counts.get(key);
    if (entry === undefined || entry.count < this.#options.limit()) return 0;
    return Math.max(0, entry.startMs + this.#options.windowMs() - nowMs);
  }

  add(key: string, nowMs: number): void {
    const known = this.#counts.get(key);
    const entry =
      known !== undefined && nowMs < known.startMs + this.#options.windowMs() ? known : { count: 0, startMs: nowMs };
    entry.count++;
    this.#counts.delete(key);
    this.#counts.set(key, entry);
    if (this.#counts.size > this.#options.keysMax) this.#counts.delete(this.#counts.keys().next().value ?? key);
  }

  clear(key: string): void {
    this.#counts.delete(key);
  }
}
