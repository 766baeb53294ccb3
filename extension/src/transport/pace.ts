/**
 * Pace: how long the proxies usually take to the head of an answer, by page origin and host. It decides when the page
 * asks the site beside them. Pure.
 */
import { keepLatest } from "../shared/keep-latest";

/** Before anything is known. */
export const HEDGE_MS_UNKNOWN = 500;
const HEDGE_MS_MIN = 500;
/** The page waits at most this much longer than usual. */
export const HEDGE_MS_MORE = 300;
/** A slower host is asked directly: if the proxies failed then, the player would have given up. */
export const SLOW_MS = 2000;
const HOSTS_MAX = 256;
/** The weight of the newest time. */
const NEWEST = 0.3;

export class Pace {
  readonly #usualMs = new Map<string, number>();

  note(place: string, ms: number): void {
    const before = this.#usualMs.get(place) ?? ms;
    keepLatest(this.#usualMs, place, before + NEWEST * (ms - before), HOSTS_MAX);
  }

  /** When the page asks the site, too. */
  hedgeMs(place: string): number {
    const usualMs = this.#usualMs.get(place);
    if (usualMs === undefined) return HEDGE_MS_UNKNOWN;
    return Math.round(Math.max(HEDGE_MS_MIN, Math.min(2 * usualMs, usualMs + HEDGE_MS_MORE)));
  }

  isSlow(place: string): boolean {
    return (this.#usualMs.get(place) ?? 0) > SLOW_MS;
  }

  forget(place: string): void {
    this.#usualMs.delete(place);
  }
}
