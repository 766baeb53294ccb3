/** Every time and size that the client goes by, with its reason. */
import { LIMITS } from "@tributary/protocol";

export const CLIENT_VERSION = "0.1.0";

/** Milliseconds and bytes. A client may be given others; the defaults are meant to be left alone. */
export interface Settings {
  /** One try to reach a proxy: some connects take a second, none that works takes five. */
  connectTimeoutMs: number;
  connectTries: number;
  /**
   * What the transport tried first is ahead of the next one by, unless it fails sooner: Chromium puts several
   * WebTransport handshakes one behind another.
   */
  headStartMs: number;
  /** What worked with a proxy comes first for so long; then the order of preference holds again. */
  choiceMs: number;
  /** What was seen of a proxy's rate, round trip and loss is remembered for so long. */
  memoryMs: number;
  /** Before the second try; doubles. */
  connectBackoffMs: number;
  /** A proxy closes an idle session after 60 s; closing first means never asking over a closing channel. */
  idleCloseMs: number;
  /** Where no session to any proxy is open by then, the download goes over HTTP through the same proxies. */
  sessionMs: number;
  /** Then for so long downloads without an open session do so at once, while sessions are tried for beside them. */
  noTransportMs: number;
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
  /** A proxy that failed is left alone for this long, or until it is back. */
  proxyPenaltyMs: number;
  /** A list is not gone by for longer without asking, since its token ends: tokens live for a minute at least. */
  tokenAgeMs: number;
  /** Origo is not asked again sooner, when it could not be reached. */
  askAgainMs: number;
  /** Longest request that is asked for in one piece: the protocol's limit. */
  chunkBytesMax: number;
  /** A longer one is cut into ranges of this size. */
  cutBytes: number;
  /** Ranges of a cut request in flight: the second one keeps the proxies busy while the first one ends. */
  cutsInFlight: number;
  /** Requests that are open at the proxies at once; protocol limit: 16 a session. */
  requestsOpenMax: number;
  /** Records, and error reports, that wait for Origo; beyond it the oldest are dropped. */
  reportQueueMax: number;
  /** Of one request to Origo. */
  reportBatchMax: number;
  /** Reports that come together go together. */
  reportDelayMs: number;
  /** Before reports are sent again; doubles, up to `reportRetryMsMax`. */
  reportRetryMs: number;
  reportRetryMsMax: number;
  reportTimeoutMs: number;
  /** Of so many downloads in a thousand the arrival of each packet is noted and reported. */
  tracePerMille: number;
  /** Delivered bytes that may wait for the reader before no further ones are asked for. */
  queuedBytesMax: number;
}

export const SETTINGS_DEFAULT: Settings = {
  connectTimeoutMs: 5000,
  connectTries: 3,
  headStartMs: 500,
  choiceMs: 600_000,
  memoryMs: 600_000,
  connectBackoffMs: 150,
  idleCloseMs: 55_000,
  sessionMs: 1500,
  noTransportMs: 60_000,
  firstByteMs: 8000,
  stallMs: 5000,
  directSilenceMs: 30_000,
  closeWaitMs: 1000,
  directoryTimeoutMs: 2000,
  directoryAgeMs: 10_000,
  proxyPenaltyMs: 10_000,
  tokenAgeMs: 45_000,
  askAgainMs: 100,
  chunkBytesMax: LIMITS.chunkBytesMax,
  cutBytes: 8 * 1024 * 1024,
  cutsInFlight: 2,
  requestsOpenMax: 12,
  reportQueueMax: 1000,
  reportBatchMax: 50,
  reportDelayMs: 250,
  reportRetryMs: 1000,
  reportRetryMsMax: 30_000,
  reportTimeoutMs: 3000,
  tracePerMille: 20,
  queuedBytesMax: 8 * 1024 * 1024,
};

/** Largest piece handed to the body stream: small enough to flow, large enough to be cheap to transfer. */
export const PIECE_BYTES_MAX = 65_536;
export const CONNECTIONS_MAX = 32;
export const CONNECTIONS_DEFAULT = 4;
