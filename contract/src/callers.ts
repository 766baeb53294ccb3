/**
 * Callers: which web pages may read answers of proxies and of Origo. Extensions may. Pages may not, since a page could
 * read other sites' files through them. Programs that are not browsers send no Origin.
 */

/** Every client names itself with this header at a proxy, so a page must ask first (Fetch standard, CORS preflight). */
export const CLIENT_HEADER = "tributary-client";

const EXTENSION = /^(chrome|moz|safari-web)-extension:\/\/[\w-]{1,128}$/;

/** Says whether a caller with this Origin header may read answers. `pages`: origins that the operator has allowed. */
export function mayRead(origin: string, pages: readonly string[]): boolean {
  return EXTENSION.test(origin) || pages.includes(origin);
}

/** Reads a list of page origins, separated by commas. Undefined if one is not as in `https://player.example`. */
export function parseOrigins(text: string): string[] | undefined {
  const origins = text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
  return origins.every(isPageOrigin) ? origins : undefined;
}

/** Whether the text is the origin of a web page as browsers write it, for example `https://player.example`. */
export function isPageOrigin(text: string): boolean {
  return /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text;
}
