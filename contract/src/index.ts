/**
 * What crosses a process boundary, as constants, types and parsers. It imports no other package, so every package can
 * import it. The zod schemas have doors of their own: `@tributary/contract/schema` (messages), `/admin-schema` and
 * `/query-schema`. So have the tables of record fields (`/record-fields`) and of settings (`/settings`).
 */

/** The transports between a client and a proxy. */
export const TRANSPORTS = ["webtransport", "webrtc", "udp"] as const;
export type TransportName = (typeof TRANSPORTS)[number];

/** How a chunk is downloaded: README, section Modes. */
export const MODES = ["direct", "parallel-http", "split-http", "uncoded-mutp", "coded-mutp", "coded"] as const;
export type Mode = (typeof MODES)[number];

/**
 * How a request uses the caches on its way. `no-cache`: no stored answer unless the origin confirms it. `no-store`: the
 * same, and nobody stores the answer.
 */
export const CACHE_MODES = ["default", "no-cache", "no-store"] as const;
export type CacheMode = (typeof CACHE_MODES)[number];

/** The most proxies that one download uses. */
export const CONNECTIONS_MAX = 32;

export { CLIENT_HEADER, isPageOrigin, mayRead, parseOrigins } from "./callers";
export {
  formatContentRange,
  formatRange,
  parseContentRange,
  parseRange,
  resolveRange,
  type ByteRange,
  type ContentRange,
  type RangeRequest,
} from "./ranges";
export {
  FIRST_HEADERS,
  formatHops,
  formatOriginTime,
  headDifference,
  headerDifference,
  HOPS_HEADER,
  isSameVersion,
  KEPT_HEADERS,
  ORIGIN_TIME_HEADER,
  parseHops,
  parseOriginTime,
  RENAMED_PREFIX,
  retryAfterMs,
  strongValidator,
  VALIDATOR_HEADERS,
  type HeadDifference,
  type Hop,
  type ResponseHead,
} from "./heads";
export {
  isRejectionKind,
  REJECTION_KINDS,
  rejectionOf,
  type BoundedField,
  type Rejection,
  type RejectionKind,
  type TextField,
} from "./rejections";
