/**
 * Settings: every value that can be changed while the system runs, with type, range, unit, default and what it does.
 * Each one is applied: by clients to downloads that begin after they asked (client/src/remote-config.ts), by proxies at
 * once (proxy/src/control.ts), by Origo at once. What is fixed by the protocol is in protocol/src/limits.ts instead.
 */
import type { Setting, SettingValues } from "@tributary/contract/admin-schema";
import type { ApiError } from "@tributary/contract/schema";
import { SELECTIONS } from "./selection";
import { TUNING_DEFAULT as TUNING } from "./store/tuning";

type Value = SettingValues[string];

const MODES = ["direct", "parallel-http", "split-http", "uncoded-mutp", "coded-mutp", "coded"];
const MIB = 1024 * 1024;

interface Numbers {
  min: number;
  max: number;
  unit?: string;
}

const integer = (
  key: string,
  group: string,
  preset: number,
  { min, max, unit = "" }: Numbers,
  help: string,
): Setting => ({ key, type: "integer", scope: scopeOf(key), group, help, unit, min, max, default: preset });
const choice = (key: string, group: string, preset: string, options: readonly string[], help: string): Setting => ({
  key,
  type: "choice",
  scope: scopeOf(key),
  group,
  help,
  options: [...options],
  default: preset,
});
const toggle = (key: string, group: string, preset: boolean, help: string): Setting => ({
  key,
  type: "boolean",
  scope: scopeOf(key),
  group,
  help,
  default: preset,
});
const scopeOf = (key: string): Setting["scope"] => key.slice(0, key.indexOf(".")) as Setting["scope"];
const perDownload = (setting: Setting): Setting => ({ ...setting, perDownload: true });

const DOWNLOAD: readonly Setting[] = [
  choice(
    "client.mode",
    "Download",
    "coded",
    MODES,
    "How the bytes are shared among the proxies, where the caller names no mode.",
  ),
  integer(
    "client.connections",
    "Download",
    4,
    { min: 1, max: 32, unit: "proxies" },
    "Proxies used at once; fewer when fewer are live.",
  ),
  integer(
    "client.generationSize",
    "Coding",
    0,
    { min: 0, max: 128, unit: "symbols" },
    "Symbols coded together (g); 0 = the mode's own: 128 for coded, 24 else.",
  ),
  integer(
    "client.windowPackets",
    "Coding",
    0,
    { min: 0, max: 4096, unit: "packets" },
    "Window (w); 0 = the mode's own, 240.",
  ),
  integer("client.symbolBytes", "Coding", 1088, { min: 64, max: 1140, unit: "bytes" }, "Payload of a packet."),
  integer(
    "client.feedbackEveryPackets",
    "Coding",
    0,
    { min: 0, max: 4096, unit: "packets" },
    "Feedback after so many packets from a proxy; 0 = the mode's own, 24.",
  ),
  integer(
    "client.feedbackEveryMs",
    "Coding",
    0,
    { min: 0, max: 10_000, unit: "ms" },
    "Feedback at least this often; 0 = the mode's own: 5 to 10 for coded, by the round trip, 20 else.",
  ),
  toggle("client.allowFallback", "Fallback", true, "Fetch the rest from the origin itself when the proxies fail."),
  integer(
    "client.firstByteMs",
    "Fallback",
    8000,
    { min: 100, max: 60_000, unit: "ms" },
    "Without a first byte for this long, the proxies have failed.",
  ),
  integer("client.stallMs", "Fallback", 5000, { min: 100, max: 60_000, unit: "ms" }, "The same once bytes have come."),
  integer(
    "client.directSilenceMs",
    "Fallback",
    30_000,
    { min: 1000, max: 300_000, unit: "ms" },
    "Silence of the origin after which a direct download has failed.",
  ),
  integer(
    "client.closeWaitMs",
    "Download",
    1000,
    { min: 0, max: 10_000, unit: "ms" },
    "How long a record waits for late packets and the proxies' last words.",
  ),
  integer(
    "client.cutBytes",
    "Download",
    8 * MIB,
    { min: 64 * 1024, max: 32 * MIB, unit: "bytes" },
    "Longer requests than the protocol takes are cut into ranges of this size.",
  ),
  integer(
    "client.cutsInFlight",
    "Download",
    2,
    { min: 1, max: 8, unit: "ranges" },
    "Ranges of a cut request that are fetched at once.",
  ),
  integer(
    "client.sessionMs",
    "Sessions",
    1500,
    { min: 100, max: 60_000, unit: "ms" },
    "Where no session to any proxy is open by then, the download goes over HTTP through the same proxies.",
  ),
  integer(
    "client.tracePerMille",
    "Records",
    20,
    { min: 0, max: 1000, unit: "per mille" },
    "Of so many downloads the arrival of each packet is noted and reported.",
  ),
].map(perDownload);

