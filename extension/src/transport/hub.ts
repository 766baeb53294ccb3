/**
 * Hub: one ProxyClient for all pages that this context serves. Chromium's offscreen document serves all pages,
 * Firefox's frame serves the page around it. The hub answers each page's port and sends the popup its live figures.
 */
import type { GetOptions } from "@tributary/client";
import { createBrowserClient, randomUuid, type ProxyClient } from "@tributary/client/browser";
import { chooseWasmModule } from "@tributary/wasm-codec";
import { LIVE_CONNECTION } from "../shared/names";
import {
  isCarrying,
  type LiveFigures,
  type LiveProxy,
  type SettingsAnswer,
  type ToBackground,
  type ToTransportContext,
} from "../shared/runtime";
import { parseGivenRules, type GivenRule } from "../shared/given-rules";
import { useRules } from "../shared/rules";
import { BUILT_IN, type Settings } from "../shared/settings";
import { Allowance } from "./allowance";
import { Detours } from "./detours";
import { Pace } from "./pace";
import { PagePort } from "./page-port";
import type { CarriedDownload, PagePortHost } from "./port-host";
import { Trust } from "./trust";

const LIVE_MS = 500;
const PORTS_MAX = 256;
const RULES_MS = 3_600_000;
/** How long the badge stays after the last chunk. Players pause between chunks. */
const BADGE_LINGER_MS = 8000;
const MODES_OVER_SESSIONS: ReadonlySet<string> = new Set(["uncoded-mutp", "coded-mutp", "coded"]);

/** The part of the client that the extension uses. */
export type Client = Pick<
  ProxyClient,
  "get" | "isPublished" | "live" | "check" | "prepare" | "warm" | "reportError" | "close"
>;

const transportId = randomUuid();
const pagePorts = new Set<PagePort>();
const detours = new Detours(() => Date.now());
const trust = new Trust();
const pace = new Pace();
const allowance = new Allowance();
let settings: Settings = BUILT_IN;
let clientId = "";
let isPrivate = false;
let mayUseUdp = false;
let client: Client | null = null;
/** Counts up; modulo the number of addresses it names the Origo in use. */
let origoIndex = 0;
let rulesUntilMs = 0;
let givenRules: readonly GivenRule[] = [];
let badgeShown = "";
let badgeTimer: ReturnType<typeof setTimeout> | undefined;

const host: PagePortHost = {
  settings: () => settings,
  get: startDownload,
  isPublished: (url) => (client ??= makeClient()).isPublished(url),
  detours,
  trust,
  pace,
  allowance,
  proxyIds: () => client?.live.proxies.map(({ id }) => id) ?? [],
  activeCount,
  mayAskSite: async (pageOrigin, url) => {
    const question: ToBackground = { to: "background", type: "ask", pageOrigin, url };
    return (await chrome.runtime.sendMessage(question)) === true;
  },
  reportWrong: (url, what) =>
    client?.reportError("wrongBytes", `the proxies' answer is not the one that the site gives: ${what}`, url),
  noteProxyFailure,
  changed: showActivity,
  warm: async () => {
    if (isOverSessions()) await (client ??= makeClient()).warm(settings.connections);
  },
  closed: (port) => void pagePorts.delete(port as PagePort),
  nowMs: () => performance.now(),
};

function startDownload(url: string, options: GetOptions): CarriedDownload {
  const used = (client ??= makeClient());
  const download = used.get(url, withComment(isForbidden() ? { ...options, mode: "split-http" } : options));
  download.head.catch((error: unknown) => {
    if (used === client && isOrigoSilent(error)) useNextOrigo();
  });
  return download;
}

/** A host that the proxies' operator does not allow is not asked for again for long. */
function noteProxyFailure(host: string, pageOrigin: string, kind: string, detail: string): void {
  const nowMs = performance.now();
  if (kind === "egressRefused") return detours.noteDirectHost(host, pageOrigin, kind, host, nowMs);
  detours.noteFailure(host, pageOrigin, kind, detail, nowMs);
  detours.noteFallback(kind, detail);
}

function isOrigoSilent(error: unknown): boolean {
  return error instanceof Error && (error as { kind?: unknown }).kind === "origoUnreachable";
}

/** The failed chunk goes direct, and the next one asks another Origo. */
function useNextOrigo(): void {
  if (settings.origoUrls.length < 2) return;
  origoIndex += 1;
  renewClient();
}

function renewClient(): void {
  void client?.close();
  client = null;
}

/** Asks Origo for its rules, at most once an hour. If it does not answer, the known rules stay. */
async function refreshRules(): Promise<void> {
  if (performance.now() < rulesUntilMs) return;
  rulesUntilMs = performance.now() + RULES_MS;
  const answer = await fetch(`${origoUrl()}/v1/site-rules`, { credentials: "omit", cache: "no-store" }).catch(
    () => null,
  );
  if (answer?.ok !== true) return;
  const rules = parseGivenRules(await answer.json().catch(() => null));
  givenRules = rules;
  useRules({ given: rules, experimental: settings.experimental });
  const message: ToBackground = { to: "background", type: "rules", rules };
  await chrome.runtime.sendMessage(message).catch(() => undefined);
}

function origoUrl(): string {
  return settings.origoUrls[origoIndex % settings.origoUrls.length] ?? "";
}

