/**
 * Popup: shows settings and live figures and writes settings to storage. All texts from outside (names of proxies,
 * addresses, errors) are set as text nodes. Also works as a page in a tab.
 */
import { LIVE_CONNECTION } from "../shared/names";
import { isCarrying, type LiveFigures, type SettingsAnswer, type ToBackground } from "../shared/runtime";
import { MODES, parseOrigoUrl, parseSettings, type Settings } from "../shared/settings";
import { Rates, type Stream } from "./rates";
import { MODE_WORDS, bytesText, percentText, rateText, stateWord, statusSentence, troubleSentence } from "./words";

const LISTEN_AGAIN_MS = 1000;

const rates = new Rates();
let settings: Settings = parseSettings(null);
let figures: LiveFigures | null = null;
let streams: Stream[] = [];
let bytesPerSec = 0;

function element<E extends HTMLElement>(id: string): E {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`popup.html has no element ${id}`);
  return found as E;
}

const enabled = element<HTMLButtonElement>("enabled");
const connections = element<HTMLInputElement>("connections");
const origo = element<HTMLInputElement>("origo");
const records = element<HTMLInputElement>("records");

function save(change: Partial<Settings>): void {
  settings = { ...settings, ...change };
  void chrome.storage.local.set(change);
  showSettings();
  showFigures();
}

function makeModes(): void {
  for (const mode of MODES) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    input.type = "radio";
    input.name = "mode";
    input.value = mode;
    input.addEventListener("change", () => save({ mode }));
    label.append(input, MODE_WORDS[mode].short);
    element("modes").append(label);
  }
}

function showSettings(): void {
  enabled.setAttribute("aria-checked", String(settings.enabled));
  for (const input of document.querySelectorAll<HTMLInputElement>("#modes input")) input.checked = input.value === settings.mode;
  element("mode-meaning").textContent = MODE_WORDS[settings.mode].meaning;
  connections.value = String(settings.connections);
  element("connections-shown").textContent = String(settings.connections);
  if (document.activeElement !== origo) origo.value = settings.origoUrl;
  records.checked = settings.sendRecords;
}

function showFigures(): void {
  element("status").textContent = statusSentence(settings, figures, streams.filter((stream) => stream.bytesPerSec > 0).length);
  const trouble = troubleSentence(settings, figures?.trouble ?? null);
  element("trouble").hidden = trouble === null;
  if (element("trouble").textContent !== (trouble ?? "")) element("trouble").textContent = trouble ?? "";
  element("total-rate").textContent = bytesPerSec > 0 ? rateText(bytesPerSec) : "";
  element("no-streams").hidden = streams.length > 0;
  showStreams();
  element("delivered").textContent = bytesText(figures?.deliveredBytes ?? 0);
  element("direct").textContent = bytesText(figures?.directBytes ?? 0);
  element("fallbacks").textContent = String(figures?.fallbacks ?? 0);
}

/** Keeps the rows that are there, so that bars move and a screen reader is not sent back to the start. */
function showStreams(): void {
  const list = element<HTMLUListElement>("streams");
  while (list.children.length > streams.length) list.lastElementChild?.remove();
  while (list.children.length < streams.length) list.append(makeRow());
  streams.forEach((stream, index) => fillRow(list.children[index] as HTMLElement, stream));
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
  const bar = part("div", "bar", part("span", ""));
  bar.setAttribute("aria-hidden", "true");
  row.append(part("span", "dot"), part("span", "name", part("span", "label"), part("small", "state")), part("span", "figure"), bar);
  row.append(part("div", "more", part("span", "counts"), part("span", "rtt")));
  return row;
}

function fillRow(row: HTMLElement, stream: Stream): void {
  const set = (selector: string, text: string): void => {
    const target = row.querySelector(selector);
    if (target !== null && target.textContent !== text) target.textContent = text;
  };
  const isGood = isCarrying(stream.state) || stream.bytesPerSec > 0;
  row.className = `stream ${isGood ? "good" : stream.state === "closed" || stream.state === "failed" ? "bad" : ""}`;
  set(".label", stream.name || stream.id);
  set(".state", stateWord(stream.state));
  set(".figure", stream.bytesPerSec > 0 ? `${rateText(stream.bytesPerSec)} · ${percentText(stream.share)}` : percentText(stream.share));
  const bar = row.querySelector<HTMLElement>(".bar span");
  if (bar !== null) bar.style.width = `${(stream.share * 100).toFixed(1)}%`;
  const useful = stream.packets > 0 ? `, ${percentText(stream.innovative / stream.packets)} of ${stream.packets.toLocaleString("en")} packets new` : "";
  set(".counts", `${bytesText(stream.bytes)}${useful}`);
  set(".rtt", stream.rttMs === null ? "" : `${Math.round(stream.rttMs)} ms`);
}

function listen(): void {
  const connection = chrome.runtime.connect({ name: LIVE_CONNECTION });
  connection.onMessage.addListener((reading: LiveFigures) => {
    figures = reading;
    ({ streams, bytesPerSec } = rates.add(reading));
    showFigures();
  });
  connection.onDisconnect.addListener(() => {
    // Reading the error says that it is expected: no page has needed the transport yet.
    void chrome.runtime.lastError;
    setTimeout(listen, LISTEN_AGAIN_MS);
  });
}

function changeOrigo(): void {
  const parsed = parseOrigoUrl(origo.value);
  origo.setAttribute("aria-invalid", String(parsed === undefined));
  element("origo-problem").textContent = parsed === undefined ? "Not an http or https address, for example https://origo.example.org." : "";
  if (parsed !== undefined && parsed !== settings.origoUrl) save({ origoUrl: parsed });
}

async function start(): Promise<void> {
  makeModes();
  const question: ToBackground = { to: "background", type: "settings" };
  const answer: SettingsAnswer = await chrome.runtime.sendMessage(question);
  settings = answer.settings;
  enabled.addEventListener("click", () => save({ enabled: !settings.enabled }));
  connections.addEventListener("input", () => save({ connections: connections.valueAsNumber }));
  origo.addEventListener("change", changeOrigo);
  records.addEventListener("change", () => save({ sendRecords: records.checked }));
  chrome.storage.onChanged.addListener((changes, area) => {
    if (area !== "local") return;
    settings = parseSettings(Object.fromEntries(Object.entries(changes).map(([key, { newValue }]) => [key, newValue])), settings);
    showSettings();
    showFigures();
  });
  showSettings();
  showFigures();
  listen();
}

void start();
