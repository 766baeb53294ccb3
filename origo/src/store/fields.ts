/**
 * Fields: the characteristics of a download that can be shown, filtered, charted and exported, each with its SQL. A
 * basic one is a column; a derived one an expression over columns, the same text for both databases. What a client says
 * of a derived one is not kept: it is computed from the basic ones, so that the two never disagree. The list is the
 * paper's 58 basic and 14 derived characteristics in our words (docs/spec/records.md); the 58th basic one, the arrival of
 * each packet, is a table of its own.
 */
import { REJECTION_KINDS } from "@tributary/contract";
import type { Field } from "@tributary/contract/query-schema";
import { Mode } from "@tributary/contract/schema";
import type { Column } from "./database";

export interface StoredField extends Field {
  /** Over the columns of `downloads`. Written here, never made from what was asked. */
  sql: string;
}

type BasicRow = readonly [
  name: string,
  label: string,
  kind: Column["kind"],
  unit: string | null,
  help: string,
  values?: readonly string[],
];

const BASIC: readonly BasicRow[] = [
  ["id", "Download", "uuid", null, "Chosen by the client; a record that comes twice counts once."],
  ["clientId", "Client", "uuid", null, "Anonymous; drawn when the client was installed."],
  ["receivedAtMs", "Received", "time", "ms", "When Origo stored the record, by its own clock."],
  ["startedAtMs", "Started", "time", "ms", "When the download began, by the client's clock."],
  ["source", "Source", "text", null, "What made the download.", ["extension", "cli", "library"]],
  ["clientVersion", "Client version", "text", null, "Version of the extension or library."],
  ["agent", "Browser", "text", null, "Family and major version of the browser or runtime."],
  ["os", "System", "text", null, "Family of the operating system."],
  ["player", "Player", "text", null, "The video player that asked, where it is known."],
  ["configVersion", "Configuration", "whole", null, "Version of the configuration that the client had."],
  ["experiments", "Experiments", "text", null, "Each experiment that the download took part in, with the arm it drew."],
  ["comment", "Comment", "text", null, "What the researcher's program wrote."],
  ["userComment", "Viewer's comment", "text", null, "What the viewer wrote."],
  ["url", "URL", "text", null, "Without query string and fragment."],
  ["contentType", "Content type", "text", null, "Media type of the origin's answer."],
  ["rangeStart", "Range start", "whole", "B", "First byte asked for; empty for the whole."],
  ["rangeEnd", "Range end", "whole", "B", "Last byte asked for."],
  ["status", "Status", "whole", null, "HTTP status of the origin's answer; 0 for none."],
  ["totalBytes", "Announced", "whole", "B", "Length of the body as the origin announced it."],
  ["sha256", "SHA-256", "text", null, "Of the delivered bytes of a complete download."],
  ["mode", "Mode", "text", null, "How the download was made.", Mode.options],
  ["connections", "Connections", "whole", null, "Proxies asked for (the paper's N)."],
  ["generationSize", "Generation", "whole", "packets", "Packets coded together (the paper's g)."],
  ["windowPackets", "Window", "whole", "packets", "The paper's w."],
  ["symbolBytes", "Symbol", "whole", "B", "Payload of one packet."],
  ["feedbackEveryPackets", "Feedback packets", "whole", "packets", "Feedback is sent after this many packets."],
  ["feedbackEveryMs", "Feedback time", "real", "ms", "Feedback is sent at latest after this time."],
  ["engine", "Codec engine", "text", null, "What decoded, e.g. wasm/simd128."],
  ["outcome", "Outcome", "text", null, "How the download ended.", ["complete", "failed", "aborted"]],
  ["errorKind", "Error", "text", null, "Kind of the error that ended it.", REJECTION_KINDS],
  ["errorMessage", "Error message", "text", null, "The error in words."],
  ["fallbackKind", "Fallback", "text", null, "Why the client fetched the rest directly, as a kind.", REJECTION_KINDS],
  ["fallbackMessage", "Fallback message", "text", null, "Why the client fetched the rest directly, in words."],
  ["fallbackBytes", "Fallback bytes", "whole", "B", "Fetched from the origin after the fallback."],
  ["durationMs", "Duration", "real", "ms", "From the request to the last byte delivered."],
  ["connectMs", "Connected", "real", "ms", "Until the first session to a proxy was open."],
  ["headMs", "Head", "real", "ms", "Until the origin's status and headers were known."],
  ["firstByteMs", "First byte", "real", "ms", "Until the first byte was delivered."],
  ["firstPacketMs", "First packet", "real", "ms", "Until the first packet arrived."],
  ["serverFetchMs", "Server fetch", "real", "ms", "Until the proxy had the origin's answer, as it says."],
  ["closeMs", "Closing", "real", "ms", "From the last byte delivered until the last late packet was counted."],
  ["netBytes", "Net", "whole", "B", "Delivered to the caller."],
  ["grossBytes", "Gross", "whole", "B", "Received from proxies and origin, headers of packets included."],
  ["directBytes", "Direct", "whole", "B", "Received from the origin itself."],
  ["generationCount", "Generations", "whole", null, "Generations that the body was cut into."],
  ["symbolCount", "Symbols", "whole", null, "Packets that an ideal code would have needed."],
  ["feedbackFrames", "Feedback frames", "whole", null, "Sent to all proxies."],
  ["proxiesUsed", "Proxies", "whole", null, "Proxies that took part."],
  ["proxiesFailed", "Failed proxies", "whole", null, "Proxies that failed on the way."],
  ["packets", "Packets", "whole", null, "Received; innovative + duplicate + late + rejected."],
  ["innovative", "Innovative", "whole", null, "Packets that raised the rank."],
  ["duplicate", "Duplicate", "whole", null, "Packets in vain: they added nothing."],
  ["late", "Late", "whole", null, "Packets after their generation, or the download, was complete."],
  ["rejected", "Rejected", "whole", null, "Packets that broke the protocol or failed a check."],
  ["lost", "Lost", "whole", null, "Packets that were sent and never came, by their numbers."],
  ["rttMsMin", "Least RTT", "real", "ms", "Round trip to the nearest proxy."],
  [
    "transport",
    "Transport",
    "text",
    null,
    "What carried the packets; mixed when proxies differ.",
    ["webtransport", "webrtc", "udp", "http", "mixed"],
  ],
  ["proxies", "By proxy", "text", null, "The counts of each proxy, as JSON."],
];

