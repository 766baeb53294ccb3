/**
 * Admission: which pages get a port. Any page of any site can have our frame in it, so that it is there says nothing:
 * the page must be one that the viewer lets the extension read, in a tab of a site that is on.
 */
import { isOnAt, siteOf } from "../shared/sites";

/** `pageOrigin`: of the page around the frame; `tabOrigin`: of the tab's own page. */
export async function mayHavePort(pageOrigin: string, tabOrigin: string): Promise<boolean> {
  if (siteOf(pageOrigin) === undefined) return false;
  const { protocol, hostname } = new URL(pageOrigin);
  const [isAllowed, stored] = await Promise.all([
    chrome.permissions.contains({ origins: [`${protocol}//${hostname}/*`] }),
    chrome.storage.local.get(["enabled", "offSites"]),
  ]);
  return isAllowed && isOnAt(tabOrigin, stored);
}
