/**
 * CSP: what a document's policies (Content Security Policy Level 3) say of the two things that the extension adds to a
 * page: a request by `fetch` (`connect-src`) and a video on a MediaSource (`media-src`). A policy that only reports
 * counts like one that is enforced, because a page with the extension must cause no other reports than without it.
 * Pure.
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

/** What policies let a document do, in a form that takes little code to check. */
export interface CompiledPolicies {
  /** A regular expression for each policy that limits requests. Each allowed http(s) address matches it. */
  connect: string[];
  /** Whether a video may play a MediaSource. */
  mediaSource: boolean;
}

/** For the document at `self`. Where a redirect leads is not told. */
export function compilePolicies(policies: readonly Policy[], self: URL): CompiledPolicies {
  const connect = policies.flatMap(({ connect: sources }) => (sources === null ? [] : [anyOf(sources, self)]));
  // Only the scheme itself allows a MediaSource.
  const isBlob = (source: string): boolean => source.toLowerCase() === "blob:";
  return { connect, mediaSource: policies.every(({ media }) => media === null || media.some(isBlob)) };
}

/** A policy that allows nothing. */
export const NONE: Policy = { connect: [], media: [] };
/** Its regular expression. */
export const NOTHING = "(?!)";

function anyOf(sources: readonly string[], self: URL): string {
  const patterns = sources.map((source) => patternOf(source, self)).filter((pattern) => pattern !== NOTHING);
  return patterns.length === 0 ? NOTHING : `^(?:${patterns.join("|")})`;
}

const HOST_SOURCE =
  /^(?:([a-z][a-z0-9+.-]*):\/\/)?(\*|(?:\*\.)?[a-z0-9_.-]+|\[[0-9a-f:.]+\])(?::(\d+|\*))?(\/[^?#]*)?$/i;

/** The addresses that match a source (§6.7.2.8), as their beginning. */
function patternOf(source: string, self: URL): string {
  if (source === "*") return "";
  if (source.toLowerCase() === "'self'") return selfPattern(self);
  const scheme = /^([a-z][a-z0-9+.-]*):$/i.exec(source)?.[1];
  if (scheme !== undefined) return `(?:${schemesOf(scheme).map(literal).join("|")}):`;
  const parts = HOST_SOURCE.exec(source);
  if (parts === null) return NOTHING;
  const [, own = self.protocol.slice(0, -1), host = "", port, path = "/"] = parts;
  const origins = schemesOf(own).map(
    (each) => `${literal(each)}://${hostPattern(host.toLowerCase())}${portPattern(port, each)}`,
  );
  return `(?:${origins.join("|")})${pathPattern(path)}`;
}

function selfPattern(self: URL): string {
  const isUpgraded = self.protocol === "http:" && self.port === "";
  const own = `${literal(self.origin)}/`;
  return isUpgraded ? `${own}|${literal(`https://${self.hostname}/`)}` : own;
}

/** The schemes that match `scheme` (§6.7.2.9). */
function schemesOf(scheme: string): string[] {
  const lower = scheme.toLowerCase();
  return lower === "http" ? ["http", "https"] : [lower];
}

function hostPattern(host: string): string {
  if (host === "*") return String.raw`(?:\[[^\]/]*\]|[^/:]+)`;
  return host.startsWith("*.") ? `[^/:]*${literal(host.slice(1))}` : literal(host);
}

/** An address has no port if it is the scheme's own. */
function portPattern(port: string | undefined, scheme: string): string {
  const own = scheme === "https" ? "443" : "80";
  if (port === undefined || port === own) return "";
  if (port === "*") return String.raw`(?::\d+)?`;
  return port === "80" && scheme === "https" ? "(?::80)?" : `:${port}`;
}

/** A path that ends with a slash names a folder, another one names a file (§6.7.2.12). */
function pathPattern(path: string): string {
  const letters = path.replace(/%[0-9a-f]{2}|[^]/giu, letterPattern);
  return path.endsWith("/") ? letters : `${letters}(?:[?#]|$)`;
}

/** What the letter may look like in an address, which can have it encoded. An encoded slash separates nothing. */
function letterPattern(letter: string): string {
  if (letter === "/") return letter;
  const isEncoded = letter.length === 3 && letter.startsWith("%");
  const bytes = isEncoded ? [parseInt(letter.slice(1), 16)] : [...new TextEncoder().encode(letter)];
  return bytes.map(bytePattern).join("");
}

function bytePattern(byte: number): string {
  const digits = byte.toString(16).padStart(2, "0");
  const encoded = `%${digits.replace(/[a-f]/g, (digit) => `[${digit}${digit.toUpperCase()}]`)}`;
  const letter = String.fromCharCode(byte);
  return /[!-~]/.test(letter) && !/[/?#%]/.test(letter) ? `(?:${literal(letter)}|${encoded})` : encoded;
}

/** The text itself as a regular expression. */
const literal = (text: string): string => text.replace(/[^a-z0-9]/gi, String.raw`\$&`);
