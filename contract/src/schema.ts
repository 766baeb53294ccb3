/**
 * Every message that Origo takes or gives, one zod schema each; the TypeScript type is inferred from it. The fields of
 * a record come from record-fields.ts. Imports only zod and this package, so that proxies and clients can share it (a
 * browser bundle by `import type`).
 * Objects are strict: an unknown field is refused. Strings and arrays are limited, numbers finite and non-negative.
 */
import { z } from "zod";
import type { ApiError } from "./api-error";
import { listOf } from "./list";
import { SCHEMA_LIMITS } from "./message-limits";
import { recordFields, SOURCES, type PlainRecord, type RecordField } from "./record-fields";
import { MODES, rejectionOf, TRANSPORTS, type RejectionKind } from "./index";

export * from "./api-error";
export { SCHEMA_LIMITS };

/** The latest instant that a JavaScript Date can hold. */
export const EPOCH_MS_MAX = 8.64e15;

const finite = z.number().finite().nonnegative().max(Number.MAX_SAFE_INTEGER);
const count = finite.int();
const epochMs = z.number().finite().nonnegative().max(EPOCH_MS_MAX);
/**
 * PostgreSQL cannot hold NUL and lone surrogates, so they become the replacement character. DuckDB's reader drops a
 * U+FEFF at the start, so none is kept.
 */
const text = (charsMax: number) =>
  z
    .string()
    .max(charsMax)
    .transform((value) =>
      value
        .replaceAll("\0", "\uFFFD")
        .replace(/\p{Cs}/gu, "\uFFFD")
        .replace(/^\uFEFF+/, ""),
    );
const isPlain = (value: string): boolean => !/\0|\p{Cs}|^\uFEFF/u.test(value);
/** A UUID of any version. It becomes lower case, so that each id has one spelling. */
const uuid = z.string().uuid().toLowerCase();
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex digits");
const label = (charsMax: number) =>
  z.string().min(1).max(charsMax).refine(isPlain, "must not hold NUL, half of a surrogate pair or U+FEFF first");

/** Why `value` is not an acceptable address; undefined if it is. A query or fragment can be a secret. */
function urlFault(value: string): string | undefined {
  if (!URL.canParse(value)) return "must be an absolute URL";
  if (!isPlain(value)) return "must not hold NUL or half of a surrogate pair";
  const url = new URL(value);
  if (url.protocol !== "http:" && url.protocol !== "https:")
    return `must be http or https, got ${url.protocol.slice(0, -1)}`;
  if (url.username !== "" || url.password !== "") return "must not hold a user name or password";
  if (value.includes("?")) return "must not hold a query string: send the URL up to its '?'";
  if (value.includes("#")) return "must not hold a fragment: send the URL up to its '#'";
  return undefined;
}

const plainUrl = (charsMax: number) =>
  z
    .string()
    .max(charsMax)
    .superRefine((value, context) => {
      const fault = urlFault(value);
      if (fault !== undefined) context.addIssue({ code: z.ZodIssueCode.custom, message: fault });
    });

export const Place = z.object({ lat: z.number().min(-90).max(90), lon: z.number().min(-180).max(180) }).strict();
export type Place = z.infer<typeof Place>;

/** Where a proxy takes WebTransport sessions, and the SHA-256 of its certificates. It shows the first one now. */
export const WebTransportAddress = z
  .object({
    url: plainUrl(SCHEMA_LIMITS.proxyUrlChars).refine((value) => value.startsWith("https:"), "must be https"),
    certificateHashes: z.array(sha256).min(1).max(4),
  })
  .strict();
export type WebTransportAddress = z.infer<typeof WebTransportAddress>;

/** Where a proxy takes plain UDP sessions. */
export const UdpAddress = z.object({ host: label(255), port: count.min(1).max(65_535) }).strict();
export type UdpAddress = z.infer<typeof UdpAddress>;

/**
 * What a proxy says of itself when it connects. Every proxy takes WebRTC; its answers to offers hold the address.
 * `rateBytesPerSec` 0 means unlimited.
 */