const ratio = (over: string, under: string): string => `${over}::DOUBLE PRECISION / NULLIF(${under}, 0)`;
const AFTER_FETCH = "GREATEST(duration_ms - server_fetch_ms, 0)";
const SIZE_CLASSES = [
  "0 - 0.25 MB",
  "0.25 - 0.5 MB",
  "0.5 - 1 MB",
  "1 - 2 MB",
  "2 - 3 MB",
  "3 - 5 MB",
  "5 MB and more",
] as const;
const SIZE_CLASS = `CASE WHEN net_bytes < 250000 THEN '${SIZE_CLASSES[0]}' WHEN net_bytes < 500000 THEN '${SIZE_CLASSES[1]}'
  WHEN net_bytes < 1000000 THEN '${SIZE_CLASSES[2]}' WHEN net_bytes < 2000000 THEN '${SIZE_CLASSES[3]}'
  WHEN net_bytes < 3000000 THEN '${SIZE_CLASSES[4]}' WHEN net_bytes < 5000000 THEN '${SIZE_CLASSES[5]}' ELSE '${SIZE_CLASSES[6]}' END`;

type DerivedRow = readonly [
  name: string,
  label: string,
  type: "number" | "text",
  unit: string | null,
  help: string,
  sql: string,
  values?: readonly string[],
];

