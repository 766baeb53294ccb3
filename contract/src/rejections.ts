/**
 * Rejections: the fault of a peer, or the reason why a download, a request or a frame failed, as data. The kind is for
 * programs, the message for people. A rejection keeps its kind from the frame that carried it to the dashboard.
 */

/** A frame has a field out of its bounds. */
const BOUNDED_FIELDS = [
  "coefficientCount",
  "dataFrameBytes",
  "digestCount",
  "feedbackEntries",
  "generationSize",
  "headerCount",
  "mode",
  "payloadBytes",
  "reason",
  "runCount",
  "status",
  "symbolBytes",
  "totalBytes",
  "windowPackets",
  "readerCount",
  "readerIndex",
  "readerWeight",
  "spanCount",
] as const;
export type BoundedField = (typeof BOUNDED_FIELDS)[number];

/** A frame has a text that is too long. */
const TEXT_FIELDS = ["headerName", "headerValue", "kind", "message", "pageOrigin", "readerId", "token", "url"] as const;
export type TextField = (typeof TEXT_FIELDS)[number];

const NAMED_KINDS = [
  // A frame does not parse.
  "frameTooLong",
  "frameTruncated",
  "frameTypeUnknown",
  "notUtf8",
  "rangeInverted",
  "shareInverted",
  "shareMissing",
  "spanInverted",
  "versionUnsupported",
  // The chunk does not fit the protocol.
  "chunkTooLarge",
  "lengthUnknown",
  "tooManyGenerations",
  // A proxy's part in a download failed.
  "otherStatus",
  "bodyDiffers",
  "bodyShort",
  "digestMismatch",
  "planMismatch",
  "proxyFailed",
  "proxyLost",
  "proxySilent",
  "rangeExceeded",
  // A proxy does not take the request.
  "badOffer",
  "badRange",
  "badRequest",
  "badUrl",
  "budgetSpent",
  "clientRefused",
  "draining",
  "egressRefused",
  "internalError",
  "methodNotAllowed",
  "notFound",
  "proxyBusy",
  "requestTooLarge",
  "starting",
  "tokenExpired",
  "tokenMissing",
  "tokenRefused",
  "tooManyRequests",
  "tooManySessions",
  "urlTooLong",
  // A proxy's fetch from the origin failed.
  "aborted",
  "badLength",
  "badRedirect",
  "bodyTooLong",
  "contentEncoded",
  "dnsFailed",
  "originFailed",
  "originStalled",
  "originTimeout",
  "originUnreachable",
  "rangeMismatch",
  "redirectLoop",
  "shortBody",
  "tooManyRedirects",
  // A proxy's library cannot serve or take an object.
  "grantExpired",
  "grantMissing",
  "grantRefused",
  "libraryFull",
  "noLibrary",
  "objectDamaged",
  "objectMissing",
  "offsetWrong",
  "rootMismatch",
  "uploadTooSlow",
  // A published object cannot be verified.
  "manifestWrong",
  "proofWrong",
  // The download as a whole failed.
  "engineError",
  "engineFailed",
  "internal",
  "noProxies",
  "noTransport",
  "originChanged",
  "originRefused",
  "originSilent",
  "origoUnreachable",
  "proxiesFailed",
  "rangeRefused",
  "readerFailed",
  "requestInvalid",
  "stalled",
  // Proxies delivered other bytes than the site has.
  "wrongBytes",
  // The page got the site's own answer: it came first, or the page may not have what the proxies brought.
  "siteFirst",
  "notShown",
  // A peer of another version sent a kind that is not listed here. The message begins with that kind.
  "unknown",
] as const;

export type RejectionKind =
  (typeof NAMED_KINDS)[number] | `${BoundedField}TooSmall` | `${BoundedField}TooLarge` | `${TextField}TooLong`;

/** Every kind, once. */
export const REJECTION_KINDS: readonly RejectionKind[] = [
  ...new Set<RejectionKind>([
    ...NAMED_KINDS,
    ...BOUNDED_FIELDS.flatMap((field) => [`${field}TooSmall`, `${field}TooLarge`] as const),
    ...TEXT_FIELDS.map((field) => `${field}TooLong` as const),
  ]),
];

/** `got` and `limit` are there when the fault is a number. */
export interface Rejection {
  kind: RejectionKind;
  message: string;
  got?: number;
  limit?: number;
}

const KNOWN: ReadonlySet<string> = new Set(REJECTION_KINDS);

export const isRejectionKind = (kind: string): kind is RejectionKind => KNOWN.has(kind);

/** What a peer sent as a rejection. A kind that is not in the list becomes `unknown` and stays in the message. */
export function rejectionOf(kind: string, message: string): Rejection {
  return isRejectionKind(kind) ? { kind, message } : { kind: "unknown", message: `${kind}: ${message}` };
}
