/**
 * Sites: registers the content scripts for the sites that the viewer allowed, and again after each change. A package
 * whose manifest declares content scripts for every site needs none of this.
 */
import { ACCESS_KEY } from "../shared/names";
import type { ToTransportContext } from "../shared/runtime";
import { readsEverySite } from "../shared/sites";

/** Open pages keep their scripts when the viewer takes their access away. So they are told, and ask (`may`). */
function handleAccess(): void {
  void syncSites();
  void chrome.storage.local.set({ [ACCESS_KEY]: Date.now() });
  const message: ToTransportContext = { to: "transport", type: "access" };
  chrome.runtime.sendMessage(message).catch(() => undefined);
}

let last: Promise<void> = Promise.resolve();

export function syncSites(): Promise<void> {
  if (readsEverySite()) return Promise.resolve();
  last = last.then(register).catch((error: unknown) => console.error("content scripts were not registered:", error));
  return last;
}

async function register(): Promise<void> {
  const { origins: matches = [] } = await chrome.permissions.getAll();
  await chrome.scripting.unregisterContentScripts();
  if (matches.length === 0) return;
  const script = { matches, runAt: "document_start", allFrames: true, persistAcrossSessions: true } as const;
  await chrome.scripting.registerContentScripts([
    { ...script, id: "content", js: ["content.js"] },
    { ...script, id: "page", js: ["page.js"], world: "MAIN" },
  ]);
}

chrome.permissions.onAdded.addListener(handleAccess);
chrome.permissions.onRemoved.addListener(handleAccess);
chrome.runtime.onInstalled.addListener(() => void syncSites());
chrome.runtime.onStartup.addListener(() => void syncSites());
