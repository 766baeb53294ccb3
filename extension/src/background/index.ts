/**
 * Background (service worker): makes the offscreen document when a page needs it, passes each page's port on to it,
 * hands settings to it, and draws the badge. It holds no state that it could not lose.
 */
import { FRAME_PATH, TRANSPORT_PATH } from "../shared/names";
import { BUILT_IN, SETTING_KEYS, parseSettings, type Settings } from "../shared/settings";
import type { Badge, SettingsAnswer, ToBackground, ToTransportContext } from "../shared/runtime";

/** The part of the service worker's global scope that is used here; the DOM library types another one. */
interface Scope {
  clients: { matchAll(options: { includeUncontrolled: boolean }): Promise<{ url: string; postMessage(message: unknown, transfer: Transferable[]): void }[]> };
  addEventListener(type: "message", listener: (event: MessageEvent & { waitUntil(work: Promise<unknown>): void }) => void): void;
}
const scope = self as unknown as Scope;

scope.addEventListener("message", (event) => {
  const sender = event.source as { url?: string } | null;
  const { type, pageOrigin } = (event.data ?? {}) as { type?: unknown; pageOrigin?: unknown };
  if (sender?.url !== chrome.runtime.getURL(FRAME_PATH) || type !== "port" || typeof pageOrigin !== "string" || event.ports[0] === undefined) return;
  event.waitUntil(passPort(pageOrigin, event.ports[0]));
});

let creation: Promise<void> | null = null;

/** One offscreen document for all pages; two needs at once make one. */
function ensureTransport(): Promise<void> {
  creation ??= createTransport().finally(() => {
    creation = null;
  });
  return creation;
}

async function createTransport(): Promise<void> {
  const contexts = await chrome.runtime.getContexts({ contextTypes: [chrome.runtime.ContextType.OFFSCREEN_DOCUMENT] });
  if (contexts.length > 0) return;
  await chrome.offscreen.createDocument({
    url: TRANSPORT_PATH,
    reasons: [chrome.offscreen.Reason.WEB_RTC, chrome.offscreen.Reason.WORKERS],
    justification: "Downloads video segments from several proxies over WebRTC data channels and decodes them in a worker.",
  });
}

async function passPort(pageOrigin: string, port: MessagePort): Promise<void> {
  await ensureTransport();
  const url = chrome.runtime.getURL(TRANSPORT_PATH);
  const transport = (await scope.clients.matchAll({ includeUncontrolled: true })).find((client) => client.url === url);
  transport?.postMessage({ type: "port", pageOrigin }, [port]);
}

async function loadDefaults(): Promise<Settings> {
  const packaged: unknown = await fetch(chrome.runtime.getURL("defaults.json")).then((response) => response.json()).catch(() => null);
  return parseSettings(packaged, BUILT_IN);
}

async function loadSettings(): Promise<Settings> {
  const [stored, defaults] = await Promise.all([chrome.storage.local.get(SETTING_KEYS), loadDefaults()]);
  return parseSettings(stored, defaults);
}

/** An id of this installation for Origo's records, made by chance when first needed. */
async function loadClientId(): Promise<string> {
  const { clientId } = await chrome.storage.local.get("clientId");
  if (typeof clientId === "string") return clientId;
  const made = crypto.randomUUID();
  await chrome.storage.local.set({ clientId: made });
  return made;
}

chrome.runtime.onMessage.addListener((message: ToBackground, sender, respond: (answer: SettingsAnswer) => void) => {
  if (message.to !== "background" || sender.tab !== undefined && sender.url !== chrome.runtime.getURL("popup.html")) return;
  if (message.type === "badge") {
    void drawBadge(message.badge);
    return;
  }
  void Promise.all([loadSettings(), loadClientId()]).then(([settings, clientId]) => respond({ settings, clientId }));
  return true;
});

chrome.storage.onChanged.addListener((changes, area) => {
  if (area !== "local" || !SETTING_KEYS.some((key) => key in changes)) return;
  void tellSettings();
});

async function tellSettings(): Promise<void> {
  const settings = await loadSettings();
  const message: ToTransportContext = { to: "transport", type: "settings", settings };
  await chrome.runtime.sendMessage(message).catch(() => undefined);
  await drawBadge({ proxies: 0, trouble: false });
}

async function drawBadge({ proxies, trouble }: Badge): Promise<void> {
  const { enabled } = await loadSettings();
  const text = !enabled ? "off" : trouble ? "!" : proxies > 0 ? String(proxies) : "";
  await chrome.action.setBadgeText({ text });
  await chrome.action.setBadgeBackgroundColor({ color: !enabled ? "#6b7280" : trouble ? "#b45309" : "#0f766e" });
}

chrome.runtime.onInstalled.addListener(() => void drawBadge({ proxies: 0, trouble: false }));
chrome.runtime.onStartup.addListener(() => void drawBadge({ proxies: 0, trouble: false }));
