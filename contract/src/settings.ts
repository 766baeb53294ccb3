/**
 * The table of settings: every value that an operator can change while the system runs. One row for each, with its
 * type, default, limits, unit and meaning; the prefix of its key says who reads it. It imports no package, so
 * extension bundles stay small. Limits that the protocol fixes are in protocol/src/limits.ts.
 */
import { CLIENT_SETTINGS } from "./settings/client";
import { ORIGO_SETTINGS } from "./settings/origo";
import { PROXY_SETTINGS } from "./settings/proxy";
import type { ValueOf, ValuesOf } from "./settings/row";

export { settingFault, type SettingFault } from "./settings/check";
export { defaultsOf, nameOf, type NameOf } from "./settings/row";
export { CLIENT_SETTINGS, ORIGO_SETTINGS, PROXY_SETTINGS };

export const SETTINGS = { ...CLIENT_SETTINGS, ...PROXY_SETTINGS, ...ORIGO_SETTINGS };

export type SettingKey = keyof typeof SETTINGS;
export type SettingValue<Key extends SettingKey> = ValueOf<(typeof SETTINGS)[Key]>;

/** The values by name, such as `firstByteMs`. */
export type ClientSettings = ValuesOf<typeof CLIENT_SETTINGS>;
export type ProxySettings = ValuesOf<typeof PROXY_SETTINGS>;
export type OrigoSettings = ValuesOf<typeof ORIGO_SETTINGS>;
