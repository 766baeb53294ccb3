/**
 * Settings: what the viewer can set, the defaults, and the parser for storage and the packaged defaults.json.
 * Pure: the background, the popup and the options page read and write chrome.storage.
 */
import { CONNECTIONS_MAX, MODES, type Mode } from "@tributary/contract";

const COMMENT_CHARS_MAX = 1000;
const OFF_SITES_MAX = 1000;
const ORIGOS_MAX = 8;
const TRANSPORTS = ["auto", "webtransport", "webrtc"] as const;
export type Transport = (typeof TRANSPORTS)[number];

export interface Settings {
  enabled: boolean;
  mode: Mode;
  /** Proxies asked for each chunk, 1..CONNECTIONS_MAX. */
  connections: number;
  /** Addresses of Origo servers, without a slash at the end. The first one that answers names the proxies. */
  origoUrls: string[];
  /** Send a record of each download to Origo. */
  sendRecords: boolean;
  /** Sites (hosts) that the viewer turned off. */
  offSites: string[];
  /** Goes into each record; for participants of a study. */
  comment: string;
  /** Use the experimental rules (rules.ts). */
  experimental: boolean;
  /** What carries the packets. Only the packaged defaults set it, for experiments. */
  transport: Transport;
}

export const BUILT_IN: Readonly<Settings> = {
  enabled: true,
  mode: "coded",
  connections: 4,
  origoUrls: ["http://127.0.0.1:7600"],
  sendRecords: false,
  offSites: [],
  comment: "",
  experimental: false,
  transport: "auto",
};
export const SETTING_KEYS = Object.keys(BUILT_IN) as (keyof Settings)[];

/** The valid values of `raw`. A missing or invalid value leaves the default. */
export function parseSettings(raw: unknown, defaults: Readonly<Settings> = BUILT_IN): Settings {
  const values = typeof raw === "object" && raw !== null ? (raw as Record<string, unknown>) : {};
  const { enabled, mode, connections, origoUrls, sendRecords, offSites, comment, experimental, transport } = values;
  return {
    enabled: typeof enabled === "boolean" ? enabled : defaults.enabled,
    mode: MODES.find((known) => known === mode) ?? defaults.mode,
    connections: parseConnections(connections) ?? defaults.connections,
    origoUrls: parseOrigoUrls(origoUrls) ?? [...defaults.origoUrls],
    sendRecords: typeof sendRecords === "boolean" ? sendRecords : defaults.sendRecords,
    offSites: parseSites(offSites) ?? [...defaults.offSites],
    comment: typeof comment === "string" && comment.length <= COMMENT_CHARS_MAX ? comment : defaults.comment,
    experimental: typeof experimental === "boolean" ? experimental : defaults.experimental,
    transport: TRANSPORTS.find((known) => known === transport) ?? defaults.transport,
  };
}

function parseConnections(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value >= 1 && value <= CONNECTIONS_MAX
    ? value
    : undefined;
}

function parseSites(value: unknown): string[] | undefined {
  return Array.isArray(value) && value.length <= OFF_SITES_MAX && value.every((site) => typeof site === "string")
    ? (value as string[])
    : undefined;
}

/** One to eight addresses, without repeats; `undefined` if any of them is invalid. */
export function parseOrigoUrls(value: unknown): string[] | undefined {
  if (!Array.isArray(value)) return undefined;
  const parsed = value.map(parseOrigoUrl);
  const urls = [...new Set(parsed.filter((url) => url !== undefined))];
  return urls.length >= 1 && urls.length <= ORIGOS_MAX && !parsed.includes(undefined) ? urls : undefined;
}

/**
 * An http(s) URL without credentials, query or fragment, and without slashes at its end. `undefined` for anything else.
 */
function parseOrigoUrl(value: unknown): string | undefined {
  if (typeof value !== "string" || value.length > 2048) return undefined;
  let url: URL;
  try {
    url = new URL(value.trim());
  } catch {
    return undefined;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return undefined;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") return undefined;
  return (url.origin + url.pathname).replace(/\/+$/, "");
}
