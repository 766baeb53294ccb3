/** What a proxy counts from its start on; Origo is told every two seconds (ProxyStatus). */
export interface Counters {
  /** Messages over data channels. */
  sentPackets: number;
  /** Requests that ended in failure, and errors of the proxy itself. */
  errors: number;
  /** Frames from clients that were unreadable, or that no client may send. */
  rejectedFrames: number;
}

export function newCounters(): Counters {
  return { sentPackets: 0, errors: 0, rejectedFrames: 0 };
}
