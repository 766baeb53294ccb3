/**
 * Popup: this site's switch, live figures, mode and number of proxies. All texts from outside (names of proxies,
 * addresses, errors) are set as text nodes. The popup also works as a page in a tab; `?tab=ID` names the tab that it
 * describes.
 */
import { SettingsView, element } from "../shared/controls";
import { LIVE_CONNECTION } from "../shared/names";
import { isCarrying, type LiveFigures } from "../shared/runtime";
import { localize, say } from "../shared/say";
import {
  bytesText,
  liarsSentence,
  percentText,
  rateText,
  stateWord,
  statusSentence,
  troubleSentence,
  uncheckedSentence,
  vouchedSentence,
} from "../shared/words";
import { COLOURS, History, drawChart } from "./chart";
import { Merge } from "./merge";
import { Rates, shownState, wastedShare, type Stream } from "./rates";
import { SiteSwitch } from "./site";

const LISTEN_AGAIN_MS = 1000;
const BAD_STATES: readonly string[] = ["closed", "failed", "dropped"];
const OVER_HTTP_KEYS = { forbidden: "overHttpForbidden", blocked: "overHttpBlocked" } as const;

const rates = new Rates();
const merge = new Merge();
const history = new History();
/** The tabs that the popup listens to; undefined is Chromium's one transport. */
const heard = new Set<number | undefined>();
const enabled = element<HTMLButtonElement>("enabled");
const comment = element<HTMLTextAreaElement>("comment");
const view = new SettingsView(show);
const site = new SiteSwitch(view);
let figures: LiveFigures | null = null;
let streams: Stream[] = [];
let bytesPerSec = 0;

function show(): void {
  const { settings } = view;
  enabled.setAttribute("aria-checked", String(settings.enabled));
  element("comment-box").hidden = !settings.sendRecords;
  if (document.activeElement !== comment) comment.value = settings.comment;
  site.show();
  showFigures();
}

function showFigures(): void {
  const { settings } = view;
  element("status").textContent = statusSentence(
    say,
    settings,
    figures,
    streams.filter((stream) => stream.bytesPerSec > 0).length,
  );
  const trouble = troubleSentence(say, settings, figures?.trouble ?? null, location.protocol === "moz-extension:");
  showText("trouble", trouble);
  const overHttp = figures?.overHttp ?? null;
  showText("over-http", overHttp && say(OVER_HTTP_KEYS[overHttp]));
  const vouched = vouchedSentence(say, figures?.vouched ?? []);
  showText("vouched", vouched);
  element("vouched").classList.toggle("sure", vouched !== say("vouchedNobody"));
  showText("liars", liarsSentence(say, figures?.proxies ?? []));
  showText("unchecked", uncheckedSentence(say, figures?.uncheckedBytes ?? 0));
  element("total-rate").textContent = bytesPerSec > 0 ? rateText(bytesPerSec) : "";
  element("no-streams").hidden = streams.length > 0;
  const paths = history.paths(streams.map(({ id }) => id));
  element("chart").toggleAttribute("hidden", paths.length === 0);
  drawChart(element<SVGSVGElement>("chart"), paths);
  showStreams();
  const delivered = figures?.deliveredBytes ?? 0;
  element("delivered").textContent = bytesText(delivered);
  element("direct").textContent = bytesText(figures?.directBytes ?? 0);
  element("wasted").textContent = percentText(wastedShare(streams, delivered));
}

/** Changes nothing if the text is the same, so that a screen reader says it once. */
function showText(id: string, text: string | null): void {
  element(id).hidden = text === null;
  if (element(id).textContent !== (text ?? "")) element(id).textContent = text ?? "";
}

/** Reuses the rows, so that a screen reader keeps its place. */
function showStreams(): void {
  const list = element<HTMLUListElement>("streams");
  while (list.children.length > streams.length) list.lastElementChild?.remove();
  while (list.children.length < streams.length) list.append(makeRow());
  streams.forEach((stream, index) => fillRow(list.children[index] as HTMLElement, stream, index));
}

function makeRow(): HTMLLIElement {
  const row = document.createElement("li");
  row.className = "stream";
  const part = (tag: string, className: string, ...children: (Node | string)[]): HTMLElement => {
    const made = document.createElement(tag);
    made.className = className;
    made.append(...children);
    return made;
  };
  row.append(
    part("span", "dot"),
    part("span", "name", part("span", "label"), part("small", "state")),
    part("span", "figure"),
  );
  // The end of a long name is cut off, also in a language from right to left.
  row.querySelector<HTMLElement>(".label")!.dir = "auto";
  row.append(part("div", "more", part("span", "counts"), part("span", "rtt")));
  return row;
}

function fillRow(row: HTMLElement, stream: Stream, index: number): void {
  const set = (selector: string, text: string): void => {
    const target = row.querySelector(selector);
    if (target !== null && target.textContent !== text) target.textContent = text;
  };
  const state = shownState(stream, figures?.overHttp ?? null);
  const isGood = isCarrying(state) || stream.bytesPerSec > 0;
  row.className = `stream ${isGood ? "good" : BAD_STATES.includes(state) ? "bad" : ""}`;
  set(".label", stream.name || stream.id);
  set(".state", stateWord(say, state));
  set(
    ".figure",
    stream.bytesPerSec > 0
      ? `${rateText(stream.bytesPerSec)} · ${percentText(stream.share)}`
      : percentText(stream.share),
  );
  row.style.setProperty("--stream", COLOURS[index % COLOURS.length] ?? "");
  const useful =
    stream.packets > 0
      ? `, ${say("packetsUseful", percentText(stream.innovative / stream.packets), stream.packets.toLocaleString())}`
      : "";
  set(".counts", `${bytesText(stream.bytes)}${useful}`);
  set(".rtt", stream.rttMs === null ? "" : `${Math.round(stream.rttMs)} ms`);
}

/** Chromium has one transport. Firefox has one in each page with media, which hears only messages to its tab. */
async function listen(): Promise<void> {
  if (location.protocol.startsWith("moz")) for (const { id } of await chrome.tabs.query({})) hear(id);
  else hear(undefined);
  setTimeout(() => void listen(), LISTEN_AGAIN_MS);
}

function hear(tabId: number | undefined): void {
  if (heard.has(tabId)) return;
  heard.add(tabId);
  const connection =
    tabId === undefined
      ? chrome.runtime.connect({ name: LIVE_CONNECTION })
      : chrome.tabs.connect(tabId, { name: LIVE_CONNECTION });
  connection.onMessage.addListener((reading: LiveFigures) => {
    figures = merge.add(reading);
    ({ streams, bytesPerSec } = rates.add(figures));
    history.add(streams);
    showFigures();
  });
  connection.onDisconnect.addListener(() => {
    // Reading the error marks it as expected: no page needs the transport yet.
    void chrome.runtime.lastError;
    heard.delete(tabId);
  });
}

async function start(): Promise<void> {
  localize();
  enabled.addEventListener("click", () => view.save({ enabled: !view.settings.enabled }));
  comment.addEventListener("change", () => view.save({ comment: comment.value }));
  await view.start();
  await site.start();
  void listen();
}

void start();
