/**
 * Downloads: the list of downloads, newest first, with the columns of the paper's Fig. 6. A click opens a row's breakdown.
 */
import { failureOf, speedWithoutServer } from "./accounts";
import { breakdown } from "./breakdown";
import { h, row, setChildren, table, type Child, type Column } from "./dom";
import { bytes, clock, leaf, NONE, rate, ratio, seconds } from "./format";
import type { DownloadRecord, RecordsResponse } from "./messages";

const COLUMNS: readonly Column[] = [
  { key: "time", label: "time" },
  { key: "mode", label: "mode" },
  { key: "connections", label: "conn.", align: "right", title: "connections asked for" },
  { key: "status", label: "status", align: "right", title: "HTTP status of the answer" },
  { key: "net", label: "net", group: "size", align: "right" },
  { key: "gross", label: "gross", group: "size", align: "right", title: "all payload received, duplicates and frame headers included" },
  { key: "firstPacket", label: "first packet", group: "duration", align: "right" },
  { key: "serverFetch", label: "server fetch", group: "duration", align: "right", title: "until the origin's answer began" },
  { key: "duration", label: "gross", cardLabel: "duration", group: "duration", align: "right" },
  { key: "fail", label: "fail" },
  { key: "overall", label: "overall", cardLabel: "speed", group: "speed", align: "right", title: "goodput: net size over gross duration" },
  { key: "noServer", label: "no server", group: "speed", align: "right", title: "net size over duration without server fetch" },
  { key: "normalized", label: "norm.", cardLabel: "norm. goodput", group: "goodput", align: "right", title: "normalized goodput: goodput over throughput" },
  { key: "fallback", label: "fallback", title: "bytes fetched directly" },
  { key: "comment", label: "comment" },
  { key: "source", label: "source" },
];

interface Row {
  record: DownloadRecord;
  root: HTMLTableRowElement;
  toggle: HTMLButtonElement;
  detail: HTMLTableRowElement | undefined;
}

export class DownloadsTable {
  readonly root: HTMLElement;
  private readonly body: HTMLElement;
  private rows: Row[] = [];
  private next: string | null = null;
  private readonly empty = h("p", { class: "empty" }, "No download has been recorded yet.");
  private readonly more = h("button", { class: "more", type: "button" }, "Show older");

  constructor(loadOlder: (before: string) => Promise<RecordsResponse>) {
    const { root, body } = table(COLUMNS, "downloads cards");
    this.root = h("div", {}, root, this.empty, this.more);
    this.body = body;
    this.more.addEventListener("click", () => void this.extend(loadOlder));
    this.draw();
  }

  get records(): DownloadRecord[] {
    return this.rows.map((shown) => shown.record);
  }

  /** Takes the newest page; starts over when it no longer meets what is shown. */
  update(page: RecordsResponse): void {
    const known = new Set(this.rows.map((shown) => shown.record.id));
    const fresh = page.records.filter((record) => !known.has(record.id));
    if (fresh.length === 0 && this.rows.length > 0) return;
    if (fresh.length === page.records.length) {
      this.rows = [];
      this.next = page.next;
    }
    this.rows = [...fresh.map((record) => this.makeRow(record)), ...this.rows];
    this.draw();
  }

  private async extend(loadOlder: (before: string) => Promise<RecordsResponse>): Promise<void> {
    if (this.next === null) return;
    this.more.disabled = true;
    try {
      const page = await loadOlder(this.next);
      this.rows.push(...page.records.map((record) => this.makeRow(record)));
      this.next = page.next;
      this.draw();
    } finally {
      this.more.disabled = false;
    }
  }

  private draw(): void {
    setChildren(this.body, this.rows.flatMap((shown) => (shown.detail ? [shown.root, shown.detail] : [shown.root])));
    this.empty.hidden = this.rows.length > 0;
    this.root.firstElementChild?.toggleAttribute("hidden", this.rows.length === 0);
    this.more.hidden = this.next === null;
  }

  private makeRow(record: DownloadRecord): Row {
    const { root, cells } = row(COLUMNS);
    const toggle = h("button", { class: "toggle", type: "button", "aria-expanded": "false", "aria-label": "per-proxy breakdown" });
    cells.get("time")?.append(toggle, h("span", { class: "when" }, clock(record.startedAtMs, Date.now()), h("small", {}, leaf(record.url))));
    for (const [key, child] of Object.entries(cellsOf(record))) cells.get(key)?.append(child);
    root.setAttribute("data-outcome", record.outcome);
    root.setAttribute("title", record.url);
    const shown: Row = { record, root, toggle, detail: undefined };
    root.addEventListener("click", () => {
      if (document.getSelection()?.isCollapsed !== false) this.toggle(shown);
    });
    return shown;
  }

  private toggle(shown: Row): void {
    shown.detail = shown.detail === undefined
      ? h("tr", { class: "detail" }, h("td", { colspan: String(COLUMNS.length) }, breakdown(shown.record)))
      : undefined;
    shown.toggle.setAttribute("aria-expanded", String(shown.detail !== undefined));
    this.draw();
  }
}

function cellsOf(record: DownloadRecord): Record<string, Child> {
  const failure = failureOf(record);
  const severe = record.outcome === "failed" ? "bad" : "warn";
  const { fallback } = record;
  return {
    mode: h("span", { class: "mode", "data-mode": record.mode }, record.mode),
    connections: String(record.connections),
    status: record.status === 0 ? NONE : String(record.status),
    net: bytes(record.netBytes),
    gross: bytes(record.grossBytes),
    firstPacket: seconds(record.firstPacketMs),
    serverFetch: seconds(record.serverFetchMs),
    duration: seconds(record.durationMs),
    fail: failure === undefined ? NONE : h("span", { class: severe, ...(record.error ? { title: record.error.message } : {}) }, failure),
    overall: rate(record.goodputBytesPerSec),
    noServer: rate(speedWithoutServer(record)),
    normalized: ratio(record.normalizedGoodput),
    fallback: fallback === null ? NONE : h("span", { class: "warn", title: fallback.reason }, bytes(fallback.bytes)),
    comment: record.comment === undefined || record.comment === "" ? NONE : h("span", { class: "clip", title: record.comment }, record.comment),
    source: record.source,
  };
}