export const ProxyHello = z
  .object({
    name: label(SCHEMA_LIMITS.nameChars),
    url: plainUrl(SCHEMA_LIMITS.proxyUrlChars),
    version: label(64),
    engine: label(64),
    udpPort: count.max(65_535),
    webTransport: WebTransportAddress.optional(),
    udp: UdpAddress.optional(),
    rateBytesPerSec: finite,
    startedAtMs: epochMs,
    /** Degrees. */
    place: Place.optional(),
    /** Who runs the proxy. */
    operator: label(SCHEMA_LIMITS.nameChars).optional(),
    /** The most sessions at once. */
    capacity: count.optional(),
  })
  .strict();
export type ProxyHello = z.infer<typeof ProxyHello>;

/**
 * Second part of a proxy's hello: who it is. `publicKey` is its Ed25519 key and `signature` covers `proofText` of the
 * challenge that Origo sent on this connection, both in base64url. A new key needs a one-time code.
 */
export const ProxyProof = z
  .object({ publicKey: z.string().length(43), signature: z.string().length(86), code: z.string().max(256).optional() })
  .strict();
export type ProxyProof = z.infer<typeof ProxyProof>;

/** What a proxy signs. The prefix keeps the signature from meaning anything elsewhere. */
export const proofText = (challenge: string): Uint8Array => new TextEncoder().encode(`tributary-proxy:${challenge}`);

/** One kind of a proxy's errors. The message is left out, because it could tell what a client watches. */
export const ProxyError = z.object({ kind: label(SCHEMA_LIMITS.kindChars), count, ageMs: finite }).strict();
export type ProxyError = z.infer<typeof ProxyError>;

/** How a proxy makes coded packets. The symbols, shed tasks and lost coders count up from its start. */
const CoderStatus = z
  .object({
    /** The names of the coders that take tasks. */
    coders: z.array(z.string().max(32)).max(8),
    /** Tasks that wait for a coder. */
    waitingTasks: count,
    /** Tasks that were refused because the queue was full. */
    shedTasks: count,
    lostCoders: count,
    /** Coded symbols that were made on the event loop, that coders made, and that went to clients. */
    inlineSymbols: count,
    serviceSymbols: count,
    sentSymbols: count,
    /** The mean time of each stage that was timed. */
    stageMs: z.object({ queueing: finite, input: finite, coding: finite, sending: finite }).partial().strict(),
  })
  .strict();

/** A proxy's library in its status report. `servedBytes`, `takenBytes` and `damagedObjects` count up from its start. */
export const LibraryStatus = z
  .object({
    objects: count,
    bytes: count,
    freeBytes: count,
    servedBytes: count,
    takenBytes: count,
    damagedObjects: count,
  })
  .strict();
export type LibraryStatus = z.infer<typeof LibraryStatus>;

/**
 * A proxy's report, sent every `proxy.heartbeatMs`. The numbers count up from its start, except sessions,
 * activeRequests, cacheBytes and load.
 */
export const ProxyStatus = z
  .object({
    sessions: count,
    activeRequests: count,
    sentBytes: count,
    sentPackets: count,
    originBytes: count,
    cacheBytes: count,
    cacheHits: count,
    errors: count,
    /** The latest error of each kind, newest first. */
    latestErrors: z.array(ProxyError).max(SCHEMA_LIMITS.proxyErrorKinds).optional(),
    /** Messages of clients that were no frames, that only a proxy may send, or that were not read (threat-model.md). */
    rejectedMessages: count,
    uptimeMs: finite,
    /** The largest of three shares: of its rate that it sends, of its sessions, of the time its event loop is busy. */
    load: finite.optional(),
    /**
     * The reading that it shares: body bytes from peers and to them, stretches that it read in a peer's place, and
     * peers that a client named and Origo did not.
     */
    sharing: z
      .object({ fromPeersBytes: count, toPeersBytes: count, readInstead: count, refusedPeers: count })
      .strict()
      .optional(),
    /** How it makes coded packets. */
    coder: CoderStatus.optional(),
    /** Absent if it has no library. */
    library: LibraryStatus.optional(),
  })
  .strict();
