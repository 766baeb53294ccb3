/**
 * Rules: which requests of a page are media chunks that the proxies may carry.
 * The page script and the transport, which checks again, use one table and the rules of Origo's operator.
 * Not here: the CORS decision (cors.ts), and anything about the answer.
 */
import type { ByteRange, CacheMode } from "@tributary/contract";
import { givenAnswer, type GivenRule } from "./given-rules";
import {
  exec,
  firstOf,
  isOneOf,
  lowerCase,
  matches,
  OwnURL,
  partsOf,
  slice,
  startsWith,
  type Table,
  trim,
  url as part,
} from "./primordials";

/**
 * A host (null for any), a path, whether the proxies may carry it, and the query parameters that describe the request
 * and not the bytes. An `experimental` rule carries only if the viewer turned experiments on.
 */
type SiteRule = readonly [
  host: RegExp | null,
  path: RegExp,
  isCarried: boolean | "experimental",
  noise?: readonly string[],
];

/** What holds beside the table: Origo's rules, and whether the viewer turned experiments on. */
export interface RuleSet {
  given: readonly GivenRule[];
  experimental: boolean;
}

/**
 * The first rule that matches decides. Without a match an address stays direct, like manifests, keys and subtitles. The
 * key of a chunk is its range and its address without the fragment and the noise.
 */