const DERIVED: readonly DerivedRow[] = [
  [
    "throughputBytesPerSec",
    "Throughput",
    "number",
    "B/s",
    "Gross bytes over duration (equation 2 of the paper).",
    ratio("gross_bytes * 1000", "duration_ms"),
  ],
  [
    "goodputBytesPerSec",
    "Goodput",
    "number",
    "B/s",
    "Net bytes over duration (equation 2 of the paper).",
    ratio("net_bytes * 1000", "duration_ms"),
  ],
  [
    "normalizedGoodput",
    "Normalized goodput",
    "number",
    null,
    "Goodput over throughput (equation 2 of the paper).",
    ratio("net_bytes", "gross_bytes"),
  ],
  ["redundantBytes", "Redundant", "number", "B", "Gross less net bytes.", "gross_bytes - net_bytes"],
  ["duplicateShare", "Duplicate share", "number", null, "Packets in vain over packets.", ratio("duplicate", "packets")],
  ["lateShare", "Late share", "number", null, "Late packets over packets.", ratio("late", "packets")],
  ["lossShare", "Loss", "number", null, "Lost packets over those sent.", ratio("lost", "(lost + packets)")],
  ["transferMs", "Transfer", "number", "ms", "Duration less server fetch.", AFTER_FETCH],
  [
    "goodputAfterFetchBytesPerSec",
    "Goodput after fetch",
    "number",
    "B/s",
    "Net bytes over transfer time (the paper's speed without server).",
    ratio("net_bytes * 1000", AFTER_FETCH),
  ],
  [
    "goodputPerProxyBytesPerSec",
    "Goodput per proxy",
    "number",
    "B/s",
    "Goodput over the proxies that took part.",
    ratio("net_bytes * 1000", "(duration_ms * proxies_used)"),
  ],
  [
    "packetsPerFeedback",
    "Packets per feedback",
    "number",
    null,
    "Packets over feedback frames.",
    ratio("packets", "feedback_frames"),
  ],
  [
    "directShare",
    "Direct share",
    "number",
    null,
    "Direct bytes over gross bytes.",
    ratio("direct_bytes", "gross_bytes"),
  ],
  ["host", "Host", "text", null, "Of the URL.", "split_part(url, '/', 3)"],
  [
    "sizeClass",
    "Size class",
    "text",
    null,
    "Net bytes in the classes that the paper compares.",
    SIZE_CLASS,
    SIZE_CLASSES,
  ],
];

const columnOf = (name: string): string => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);

const REQUIRED = new Set(["id", "clientId", "receivedAtMs", "startedAtMs", "proxies"]);
const ERRORS_REQUIRED = new Set(["id", "receivedAtMs", "atMs"]);

export const COLUMNS: readonly Column[] = BASIC.map(([name, , kind]) => ({
  name,
  column: columnOf(name),
  kind,
  required: REQUIRED.has(name),
}));

/** Of the table `errors`. */
export const ERROR_COLUMNS: readonly Column[] = (
  [
    "id:uuid",
    "receivedAtMs:real",
    "clientId:uuid",
    "atMs:real",
    "source:text",
    "kind:text",
    "message:text",
    "url:text",
    "ledTo:text",
  ] as const
)
  .map((each) => each.split(":") as [string, Column["kind"]])
  .map(([name, kind]) => ({ name, column: columnOf(name), kind, required: ERRORS_REQUIRED.has(name) }));

const TYPES = { text: "text", uuid: "text", whole: "number", real: "number", time: "time" } as const;

export const FIELDS: readonly StoredField[] = [
  ...BASIC.map(([name, label, kind, unit, help, values]): StoredField => ({
    name,
    label,
    type: TYPES[kind],
    unit,
    origin: "basic",
    help,
    ...(values ? { values: [...values] } : {}),
    sql: kind === "uuid" ? `${columnOf(name)}::VARCHAR` : columnOf(name),
  })),
  ...DERIVED.map(([name, label, type, unit, help, sql, values]): StoredField => ({
    name,
    label,
    type,
    unit,
    origin: "derived",
    help,
    ...(values ? { values: [...values] } : {}),
    sql: `(${sql})`,
  })),
];

const BY_NAME = new Map(FIELDS.map((field) => [field.name, field]));

/** Between experiments in the column of that name, which begins and ends with it: a character that no name needs. */
export const ARM_SEPARATOR = "\u001f";
const ARM_FIELD = /^arm:([A-Za-z0-9_-]{1,64})$/;

/**
 * Besides the list there is `arm:ID`, the arm that a download drew of the experiment ID, empty where it took no part.
 */
export function fieldOf(name: string): StoredField | undefined {
  const id = ARM_FIELD.exec(name)?.[1];
  if (id === undefined) return BY_NAME.get(name);
  const sql = `NULLIF(split_part(split_part(experiments, chr(31) || '${id}=', 2), chr(31), 1), '')`;
  return {
    name,
    label: "Arm",
    type: "text",
    unit: null,
    origin: "basic",
    help: "The arm that the download drew of this experiment.",
    sql,
  };
}
