/**
 * Detours: what went direct instead of through the proxies and why, and which sites rest from the proxies for a while
 * because they failed there again and again. Pure: time arrives as `nowMs`.
 */
import type { Trouble } from "../shared/runtime";

/** So many failures of a host in a row, and it goes direct for so long. Failures close together are one. */
export const FAILURES_MAX = 3;
export const FAILURE_APART_MS = 2000;
export const REST_MS = 30_000;
const HOSTS_MAX = 256;
/** Most bytes that one note of a page can add; the pages' notes are claims, kept for the popup only. */
const NOTE_BYTES_MAX = 2 ** 32;

/** Kinds that are no trouble: what is asked for does not belong to the proxies, or the viewer wants it so. */
const HARMLESS = new Set(["direct-mode", "rule", "off"]);

interface Failures {
  count: number;
  lastMs: number;
  restUntilMs: number;
}

export class Detours {
  readonly #hosts = new Map<string, Failures>();
  #trouble: Trouble | null = null;
  fallbacks = 0;
  directBytes = 0;

  constructor(readonly epochMs: () => number) {}

  /** Why the last chunk went direct; null once one has come through the proxies again. */
  get trouble(): Trouble | null {
    return this.#trouble;
  }

  isDirect(host: string, nowMs: number): boolean {
    const isResting = (this.#hosts.get(host)?.restUntilMs ?? 0) > nowMs;
    if (isResting) this.noteFallback("resting", `${host}, ${FAILURES_MAX} times`);
    return isResting;
  }

  noteSuccess(host: string): void {
    this.#hosts.delete(host);
    this.#trouble = null;
  }

  noteFailure(host: string, nowMs: number): void {
    const known = this.#hosts.get(host) ?? { count: 0, lastMs: -Infinity, restUntilMs: 0 };
    if (nowMs - known.lastMs < FAILURE_APART_MS) return;
    known.count += 1;
    known.lastMs = nowMs;
    if (known.count >= FAILURES_MAX) known.restUntilMs = nowMs + REST_MS;
    this.#hosts.delete(host);
    this.#hosts.set(host, known);
    const oldest = this.#hosts.keys().next();
    if (this.#hosts.size > HOSTS_MAX && oldest.done === false) this.#hosts.delete(oldest.value);
  }

  noteFallback(kind: string, detail: string): void {
    if (HARMLESS.has(kind)) return;
    this.fallbacks += 1;
    this.#trouble = { kind, detail, atMs: this.epochMs() };
  }

  noteDirect(bytes: number): void {
    this.directBytes += Math.min(bytes, NOTE_BYTES_MAX);
  }

  /** The viewer changed something: every site may try again. */
  reset(): void {
    this.#hosts.clear();
    this.#trouble = null;
  }
}
