/**
 * Words: what the popup says, in plain sentences. Pure; the only place with text for the viewer besides popup.html.
 */
import { isCarrying, type LiveFigures, type Trouble } from "../shared/runtime";
import type { Mode, Settings } from "../shared/settings";

export const MODE_WORDS: Readonly<Record<Mode, { short: string; meaning: string }>> = {
  direct: { short: "Direct", meaning: "Everything comes from the site itself, without proxies." },
  "parallel-http": { short: "HTTP", meaning: "Parallel HTTP: every proxy sends the segment, the first bytes to come are used." },
  "split-http": { short: "Split HTTP", meaning: "Split HTTP: every proxy sends other pieces of the segment, as many as it is fast." },
  "uncoded-mutp": { short: "MUTP", meaning: "Uncoded MUTP: every proxy sends packets of the segment, chosen by chance." },
  "coded-mutp": { short: "Coded MUTP", meaning: "Coded MUTP: every proxy sends network-coded packets, each for itself." },
  coded: { short: "Coded", meaning: "Coded: network-coded packets, each proxy as many as it is fast; any of them counts." },
};

/** The line under the name. `flowing`: proxies from which bytes came in the last seconds. */
export function statusSentence(settings: Settings, figures: LiveFigures | null, flowing: number): string {
  if (!settings.enabled) return "Off. Videos play as they would without it.";
  if (settings.mode === "direct") return "Mode is direct: no video goes through proxies.";
  if (figures === null) return "Ready. No video has played yet.";
  if (figures.trouble !== null) return "On, but videos play directly.";
  const used = figures.proxies.filter(({ state }) => isCarrying(state)).length;
  if (figures.active > 0 || flowing > 0) return `Bringing video through ${count(Math.max(flowing, used), "proxy", "proxies")}.`;
  return used > 0 ? `Ready, connected to ${count(used, "proxy", "proxies")}.` : "Ready.";
}

/** Why video plays directly although the extension is on; null when nothing is wrong. */
export function troubleSentence(settings: Settings, trouble: Trouble | null): string | null {
  if (!settings.enabled || settings.mode === "direct" || trouble === null) return null;
  return `${causeOf(trouble, settings)} Video plays directly.`;
}

function causeOf({ kind, detail }: Trouble, settings: Settings): string {
  switch (kind) {
    case "noProxies":
      return detail.includes("cannot be reached") ? `No proxies: Origo at ${settings.origoUrl} does not answer.` : `No proxies: ${detail.replace(/\.$/, "")}.`;
    case "egressRefused":
      return "The proxies are not allowed to fetch from this site.";
    case "cors":
      return "This site does not share its video with the page, as far as the proxies can see.";
    case "status":
      return `The site treats the proxies differently: ${detail}.`;
    case "busy":
      return `Too much is asked for at once (${detail}).`;
    default:
      return `The proxies could not bring the last part: ${detail.replace(/\.$/, "")}.`;
  }
}

const STATE_WORDS: Readonly<Record<string, string>> = {
  idle: "idle", connecting: "connecting", open: "connected", closed: "closed", http: "HTTP", failed: "failed",
};

export function stateWord(state: string): string {
  return STATE_WORDS[state] ?? state;
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
  return `${Math.round(part * 100)} %`;
}

function count(number: number, one: string, many: string): string {
  return `${number} ${number === 1 ? one : many}`;
}
