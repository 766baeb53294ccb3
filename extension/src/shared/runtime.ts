/**
 * Runtime: messages between the extension's own contexts (background, transport, popup). These are trusted senders:
 * chrome.runtime delivers them from this extension only, and the listeners check that no tab's content script sent
 * them.
 */
import type { GivenRule } from "./given-rules";
import type { BROUGHT_SCRIPTS } from "./names";
import type { Settings } from "./settings";

/**
 * The offscreen document has no chrome.storage: it asks the background, and hears of changes from it. `rules`: what
 * Origo gave, kept for the pages.
 */
export type ToBackground =
  | { to: "background"; type: "bring"; script: BroughtScript }
  | { to: "background"; type: "rules"; rules: GivenRule[] }
  | { to: "background"; type: "settings" }
  | { to: "background"; type: "badge"; badge: Badge };
export type BroughtScript = keyof typeof BROUGHT_SCRIPTS;
export type ToTransportContext = { to: "transport"; type: "settings" } & SettingsAnswer;
/**
 * `clientId`: of this installation, for its records; another once the viewer has reset everything. `isPrivate`: for a
 * private window, of which no record is sent, whatever the settings.
 */
export type SettingsAnswer = { settings: Settings; clientId: string; isPrivate: boolean };

/** `proxies`: how many proxies carry bytes now (0 when nothing plays); `trouble`: videos play directly although on. */
export type Badge = { proxies: number; trouble: boolean };

export interface LiveProxy {
  id: string;
  name: string;
  state: string;
  bytes: number;
  packets: number;
  innovative: number;
  duplicate: number;
  rttMs: number | null;
}

/** Whether a proxy in this state is one that bytes come from. */
export function isCarrying(state: string): boolean {
  return state === "open" || state === "http";
}

/** Cumulative since the transport started; the popup makes rates of two of them. */
export interface LiveFigures {
  /** One in Chromium, one for each page with media in Firefox. */
  transportId: string;
  atMs: number;
  mode: string;
  proxies: LiveProxy[];
  /** Chunks asked for, being carried now, and carried to their end. */
  downloads: number;
  active: number;
  deliveredBytes: number;
  /** Chunks that the pages had to fetch, wholly or from the middle on, by themselves; and their bytes. */
  fallbacks: number;
  directBytes: number;
  trouble: Trouble | null;
}

/** Why the last chunk went direct. `kind` is closed in words.ts; `detail` is for people. */
export type Trouble = { kind: string; detail: string; atMs: number };
