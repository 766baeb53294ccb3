/** Settings: the times and sizes that the client works with. The table of settings describes each of them. */
import type { SettingValues } from "@tributary/contract/admin-schema";
import { CLIENT_SETTINGS, nameOf, type ClientSettings, type NameOf } from "@tributary/contract/settings";
import { LIMITS } from "@tributary/protocol";
import type { GetOptions } from "./api";

export const CLIENT_VERSION = "0.1.0";

type Rows = typeof CLIENT_SETTINGS;
type OptionKey = { [Key in keyof Rows]: Rows[Key] extends { option: true } ? Key : never }[keyof Rows];

/** The settings that a caller gives as options of one download. */
export type OptionName = NameOf<OptionKey> & keyof GetOptions;

/** Every other setting. A caller may give a client other values, but the defaults suit almost everyone. */
export interface Settings extends Omit<ClientSettings, OptionName> {
  /** The longest request that is asked for in one piece. */
  chunkBytesMax: number;
}

const defaults = Object.entries(CLIENT_SETTINGS)
  .filter(([, row]) => !("option" in row))
  .map(([key, row]) => [nameOf(key), row.default]);

export const SETTINGS_DEFAULT: Settings = {
  ...(Object.fromEntries(defaults) as Omit<ClientSettings, OptionName>),
  chunkBytesMax: LIMITS.chunkBytesMax,
};

/**
 * Splits Origo's values into the options of a download and the settings of the client. Values of a wrong type are left
 * out, and so are zeros that leave the choice to the mode.
 */
export function splitValues(values: SettingValues): { options: GetOptions; settings: Partial<Settings> } {
  const options: Record<string, unknown> = {};
  const settings: Record<string, unknown> = {};
  for (const [key, row] of Object.entries(CLIENT_SETTINGS)) {
    const value = values[key];
    if (typeof value !== typeof row.default || ("zero" in row && value === 0)) continue;
    ("option" in row ? options : settings)[nameOf(key)] = value;
  }
  return { options, settings };
}

export const CONNECTIONS_DEFAULT = CLIENT_SETTINGS["client.connections"].default;

/**
 * The settings with the caller's patience. Without a fallback the proxies get all of the time that the caller gives,
 * otherwise as much as the settings say.
 */
export function withPatience(
  settings: Settings,
  { patienceMs = Infinity, timeoutMs, retries, allowFallback }: GetOptions,
): Settings {
  const silenceMs = (usualMs: number): number => {
    const ms = timeoutMs === undefined ? usualMs : allowFallback === false ? timeoutMs : Math.min(usualMs, timeoutMs);
    return Math.min(ms, patienceMs);
  };
  return {
    ...settings,
    sessionMs: allowFallback === false ? silenceMs(settings.sessionMs) : settings.sessionMs,
    firstByteMs: silenceMs(settings.firstByteMs),
    stallMs: silenceMs(settings.stallMs),
    directSilenceMs: timeoutMs ?? settings.directSilenceMs,
    retries: retries ?? settings.retries,
  };
}
