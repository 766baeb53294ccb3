/**
 * Sites: which site a page belongs to, and whether the extension works there. A store package works on no site until
 * the viewer turns one on. The demo package declares its content scripts for every site. Pure.
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

/** The match pattern that the viewer is asked for. */
export function patternOf(site: string): string {
  return `*://${site}/*`;
}

/** Sites that bind their media to the viewer's network address, so that proxies cannot carry it. */
export function isBoundToViewer(site: string): boolean {
  return /(?:^|\.)(?:youtube\.com|youtube-nocookie\.com)$/.test(site);
}