export type ProxyStatus = z.infer<typeof ProxyStatus>;

/**
 * Claims of the token in ProxiesResponse (JWT, RFC 7519, EdDSA). The client `sub` may use the proxies `aud`, up to
 * `bytes` from each of them.
 */
export const TokenClaims = z
  .object({
    iss: z.literal("origo"),
    sub: label(SCHEMA_LIMITS.idChars),
    aud: z.array(label(SCHEMA_LIMITS.idChars)).max(2 * SCHEMA_LIMITS.proxiesPerList),
    jti: label(SCHEMA_LIMITS.idChars),
    bytes: count,
    iat: count,
    exp: count,
  })
  .strict();
export type TokenClaims = z.infer<typeof TokenClaims>;

/**
 * What Origo tells a proxy after its hello and after each change, as the event "control". `values` are the settings of
 * scope proxy that differ from the defaults.
 */
export const ProxyControl = z
  .object({
    draining: z.boolean(),
    version: count,
    values: z.record(z.string(), z.union([z.number().finite(), z.boolean(), z.string()])),
    /** Public keys that verify tokens, by id: Ed25519, SPKI, PEM. */
    keys: z.record(z.string(), z.string()),
    /** Origo's clock. Tokens expire by it. */
    nowMs: epochMs,
  })
  .strict();
export type ProxyControl = z.infer<typeof ProxyControl>;

/** A proxy asks by the event "peers" where other proxies of its fleet are: live ones of the same operator. */
export const PeersRequest = z.array(label(SCHEMA_LIMITS.idChars)).max(SCHEMA_LIMITS.proxiesPerList);
/** The URLs by id. A proxy that is not of the fleet is left out. */
export const PeersAnswer = z
  .object({ urls: z.record(label(SCHEMA_LIMITS.idChars), plainUrl(SCHEMA_LIMITS.proxyUrlChars)) })
  .strict();
export type PeersAnswer = z.infer<typeof PeersAnswer>;

/** Answer to "hello" and "status" over socket.io. */
export type ProxyAck = { id: string } | { error: ApiError };

/** What carries a session's datagrams. */
export const TransportName = z.enum(TRANSPORTS);
export type TransportName = z.infer<typeof TransportName>;

export const Mode = z.enum(MODES);
export type Mode = z.infer<typeof Mode>;

/** A kind that this version does not know becomes `unknown`, and the message keeps it (rejections.ts). */
function knownKind<T extends { kind: string; message: string }>(value: T): T & { kind: RejectionKind } {
  const { kind, message } = rejectionOf(value.kind, value.message);
  // The cut can leave half of a surrogate pair at the end, which PostgreSQL cannot hold.
  return { ...value, kind, message: message.slice(0, SCHEMA_LIMITS.messageChars).replace(/\p{Cs}$/u, "\uFFFD") };
}

const rejectionShape = { kind: label(SCHEMA_LIMITS.kindChars), message: text(SCHEMA_LIMITS.messageChars) };
export const RecordedRejection = z.object(rejectionShape).strict().transform(knownKind);
export type RecordedRejection = z.output<typeof RecordedRejection>;

/** One proxy's part in a download. Each packet is counted once: packets = innovative + duplicate + late + rejected. */
export const RecordProxy = z
  .object({
    id: label(SCHEMA_LIMITS.idChars),
    name: label(SCHEMA_LIMITS.nameChars).optional(),
    bytes: count,
    packets: count,
    innovative: count,
    duplicate: count,
    late: count,
    rejected: count,
    lost: count,
    rttMs: finite.nullable(),
    /** Absent if the download had no session to this proxy. */
    transport: TransportName.optional(),
    state: z.enum(["used", "failed"]),
    error: RecordedRejection.optional(),
  })
  .strict()
  .superRefine((proxy, context) => {
    const sum = proxy.innovative + proxy.duplicate + proxy.late + proxy.rejected;
    if (sum !== proxy.packets) {
      const message = `must equal innovative + duplicate + late + rejected, got ${proxy.packets}, the sum is ${sum}`;
      context.addIssue({ code: z.ZodIssueCode.custom, path: ["packets"], message });
    }
  });
