/**
 * Sites: in a package that declares no content scripts, registers them for the sites that the viewer has allowed, and
 * again whenever that changes.
 */
let last: Promise<void> = Promise.resolve();

export function syncSites(): Promise<void> {
  if (chrome.runtime.getManifest().content_scripts !== undefined) return Promise.resolve();
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

chrome.permissions.onAdded.addListener(() => void syncSites());
chrome.permissions.onRemoved.addListener(() => void syncSites());
chrome.runtime.onInstalled.addListener(() => void syncSites());
chrome.runtime.onStartup.addListener(() => void syncSites());
