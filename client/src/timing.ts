/** Every time and size that the client goes by, with its reason. Milliseconds and bytes. */
export interface Timing {
  /** One try to reach a proxy: some connects take a second, none that works takes five. */
  connectTimeoutMs: number;
  connectTries: number;
  /** Before the second try; doubles. */
  connectBackoffMs: number;
  /** A proxy closes an idle session after 60 s; closing first means never asking over a closing channel. */
  idleCloseMs: number;
  /** Without a first byte for this long, the viewer is better served directly. */
  firstByteMs: number;
  /** The same once bytes have come. */
  stallMs: number;
  /** The direct download has no fallback behind it, so it gets more patience. */
  directSilenceMs: number;
  /** How long a record waits for late packets and the proxies' last words. */
  closeWaitMs: number;
  directoryTimeoutMs: number;
  directoryAgeMs: number;
  /** A proxy that failed is left alone for this long. */
  proxyPenaltyMs: number;
}

export const TIMING_DEFAULT: Timing = {
  connectTimeoutMs: 5000,
  connectTries: 3,
  connectBackoffMs: 150,
  idleCloseMs: 55_000,
  firstByteMs: 8000,
  stallMs: 5000,
  directSilenceMs: 30_000,
  closeWaitMs: 1000,
  directoryTimeoutMs: 2000,
  directoryAgeMs: 10_000,
  proxyPenaltyMs: 10_000,
};

/** Largest piece handed to the body stream: small enough to flow, large enough to be cheap to transfer. */
export const PIECE_BYTES_MAX = 65_536;
/** Delivered bytes that may wait for the reader before no further ones are asked for. */
export const QUEUED_BYTES_MAX = 8 * 1024 * 1024;
/** A request longer than one chunk is cut into ranges of this size, so many of them in flight. */
export const CUT_BYTES = 8 * 1024 * 1024;
export const CUTS_IN_FLIGHT = 2;
/** Requests of one client that are open at the proxies at once; protocol limit: 16 a session. */
export const REQUESTS_OPEN_MAX = 12;
export const CONNECTIONS_MAX = 32;
export const CONNECTIONS_DEFAULT = 4;
