/**
 * Core: the background's work in every browser. It hands settings to the transports, brings scripts into pages and
 * draws the badge. The browser may stop it at any time, so it keeps its state in storage only.
 */
import { BUILT_IN, SETTING_KEYS, parseSettings, type Settings } from "../shared/settings";
import type { CompiledPolicies } from "../shared/csp";
import { BROUGHT_SCRIPTS, CLIENT_ID_KEY } from "../shared/names";
import { mayRead } from "./admission";
import { awaitPolicies, compileMetas, mayFetch, takePolicies } from "./policies";
import { isTabProxied } from "./proxied";
import { syncSites } from "./sites";
import type { Badge, BroughtScript, SettingsAnswer, ToBackground, ToTransportContext } from "../shared/runtime";
import { single } from "../shared/single";
import { askForUdp, isUdpAllowed } from "./udp";

/** Tabs of Firefox outside containers. Chromium names no store. */
const DEFAULT_STORE = "firefox-default";

async function loadDefaults(): Promise<Settings> {
  const packaged: unknown = await fetch(chrome.runtime.getURL("defaults.json"))
    .then((response) => response.json())
    .catch(() => null);
  return parseSettings(packaged, BUILT_IN);
}

async function loadSettings(): Promise<Settings> {
  const [stored, defaults] = await Promise.all([chrome.storage.local.get(SETTING_KEYS), loadDefaults()]);
  return parseSettings(stored, defaults);
}

/**
 * The random id for Origo's records, by the key under which it is stored. The first need makes it. Each container of
 * Firefox has its own, so nothing ties the containers together.
 */
const clientIds = new Map<string, () => Promise<string>>();

function loadClientId(storeId = DEFAULT_STORE): Promise<string> {
  const key = storeId === DEFAULT_STORE ? CLIENT_ID_KEY : `${CLIENT_ID_KEY}:${storeId}`;
  const load = clientIds.get(key) ?? single(() => idAt(key));
  clientIds.set(key, load);
  return load();
}

async function idAt(key: string): Promise<string> {
  const { [key]: stored } = await chrome.storage.local.get(key);
  if (typeof stored === "string") return stored;
  const made = crypto.randomUUID();
  await chrome.storage.local.set({ [key]: made });
  return made;
}

/** `tab` is the one whose frame is the transport. */
async function answerFor(isPrivate: boolean, tab?: chrome.tabs.Tab): Promise<SettingsAnswer> {
  const [settings, clientId, isAllowed, isProxied] = await Promise.all([
    loadSettings(),
    isPrivate ? crypto.randomUUID() : loadClientId(storeOf(tab)),
    isUdpAllowed(),
    isTabProxied(tab?.id),
  ]);
  return { settings, clientId, isPrivate, mayUseUdp: isAllowed && !isProxied };
}

chrome.runtime.onMessage.addListener(
  (message: ToBackground, sender, respond: (answer: SettingsAnswer | CompiledPolicies | null | boolean) => void) => {
    if (message.to !== "background") return;
    if (message.type === "bring") return bringScript(message.script, sender);
    if (message.type === "start") return respond(takePolicies(message.address, sender));
    if (message.type === "late") {
      void awaitPolicies(message.address, sender).then(respond);
      return true;
    }
    if (message.type === "metas") return respond(compileMetas(message.texts, message.address));
    if (message.type === "may") {
      void mayRead(message.origin).then(respond);
      return true;
    }
    if (!isOwnPage(sender)) return;
    if (message.type === "ask") {
      void mayAsk(message.pageOrigin, message.url).then(respond);
      return true;
    }
    if (message.type === "rules") return void chrome.storage.local.set({ siteRules: message.rules });
    if (message.type === "badge") {
      void drawBadge(message.badge, sender.tab?.id);
      return;
    }
    // Chromium runs a separate background for private windows; Firefox runs one for all windows.
    void answerFor(chrome.extension.inIncognitoContext || sender.tab?.incognito === true, sender.tab).then(respond);
    return true;
  },
);

/** The viewer lets the extension read the page, and no policy of a page of this origin refuses `url`. */
async function mayAsk(pageOrigin: string, url: string): Promise<boolean> {
  return (await mayRead(pageOrigin)) && (await mayFetch(pageOrigin, url));
}

/**
 * Any page with the content script may ask for this. The script runs in the asking frame with the page's own rights.
 * The frame there is also asked whether the browser allows UDP. A transport gets its settings after that.
 */
function bringScript(script: BroughtScript, { tab, frameId }: chrome.runtime.MessageSender): void {
  const file = BROUGHT_SCRIPTS[script] as string | undefined;
  if (file === undefined || tab?.id === undefined || frameId === undefined) return;
  const target = { tabId: tab.id, frameIds: [frameId] };
  void chrome.scripting
    .executeScript({ target, files: [file], world: "MAIN", injectImmediately: true })
    .catch(() => undefined);
  if (script === "carry") askForUdp(target);
}

/** The container of the tab. */
function storeOf(tab?: chrome.tabs.Tab): string | undefined {
  return (tab as { cookieStoreId?: string } | undefined)?.cookieStoreId;
}

/** False for a content script: its messages carry the address of its page. */
function isOwnPage(sender: chrome.runtime.MessageSender): boolean {
  return sender.tab === undefined || sender.url?.startsWith(chrome.runtime.getURL("")) === true;
}

chrome.storage.onChanged.addListener((changes, area) => {
  const isIdForgotten = changes[CLIENT_ID_KEY] !== undefined && changes[CLIENT_ID_KEY].newValue === undefined;
  const isSet = area === "local" && (isIdForgotten || SETTING_KEYS.some((key) => key in changes));
  if (isSet || (area === "session" && changes.isUdpAllowed !== undefined)) void tellSettings();
});

async function tellSettings(): Promise<void> {
  const message: ToTransportContext = {
    to: "transport",
    type: "settings",
    ...(await answerFor(chrome.extension.inIncognitoContext)),
  };
  await chrome.runtime.sendMessage(message).catch(() => undefined);
  await drawBadge({ proxies: 0, trouble: false });
}

/** Draws it for all tabs, or for the one tab whose frame is the transport. */
async function drawBadge({ proxies, trouble }: Badge, tabId?: number): Promise<void> {
  const { enabled } = await loadSettings();
  const text = !enabled ? "off" : trouble ? "!" : proxies > 0 ? String(proxies) : "";
  const where = tabId === undefined ? {} : { tabId };
  await chrome.action.setBadgeText({ text, ...where });
  await chrome.action.setBadgeBackgroundColor({
    color: !enabled ? "#6b7280" : trouble ? "#b45309" : "#0f766e",
    ...where,
  });
}

chrome.runtime.onInstalled.addListener(({ reason }) => {
  void drawBadge({ proxies: 0, trouble: false });
  if (reason === "install") void welcome();
});
chrome.runtime.onStartup.addListener(() => void drawBadge({ proxies: 0, trouble: false }));

/** Opens the first run's page, unless the package comes with its settings. */
async function welcome(): Promise<void> {
  const isPrepared = await fetch(chrome.runtime.getURL("defaults.json")).then(
    (response) => response.ok,
    () => false,
  );
  if (!isPrepared) await chrome.tabs.create({ url: chrome.runtime.getURL("welcome.html") });
}

void syncSites();