const CLIENT: readonly Setting[] = [
  integer(
    "client.queuedBytesMax",
    "Download",
    8 * MIB,
    { min: 64 * 1024, max: 256 * MIB, unit: "bytes" },
    "Delivered bytes that may wait for their reader before no more are asked for.",
  ),
  integer(
    "client.connectTimeoutMs",
    "Sessions",
    5000,
    { min: 500, max: 60_000, unit: "ms" },
    "One try to reach a proxy.",
  ),
  integer(
    "client.connectTries",
    "Sessions",
    3,
    { min: 1, max: 10, unit: "tries" },
    "Tries to reach a proxy before it has failed.",
  ),
  integer(
    "client.connectBackoffMs",
    "Sessions",
    150,
    { min: 0, max: 10_000, unit: "ms" },
    "Before the second try; doubles.",
  ),
  integer(
    "client.headStartMs",
    "Sessions",
    500,
    { min: 0, max: 10_000, unit: "ms" },
    "What the transport tried first is ahead of the next one by.",
  ),
  integer(
    "client.idleCloseMs",
    "Sessions",
    55_000,
    { min: 1000, max: 600_000, unit: "ms" },
    "A session that nothing uses is closed after this.",
  ),
  integer(
    "client.choiceMs",
    "Sessions",
    600_000,
    { min: 0, max: 86_400_000, unit: "ms" },
    "The transport that worked with a proxy is tried first for so long.",
  ),
  integer(
    "client.memoryMs",
    "Sessions",
    600_000,
    { min: 0, max: 86_400_000, unit: "ms" },
    "A proxy's rate, round trip and loss are remembered for so long.",
  ),
  integer(
    "client.noTransportMs",
    "Sessions",
    60_000,
    { min: 0, max: 3_600_000, unit: "ms" },
    "After no session could be had, downloads go over HTTP at once for so long.",
  ),
  integer(
    "client.requestsOpenMax",
    "Download",
    12,
    { min: 1, max: 16, unit: "requests" },
    "Requests of one client that are open at the proxies at once.",
  ),
  integer(
    "client.reportQueueMax",
    "Records",
    1000,
    { min: 1, max: 100_000, unit: "records" },
    "Records that wait for Origo, and likewise error reports; beyond it the oldest are dropped.",
  ),
  integer(
    "client.reportBatchMax",
    "Records",
    50,
    { min: 1, max: 256, unit: "records" },
    "Sent to Origo in one request.",
  ),
  integer(
    "client.reportDelayMs",
    "Records",
    250,
    { min: 0, max: 60_000, unit: "ms" },
    "Reports that come together within this go together.",
  ),
  integer(
    "client.reportRetryMs",
    "Records",
    1000,
    { min: 100, max: 60_000, unit: "ms" },
    "Before reports are sent again; doubles.",
  ),
  integer(
    "client.reportRetryMsMax",
    "Records",
    30_000,
    { min: 100, max: 3_600_000, unit: "ms" },
    "The longest wait before reports are sent again.",
  ),
  integer(
    "client.reportTimeoutMs",
    "Records",
    3000,
    { min: 100, max: 60_000, unit: "ms" },
    "How long Origo is waited for when reports are sent.",
  ),
  integer(
    "client.tokenAgeMs",
    "Directory",
    45_000,
    { min: 1000, max: 86_400_000, unit: "ms" },
    "A token older than this is renewed before a download begins; keep it under the tokens' minutes.",
  ),
  integer(
    "client.askAgainMs",
    "Directory",
    100,
    { min: 0, max: 60_000, unit: "ms" },
    "Origo is not asked again sooner, when it could not be reached.",
  ),
  integer(
    "client.directoryTimeoutMs",
    "Directory",
    2000,
    { min: 100, max: 30_000, unit: "ms" },
    "How long Origo is waited for.",
  ),
  integer(
    "client.directoryAgeMs",
    "Directory",
    10_000,
    { min: 500, max: 60_000, unit: "ms" },
    "The list of proxies, and this configuration, are asked for anew after this.",
  ),
  integer(
    "client.proxyPenaltyMs",
    "Directory",
    10_000,
    { min: 0, max: 600_000, unit: "ms" },
    "A proxy that failed is left alone for this long.",
  ),
];

