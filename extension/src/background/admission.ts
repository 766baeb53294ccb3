/**
 * Admission: which pages get a port. Any page can place the extension's frame, so the frame proves nothing. The viewer
 * must let the extension read the page, and the site of the tab must be on.
 */
import { isOnAt, siteOf } from "../shared/sites";

/** `pageOrigin` is the origin of the page around the frame, `tabOrigin` that of the tab's top page. */
export async function mayHavePort(pageOrigin: string, tabOrigin: string): Promise<boolean> {
  const [isAllowed, stored] = await Promise.all([
    mayRead(pageOrigin),
    chrome.storage.local.get(["enabled", "offSites"]),
  ]);
  return isAllowed && isOnAt(tabOrigin, stored);
}

/** Whether the viewer lets the extension read pages of this origin. */
export async function mayRead(pageOrigin: string): Promise<boolean> {
  if (siteOf(pageOrigin) === undefined) return false;
  const { protocol, hostname } = new URL(pageOrigin);
  return chrome.permissions.contains({ origins: [`${protocol}//${hostname}/*`] });
}
