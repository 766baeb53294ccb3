/**
 * Sites: which site a page belongs to, and whether the extension works there. A store package works on no site until
 * the viewer turns one on. The demo package declares its content scripts for every site.
 */

/** The host of an http(s) page, without its port; undefined for any other page. */
export function siteOf(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" || protocol === "https:" ? hostname : undefined;
}

/**
 * Whether the stored settings have the extension on, and on for the site of a tab. `tabUrl` is the address or the
 * origin of the tab's top page.
 */
export function isOnAt(tabUrl: string, { enabled, offSites }: Readonly<Record<string, unknown>>): boolean {
  return enabled !== false && !(Array.isArray(offSites) && offSites.includes(siteOf(tabUrl)));
}

/**
 * The match patterns that the viewer is asked for. Chromium asks only for a pattern that one pattern of the manifest
 * contains, and neither `http:` nor `https:` contains `*:`.
 */
export function patternsOf(site: string): string[] {
  return [`http://${site}/*`, `https://${site}/*`];
}

/** The allowed match patterns by the site that they name: `*.a.example` for a pattern of the viewer's own. */
export function sitesOf(patterns: readonly string[]): Map<string, string[]> {
  const sites = new Map<string, string[]>();
  for (const pattern of patterns) {
    const site = /^[^:]+:\/\/([^/]+)\/\*$/.exec(pattern)?.[1] ?? pattern;
    sites.set(site, [...(sites.get(site) ?? []), pattern]);
  }
  return sites;
}

/** Whether the package works on every site, as the demo does. Firefox names no scripts as `null`. */
export function readsEverySite(): boolean {
  return (chrome.runtime.getManifest().content_scripts ?? []).length > 0;
}

/** Sites that bind their media to the viewer's network address, so that proxies cannot carry it. */
export function isBoundToViewer(site: string): boolean {
  return /(?:^|\.)(?:youtube\.com|youtube-nocookie\.com)$/.test(site);
}
