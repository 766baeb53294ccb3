/** Parses the arguments of a client and of `get`. After that nothing checks them again. */
import { CACHE_MODES, CONNECTIONS_MAX, isPageOrigin, type ByteRange, type CacheMode } from "@tributary/contract";
import { CLIENT_SETTINGS } from "@tributary/contract/settings";
import { LIMITS } from "@tributary/protocol";
import { MODES, TRANSPORT_OPTIONS, type GetOptions, type Mode, type TransportOption } from "./api";
import { RequestError } from "./errors";
import type { StartOptions } from "./messages";
import { CONNECTIONS_DEFAULT } from "./settings";

export interface Request {
  /** An absolute http or https URL without its fragment. */
  readonly url: string;
  readonly range: ByteRange | undefined;
  readonly cache: CacheMode;
  readonly pageOrigin: string | undefined;
  readonly mode: Mode;
  readonly connections: number;
  readonly sharing: boolean;
  readonly allowFallback: boolean | "proxies";
  readonly mayAskSite: GetOptions["mayAskSite"];
  readonly onHeld: GetOptions["onHeld"];
  readonly purpose: NonNullable<GetOptions["purpose"]>;
  readonly headers: Readonly<Record<string, string>>;
  readonly decode: boolean;
  readonly verbatim: boolean;
  readonly comment: string | undefined;
  readonly userComment: string | undefined;
  readonly player: string | undefined;
  readonly tuning: Pick<StartOptions, (typeof TUNING)[number]>;
}

const TUNING = ["symbolBytes", "generationSize", "windowPackets", "feedbackEveryPackets", "feedbackEveryMs"] as const;
const OFFSET_MAX = 2 ** 48 - 1;
const TIMEOUT_MS_MAX = CLIENT_SETTINGS["client.directSilenceMs"].max;
const RETRIES_MAX = CLIENT_SETTINGS["client.retries"].max;
const TEXTS = [
  ["comment", 0, 1000],
  ["userComment", 0, 1000],
  ["player", 1, 64],
] as const;

/** Throws a RequestError for arguments that can never work. */
export function parseRequest(url: string, options: GetOptions): Request {
  const mode = options.mode ?? CLIENT_SETTINGS["client.mode"].default;
  if (!MODES.includes(mode)) throw new RequestError("mode", mode, MODES.join(", "));
  const cache = options.cache ?? "default";
  if (!CACHE_MODES.includes(cache)) throw new RequestError("cache", cache, CACHE_MODES.join(", "));
  const connections = options.connections ?? CONNECTIONS_DEFAULT;
  checkInteger("connections", connections, 1, CONNECTIONS_MAX);
  if (options.timeoutMs !== undefined) checkInteger("timeoutMs", options.timeoutMs, 100, TIMEOUT_MS_MAX);
  if (options.retries !== undefined) checkInteger("retries", options.retries, 0, RETRIES_MAX);
  for (const [name, charsMin, charsMax] of TEXTS) {
    const length = options[name]?.length;
    if (length !== undefined && (length < charsMin || length > charsMax))
      throw new RequestError(name, options[name], `${charsMin} to ${charsMax} characters`);
  }
  return {
    url: parseUrl(url),
    range: parseRange(options.range),
    cache,
    pageOrigin: parsePageOrigin(options.pageOrigin),
    mode,
    connections,
    sharing: options.sharing ?? CLIENT_SETTINGS["client.sharing"].default,
    allowFallback: options.allowFallback ?? CLIENT_SETTINGS["client.allowFallback"].default,
    mayAskSite: options.mayAskSite,
    onHeld: options.onHeld,
    purpose: options.purpose ?? "request",
    headers: parseHeaders(options.headers, mode),
    decode: options.decode ?? false,
    verbatim: options.verbatim ?? false,
    comment: options.comment,
    userComment: options.userComment,
    player: options.player,
    tuning: parseTuning(options),
  };
}

/** The URL without query string and fragment, as records and reports show it. */
export function plainUrl(url: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname;
}

function parseUrl(text: string): string {
  const allowed = "an absolute http or https URL without user name and password";
  if (!URL.canParse(text)) throw new RequestError("url", text, allowed);
  const url = new URL(text);
  if (!/^https?:$/.test(url.protocol) || url.username || url.password) throw new RequestError("url", text, allowed);
  url.hash = "";
  const byteCount = new TextEncoder().encode(url.href).length;
  if (byteCount > LIMITS.urlBytesMax)
    throw new RequestError("url length", byteCount, `at most ${LIMITS.urlBytesMax} bytes`);
  return url.href;
}

function parsePageOrigin(text: string | undefined): string | undefined {
  const isGood = text === undefined || (isPageOrigin(text) && text.length <= LIMITS.pageOriginBytesMax);
  if (!isGood) throw new RequestError("pageOrigin", text, "an http or https origin, as in https://page.example");
  return text;
}

function parseRange(range: ByteRange | undefined): ByteRange | undefined {
  if (range === undefined) return undefined;
  const { start, end } = range;
  const valid =
    Number.isSafeInteger(start) && Number.isSafeInteger(end) && start >= 0 && end >= start && end <= OFFSET_MAX;
  if (!valid) throw new RequestError("range", `${start}-${end}`, `whole numbers 0 <= start <= end <= ${OFFSET_MAX}`);
  return { start, end };
}

/** Proxies get no headers, and an answer without them may be another one. */
function parseHeaders(headers: GetOptions["headers"] = {}, mode: Mode): Request["headers"] {
  const names = Object.keys(headers);
  if (names.length > 0 && mode !== "direct") throw new RequestError("headers", names, "none, or mode direct");
  for (const name of names) {
    try {
      new Headers([[name, headers[name]!]]);
    } catch {
      throw new RequestError("headers", name, "names and values as RFC 9110 allows them");
    }
    if (name.toLowerCase() === "range") throw new RequestError("headers", name, "the option range");
  }
  return headers;
}

function parseTuning(options: GetOptions): Request["tuning"] {
  const tuning: { -readonly [K in keyof Request["tuning"]]: Request["tuning"][K] } = {};
  for (const name of TUNING) {
    const value = options[name];
    if (value === undefined) continue;
    const row = CLIENT_SETTINGS[`client.${name}`];
    // Origo sets 0 for the mode's own value. A caller leaves the option out.
    checkInteger(name, value, "zero" in row ? 1 : row.min, row.max);
    tuning[name] = value;
  }
  return tuning;
}

function checkInteger(what: string, value: unknown, min: number, max: number): void {
  const valid = Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
  if (!valid) throw new RequestError(what, value, `a whole number ${min}..${max}`);
}

/** Throws a RequestError. */
export function parseTransport(option: TransportOption = "auto"): TransportOption {
  if (!TRANSPORT_OPTIONS.includes(option)) throw new RequestError("transport", option, TRANSPORT_OPTIONS.join(", "));
  return option;
}

/** Throws a RequestError. */
export function parseOrigoUrl(text: string): string {
  const allowed = "an absolute http or https URL";
  if (!URL.canParse(text) || !/^https?:$/.test(new URL(text).protocol))
    throw new RequestError("origoUrl", text, allowed);
  return text.replace(/\/+$/, "");
}