/** A proxy goes by the smaller of these and of what it was started with: Origo can narrow a proxy, never widen it. */
const PROXY: readonly Setting[] = [
  integer(
    "proxy.rateBytesPerSec",
    "Limits",
    0,
    { min: 0, max: 1e12, unit: "bytes/s" },
    "What each proxy sends at most; 0 = no limit but the proxy's own.",
  ),
  integer(
    "proxy.cacheBytes",
    "Limits",
    2 ** 40,
    { min: 0, max: 2 ** 40, unit: "bytes" },
    "Cache of each proxy at most.",
  ),
  integer(
    "proxy.pinnedBytes",
    "Limits",
    256 * MIB,
    { min: MIB, max: 256 * MIB, unit: "bytes" },
    "Chunks being read at once, in bytes, at most.",
  ),
  integer(
    "proxy.cacheKeepMs",
    "Limits",
    60_000,
    { min: 0, max: 60_000, unit: "ms" },
    "How long a chunk is kept at most.",
  ),
  integer(
    "proxy.sessionsMax",
    "Limits",
    100_000,
    { min: 0, max: 100_000, unit: "sessions" },
    "Sessions of each proxy at most.",
  ),
  integer(
    "proxy.sessionIdleMs",
    "Limits",
    60_000,
    { min: 1000, max: 600_000, unit: "ms" },
    "A session without requests is closed after this; holds for new sessions.",
  ),
  integer(
    "proxy.httpConnectionsMax",
    "Limits",
    1024,
    { min: 1, max: 1024, unit: "connections" },
    "HTTP connections of each proxy at most.",
  ),
  integer(
    "proxy.originHeadMs",
    "Origins",
    10_000,
    { min: 100, max: 10_000, unit: "ms" },
    "How long an origin may take to answer at most.",
  ),
  integer(
    "proxy.originStallMs",
    "Origins",
    15_000,
    { min: 100, max: 15_000, unit: "ms" },
    "Silence of an origin in mid-answer at most.",
  ),
  integer(
    "proxy.originTotalMs",
    "Origins",
    900_000,
    { min: 1000, max: 900_000, unit: "ms" },
    "An origin's whole answer at most.",
  ),
  toggle("proxy.requireToken", "Access", false, "Take only clients that show a token of this Origo."),
  integer(
    "proxy.heartbeatMs",
    "Registry",
    2000,
    { min: 500, max: 30_000, unit: "ms" },
    "Proxies report this often; one that misses two reports is gone.",
  ),
];

const ORIGO: readonly Setting[] = [
  choice("origo.selection", "Registry", "random", SELECTIONS, "Which proxies a client is told, where it does not say."),
  integer(
    "origo.nearKm",
    "Registry",
    3000,
    { min: 1, max: 20_040, unit: "km" },
    "How far a proxy may be to count as near.",
  ),
  integer(
    "origo.tokenMinutes",
    "Access",
    10,
    { min: 1, max: 1440, unit: "min" },
    "How long a client may begin sessions with a token.",
  ),
  integer(
    "origo.tokenBytes",
    "Access",
    4 * 1024 * MIB,
    { min: MIB, max: 2 ** 40, unit: "bytes" },
    "What each proxy sends on one token at most.",
  ),
  integer("origo.loginHours", "Login", 12, { min: 1, max: 720, unit: "h" }, "Who signed in is signed out after this."),
  integer(
    "origo.loginFailuresPerName",
    "Login",
    10,
    { min: 1, max: 1000, unit: "attempts" },
    "Failed attempts to sign in under one name before it has to wait.",
  ),
  integer(
    "origo.loginFailuresPerAddress",
    "Login",
    50,
    { min: 1, max: 10_000, unit: "attempts" },
    "Failed attempts from one address before it has to wait.",
  ),
  integer(
    "origo.loginWindowSec",
    "Login",
    300,
    { min: 1, max: 86_400, unit: "s" },
    "Failed attempts are forgotten after this.",
  ),
  integer(
    "origo.beatsMissedMax",
    "Registry",
    2,
    { min: 1, max: 10, unit: "heartbeats" },
    "A proxy that is silent for so many heartbeats is gone.",
  ),
  integer(
    "origo.proxiesMax",
    "Registry",
    1024,
    { min: 1, max: 100_000, unit: "proxies" },
    "Proxies that one Origo takes at once.",
  ),
  integer(
    "origo.refreshMs",
    "Registry",
    5000,
    { min: 500, max: 60_000, unit: "ms" },
    "What another Origo over the same database changed is noticed within this.",
  ),
  integer(
    "origo.retentionDays",
    "Records",
    0,
    { min: 0, max: 99_999, unit: "days" },
    "Records, error reports and traces are deleted after this; 0 = as RETENTION_DAYS says, else never.",
  ),
  integer(
    "origo.intakeWaitingMax",
    "Records",
    TUNING.intakeWaitingMax,
    { min: 1, max: 1_000_000, unit: "records" },
    "Records that may wait to be written; beyond it they are refused for now.",
  ),
  integer(
    "origo.intakeTogetherMax",
    "Records",
    TUNING.intakeTogetherMax,
    { min: 1, max: 100_000, unit: "records" },
    "Written in one transaction at most, unless one batch has more.",
  ),
  integer(
    "origo.intakeApartMs",
    "Records",
    TUNING.intakeApartMs,
    { min: 0, max: 10_000, unit: "ms" },
    "Between the beginnings of two transactions: longer costs less, and makes senders wait.",
  ),
  integer(
    "origo.diskReserveBytes",
    "Records",
    TUNING.diskReserveBytes,
    { min: 0, max: 2 ** 50, unit: "bytes" },
    "Records are refused for now when less of the disk is free.",
  ),
  integer(
    "origo.chartOutliersMax",
    "Analysis",
    TUNING.chartOutliersMax,
    { min: 0, max: 200, unit: "points" },
    "Outliers drawn for one box; more are drawn at random from them.",
  ),
  integer(
    "origo.chartCdfSteps",
    "Analysis",
    TUNING.chartCdfSteps,
    { min: 10, max: 1000, unit: "steps" },
    "Quantiles that one CDF is drawn from.",
  ),
  integer(
    "origo.chartPointsMax",
    "Analysis",
    TUNING.chartPointsMax,
    { min: 100, max: 100_000, unit: "points" },
    "Points of a time series, over all groups.",
  ),
  integer(
    "origo.bootstrapResamples",
    "Analysis",
    TUNING.bootstrapResamples,
    { min: 100, max: 10_000, unit: "resamples" },
    "Resamples behind the interval of a difference.",
  ),
  integer(
    "origo.clientsEnough",
    "Analysis",
    TUNING.clientsEnough,
    { min: 2, max: 10_000, unit: "clients" },
    "With fewer in a group, the page warns that the interval is too narrow.",
  ),
  integer(
    "origo.livePushMs",
    "Dashboard",
    1000,
    { min: 200, max: 60_000, unit: "ms" },
    "Open pages are told of changes at most this often.",
  ),
];

