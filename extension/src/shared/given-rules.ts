/**
 * Given rules: an Origo operator's rules for addresses that the built-in table does not know. They can name media and
 * exempt media. They cannot send a manifest, key, text or page through proxies. They hold only on sites that the viewer
 * turned on, because only those have the page script. Patterns know `*` only and match in linear time. Pure.
 */
export interface GivenRule {
  /** A host, `*.` before a domain for its subdomains, or `*`. */
  host: string;
  /** Begins with a slash. Each `*` stands for any characters. */
  path: string;
  carried: boolean;
}

export const RULES_MAX = 100;
const HOST = /^(?:\*|(?:\*\.)?[a-z0-9-]+(?:\.[a-z0-9-]+)*)$/;
const PATH_CHARS_MAX = 256;
const NEVER_CARRIED = /\.(?:m3u8|mpd|ism|f4m|key|vtt|srt|ttml|json|xml|html?|m?js|css)$/i;

/** The valid rules in an answer of Origo or in storage. */
export function parseGivenRules(value: unknown): GivenRule[] {
  const { rules } = (value ?? {}) as { rules?: unknown };
  return (Array.isArray(rules) ? rules.slice(0, RULES_MAX) : []).flatMap((rule) => parseRule(rule) ?? []);
}

function parseRule(value: unknown): GivenRule | undefined {
  const { host, path, carried } = (value ?? {}) as Record<string, unknown>;
  if (typeof host !== "string" || host.length > 253 || !HOST.test(host) || typeof carried !== "boolean")
    return undefined;
  if (typeof path !== "string" || !path.startsWith("/") || path.length > PATH_CHARS_MAX) return undefined;
  return { host, path, carried };
}

/** The decision of the first rule that matches; undefined if no rule matches. */
export function givenAnswer(rules: readonly GivenRule[], { hostname, pathname }: URL): boolean | undefined {
  const rule = rules.find(({ host, path }) => isHost(host, hostname) && isPath(path, pathname));
  return rule && rule.carried && !NEVER_CARRIED.test(pathname);
}

function isHost(pattern: string, hostname: string): boolean {
  return pattern === "*" || pattern === hostname || (pattern.startsWith("*.") && hostname.endsWith(pattern.slice(1)));
}

function isPath(pattern: string, pathname: string): boolean {
  const [first = "", ...rest] = pattern.split("*");
  const last = rest.pop();
  if (last === undefined) return pathname === first;
  if (!pathname.startsWith(first)) return false;
  let at = first.length;
  for (const part of rest) {
    const found = pathname.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return pathname.length - last.length >= at && pathname.endsWith(last);
}
