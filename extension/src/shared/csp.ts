/**
 * CSP: what a document's policies (Content Security Policy Level 3) say of the two things that the extension adds to a
 * page with a plain video: a request by `fetch` (`connect-src`) and a video on a MediaSource (`media-src`). A policy
 * that only reports counts like one that is enforced, because a page with the extension must cause no other reports
 * than without it. Pure.
 */

/** The sources that one policy allows; null where it allows all. */
export interface Policy {
  connect: string[] | null;
  media: string[] | null;
}

/** The policies in header values or `<meta>` elements. Those that say nothing of media are left out. */
export function parsePolicies(texts: readonly string[]): Policy[] {
  return texts
    .flatMap((text) => text.split(","))
    .map(parsePolicy)
    .filter(({ connect, media }) => connect !== null || media !== null);
}

function parsePolicy(text: string): Policy {
  const directives = new Map<string, string[]>();
  for (const directive of text.split(";")) {
    const [name = "", ...sources] = directive.trim().split(/\s+/);
    // The first directive of a name counts (§2.2.1).
    if (!directives.has(name.toLowerCase())) directives.set(name.toLowerCase(), sources);
  }
  const listOf = (name: string): string[] | null => directives.get(name) ?? directives.get("default-src") ?? null;
  return { connect: listOf("connect-src"), media: listOf("media-src") };
}

/** Whether a video of the document may play a MediaSource. Only the scheme itself allows that. */
export function allowsMediaSource(policies: readonly Policy[]): boolean {
  return policies.every(({ media }) => media === null || media.some((source) => source.toLowerCase() === "blob:"));
}

/** Whether the document at `self` may fetch `url`. Where a redirect leads is not told. */
export function allowsFetch(policies: readonly Policy[], self: URL, url: URL): boolean {
  return policies.every(({ connect }) => connect === null || connect.some((source) => isMatch(source, self, url)));
}

const HOST_SOURCE =
  /^(?:([a-z][a-z0-9+.-]*):\/\/)?(\*|(?:\*\.)?[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(\d+|\*))?(\/[^?#]*)?$/i;

/** §6.7.2.8. */
function isMatch(source: string, self: URL, url: URL): boolean {
  if (source === "*") return true;
  if (source.toLowerCase() === "'self'") return isSelf(self, url);
  const scheme = /^([a-z][a-z0-9+.-]*):$/i.exec(source)?.[1];
  if (scheme !== undefined) return isScheme(`${scheme}:`, url);
  const parts = HOST_SOURCE.exec(source);
  if (parts === null) return false;
  const [, own, host = "", port, path] = parts;
  return (
    isScheme(own === undefined ? self.protocol : `${own}:`, url) &&
    isHost(host.toLowerCase(), url.hostname) &&
    isPort(port, url) &&
    isPath(path, url.pathname)
  );
}

function isSelf(self: URL, url: URL): boolean {
  const isUpgrade = self.protocol === "http:" && url.protocol === "https:" && self.port === "" && url.port === "";
  return self.origin === url.origin || (isUpgrade && self.hostname === url.hostname);
}

function isScheme(scheme: string, { protocol }: URL): boolean {
  return scheme.toLowerCase() === protocol || (scheme.toLowerCase() === "http:" && protocol === "https:");
}

function isHost(pattern: string, hostname: string): boolean {
  if (pattern === "*") return true;
  return pattern.startsWith("*.") ? hostname.endsWith(pattern.slice(1)) : hostname === pattern;
}

/** An address has no port if it is the scheme's own. */
function isPort(pattern: string | undefined, { protocol, port }: URL): boolean {
  if (pattern === "*") return true;
  const own = protocol === "https:" ? "443" : "80";
  const asked = port || own;
  return (pattern ?? own) === asked || (pattern === "80" && asked === "443" && protocol === "https:");
}

/** A path that ends with a slash names a folder, another one names a file (§6.7.2.12). */
function isPath(pattern: string | undefined, pathname: string): boolean {
  if (pattern === undefined || pattern === "/") return true;
  const [wanted, asked] = [decoded(pattern), decoded(pathname)];
  return wanted.endsWith("/") ? asked.startsWith(wanted) : asked === wanted;
}

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}