export type RecordProxy = z.infer<typeof RecordProxy>;

/** Both ends are inclusive, as in HTTP. */
const ByteRange = z
  .object({ start: count, end: count })
  .strict()
  .refine((range) => range.start <= range.end, { message: "start must not be after end", path: ["start"] });

/** `id` names the experiment, and `arm` its arm. */
export const DrawnArm = z.object({ id: label(SCHEMA_LIMITS.idChars), arm: label(SCHEMA_LIMITS.nameChars) }).strict();
export type DrawnArm = z.infer<typeof DrawnArm>;

/** What a client sends of a field. */
function valueOf(field: RecordField): z.ZodTypeAny {
  const { max = Number.MAX_SAFE_INTEGER } = field;
  switch (field.type) {
    case "uuid":
      return uuid;
    case "sha256":
      return sha256;
    case "url":
      return plainUrl(max);
    case "text":
      return text(max);
    case "label":
      return label(max);
    case "choice":
      return z.enum((field.values ?? []) as [string, ...string[]]);
    case "count":
      return (field.min === undefined ? count : count.min(field.min)).max(max);
    case "number":
      return finite;
    case "time":
      return epochMs;
  }
}

const plainShape = Object.fromEntries(
  recordFields
    .filter(([, { record }]) => record !== undefined)
    .map(([name, field]) => {
      const value = valueOf(field);
      if (field.record === "optional") return [name, value.optional()];
      return [name, field.record === "nullable" ? value.nullable() : value];
    }),
);

/** The parts of a record that are objects or lists. */
const structured = {
  range: ByteRange.optional(),
  error: RecordedRejection.optional(),
  fallback: z
    .object({ ...rejectionShape, bytes: count })
    .strict()
    .transform(knownKind)
    .nullable(),
  /** The arm that the download drew of each experiment that was running. */
  experiments: listOf(DrawnArm, SCHEMA_LIMITS.experimentsPerRecord).optional(),
  proxies: listOf(RecordProxy, SCHEMA_LIMITS.proxiesPerRecord),
};
type Structured = z.output<z.ZodObject<typeof structured>>;

/**
 * One download as its client saw it. docs/spec/records.md describes every field. Throughput, goodput and their ratio
 * are what the client shows to its user. Origo computes its own from bytes and time.
 */
export type DownloadRecord = PlainRecord & Structured;
export const DownloadRecord = z.object({ ...plainShape, ...structured }).strict() as unknown as z.ZodType<
  DownloadRecord,
  z.ZodTypeDef,
  unknown
>;

/** An error that a client or a proxy reports. It need not belong to a download. */
export const ErrorReport = z
  .object({
    id: uuid,
    clientId: uuid.optional(),
    atMs: epochMs,
    source: z.enum([...SOURCES, "proxy"]),
    ...rejectionShape,
    url: plainUrl(SCHEMA_LIMITS.urlChars).optional(),
    /** What followed: the download fetched the rest directly. */
    ledTo: z.enum(["fallback"]).optional(),
    /** The id of a proxy that lied about a published object, as the client says. Origo counts it and keeps no more. */
    accused: label(SCHEMA_LIMITS.idChars).optional(),
  })
  .strict()
  .transform(knownKind);
export type ErrorReport = z.infer<typeof ErrorReport>;

/** Body of POST /v1/records. */
export const RecordsRequest = z
  .object({ records: listOf(DownloadRecord, SCHEMA_LIMITS.recordsPerRequest, 1) })
  .strict();
export type RecordsRequest = z.infer<typeof RecordsRequest>;

/** Body of POST /v1/errors. */
export const ErrorsRequest = z.object({ errors: listOf(ErrorReport, SCHEMA_LIMITS.errorsPerRequest, 1) }).strict();
export type ErrorsRequest = z.infer<typeof ErrorsRequest>;