const SITE_RULES: readonly SiteRule[] = [
  // YouTube sends media as POST streams that a signature binds to the viewer's network address, so it refuses proxies.
  // The experiment tries players that still use GET. `rn` numbers the request, `rbuf` tells the player's buffer.
  [/\.googlevideo\.com$/, /^\/videoplayback$/, "experimental", ["rn", "rbuf"]],
  [/\.googlevideo\.com$/, /^/, false],
  // PeerTube: first the private videos, whose addresses can carry a token, then the public ones.
  [null, /^\/static\/[\w/-]+\/private\//, false],
  [null, /^\/static\/(?:web-videos|streaming-playlists)\/.+\.mp4$/, true],
  // Any site: media segments and files.
  [null, /\.(?:m4[sfva]|mp4[av]?|cmf[vam]|m?ts|m2ts|aac|[ae]c3|mp3|web[ma]|mkv|og[vag]|opus|flac|mov|dash)$/i, true],
];
/** The address of a published file, of any Origo: docs/spec/publications.md §3. */
const PUBLISHED_PATH = /\/v\/[\w-]{43}\/[^/]+\/./;
const OBJECT_PATH = /^\/v1\/objects\/[0-9a-f]{64}-\d+$/;
const MANIFEST_PATH = /\.(?:m3u8|mpd|ism|f4m)$/i;
const CACHE_DIRECTIVES = {
  __proto__: null,
  "no-cache": "no-cache",
  "max-age=0": "no-cache",
  "no-store": "no-store",
} as unknown as Table<CacheMode>;
/** A longer URL stays direct. The protocol has the same limit. */
const URL_LENGTH_MAX = 8192;

let ruleSet: RuleSet = { given: [], experimental: false };

/** Sets the rules beside the table for this context. They cannot carry what the table keeps direct. */
export function useRules(rules: RuleSet): void {
  ruleSet = rules;
}

/** The parsed URL if it is http(s), has no credentials and the rules let the proxies carry it; otherwise null. */
export function mediaUrl(url: string, base?: string): URL | null {
  const parsed = parseHttpUrl(url, base);
  const told = parsed && ruleFor(parsed)?.[2];
  const isCarried = told === "experimental" ? ruleSet.experimental : told;
  if (parsed === null || isCarried === false) return null;
  return (givenAnswer(ruleSet.given, parsed) ?? isCarried) === true ? parsed : null;
}

/**
 * The same for a page of `pageOrigin`. In a page over https the browser blocks an address in the clear, or asks for it
 * over https (mixed content). Only the viewer's own machine is asked as written, and no proxy reaches that.
 */
export function pageMediaUrl(url: string, pageOrigin: string): URL | null {
  const parsed = mediaUrl(url);
  const isClear = parsed !== null && part.protocol(parsed) === "http:";
  return isClear && startsWith(pageOrigin, "https:") ? null : parsed;
}

/** The address that the proxies are asked for: `url` as written, without the noise that its rule names. */
export function carriedAddress(url: URL): string {
  const noise = ruleFor(url)?.[3];
  if (noise === undefined) return part.href(url);
  const written = partsOf(slice(part.search(url), 1), "&");
  let kept = "";
  for (let at = 0; at < written.length; at++)
    if (!isOneOf(noise, partsOf(written[at]!, "=")[0]!)) kept += `&${written[at]}`;
  return `${part.origin(url)}${part.pathname(url)}?${slice(kept, 1)}`;
}

function ruleFor(url: URL): SiteRule | undefined {
  return firstOf(
    SITE_RULES,
    (rule) => (rule[0] === null || matches(rule[0], part.hostname(url))) && matches(rule[1], part.pathname(url)),
  );
}

/** True for a manifest. It stays direct, but the page will soon ask for media. */
export function isManifestUrl(url: string, base?: string): boolean {
  const parsed = parseHttpUrl(url, base);
  return parsed !== null && matches(MANIFEST_PATH, part.pathname(parsed));
}

/** Whether `url` has the form of a published file's address. Only the transport knows whether it is one. */
export function isPublishedUrl(url: string, base?: string): boolean {
  const parsed = parseHttpUrl(url, base);
  return parsed !== null && matches(PUBLISHED_PATH, part.pathname(parsed));
}

/** Whether `url` has the form of an object's address at a proxy (publications.md §5), to which Origo sends players. */
export function isObjectUrl(url: string): boolean {
  const parsed = parseHttpUrl(url);
  return parsed !== null && matches(OBJECT_PATH, part.pathname(parsed));
}

/** Whether only the browser can give an answer in the form that the page wants of an XMLHttpRequest. */
export function isNativeForm(responseType: unknown, mime: string | undefined): boolean {
  return responseType !== "arraybuffer" && (responseType !== "blob" || mime !== undefined);
}

function parseHttpUrl(url: string, base?: string): URL | null {
  if (url.length > URL_LENGTH_MAX) return null;
  let parsed: URL;
  try {
    parsed = new OwnURL(url, base);
  } catch {
    return null;
  }
  const isHttp = part.protocol(parsed) === "https:" || part.protocol(parsed) === "http:";
  const isOpen = part.username(parsed) === "" && part.password(parsed) === "";
  return isHttp && isOpen && part.href(parsed).length <= URL_LENGTH_MAX ? parsed : null;
}

/**
 * A `Range` header as a closed range. `undefined` if the proxies cannot carry it (open end, suffix, several ranges,
 * other unit, end before start): the request then stays direct.
 */
export function closedRange(header: string): ByteRange | undefined {
  const match = exec(/^bytes=(\d{1,15})-(\d{1,15})$/, trim(header));
  if (match === null) return undefined;
  const range = { start: +match[1]!, end: +match[2]! };
  return range.end < range.start ? undefined : range;
}

/** What the proxies are told of a page's request headers. */
export interface CarriedHeaders {
  range: ByteRange | null;
  cache: CacheMode;
}

/**
 * Undefined if a header keeps the request native. A server of another origin must allow Cache-Control and Pragma in a
 * preflight request, and the proxies send none.
 */
export function carriedHeaders(
  headers: readonly (readonly [string, string])[],
  isOwnOrigin: boolean,
): CarriedHeaders | undefined {
  const carried: CarriedHeaders = { range: null, cache: "default" };
  for (let at = 0; at < headers.length; at++) {
    const value = headers[at]![1];
    const lower = lowerCase(headers[at]![0]);
    if (lower === "range") {
      const range = closedRange(value);
      if (range === undefined) return undefined;
      carried.range = range;
    } else if (isOwnOrigin && (lower === "cache-control" || lower === "pragma")) {
      const directives = partsOf(lowerCase(value), ",");
      for (let each = 0; each < directives.length; each++) {
        const cache = CACHE_DIRECTIVES[trim(directives[each]!)];
        if (cache === undefined) return undefined;
        if (carried.cache !== "no-store") carried.cache = cache;
      }
    } else if (lower !== "accept") return undefined;
  }
  return carried;
}
