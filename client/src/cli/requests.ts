/** What a download asks for beside its address: the user's own headers, patience and caches. No I/O. */
import { InvalidArgumentError, Option, type Command } from "commander";
import { CLIENT_SETTINGS } from "@tributary/contract/settings";
import type { GetOptions } from "../api";
import { UsageError } from "./exit";
import { addTrustOptions, byteCount, seconds, wholeNumber, type TrustWords } from "./options";
import { parseRanges, plainRange, type RangeWish } from "./ranges";

/** These headers have options of their own, or frame the message. */
const OWN_OPTIONS: Record<string, string> = { range: "--range", "accept-encoding": "--compressed" };
const FRAMING = [
  "connection",
  "content-length",
  "expect",
  "keep-alive",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
];

const TIMEOUT_SEC_DEFAULT = CLIENT_SETTINGS["client.directSilenceMs"].default / 1000;

export interface RequestWords extends TrustWords {
  range?: RangeWish[];
  header?: [string, string][];
  user?: string;
  userAgent?: string;
  referer?: string;
  timeout?: number;
  retry?: number;
  limitRate?: number;
  compressed?: true;
  cache: boolean;
}

export function addRequestOptions(command: Command): Command {
  command.optionsGroup("Requests:");
  return addTrustOptions(command, "; then no proxy is used")
    .option(
      "-r, --range <A-B>",
      "bytes A to B, both included; A- to the end; -N the last; several: 0-9,20-29",
      parseRanges,
    )
    .option("-H, --header <header>", "send the origin a header, e.g. 'Cookie: a=b'; then no proxy is used", header)
    .option("-u, --user <name:password>", "log in at the origin; then no proxy is used")
    .option("-A, --user-agent <text>", "send the origin this User-Agent; then no proxy is used")
    .option("-e, --referer <url>", "send the origin this Referer; then no proxy is used")
    .addOption(refused("--proxy-header <header>", PROXY_HEADER_REFUSED))
    .addOption(refused("-x, --proxy <url>", PROXY_REFUSED))
    .option("--timeout <seconds>", `how long the origin may be silent (default: ${TIMEOUT_SEC_DEFAULT})`, seconds)
    .option("--retry <n>", "how often in a row to ask the origin again (default: 5)", wholeNumber)
    .option("--limit-rate <bytes>", "at most so many bytes a second, e.g. 500k", byteCount)
    .option("--compressed", "unpack a body that comes as gzip, deflate or br")
    .option("--no-cache", "take no answer from a cache that the origin does not confirm");
}

const PROXY_HEADER_REFUSED =
  "Proxies never get headers, because they share what they fetch. With -H the origin alone gets it.";
const PROXY_REFUSED =
  "Origo lists the proxies of Tributary. For direct requests, the variables http_proxy and https_proxy name a proxy.";

/** Users of curl know this option. */
function refused(flags: string, sentence: string): Option {
  const refuse = (): never => {
    throw new InvalidArgumentError(sentence);
  };
  return new Option(flags, "refused").argParser(refuse).hideHelp();
}

function header(text: string, before: readonly [string, string][] = []): [string, string][] {
  const [, name = "", value = ""] = /^([^:]*):(.*)$/s.exec(text) ?? [];
  try {
    new Headers([[name.trim(), value.trim()]]);
  } catch {
    throw new InvalidArgumentError("Allowed: NAME: VALUE in the characters that HTTP allows.");
  }
  const lower = name.trim().toLowerCase();
  if (OWN_OPTIONS[lower]) throw new InvalidArgumentError(`Use ${OWN_OPTIONS[lower]}.`);
  if (FRAMING.includes(lower)) throw new InvalidArgumentError("This header frames the message, and cannot be set.");
  return [...before, [lower, value.trim()]];
}

/** One address without its user name and password, and what to ask for. */
export interface Asked {
  url: string;
  options: GetOptions;
  /** What only the origin gets: the names of the user's headers, and options. Then no proxy is used. */
  forOrigin: string[];
}

/**
 * Proxies get addresses, never headers: a header can tell who asks, and the answer can be for this user alone. So a
 * request with headers of the user's own goes to the origin alone.
 */
export function askedOf(address: string, words: RequestWords, given: GetOptions): Asked {
  const { url, login } = withoutLogin(address);
  const headers = headersOf(words, login);
  const forOrigin = [
    ...Object.keys(headers),
    ...(words.cacert === undefined ? [] : ["--cacert"]),
    ...(words.insecure ? ["--insecure"] : []),
  ];
  const { retry } = words;
  const range = plainRange(words.range);
  // Without a fallback nobody else can bring the bytes, so the proxies get all of the time.
  const timeout = words.timeout ?? (given.allowFallback === false ? TIMEOUT_SEC_DEFAULT : undefined);
  const options: GetOptions = {
    ...given,
    recordAfterRead: true,
    ...(range === undefined ? {} : { range }),
    ...(timeout === undefined ? {} : { timeoutMs: Math.round(timeout * 1000) }),
    ...(retry === undefined ? {} : { retries: retry }),
    ...(words.compressed ? { decode: true } : {}),
    ...(words.cache ? {} : { cache: "no-cache" }),
  };
  if (forOrigin.length === 0) return { url, options, forOrigin };
  if (given.allowFallback === false && given.mode !== "direct")
    throw new UsageError(
      `--no-fallback forbids to ask the origin, and these are for the origin alone: ${forOrigin.join(", ")}.`,
    );
  return { url, options: { ...options, mode: "direct", headers }, forOrigin };
}

function headersOf({ header = [], user, userAgent, referer }: RequestWords, login: string | undefined) {
  const headers: Record<string, string> = {};
  const basic = user ?? login;
  if (basic !== undefined) {
    const text = basic.includes(":") ? basic : `${basic}:`;
    headers["authorization"] = `Basic ${Buffer.from(text).toString("base64")}`;
  }
  if (userAgent !== undefined) headers["user-agent"] = userAgent;
  if (referer !== undefined) headers["referer"] = referer;
  for (const [name, value] of header) {
    const separator = name === "cookie" ? "; " : ", ";
    const earlier = header.filter(([other]) => other === name);
    headers[name] = earlier.length > 1 ? earlier.map(([, each]) => each).join(separator) : value;
  }
  return headers;
}

/** As it is written otherwise: an address that cannot be parsed is the library's to refuse. */
function withoutLogin(address: string): { url: string; login: string | undefined } {
  if (!URL.canParse(address)) return { url: address, login: undefined };
  const { username, password } = new URL(address);
  if (username === "" && password === "") return { url: address, login: undefined };
  const url = address.replace(/^(\s*[a-z][a-z0-9+.-]*:[\\/]*)[^\\/?#]*@/i, "$1");
  return { url, login: `${decode(username)}:${decode(password)}` };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
