/**
 * Words: chooses the popup's texts. Pure: `say` is handed in.
 */
import type { Mode } from "@tributary/contract";
import type { Vouched } from "@tributary/client";
import type { Voucher } from "@tributary/contract/record-fields";
import { isCarrying, type LiveFigures, type LiveProxy, type Trouble } from "./runtime";
import type { Say } from "./say";
import type { Settings } from "./settings";

/** The key of each mode's name. The key of its meaning ends in `Meaning`. */
export const MODE_KEYS: Readonly<Record<Mode, string>> = {
  direct: "modeDirect",
  "parallel-http": "modeParallelHttp",
  "split-http": "modeSplitHttp",
  "uncoded-mutp": "modeUncodedMutp",
  "coded-mutp": "modeCodedMutp",
  coded: "modeCoded",
};

/** The line under the name. `flowing` counts the proxies that sent bytes in the last seconds. */
export function statusSentence(say: Say, settings: Settings, figures: LiveFigures | null, flowing: number): string {
  if (!settings.enabled) return say("statusOff");
  if (settings.mode === "direct") return say("statusDirect");
  if (figures === null) return say("statusReady");
  if (figures.trouble !== null) return say("statusTrouble");
  const used = figures.proxies.filter(({ state }) => isCarrying(state)).length;
  const count = Math.max(flowing, used);
  if (figures.active > 0 || flowing > 0)
    return count === 0 ? say("statusConnecting") : countSentence(say, "statusLoading", count);
  return used === 0 ? say("statusReady") : countSentence(say, "statusConnected", used);
}

/** The text `key` with a count in it. The key of the form for one ends in `One`. */
function countSentence(say: Say, key: string, count: number, shown = String(count)): string {
  return count === 1 ? say(`${key}One`, shown) : say(key, shown);
}

/**
 * Why video plays directly although the extension is on; null if nothing is wrong. Firefox's transport runs in the
 * page, so the browser may keep it from the viewer's own device and network, as it keeps the page (Local Network
 * Access).
 */
export function troubleSentence(
  say: Say,
  settings: Settings,
  trouble: Trouble | null,
  isFirefox = false,
): string | null {
  if (!settings.enabled || settings.mode === "direct" || trouble === null) return null;
  return causeOf(say, trouble, settings, isFirefox);
}

/** What ended this long before the latest download still counts as what is playing. */
const PLAYING_MS = 15_000;
const KEY_CHARS_SHOWN = 8;

/** Who vouches for what is playing; null if nothing has played. If parts differ, the weakest word counts. */
export function vouchedSentence(say: Say, vouched: readonly Vouched[]): string | null {
  const latestMs = Math.min(...vouched.map(({ ageMs }) => ageMs));
  const [weakest] = vouched
    .filter(({ ageMs }) => ageMs <= latestMs + PLAYING_MS)
    .sort((a, b) => rankOf(a) - rankOf(b) || a.ageMs - b.ageMs);
  if (weakest === undefined) return null;
  const { by, publisher } = weakest;
  if (publisher === undefined) return say(VOUCHED_KEYS[by]);
  return say("vouchedPublisher", publisher.name, shownKey(publisher.key));
}

/** A line does not end at a hyphen of the key: a word joiner (U+2060), which nobody sees, follows it. */
const shownKey = (key: string): string => key.slice(0, KEY_CHARS_SHOWN).replaceAll("-", "-\u2060");

/** The weakest first. */
const VOUCHED_KEYS: Readonly<Record<Voucher, string>> = {
  nobody: "vouchedNobody",
  agreement: "vouchedAgreement",
  site: "vouchedSite",
  publisher: "vouchedPublisher",
};

const rankOf = ({ by }: Vouched): number => Object.keys(VOUCHED_KEYS).indexOf(by);

/** Which proxies were proven to send false data; null if none was. */
export function liarsSentence(say: Say, proxies: readonly LiveProxy[]): string | null {
  const names = proxies.filter(({ lies }) => lies > 0).map(({ name, id }) => name || id);
  return names.length === 0 ? null : countSentence(say, "liars", names.length, names.join(", "));
}

/** How much of published files came past the extension; null if nothing did. */
export function uncheckedSentence(say: Say, bytes: number): string | null {
  return bytes === 0 ? null : say("unchecked", bytesText(bytes));
}

/** A host on the viewer's own device or network. */
const LOCAL =
  /^(?:(?:10|127|169\.254|192\.168|172\.(?:1[6-9]|2\d|3[01]))\.[\d.]+|\[(?:::1|f[cde]).*|(?:.*\.)?local(?:host)?)$/;

function causeOf(say: Say, { kind, detail }: Trouble, { origoUrls }: Settings, isFirefox: boolean): string {
  const cause = detail.replace(/\.$/, "");
  if (kind === "origoUnreachable") {
    const isLocal = isFirefox && origoUrls.some((each) => LOCAL.test(new URL(each).hostname));
    return say(isLocal ? "causeOrigoLocal" : "causeOrigo", origoUrls.join(", "));
  }
  return say(CAUSE_KEYS[kind] ?? "causeOther", cause);
}

const CAUSE_KEYS: Readonly<Record<string, string>> = {
  egressRefused: "causeEgress",
  cors: "causeCors",
  status: "causeStatus",
  busy: "causeBusy",
  noProxies: "causeNoProxies",
  resting: "causeResting",
  differs: "causeDiffers",
  limited: "causeLimited",
  slow: "causeSlow",
  late: "causeLate",
};

const STATE_KEYS: Readonly<Record<string, string>> = {
  idle: "stateIdle",
  connecting: "stateConnecting",
  open: "stateOpen",
  closed: "stateClosed",
  http: "stateHttp",
  failed: "stateFailed",
  dropped: "stateDropped",
};

export function stateWord(say: Say, state: string): string {
  const key = STATE_KEYS[state];
  return key === undefined ? state : say(key);
}

export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  const step = bytes < 1000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3));
  const value = bytes / 1000 ** step;
  return `${step === 0 ? Math.round(value) : value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${units[step]}`;
}

export function rateText(bytesPerSec: number): string {
  return `${bytesText(Math.round(bytesPerSec))}/s`;
}

export function percentText(part: number): string {
  return part.toLocaleString(undefined, { style: "percent" });
}