export const SETTINGS: readonly Setting[] = [...DOWNLOAD, ...CLIENT, ...PROXY, ...ORIGO];
const BY_KEY = new Map(SETTINGS.map((setting) => [setting.key, setting]));

export function presetOf(key: string): Value {
  const setting = BY_KEY.get(key);
  if (setting === undefined) throw new Error(`there is no setting ${key}`);
  return setting.default;
}

/** What differs from the defaults, or the first fault. `field` names the values' place in the request. */
export function checkValues(
  values: SettingValues,
  field: string,
  allowed: (setting: Setting) => boolean = () => true,
): { values: SettingValues } | { fault: ApiError } {
  const kept: SettingValues = {};
  for (const [key, value] of Object.entries(values)) {
    const setting = BY_KEY.get(key);
    const at = `${field}.${key}`;
    if (setting === undefined)
      return { fault: { kind: "unknownSetting", field: at, message: `${at}: there is no such setting` } };
    if (!allowed(setting))
      return {
        fault: {
          kind: "badField",
          field: at,
          message: `${at}: must be a setting that each download can have a value of its own for`,
        },
      };
    const fault = faultIn(setting, value);
    if (fault !== undefined)
      return { fault: { kind: "badField", field: at, message: `${at}: ${fault.message}`, ...fault.numbers } };
    if (value !== setting.default) kept[key] = value;
  }
  return { values: kept };
}

function faultIn(
  setting: Setting,
  value: Value,
): { message: string; numbers?: { got: number; limit: number } } | undefined {
  const { type, min = -Infinity, max = Infinity, options = [] } = setting;
  if (type === "boolean")
    return typeof value === "boolean" ? undefined : { message: `must be true or false, got ${JSON.stringify(value)}` };
  if (type === "choice")
    return options.includes(String(value)) && typeof value === "string"
      ? undefined
      : { message: `must be one of ${options.join(", ")}, got ${JSON.stringify(value)}` };
  if (type === "text")
    return typeof value === "string" ? undefined : { message: `must be text, got ${JSON.stringify(value)}` };
  if (typeof value !== "number" || (type === "integer" && !Number.isInteger(value)))
    return { message: `must be a ${type === "integer" ? "whole " : ""}number, got ${JSON.stringify(value)}` };
  if (value < min) return { message: `must be at least ${min}, got ${value}`, numbers: { got: value, limit: min } };
  return value > max
    ? { message: `must be at most ${max}, got ${value}`, numbers: { got: value, limit: max } }
    : undefined;
}
