/** Counters: what a proxy counts from its start. Origo gets the numbers every two seconds (ProxyStatus). */
export interface Counters {
  /** Messages that were sent on channels. */
  sentPackets: number;
  /** Requests that failed, and errors of the proxy itself. */
  errors: number;
  /** Frames from clients that could not be read, or that clients may not send. */
  rejectedFrames: number;
  /** Messages that were not read, because their client had taken its part of the time. */
  unreadMessages: number;
}

export function newCounters(): Counters {
  return { sentPackets: 0, errors: 0, rejectedFrames: 0, unreadMessages: 0 };
}
