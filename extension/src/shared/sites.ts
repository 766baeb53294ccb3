/**
 * Sites: which site a page belongs to, and whether the extension may work there. A store's package has no site until
 * the viewer turns one on; the demo's declares its content scripts for every site. Pure.
 */

/** Host of an http(s) page, without its port; undefined for any other page. */
export function siteOf(url: string | undefined): string | undefined {
  if (url === undefined || !URL.canParse(url)) return undefined;
  const { protocol, hostname } = new URL(url);
  return protocol === "http:" || protocol === "https:" ? hostname : undefined;
}

/**
 * Whether the viewer has the extension on, and on for the site of a tab, by what storage holds. `tabUrl`: of the tab's
 * own page, or its origin.
 */
export function isOnAt(tabUrl: string, { enabled, offSites }: Readonly<Record<string, unknown>>): boolean {
  return enabled !== false && !(Array.isArray(offSites) && offSites.includes(siteOf(tabUrl)));
}

/** The match pattern that the viewer is asked for. */
export function patternOf(site: string): string {
  return `*://${site}/*`;
}

/** Sites whose media requests can't go through proxies, whatever the viewer sets: POST streams bound to his address. */
export function isBoundToViewer(site: string): boolean {
  return /(?:^|\.)(?:youtube\.com|youtube-nocookie\.com)$/.test(site);
}