/** Answer of both POSTs (202): how many Origo stored now, and how many it had already. */
export const IntakeResponse = z.object({ accepted: count, duplicate: count }).strict();
export type IntakeResponse = z.infer<typeof IntakeResponse>;

/** A proxy as a client sees it. */
export const ListedProxy = z
  .object({
    id: label(SCHEMA_LIMITS.idChars),
    name: label(SCHEMA_LIMITS.nameChars),
    url: plainUrl(SCHEMA_LIMITS.proxyUrlChars),
    webTransport: WebTransportAddress.optional(),
    udp: UdpAddress.optional(),
    /** Who runs the proxy, as it says. */
    operator: label(SCHEMA_LIMITS.nameChars).optional(),
  })
  .strict();
export type ListedProxy = z.infer<typeof ListedProxy>;

/**
 * Answer of GET /v1/proxies. `token` is a JWT that opens these proxies to this client for a while (TokenClaims).
 * `network` is the first 24 bits of the client's address (IPv6: 48). The client keeps what it remembers of one network
 * apart from what it remembers of another.
 */
export const ProxiesResponse = z
  .object({
    proxies: z.array(ListedProxy).max(SCHEMA_LIMITS.proxiesPerList),
    token: z.string().optional(),
    network: label(64).optional(),
  })
  .strict();
export type ProxiesResponse = z.infer<typeof ProxiesResponse>;

/**
 * A live proxy as the dashboard sees it. `status` is null until the first report. The rates are bytes per second
 * between the last two reports, and null until the second report.
 */
export const FleetProxy = ProxyHello.extend({
  id: label(SCHEMA_LIMITS.idChars),
  connectedAtMs: epochMs,
  lastSeenMs: epochMs,
  status: ProxyStatus.nullable(),
  sentBytesPerSec: finite.nullable(),
  originBytesPerSec: finite.nullable(),
  /** Clients are not told of a draining or disabled proxy. A draining proxy also takes no new requests. */
  state: z.enum(["live", "draining", "disabled"]),
  /** In how many networks clients have shown, within a day, false packets that it sent. Absent if in none. */
  convictedBy: count.optional(),
  /** In how many networks clients have said, within a day, that it lied about a published object. Proves nothing. */
  hintedBy: count.optional(),
  /** Origo itself disabled it, for these packets. Absent if it did not. */
  disabledFor: z.literal("convictions").optional(),
});
export type FleetProxy = z.infer<typeof FleetProxy>;

/** Answer of GET /v1/fleet. `nowMs` is Origo's clock, which `lastSeenMs` comes from. */
export const FleetResponse = z.object({ nowMs: epochMs, proxies: z.array(FleetProxy) }).strict();
export type FleetResponse = z.infer<typeof FleetResponse>;

/** Answer of GET /v1/records, newest first. `next` is the `before` of the next page, null on the last one. */
export const RecordsResponse = z
  .object({ records: z.array(DownloadRecord).max(SCHEMA_LIMITS.recordsPerPage), next: uuid.nullable() })
  .strict();
export type RecordsResponse = z.infer<typeof RecordsResponse>;

/** Answer of GET /v1/errors, newest first, in pages like RecordsResponse. */
export const ErrorsResponse = z
  .object({ errors: z.array(ErrorReport).max(SCHEMA_LIMITS.recordsPerPage), next: uuid.nullable() })
  .strict();
export type ErrorsResponse = z.infer<typeof ErrorsResponse>;

/** Answer of GET /v1/site-rules, open to any origin: it tells the extension which addresses are media (`carried`). */
export const SiteRules = z
  .object({
    rules: z
      .array(
        z
          .object({
            host: z
              .string()
              .max(253)
              .regex(/^(?:\*|(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*)$/, "must be a host, *. before a domain, or *"),
            path: z.string().max(256).startsWith("/"),
            carried: z.boolean(),
          })
          .strict(),
      )
      .max(100),
  })
  .strict();
export type SiteRules = z.infer<typeof SiteRules>;
