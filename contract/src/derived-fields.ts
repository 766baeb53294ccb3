/**
 * The fields of a download that no column holds: queries compute them from the columns of the stored fields
 * (record-fields.ts). The first three are in the record too, for the user of the client. Origo does not keep those.
 */
import type { RecordField } from "./record-field";

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
/** Upper ends of all classes but the last. */
const SIZE_CLASS_ENDS = [250_000, 500_000, 1_000_000, 2_000_000, 3_000_000, 5_000_000];
const SIZE_CASES = SIZE_CLASS_ENDS.map((end, index) => `WHEN net_bytes < ${end} THEN '${SIZE_CLASSES[index]}'`);
const SIZE_CLASS = `CASE ${SIZE_CASES.join(" ")} ELSE '${SIZE_CLASSES[SIZE_CLASSES.length - 1]}' END`;

export const DERIVED_FIELDS = {
  throughputBytesPerSec: {
    label: "Throughput",
    type: "number",
    unit: "B/s",
    record: "required",
    sql: ratio("gross_bytes * 1000", "duration_ms"),
    help: "Gross bytes over duration (equation 2 of the paper).",
  },
  goodputBytesPerSec: {
    label: "Goodput",
    type: "number",
    unit: "B/s",
    record: "required",
    sql: ratio("net_bytes * 1000", "duration_ms"),
    help: "Net bytes over duration (equation 2 of the paper).",
  },
  normalizedGoodput: {
    label: "Normalized goodput",
    type: "number",
    record: "required",
    sql: ratio("net_bytes", "gross_bytes"),
    help: "Goodput over throughput (equation 2 of the paper).",
  },
  redundantBytes: {
    label: "Redundant",
    type: "number",
    unit: "B",
    sql: "gross_bytes - net_bytes",
    help: "Gross bytes less net bytes.",
  },
  duplicateShare: {
    label: "Duplicate share",
    type: "number",
    sql: ratio("duplicate", "packets"),
    help: "Duplicate packets over packets.",
  },
  lateShare: { label: "Late share", type: "number", sql: ratio("late", "packets"), help: "Late packets over packets." },
  lossShare: {
    label: "Loss",
    type: "number",
    sql: ratio("lost", "(lost + packets)"),
    help: "Lost packets over those sent.",
  },
  transferMs: { label: "Transfer", type: "number", unit: "ms", sql: AFTER_FETCH, help: "Duration less server fetch." },
  goodputAfterFetchBytesPerSec: {
    label: "Goodput after fetch",
    type: "number",
    unit: "B/s",
    sql: ratio("net_bytes * 1000", AFTER_FETCH),
    help: "Net bytes over transfer time (the paper's speed without server).",
  },
  goodputPerProxyBytesPerSec: {
    label: "Goodput per proxy",
    type: "number",
    unit: "B/s",
    sql: ratio("net_bytes * 1000", "(duration_ms * proxies_used)"),
    help: "Goodput over the proxies that took part.",
  },
  packetsPerFeedback: {
    label: "Packets per feedback",
    type: "number",
    sql: ratio("packets", "feedback_frames"),
    help: "Packets over feedback frames.",
  },
  directShare: {
    label: "Direct share",
    type: "number",
    sql: ratio("direct_bytes", "gross_bytes"),
    help: "Direct bytes over gross bytes.",
  },
  host: { label: "Host", type: "text", sql: "split_part(url, '/', 3)", help: "The host of the URL." },
  sizeClass: {
    label: "Size class",
    type: "choice",
    values: SIZE_CLASSES,
    sql: SIZE_CLASS,
    help: "Net bytes in the classes that the paper compares.",
  },
} as const satisfies Record<string, RecordField>;
