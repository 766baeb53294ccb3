/**
 * Breakdown: one download opened up. Each proxy's packets as a sum that closes, then the bytes of the whole download likewise.
 */
import { accountsOf, gapPackets, type PacketSums } from "./accounts";
import { h, row, table, type Child, type Column } from "./dom";
import { bytes, count, NONE, seconds } from "./format";
import type { DownloadRecord, RecordProxy } from "./messages";

const KINDS = ["innovative", "duplicate", "late", "rejected"] as const;

const COLUMNS: readonly Column[] = [
  { key: "proxy", label: "proxy" },
  { key: "bytes", label: "bytes", align: "right" },
  { key: "bar", label: "what its packets were" },
  { key: "innovative", label: "innovative", align: "right", title: "raised the rank" },
  { key: "duplicate", label: "+ duplicate", align: "right", title: "did not raise the rank" },
  { key: "late", label: "+ late", align: "right", title: "came after its generation, or the chunk, was complete" },
  { key: "rejected", label: "+ rejected", align: "right", title: "broken or unasked for" },
  { key: "packets", label: "= packets", align: "right" },
  { key: "closes", label: "closes" },
  { key: "lost", label: "lost", align: "right", title: "estimated from sequence numbers" },
  { key: "rtt", label: "RTT", align: "right" },
  { key: "state", label: "state" },
];

export function breakdown(record: DownloadRecord): HTMLElement {
  const accounts = accountsOf(record);
  const parts: Child[] = [facts(record)];
  if (record.proxies.length > 0) {
    const { root, body } = table(COLUMNS, "proxies cards");
    const most = Math.max(1, ...record.proxies.map((proxy) => proxy.packets));
    body.append(...record.proxies.map((proxy) => proxyRow(proxy, most)));
    if (record.proxies.length > 1) body.append(totalRow(accounts.total));
    parts.push(root);
  }
  parts.push(bytesSum(record, accounts.total.bytes, accounts.directBytes, accounts.gapBytes));
  return h("div", { class: "breakdown" }, ...parts);
}

function facts(record: DownloadRecord): HTMLElement {
  const { range, error, fallback } = record;
  const coding = [
    record.generationSize === undefined ? "" : `generation ${record.generationSize}`,
    record.windowPackets === undefined ? "" : `window ${record.windowPackets} packets`,
    record.symbolBytes === undefined ? "" : `symbol ${record.symbolBytes} B`,
  ].filter((part) => part !== "").join(" · ");
  const pairs: [string, string][] = [
    ["address", record.url],
    ["range", range === undefined ? "whole" : `bytes ${count(range.start)}–${count(range.end)}`],
    ["outcome", error === undefined ? record.outcome : `${record.outcome}: ${error.kind}: ${error.message}`],
    ["fallback", fallback === null ? "" : `${bytes(fallback.bytes)} directly: ${fallback.reason}`],
    ["first byte", seconds(record.firstByteMs)],
    ["coding", coding],
    ["comment", record.comment ?? ""],
    ["sha256", record.sha256 ?? NONE],
    ["record", record.id],
    ["client", record.clientId],
  ];
  return h("dl", { class: "facts" }, ...pairs.filter(([, value]) => value !== "")
    .map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function proxyRow(proxy: RecordProxy, mostPackets: number): HTMLElement {
  const { root, cells } = sumRow(proxy);
  cells.get("proxy")?.append(h("b", {}, proxy.name ?? proxy.id), ...(proxy.name === undefined ? [] : [h("small", {}, proxy.id.slice(0, 6))]));
  cells.get("bar")?.append(bar(proxy, mostPackets));
  cells.get("rtt")?.append(proxy.rttMs === null ? NONE : `${proxy.rttMs.toFixed(1)} ms`);
  cells.get("state")?.append(proxy.state === "used" ? "used" : h("span", { class: "bad" }, proxy.error ? `failed: ${proxy.error}` : "failed"));
  return root;
}

function totalRow(total: PacketSums): HTMLElement {
  const { root, cells } = sumRow(total);
  root.classList.add("total");
  cells.get("proxy")?.append("all proxies");
  return root;
}

function sumRow(sums: PacketSums): ReturnType<typeof row> {
  const made = row(COLUMNS);
  for (const key of ["bytes", "packets", "lost", ...KINDS] as const) made.cells.get(key)?.append(count(sums[key]));
  made.cells.get("closes")?.append(closes(gapPackets(sums), "packets"));
  return made;
}

/** Length by packets, against the proxy that sent most. */
function bar(proxy: RecordProxy, mostPackets: number): HTMLElement {
  const parts = KINDS.filter((kind) => proxy[kind] > 0).map((kind) => {
    const part = h("i", { "data-kind": kind, title: `${kind}: ${count(proxy[kind])}` });
    part.style.flexGrow = String(proxy[kind]);
    return part;
  });
  const filled = h("span", {}, ...parts);
  filled.style.width = `${(100 * proxy.packets) / mostPackets}%`;
  return h("span", { class: "bar" }, filled);
}

function bytesSum(record: DownloadRecord, proxyBytes: number, directBytes: number, gapBytes: number): HTMLElement {
  const terms = [
    ...(record.proxies.length > 0 ? [`${count(proxyBytes)} through proxies`] : []),
    ...(directBytes > 0 || record.proxies.length === 0 ? [`${count(directBytes)} directly`] : []),
  ];
  return h("p", { class: "sum" },
    `${terms.join(" + ")} = ${count(record.grossBytes)} gross `, closes(gapBytes, "bytes"),
    h("span", { class: "apart" }, `${count(record.netBytes)} net, ${count(record.grossBytes - record.netBytes)} on top`));
}

function closes(gap: number, unit: string): HTMLElement {
  return gap === 0 ? h("span", { class: "good", title: "the numbers close" }, "✓") : h("span", { class: "bad" }, `gap of ${count(Math.abs(gap))} ${unit}`);
}
