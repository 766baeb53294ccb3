/**
 * Fleet: the table of proxies. A proxy that vanishes stays, marked gone, for a minute; Origo's own list holds live ones only.
 */
import { HEARTBEAT_MS, type FleetProxy, type FleetResponse } from "./messages";
import { h, row, setAttribute, setChildren, setText, table, type Column } from "./dom";
import { bytes, count, NONE, rate, span } from "./format";

const GONE_SHOWN_MS = 60_000;
const LATE_MS = 1.5 * HEARTBEAT_MS;
const SAMPLES_MAX = 60;
const CHART = { width: 96, height: 22 };

const COLUMNS: readonly Column[] = [
  { key: "name", label: "proxy" },
  { key: "url", label: "address" },
  { key: "engine", label: "codec" },
  { key: "sessions", label: "sessions", align: "right", title: "open sessions / requests under way" },
  { key: "rate", label: "sent", align: "right", title: "between its last two reports" },
  { key: "chart", label: "two minutes" },
  { key: "sent", label: "sent, total", align: "right" },
  { key: "origin", label: "origin egress", align: "right", title: "fetched at origins: rate and total" },
  { key: "cache", label: "cache", align: "right", title: "bytes held, and requests answered from it" },
  { key: "errors", label: "errors", align: "right" },
  { key: "limit", label: "limit", align: "right", title: "rate limit of the whole proxy" },
  { key: "uptime", label: "uptime", align: "right" },
];

type Health = "live" | "late" | "gone";

interface Row extends ReturnType<typeof row> {
  proxy: FleetProxy;
  samples: number[];
  goneSinceMs: number | undefined;
  line: SVGPolylineElement;
}

export class FleetTable {
  readonly root: HTMLElement;
  private readonly body: HTMLElement;
  private readonly rows = new Map<string, Row>();
  private readonly empty = h("p", { class: "empty" }, "No proxy is registered.");

  constructor() {
    const { root, body } = table(COLUMNS, "fleet cards");
    this.root = h("div", {}, root, this.empty);
    this.body = body;
  }

  update(fleet: FleetResponse): void {
    const live = new Set(fleet.proxies.map((proxy) => proxy.id));
    for (const proxy of fleet.proxies) this.show(proxy, fleet.nowMs);
    for (const [id, shown] of this.rows) {
      if (live.has(id)) continue;
      shown.goneSinceMs ??= fleet.nowMs;
      if (fleet.nowMs - shown.goneSinceMs > GONE_SHOWN_MS) this.rows.delete(id);
      else markHealth(shown, "gone");
    }
    const order = [...this.rows.values()].sort((a, b) => a.proxy.name.localeCompare(b.proxy.name, "en", { numeric: true }));
    setChildren(this.body, order.map((shown) => shown.root));
    this.empty.hidden = this.rows.size > 0;
    this.root.firstElementChild?.toggleAttribute("hidden", this.rows.size === 0);
  }

  private show(proxy: FleetProxy, nowMs: number): void {
    const shown = this.rows.get(proxy.id) ?? newRow(proxy);
    this.rows.set(proxy.id, shown);
    const reported = proxy.lastSeenMs !== shown.proxy.lastSeenMs || shown.samples.length === 0;
    if (reported && proxy.sentBytesPerSec !== null) shown.samples = [...shown.samples, proxy.sentBytesPerSec].slice(-SAMPLES_MAX);
    shown.proxy = proxy;
    shown.goneSinceMs = undefined;
    for (const [key, text] of Object.entries(textsOf(proxy, nowMs))) {
      const cell = shown.cells.get(key);
      if (cell !== undefined) setText(cell, text);
    }
    setAttribute(shown.line, "points", pointsOf(shown.samples));
    markHealth(shown, nowMs - proxy.lastSeenMs > LATE_MS ? "late" : "live");
  }
}

function newRow(proxy: FleetProxy): Row {
  const made = row(COLUMNS);
  made.cells.get("name")?.append(h("span", { class: "dot" }), h("b", {}, proxy.name), h("small", {}, proxy.id.slice(0, 6)));
  made.cells.get("url")?.classList.add("quiet");
  made.cells.get("engine")?.classList.add("quiet");
  const { svg, line } = chart();
  made.cells.get("chart")?.append(svg);
  return { ...made, proxy, samples: [], goneSinceMs: undefined, line };
}

function textsOf(proxy: FleetProxy, nowMs: number): Record<string, string> {
  const { status } = proxy;
  return {
    url: proxy.url.replace(/^http:\/\//, "").replace(/\/$/, ""),
    engine: proxy.engine,
    sessions: status === null ? NONE : `${count(status.sessions)} / ${count(status.activeRequests)}`,
    rate: rate(proxy.sentBytesPerSec),
    sent: status === null ? NONE : bytes(status.sentBytes),
    origin: status === null ? NONE : `${rate(proxy.originBytesPerSec)} · ${bytes(status.originBytes)}`,
    cache: status === null ? NONE : `${bytes(status.cacheBytes)} · ${count(status.cacheHits)} hits`,
    errors: status === null ? NONE : count(status.errors),
    limit: proxy.rateBytesPerSec === 0 ? "none" : rate(proxy.rateBytesPerSec),
    uptime: span(status?.uptimeMs ?? nowMs - proxy.connectedAtMs),
  };
}

function markHealth(shown: Row, health: Health): void {
  setAttribute(shown.root, "data-health", health);
  const words = { live: "live", late: "a heartbeat is missing", gone: "gone" };
  const dot = shown.root.querySelector(".dot");
  if (dot !== null) {
    setAttribute(dot, "title", words[health]);
    setAttribute(dot, "aria-label", words[health]);
    setAttribute(dot, "role", "img");
  }
}

function chart(): { svg: SVGSVGElement; line: SVGPolylineElement } {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  for (const [name, value] of Object.entries({ class: "spark", width: CHART.width, height: CHART.height, "aria-hidden": "true" })) {
    svg.setAttribute(name, String(value));
  }
  const line = document.createElementNS("http://www.w3.org/2000/svg", "polyline");
  svg.append(line);
  return { svg, line };
}

/** The newest sample is at the right edge; the scale ends at the largest one. */
function pointsOf(samples: readonly number[]): string {
  const max = Math.max(1, ...samples);
  const step = CHART.width / (SAMPLES_MAX - 1);
  return samples.map((sample, index) => {
    const x = CHART.width - (samples.length - 1 - index) * step;
    const y = CHART.height - 2 - (sample / max) * (CHART.height - 4);
    return `${x.toFixed(1)},${y.toFixed(1)}`;
  }).join(" ");
}