function makeClient(): Client {
  return createBrowserClient({
    origoUrl: origoUrl(),
    workerUrl: chrome.runtime.getURL("engine-worker.js"),
    wasmUrl: chrome.runtime.getURL(chooseWasmModule()),
    source: "extension",
    clientId,
    reportRecords: settings.sendRecords && !isPrivate,
    transport: settings.transport,
  });
}

/** Adds the viewer's comment, which goes into each record. */
function withComment(options: GetOptions): GetOptions {
  return settings.sendRecords && settings.comment !== "" ? { ...options, userComment: settings.comment } : options;
}

function activeCount(): number {
  return [...pagePorts].reduce((sum, port) => sum + port.activeCount, 0);
}

/** The first request waits for the settings. */
const ready = askBackground().then((answer) => {
  settings = answer.settings;
  useRules({ given: givenRules, experimental: settings.experimental });
  ({ clientId, isPrivate, mayUseUdp } = answer);
});

async function askBackground(): Promise<SettingsAnswer> {
  const question: ToBackground = { to: "background", type: "settings" };
  return chrome.runtime.sendMessage(question);
}

/** Takes a page's port. `pageOrigin` must come from the browser, not from the page. */
export function admitPort(port: MessagePort, pageOrigin: string): void {
  void ready.then(() => admit(port, pageOrigin));
}

function admit(port: MessagePort, pageOrigin: string): void {
  if (isOverSessions()) void (client ??= makeClient()).prepare();
  void refreshRules();
  const pagePort = new PagePort(port, pageOrigin, host);
  pagePorts.add(pagePort);
  port.addEventListener("close", () => pagePort.close());
  const oldest = pagePorts.values().next();
  if (pagePorts.size > PORTS_MAX && oldest.done === false) oldest.value.close();
}

function isOverSessions(): boolean {
  return settings.enabled && mayUseUdp && MODES_OVER_SESSIONS.has(settings.mode);
}

/** The browser forbids what the mode needs. */
function isForbidden(): boolean {
  return !mayUseUdp && MODES_OVER_SESSIONS.has(settings.mode);
}

/** For a context that the background's messages do not reach. It listens for changes itself. */
export async function reloadSettings(): Promise<void> {
  adopt(await askBackground());
}

chrome.runtime.onMessage.addListener((message: ToTransportContext, sender) => {
  if (message.to !== "transport" || sender.tab !== undefined) return;
  if (message.type === "settings") adopt(message);
  else for (const port of pagePorts) void closeIfUnreadable(port);
});

/** The viewer may have taken the access to the page away. */
async function closeIfUnreadable(port: PagePort): Promise<void> {
  const question: ToBackground = { to: "background", type: "may", origin: port.pageOrigin };
  if (!(await chrome.runtime.sendMessage(question))) port.close();
}

/** In a private window every answer has another id, which is never used. */
function adopt({ settings: next, clientId: nextId, mayUseUdp: mayNext }: SettingsAnswer): void {
  const isOtherId = nextId !== clientId && !isPrivate;
  const isOtherClient =
    isOtherId ||
    mayNext !== mayUseUdp ||
    String(next.origoUrls) !== String(settings.origoUrls) ||
    next.sendRecords !== settings.sendRecords ||
    next.transport !== settings.transport;
  const isOnlyComment =
    !isOtherId &&
    mayNext === mayUseUdp &&
    JSON.stringify({ ...next, comment: "" }) === JSON.stringify({ ...settings, comment: "" });
  [settings, clientId, mayUseUdp] = [next, nextId, mayNext];
  if (isOnlyComment) return;
  detours.reset();
  trust.clear();
  useRules({ given: givenRules, experimental: settings.experimental });
  if (!isOtherClient) return;
  [origoIndex, rulesUntilMs] = [0, 0];
  renewClient();
}

chrome.runtime.onConnect.addListener((connection) => {
  if (connection.name !== LIVE_CONNECTION) return;
  const show = (): void => {
    client?.check();
    connection.postMessage(figures());
  };
  const timer = setInterval(show, LIVE_MS);
  connection.onDisconnect.addListener(() => clearInterval(timer));
  void ready.then(show);
});

function proxiesShown(): LiveProxy[] {
  return client?.live.proxies ?? [];
}

function figures(): LiveFigures {
  const live = client?.live;
  return {
    transportId,
    atMs: Date.now(),
    mode: settings.mode,
    proxies: proxiesShown(),
    downloads: live?.downloads ?? 0,
    active: activeCount(),
    deliveredBytes: live?.deliveredBytes ?? 0,
    fallbacks: detours.fallbacks,
    directBytes: detours.directBytes,
    uncheckedBytes: detours.uncheckedBytes,
    trouble: detours.trouble,
    overHttp: isForbidden() ? "forbidden" : isOverSessions() && live?.isOverHttp === true ? "blocked" : null,
    vouched: live?.vouched ?? [],
  };
}

function showActivity(): void {
  clearTimeout(badgeTimer);
  badgeTimer = activeCount() === 0 ? setTimeout(() => drawBadge(0), BADGE_LINGER_MS) : undefined;
  const proxies = proxiesShown();
  drawBadge(proxies.filter(({ state }) => isCarrying(state)).length || proxies.length);
}

function drawBadge(proxies: number): void {
  const badge = { proxies, trouble: detours.trouble !== null };
  const drawn = JSON.stringify(badge);
  if (drawn === badgeShown) return;
  badgeShown = drawn;
  const message: ToBackground = { to: "background", type: "badge", badge };
  chrome.runtime.sendMessage(message).catch(() => undefined);
}
