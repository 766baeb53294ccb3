/**
 * Given rules: an Origo operator's rules for addresses that the built-in table does not know. They can name media and
 * exempt media. They cannot send a manifest, key, text or page through proxies. They hold only on sites that the viewer
 * turned on, because only those have the page script. Patterns know `*` only and match in linear time. Pure.
 */
import { endsWith, firstOf, indexOf, matches, partsOf, slice, startsWith, url as part } from "./primordials";

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

/* eslint-disable tributary/primordials -- The page script gets rules that were parsed. */
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

/* eslint-enable tributary/primordials */

/** The decision of the first rule that matches; undefined if no rule matches. */
export function givenAnswer(rules: readonly GivenRule[], url: URL): boolean | undefined {
  const rule = firstOf(rules, ({ host, path }) => isHost(host, part.hostname(url)) && isPath(path, part.pathname(url)));
  return rule && rule.carried && !matches(NEVER_CARRIED, part.pathname(url));
}

function isHost(pattern: string, hostname: string): boolean {
  const isDomain = startsWith(pattern, "*.") && endsWith(hostname, slice(pattern, 1));
  return pattern === "*" || pattern === hostname || isDomain;
}

function isPath(pattern: string, pathname: string): boolean {
  const parts = partsOf(pattern, "*");
  const first = parts[0]!;
  const last = parts[parts.length - 1]!;
  if (parts.length === 1) return pathname === first;
  if (!startsWith(pathname, first)) return false;
  let at = first.length;
  for (let each = 1; each < parts.length - 1; each++) {
    const found = indexOf(pathname, parts[each]!, at);
    if (found < 0) return false;
    at = found + parts[each]!.length;
  }
  return pathname.length - last.length >= at && endsWith(pathname, last);
}
