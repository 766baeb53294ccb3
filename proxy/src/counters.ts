/** Counters: what a proxy counts from its start. Origo gets the numbers every two seconds (ProxyStatus). */
import type { RejectionKind } from "@tributary/contract";
import { SCHEMA_LIMITS, type ProxyError } from "@tributary/contract/schema";

export interface Counters {
  /** Messages that were sent on channels. */
  sentPackets: number;
  /** Requests that failed, and errors of the proxy itself. */
  readonly errors: ErrorCounts;
  /** Frames from clients that could not be read, or that clients may not send. */
  rejectedFrames: number;
  /** Messages that were not read, because their client had taken its part of the time. */
  unreadMessages: number;
}

/** Counts errors by kind. It forgets the kind that was seen longest ago if there are too many. */
export class ErrorCounts {
  total = 0;
  /** The kind that was seen longest ago comes first. */
  readonly #kinds = new Map<RejectionKind, { count: number; atMs: number }>();

  add(kind: RejectionKind, atMs = performance.now()): void {
    this.total++;
    const count = (this.#kinds.get(kind)?.count ?? 0) + 1;
    this.#kinds.delete(kind);
    this.#kinds.set(kind, { count, atMs });
    const [oldest] = this.#kinds.keys();
    if (this.#kinds.size > SCHEMA_LIMITS.proxyErrorKinds && oldest) this.#kinds.delete(oldest);
  }

  /** Newest first. */
  latest(nowMs = performance.now()): ProxyError[] {
    return [...this.#kinds].map(([kind, { count, atMs }]) => ({ kind, count, ageMs: nowMs - atMs })).reverse();
  }
}

export function newCounters(): Counters {
  return { sentPackets: 0, errors: new ErrorCounts(), rejectedFrames: 0, unreadMessages: 0 };
}
