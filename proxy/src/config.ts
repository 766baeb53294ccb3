/**
 * Config: the environment variables of a proxy, parsed once by one schema. Every error names the variable, the value
 * that it has, and the values that are allowed.
 */
import { hostname } from "node:os";
import { isIP } from "node:net";
import { parseArgs } from "node:util";
import { z } from "zod";
import { parseOrigins } from "@tributary/contract";
import { doubtfulValues, misspeltVariables, oddValue } from "@tributary/contract/environment";
import { PROXY_SETTINGS } from "@tributary/contract/settings";
import { parseHostRule, type HostRule } from "./egress/policy";

export interface PublishedRange {
  host: string;
  first: number;
  last: number;
}

const PORTS_PROBED_MAX = 1024;

const integer = (max: number) => {
  const allowed = `must be a whole number from 0 to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, allowed)
    .transform(Number)
    .refine((value) => value <= max, allowed);
};

/** A variable that gives this proxy its own value of a setting. */
const ownValue = (
  key: "proxy.rateBytesPerSec" | "proxy.cacheBytes" | "proxy.sessionsMax" | "proxy.coderBytes" | "proxy.libraryBytes",
) => integer(PROXY_SETTINGS[key].max).default(String(PROXY_SETTINGS[key].start.default));

const flag = (preset: boolean) =>
  z
    .enum(["0", "1"], { message: "must be 0 or 1" })
    .optional()
    .transform((value) => (value === undefined ? preset : value === "1"));

/** `auto` measures and chooses. */
export const CODER_SETTINGS = ["auto", "cpu", "gpu", "both"] as const;
export type CoderSetting = (typeof CODER_SETTINGS)[number];

const publicPort = integer(65_535).refine((value) => value > 0, "must be a whole number from 1 to 65535");

const text = (max: number) => z.string().min(1).max(max, `must be 1 to ${max} characters`);

const address = z.string().refine((value) => isIP(value) !== 0, "must be an IP address");

const httpUrl = z.string().transform((value, context) => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  const plain = url && /^https?:$/.test(url.protocol) && url.username === "" && url.search === "" && url.hash === "";
  if (plain) return value.replace(/\/+$/, "");
  context.addIssue({
    code: z.ZodIssueCode.custom,
    message: "must be an http or https URL without user name, query and fragment",
  });
  return z.NEVER;
});

const hostRules = (anyAllowed: boolean) =>
  z.string().transform((value, context) => {
    const rules: HostRule[] = [];
    for (const item of value
      .split(",")
      .map((part) => part.trim())
      .filter((part) => part !== "")) {
      const rule = parseHostRule(item);
      const allowed = `a comma-separated list of HOST or HOST:PORT${anyAllowed ? ", or *" : ""}`;
      if (rule && (anyAllowed || rule.host !== "*")) rules.push(rule);
      else
        context.addIssue({
          code: z.ZodIssueCode.custom,
          message: `must be ${allowed}; ${JSON.stringify(item)} is not`,
        });
    }
    return rules;
  });

const pageOrigins = z.string().transform((value, context) => {
  const origins = parseOrigins(value);
  if (origins) return origins;
  const message = "must be a comma-separated list of origins of pages, as in https://player.example";
  context.addIssue({ code: z.ZodIssueCode.custom, message });
  return z.NEVER;
});

const published = z.string().transform((value, context): PublishedRange => {
  const match = /^([^:\s]+):(\d{1,5})(?:-(\d{1,5}))?$/.exec(value);
  const [first, last] = [Number(match?.[2]), Number(match?.[3] ?? match?.[2])];
  if (match && first >= 1 && last <= 65_535 && first <= last && last - first < PORTS_PROBED_MAX)
    return { host: match[1]!, first, last };
  context.addIssue({
    code: z.ZodIssueCode.custom,
    message: `must be HOST:FIRST-LAST, at most ${PORTS_PROBED_MAX} ports from 1 to 65535`,
  });
  return z.NEVER;
});

/** "LAT,LON" in degrees. */
const place = z.string().transform((value, context) => {
  const [lat, lon, ...more] = value.split(",").map(Number);
  if (lat !== undefined && lon !== undefined && more.length === 0 && Math.abs(lat) <= 90 && Math.abs(lon) <= 180)
    return { lat, lon };
  context.addIssue({ code: z.ZodIssueCode.custom, message: "must be LAT,LON in degrees, as in 47.5,19.05" });
  return z.NEVER;
});

const Variables = z.object({
  HOST: z
    .string()
    .transform((value) => (value === "localhost" ? "127.0.0.1" : value))
    .pipe(address)
    .default("127.0.0.1"),
  PORT: integer(65_535).default("0"),
  UDP_PORT: integer(65_535).default("0"),
  /** 0 means any free port, and `off` means no WebTransport. */
  WEBTRANSPORT_PORT: z
    .string()
    .regex(/^(off|\d{1,5})$/, "must be a port from 0 to 65535, or off")
    .transform((value) => (value === "off" ? value : Number(value)))
    .refine((value) => value === "off" || value <= 65_535, "must be a port from 0 to 65535, or off")
    .default("0"),
  /** Plain UDP is for Node programs on private links. It is off unless it has a port. */
  UDP_PLAIN_PORT: integer(65_535).optional(),
  PROXY_NAME: text(64).default(hostname().slice(0, 64) || "proxy"),
  ORIGO_URL: httpUrl.optional(),
  /** Where the proxy keeps its key. */
  DATA_DIR: z.string().optional(),
  /** A one-time code of Origo, for the first start. */
  ORIGO_CODE: text(256).optional(),
  /** A file that holds such a code. It is read again before each attempt to connect. */
  ORIGO_CODE_FILE: z.string().optional(),
  PUBLIC_URL: httpUrl.optional(),
  ALLOW_ORIGINS: pageOrigins.default(""),
  /** Reverse proxies in front of the HTTP port whose X-Forwarded-For is believed. */
  TRUSTED_HOPS: integer(16).default("0"),
  PUBLIC_ADDRESS: address.optional(),
  PUBLIC_UDP_PORT: publicPort.optional(),
  PUBLIC_WEBTRANSPORT_PORT: publicPort.optional(),
  PROBE_PUBLISHED: published.optional(),
  ALLOW_HOSTS: hostRules(true).default(""),
  ALLOW_PRIVATE_HOSTS: hostRules(false).default(""),
  RATE_BYTES_PER_SEC: ownValue("proxy.rateBytesPerSec"),
  CACHE_BYTES: ownValue("proxy.cacheBytes"),
  MAX_SESSIONS: ownValue("proxy.sessionsMax"),
  PLACE: place.optional(),
  OPERATOR: text(64).optional(),
  REQUIRE_TOKEN: flag(PROXY_SETTINGS["proxy.requireToken"].start.default),
  /** Where the proxy keeps the objects of publications. Without it there is no library. `--library` says the same. */
  LIBRARY_DIR: text(4096).optional(),
  LIBRARY_BYTES: ownValue("proxy.libraryBytes"),
  CODER_BYTES: ownValue("proxy.coderBytes"),
  CODES_ANEW: flag(PROXY_SETTINGS["proxy.codesAnew"].start.default),
  /** Which coders make coded packets. `--coder` says the same. */
  TRIBUTARY_CODER: z.enum(CODER_SETTINGS, { message: `must be one of ${CODER_SETTINGS.join(", ")}` }).default("auto"),
  /** The driver library of a GPU. `stand-in` uses a slowed CPU coder in its place, for tests. */
  TRIBUTARY_GPU: text(1024).default("libcuda.so.1"),
});

const Environment = Variables.refine((value) => value.ORIGO_URL === undefined || value.DATA_DIR !== undefined, {
  path: ["DATA_DIR"],
  message: "must be set to a folder where this proxy keeps the key by which the Origo at ORIGO_URL knows it",
});

export type ProxyConfig = z.infer<typeof Environment>;

const SECRETS = new Set(["ORIGO_CODE"]);

/** The environment with the options of the command line, which count more. Returns the fault if one is unknown. */
export function withOptions(
  env: Record<string, string | undefined>,
  args: string[],
): Record<string, string | undefined> | string {
  try {
    const { values } = parseArgs({ args, options: { coder: { type: "string" }, library: { type: "string" } } });
    const { coder, library } = values;
    if (library === "") return "--library needs a folder.";
    return {
      ...env,
      ...(coder === undefined ? {} : { TRIBUTARY_CODER: coder || "(empty)" }),
      ...(library === undefined ? {} : { LIBRARY_DIR: library }),
    };
  } catch (error) {
    return `${(error as Error).message} The options are --coder ${CODER_SETTINGS.join("|")} and --library DIR.`;
  }
}

const NAMES = Object.keys(Variables.shape);

/** What to warn of, one line each: variables that are probably misspelt, and values that may have a mistake. */
export const configWarnings = (env: Record<string, string | undefined>): string[] => [
  ...misspeltVariables(env, NAMES, ["ORIGO_"]),
  ...doubtfulValues(env, NAMES),
];

/**
 * An empty variable counts as not set. Returns the faults, one line each, if there are any. A variable that is missing
 * may be misspelt, so the warnings follow them.
 */
export function parseConfig(env: Record<string, string | undefined>): { config: ProxyConfig } | { faults: string[] } {
  const set = Object.fromEntries(Object.entries(env).filter(([, value]) => value !== undefined && value !== ""));
  const told = (name: string, message: string): string => {
    const value = set[name];
    const shown = value === undefined ? "not set" : SECRETS.has(name) ? "(hidden)" : JSON.stringify(value);
    return `${name}: ${message}; got ${shown}`;
  };
  const odd = oddValue(set, NAMES);
  if (odd) return { faults: [told(odd.name, odd.fault), ...configWarnings(env)] };
  const parsed = Environment.safeParse(set);
  if (parsed.success) return { config: parsed.data };
  const faults = parsed.error.issues.map(({ path, message }) => told(String(path[0]), message));
  return { faults: [...faults, ...configWarnings(env)] };
}
