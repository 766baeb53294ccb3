/**
 * Runtime: messages between the extension's own contexts (background, transport, popup). Their senders are trusted:
 * chrome.runtime delivers messages of this extension only, and the listeners refuse those of content scripts.
 */
import type { Vouched } from "@tributary/client";
import type { GivenRule } from "./given-rules";
import type { BROUGHT_SCRIPTS } from "./names";
import type { Settings } from "./settings";

/**
 * The offscreen document has no chrome.storage, so it asks the background for the settings. `rules` are Origo's rules,
 * which the background stores for the pages.
 */
export type ToBackground =
  | { to: "background"; type: "bring"; script: BroughtScript }
  /** A document starts at `address`. The answer is CompiledPolicies of those that came with it; null if not known. */
  | { to: "background"; type: "start"; address: string }
  /** The same once more, after null: the background may hear of a document before it hears of its answer. */
  | { to: "background"; type: "late"; address: string }
  /** The same for policies in `<meta>` elements of a document that started at `address`. */
  | { to: "background"; type: "metas"; address: string; texts: string[] }
  | { to: "background"; type: "rules"; rules: GivenRule[] }
  | { to: "background"; type: "settings" }
  /** May the extension read pages of this origin? The answer is true or false. */
  | { to: "background"; type: "may"; origin: string }
  /** May the extension fetch `url` in the name of any page of this origin? The answer is true or false. */
  | { to: "background"; type: "ask"; pageOrigin: string; url: string }
  | { to: "background"; type: "badge"; badge: Badge };
/**
 * May a document's plain video be taken over? `here`: no redirect may be followed, because a policy may forbid where it
 * leads.
 */
export type PlainAnswer = "no" | "here" | "anywhere";
/**
 * To the content scripts of a tab. May a document of `pageOrigin` fetch `url`? A document of that origin answers false
 * if a policy refuses it, or may refuse it. Another one gives no answer, because the background hears only the first
 * one of a tab.
 */
export type ToContent = { to: "content"; pageOrigin: string; url: string };
export type BroughtScript = keyof typeof BROUGHT_SCRIPTS;
/** `access`: the viewer gave or took access to a site. */
export type ToTransportContext =
  ({ to: "transport"; type: "settings" } & SettingsAnswer) | { to: "transport"; type: "access" };
/**
 * `clientId` is the id of this installation in records; a reset by the viewer changes it. With `isPrivate` (a private
 * window) no record is sent, even if the settings allow it. Without `mayUseUdp` everything goes over HTTP.
 */
export type SettingsAnswer = { settings: Settings; clientId: string; isPrivate: boolean; mayUseUdp: boolean };

/** `proxies` counts those that carry bytes now. With `trouble`, videos play directly although the extension is on. */
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
  lies: number;
}

/** Whether bytes can come from a proxy in this state. */
export function isCarrying(state: string): boolean {
  return state === "open" || state === "http";
}

/** Cumulative since the transport started. The popup makes rates from two readings. */
export interface LiveFigures {
  /** Chromium has one transport, Firefox has one for each page with media. */
  transportId: string;
  atMs: number;
  mode: string;
  proxies: LiveProxy[];
  /** Chunks asked for so far. */
  downloads: number;
  /** Chunks being carried now. */
  active: number;
  deliveredBytes: number;
  /** Chunks that pages fetched directly, in full or from the middle on. */
  fallbacks: number;
  directBytes: number;
  /** Bytes of published files that elements of pages got from the browser, so that nobody checked them. */
  uncheckedBytes: number;
  trouble: Trouble | null;
  /** Why shares go over HTTP although the mode sends packets; null if they do not. */
  overHttp: "forbidden" | "blocked" | null;
  vouched: Vouched[];
}

/** Why the last chunk went direct. words.ts knows the kinds; `detail` is for people. */
export type Trouble = { kind: string; detail: string; atMs: number };
