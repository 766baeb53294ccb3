/**
 * Rules: which requests of a page are media chunks that the proxies may carry.
 * One table for the page script and for the transport, which checks again, and after it what Origo's operator gave.
 * Knows no browser. Not here: the CORS decision (cors.ts), and anything about the answer.
 */
import { givenAnswer, type GivenRule } from "./given-rules";
import type { ByteRange } from "./messages";

/**
 * Host (null: any), path, whether the proxies may carry it or it stays direct, and the query's parameters that tell of
 * the asking and not of the bytes. `experimental`: carried only where the viewer has turned experiments on.
 */
type SiteRule = readonly [
  host: RegExp | null,
  path: RegExp,
  isCarried: boolean | "experimental",
  noise?: readonly string[],
];

/** What holds beside the table: Origo's rules, and the viewer's word on experiments. */
export interface RuleSet {
  given: readonly GivenRule[];
  experimental: boolean;
}

/**
 * The first rule that fits counts; what none fits stays direct, as do manifests, keys and subtitles. A chunk's key is
 * its address without the fragment and the noise, and its range.
 */
const SITE_RULES: readonly SiteRule[] = [
  // YouTube: media are POST streams bound by a signature to the viewer's address, which proxies would be refused. Where
  // a player still asks by GET, an experiment may try; `rn` and `rbuf` number the request and tell the player's buffer.
  [/\.googlevideo\.com$/, /^\/videoplayback$/, "experimental", ["rn", "rbuf"]],
  [/\.googlevideo\.com$/, /^/, false],
  // PeerTube: videos for signed-in viewers, whose addresses can carry a token; then those for everybody.
  [null, /^\/static\/[\w/-]+\/private\//, false],
  [null, /^\/static\/(?:web-videos|streaming-playlists)\/.+\.mp4$/, true],
  // Any site: media segments and files.
  [null, /\.(?:m4[sfva]|mp4[av]?|cmf[vam]|m?ts|m2ts|aac|[ae]c3|mp3|web[ma]|mkv|og[vag]|opus|flac|mov|dash)$/i, true],
];
const MANIFEST_PATH = /\.(?:m3u8|mpd|ism|f4m)$/i;
/** A URL longer than this stays direct; same figure as the protocol's limit. */
const URL_LENGTH_MAX = 8192;
const RANGE_HEADER = /^bytes=(\d{1,15})-(\d{1,15})$/;

let ruleSet: RuleSet = { given: [], experimental: false };

/** From now on these hold too, in this context: Origo's before the table's last line, after what it keeps direct. */
export function useRules(rules: RuleSet): void {
  ruleSet = rules;
}

/** The parsed URL when it is http(s), without credentials, and the table lets the proxies carry it; otherwise null. */
export function mediaUrl(url: string, base?: string): URL | null {
  const parsed = parseHttpUrl(url, base);
  const told = parsed && ruleFor(parsed)?.[2];
  const isCarried = told === "experimental" ? ruleSet.experimental : told;
  if (parsed === null || isCarried === false) return null;
  return (givenAnswer(ruleSet.given, parsed) ?? isCarried) === true ? parsed : null;
}

/** What the proxies are asked for: `url` as it is written, without the noise that its rule names. */
export function carriedAddress(url: URL): string {
  const noise = ruleFor(url)?.[3];
  if (noise === undefined) return url.href;
  const kept = url.search
    .slice(1)
    .split("&")
    .filter((part) => !noise.includes(part.split("=")[0] ?? ""));
  return `${url.origin}${url.pathname}?${kept.join("&")}`;
}

function ruleFor({ hostname, pathname }: URL): SiteRule | undefined {
  return SITE_RULES.find(([host, path]) => (host?.test(hostname) ?? true) && path.test(pathname));
}

/** True for a manifest: it stays direct, but media is about to be asked for. */
export function isManifestUrl(url: string, base?: string): boolean {
  const parsed = parseHttpUrl(url, base);
  return parsed !== null && MANIFEST_PATH.test(parsed.pathname);
}

function parseHttpUrl(url: string, base?: string): URL | null {
  if (url.length > URL_LENGTH_MAX) return null;
  let parsed: URL;
  try {
    parsed = new URL(url, base);
  } catch {
    return null;
  }
  const isHttp = parsed.protocol === "https:" || parsed.protocol === "http:";
  return isHttp && parsed.username === "" && parsed.password === "" && parsed.href.length <= URL_LENGTH_MAX
    ? parsed
    : null;
}

/**
 * A `Range` header as a closed range, both ends inclusive. `undefined` means that the header is not one that the
 * proxies can carry (open end, suffix, several ranges, other unit, end before start): the request stays direct.
 */
export function parseRange(header: string): ByteRange | undefined {
  const match = RANGE_HEADER.exec(header.trim());
  if (match === null) return undefined;
  const range = { start: Number(match[1]), end: Number(match[2]) };
  return range.end >= range.start ? range : undefined;
}

/**
 * What the request headers allow: `range` null when there is none, or `undefined` when the request must stay native.
 */
export function carriedHeaders(headers: Iterable<readonly [string, string]>): { range: ByteRange | null } | undefined {
  let range: ByteRange | null = null;
  for (const [name, value] of headers) {
    const lower = name.toLowerCase();
    if (lower === "accept") continue;
    if (lower !== "range") return undefined;
    const parsed = parseRange(value);
    if (parsed === undefined) return undefined;
    range = parsed;
  }
  return { range };
}
