/**
 * Proxied: which tabs have documents that came through a proxy of the browser. Only Firefox tells it. An add-on there
 * can set a proxy for the requests of tabs alone. Firefox counts no WebTransport as a tab's, so attempts over it do not
 * find such a proxy.
 */
const KEY = "proxiedTabs";
/** Older ones are forgotten. */
const TABS_MAX = 1000;

type Details = chrome.webRequest.OnResponseStartedDetails & { proxyInfo?: { type: string } };

let tabs: Promise<readonly number[]> = chrome.storage.session
  .get(KEY)
  .then(({ [KEY]: stored }) => (stored ?? []) as number[]);

chrome.webRequest.onResponseStarted.addListener(
  ({ tabId, type, proxyInfo }: Details) => {
    const isProxied = proxyInfo !== undefined && proxyInfo.type !== "direct";
    if (isProxied || type === "main_frame") tabs = tabs.then((known) => noted(known, tabId, isProxied));
  },
  { urls: ["http://*/*", "https://*/*"], types: ["main_frame", "sub_frame"] },
);

async function noted(known: readonly number[], tabId: number, isProxied: boolean): Promise<readonly number[]> {
  if (known.includes(tabId) === isProxied) return known;
  const others = known.filter((each) => each !== tabId);
  const now = isProxied ? [...others, tabId].slice(-TABS_MAX) : others;
  await chrome.storage.session.set({ [KEY]: now });
  return now;
}

export async function isTabProxied(tabId: number | undefined): Promise<boolean> {
  return tabId !== undefined && (await tabs).includes(tabId);
}
