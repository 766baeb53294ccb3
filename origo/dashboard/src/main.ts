/**
 * Dashboard: asks Origo once a second for the fleet and the newest downloads, and shows them. Rests while the page is hidden.
 */
import { summaryOf } from "./accounts";
import { DownloadsTable } from "./downloads";
import { byId, h, setAttribute, setChildren, setText } from "./dom";
import { FleetTable } from "./fleet";
import { bytes, clock, count, NONE, rate, ratio } from "./format";
import { getErrors, getFleet, getRecords, type DownloadRecord, type ErrorReport, type FleetProxy } from "./messages";

const POLL_MS = 1000;

const fleetTable = new FleetTable();
const downloadsTable = new DownloadsTable(getRecords);
const tiles = new Map<string, { value: HTMLElement; note: HTMLElement }>();

function tile(label: string, value: string, note: string): void {
  let shown = tiles.get(label);
  if (shown === undefined) {
    shown = { value: h("strong"), note: h("small") };
    tiles.set(label, shown);
    byId("tiles").append(h("div", { class: "tile" }, h("span", {}, label), shown.value, shown.note));
  }
  setText(shown.value, value);
  setText(shown.note, note);
}

function showTiles(proxies: readonly FleetProxy[], records: readonly DownloadRecord[]): void {
  const sum = (of: (proxy: FleetProxy) => number): number => proxies.reduce((total, proxy) => total + of(proxy), 0);
  const all = summaryOf(records);
  tile("proxies live", count(proxies.length), `${count(sum((proxy) => proxy.status?.sessions ?? 0))} sessions`);
  tile("sending now", rate(sum((proxy) => proxy.sentBytesPerSec ?? 0)), `${bytes(sum((proxy) => proxy.status?.sentBytes ?? 0))} in all`);
  tile("origin egress", rate(sum((proxy) => proxy.originBytesPerSec ?? 0)), `${bytes(sum((proxy) => proxy.status?.originBytes ?? 0))} in all`);
  tile("downloads shown", count(all.downloads), `${count(all.complete)} complete · ${bytes(all.netBytes)} net`);
  tile("normalized goodput", all.normalizedGoodput === null ? NONE : ratio(all.normalizedGoodput), "net ÷ gross");
  tile("fallbacks", count(all.fallbacks), "with bytes fetched directly");
}

function showErrors(errors: readonly ErrorReport[]): void {
  const items = errors.map((error) => h("li", {},
    h("time", {}, clock(error.atMs, Date.now())), h("b", {}, error.kind), h("span", {}, error.message),
    h("small", {}, error.url === undefined ? error.source : `${error.source} · ${error.url}`)));
  setChildren(byId("errors"), [items.length === 0 ? h("p", { class: "empty" }, "None.") : h("ul", { class: "errors" }, ...items)]);
}

let newestError: string | undefined = "none shown yet";

async function poll(): Promise<void> {
  const [fleet, records, errors] = await Promise.all([getFleet(), getRecords(), getErrors()]);
  fleetTable.update(fleet);
  downloadsTable.update(records);
  showTiles(fleet.proxies, downloadsTable.records);
  if (errors.errors[0]?.id !== newestError) showErrors(errors.errors);
  newestError = errors.errors[0]?.id;
}

function showLink(state: "live" | "lost", text: string): void {
  setText(byId("link"), text);
  setAttribute(byId("link"), "data-state", state);
  setAttribute(document.body, "data-state", state);
}

let lastMs = 0;

async function tick(): Promise<void> {
  if (document.visibilityState === "visible") {
    try {
      await poll();
      lastMs = Date.now();
      showLink("live", "live");
    } catch {
      showLink("lost", lastMs === 0 ? "Origo does not answer" : `Origo does not answer; this is the state of ${clock(lastMs, Date.now())}`);
    }
  }
  setTimeout(() => void tick(), POLL_MS);
}

byId("proxies").append(fleetTable.root);
byId("downloads").append(downloadsTable.root);
void tick();
