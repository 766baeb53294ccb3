/**
 * The fields of a download's record: the one table that the message schema, Origo's row and columns, the fields of
 * queries and docs/spec/records.md come from. A new field is a row here and the line that fills it: in the client
 * (client/src) if the record has it, in origo/src/store/record-row.ts if Origo computes it. A field that queries
 * compute from columns is a row of derived-fields.ts and needs no other line.
 */
import { DERIVED_FIELDS } from "./derived-fields";
import { MODES, REJECTION_KINDS, TRANSPORTS } from "./index";
import { SCHEMA_LIMITS as L } from "./message-limits";
import type { RecordField } from "./record-field";

export type { FieldType, RecordField } from "./record-field";

export const SOURCES = ["extension", "cli", "library"] as const;
export const OUTCOMES = ["complete", "failed", "aborted"] as const;
/** Who says that the bytes are true, the weakest first. */
export const VOUCHERS = ["nobody", "agreement", "site", "publisher"] as const;
export type Voucher = (typeof VOUCHERS)[number];
export const PURPOSES = ["request", "comparison"] as const;

export const RECORD_FIELDS = {
  id: {
    label: "Download",
    type: "uuid",
    record: "required",
    help: "The client chooses it. A record that comes twice counts once.",
  },
  clientId: {
    label: "Client",
    type: "uuid",
    record: "required",
    help: "Anonymous. The client draws it when it is installed.",
  },
  receivedAtMs: {
    label: "Received",
    type: "time",
    unit: "ms",
    computed: true,
    help: "When Origo stored the record, by Origo's clock.",
  },
  startedAtMs: {
    label: "Started",
    type: "time",
    unit: "ms",
    record: "required",
    help: "When the download began, by the client's clock.",
  },
  source: { label: "Source", type: "choice", values: SOURCES, record: "required", help: "What made the download." },
  purpose: {
    label: "Purpose",
    type: "choice",
    values: PURPOSES,
    record: "optional",
    help:
      "What the download was for: a request, or a comparison of the proxies' answer with the site's, which no page " +
      "gets.",
  },
  clientVersion: {
    label: "Client version",
    type: "label",
    max: 64,
    record: "optional",
    help: "Version of the extension or library.",
  },
  agent: {
    label: "Browser",
    type: "label",
    max: 64,
    record: "optional",
    help: "Family and major version of the browser or runtime.",
  },
  os: { label: "System", type: "label", max: 64, record: "optional", help: "Family of the operating system." },
  player: {
    label: "Player",
    type: "label",
    max: 64,
    record: "optional",
    help: "The video player that asked, if the page names it: hls.js, dash.js, shaka or video.js.",
  },
  configVersion: {
    label: "Configuration",
    type: "count",
    record: "optional",
    help: "Version of the configuration that the client had.",
  },
  experiments: {
    label: "Experiments",
    type: "text",
    computed: true,
    help: "Each experiment that the download took part in, with the arm that it drew.",
  },
  comment: {
    label: "Comment",
    type: "text",
    max: L.commentChars,
    record: "optional",
    help: "What the program that asked wrote.",
  },
  userComment: {
    label: "Viewer's comment",
    type: "text",
    max: L.commentChars,
    record: "optional",
    help: "What the viewer wrote in the extension's popup.",
  },
  url: {
    label: "URL",
    type: "url",
    max: L.urlChars,
    record: "required",
    help: "The address, without query string and fragment.",
  },
  contentType: {
    label: "Content type",
    type: "text",
    max: 128,
    record: "optional",
    help: "Media type of the origin's answer.",
  },
  rangeStart: {
    label: "Range start",
    type: "count",
    unit: "B",
    path: ["range", "start"],
    help: "First byte that was asked for; empty if the whole resource was.",
  },
  rangeEnd: {
    label: "Range end",
    type: "count",
    unit: "B",
    path: ["range", "end"],
    help: "Last byte that was asked for; empty if the whole resource was.",
  },
  status: {
    label: "Status",
    type: "count",
    max: 599,
    record: "required",
    help: "HTTP status of the origin's answer; 0 if there was none.",
  },
  totalBytes: {
    label: "Announced",
    type: "count",
    unit: "B",
    record: "optional",
    help: "Length of the body as the origin announced it.",
  },
  sha256: {
    label: "SHA-256",
    type: "sha256",
    record: "nullable",
    help: "Digest of the delivered bytes of a complete download; empty if the page fetched some itself.",
  },
  mode: { label: "Mode", type: "choice", values: MODES, record: "required", help: "How the download was made." },
  connections: {
    label: "Connections",
    type: "count",
    max: L.connections,
    record: "required",
    help: "Proxies that the client asked for (the paper's N).",
  },
  generationSize: {
    label: "Generation",
    type: "count",
    unit: "packets",
    min: 1,
    max: 256,
    record: "optional",
    help: "Packets coded together (the paper's g).",
  },
  windowPackets: {
    label: "Window",
    type: "count",
    unit: "packets",
    min: 1,
    max: 65_536,
    record: "optional",
    help: "Window (the paper's w).",
  },
  symbolBytes: {
    label: "Symbol",
    type: "count",
    unit: "B",
    min: 1,
    max: 65_536,
    record: "optional",
    help: "Payload of one packet.",
  },
  feedbackEveryPackets: {
    label: "Feedback packets",
    type: "count",
    unit: "packets",
    min: 1,
    max: 65_536,
    record: "optional",
    help: "The client sends feedback after this many packets.",
  },
  feedbackEveryMs: {
    label: "Feedback time",
    type: "number",
    unit: "ms",
    record: "optional",
    help: "The client sends feedback after this time at the latest.",
  },
  engine: {
    label: "Codec engine",
    type: "label",
    max: 64,
    record: "optional",
    help: "The codec that decoded, e.g. wasm/simd128.",
  },
  outcome: { label: "Outcome", type: "choice", values: OUTCOMES, record: "required", help: "How the download ended." },
  errorKind: {
    label: "Error",
    type: "choice",
    values: REJECTION_KINDS,
    path: ["error", "kind"],
    help: "Kind of the error that ended the download.",
  },
  errorMessage: {
    label: "Error message",
    type: "text",
    max: L.messageChars,
    path: ["error", "message"],
    help: "The error in words.",
  },
  fallbackKind: {
    label: "Fallback",
    type: "choice",
    values: REJECTION_KINDS,
    path: ["fallback", "kind"],
    help:
      "Why the client or the page fetched the rest, or all, directly. Two kinds are no fault of the proxies: with " +
      "`siteFirst` the site answered before them, with `notShown` the page may not have their answer. A request that " +
      "the page gave up is aborted and has no kind.",
  },
  fallbackMessage: {
    label: "Fallback message",
    type: "text",
    max: L.messageChars,
    path: ["fallback", "message"],
    help: "Why the client or the page fetched the rest directly, in words.",
  },
  fallbackBytes: {
    label: "Fallback bytes",
    type: "count",
    unit: "B",
    path: ["fallback", "bytes"],
    help:
      "Bytes that the client or the page fetched directly. A page says its own: 0 for a `fetch` that it aborted in " +
      "the middle.",
  },
  durationMs: {
    label: "Duration",
    type: "number",
    unit: "ms",
    record: "required",
    help: "From the request to the last byte delivered.",
  },
  connectMs: {
    label: "Connected",
    type: "number",
    unit: "ms",
    record: "optional",
    help: "Until the first session to a proxy was open.",
  },
  headMs: {
    label: "Head",
    type: "number",
    unit: "ms",
    record: "optional",
    help: "Until the origin's status and headers were known.",
  },
  firstByteMs: {
    label: "First byte",
    type: "number",
    unit: "ms",
    record: "required",
    help: "Until the first byte was delivered.",
  },
  firstPacketMs: {
    label: "First packet",
    type: "number",
    unit: "ms",
    record: "optional",
    help: "Until the first packet arrived.",
  },
  serverFetchMs: {
    label: "Server fetch",
    type: "number",
    unit: "ms",
    record: "required",
    help: "Until the proxy had the origin's answer, as the proxy says.",
  },
  closeMs: {
    label: "Closing",
    type: "number",
    unit: "ms",
    record: "optional",
    help: "From the last byte delivered until the last late packet was counted.",
  },
  netBytes: { label: "Net", type: "count", unit: "B", record: "required", help: "Bytes delivered to the caller." },
  grossBytes: {
    label: "Gross",
    type: "count",
    unit: "B",
    record: "required",
    help: "Bytes received from proxies and origin, with the headers of packets.",
  },
  directBytes: {
    label: "Direct",
    type: "count",
    unit: "B",
    record: "optional",
    help: "Bytes received from the origin directly.",
  },
  generationCount: {
    label: "Generations",
    type: "count",
    record: "optional",
    help: "Generations that the body was cut into.",
  },
  symbolCount: {
    label: "Symbols",
    type: "count",
    record: "optional",
    help: "Packets that an ideal code would have needed.",
  },
  feedbackFrames: {
    label: "Feedback frames",
    type: "count",
    record: "optional",
    help: "Feedback frames sent to all proxies.",
  },
  proxiesUsed: { label: "Proxies", type: "count", computed: true, help: "Proxies that took part." },
  proxiesFailed: { label: "Failed proxies", type: "count", computed: true, help: "Proxies that failed on the way." },
  packets: {
    label: "Packets",
    type: "count",
    summed: true,
    help: "Packets received: innovative, duplicate, late and rejected ones.",
  },
  innovative: { label: "Innovative", type: "count", summed: true, help: "Packets that raised the rank." },
  duplicate: { label: "Duplicate", type: "count", summed: true, help: "Packets that added nothing." },
  late: {
    label: "Late",
    type: "count",
    summed: true,
    help: "Packets that came after their generation, or the download, was complete.",
  },
  rejected: {
    label: "Rejected",
    type: "count",
    summed: true,
    help: "Packets that broke the protocol or failed a check.",
  },
  lost: {
    label: "Lost",
    type: "count",
    summed: true,
    help: "Packets that were sent and never arrived, by their sequence numbers.",
  },
  rttMsMin: {
    label: "Least RTT",
    type: "number",
    unit: "ms",
    computed: true,
    help: "Round trip to the nearest proxy.",
  },
  transport: {
    label: "Transport",
    type: "choice",
    values: [...TRANSPORTS, "http", "mixed"],
    computed: true,
    help: "What carried the packets; mixed if the proxies differ.",
  },
  proxies: { label: "By proxy", type: "text", computed: true, help: "The counts of each proxy, as JSON." },
  vouchedBy: {
    label: "Vouched by",
    type: "choice",
    values: VOUCHERS,
    record: "optional",
    help:
      "Who says that the bytes are true: the publisher's signature, the site (it sent the bytes, those that were " +
      "delivered are equal to its own, or they have the digests that it published), proxies of two operators that " +
      "agree, or nobody. If parts differ, the weakest counts.",
  },
  ...DERIVED_FIELDS,
} as const satisfies Record<string, RecordField>;

type Fields = typeof RECORD_FIELDS;
export type FieldName = keyof Fields;

/** By name, in the order of columns and pages. */
export const recordFields = Object.entries(RECORD_FIELDS) as readonly (readonly [FieldName, RecordField])[];

type ValueOf<F> = F extends { values: readonly (infer V)[] }
  ? V
  : F extends { type: "count" | "number" | "time" }
    ? number
    : string;
type Named<How> = { [K in FieldName as Fields[K] extends How ? K : never]: ValueOf<Fields[K]> };
type Optional = Named<{ record: "optional" }>;
type Nullable = Named<{ record: "nullable" }>;

/** The part of a record that the table describes in full. */
export type PlainRecord = Named<{ record: "required" }> & { [K in keyof Optional]?: Optional[K] | undefined } & {
  [K in keyof Nullable]: Nullable[K] | null;
};
export type SummedField = keyof Named<{ summed: true }>;
export type ComputedField = keyof Named<{ computed: true }>;
