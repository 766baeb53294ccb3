/** Settings: describes the table of settings to the dashboard, and checks values against it. */
import type { Setting, SettingValues } from "@tributary/contract/admin-schema";
import type { ApiError } from "@tributary/contract/schema";
import { settingFault, SETTINGS, type SettingKey } from "@tributary/contract/settings";

/** The rows of the table as the API shows them. */
export const DESCRIPTIONS: readonly Setting[] = Object.entries(SETTINGS).map(([key, row]) => ({
  key,
  scope: key.slice(0, key.indexOf(".")) as Setting["scope"],
  type: row.type,
  group: row.group,
  help: row.help,
  default: row.default,
  ...("unit" in row ? { unit: row.unit, min: row.min, max: row.max } : {}),
  ...("options" in row ? { options: [...row.options] } : {}),
  ...("perDownload" in row ? { perDownload: row.perDownload } : {}),
}));

export const isSettingKey = (key: string): key is SettingKey => Object.hasOwn(SETTINGS, key);

/**
 * Returns the values that differ from their defaults, or the first fault. `field` is the place of the values in the
 * request. With `perDownloadOnly`, only settings that can differ from download to download are allowed.
 */
export function checkValues(
  values: SettingValues,
  field: string,
  { perDownloadOnly = false } = {},
): { values: SettingValues } | { fault: ApiError } {
  const kept: SettingValues = {};
  for (const [key, value] of Object.entries(values)) {
    const at = `${field}.${key}`;
    if (!isSettingKey(key))
      return { fault: { kind: "unknownSetting", field: at, message: `${at}: there is no such setting` } };
    if (perDownloadOnly && !("perDownload" in SETTINGS[key])) {
      const message = `${at}: must be a setting that can differ from download to download`;
      return { fault: { kind: "badField", field: at, message } };
    }
    const fault = settingFault(SETTINGS[key], value);
    if (fault) return { fault: { kind: "badField", field: at, message: `${at}: ${fault.message}`, ...fault.numbers } };
    if (value !== SETTINGS[key].default) kept[key] = value;
  }
  return { values: kept };
}
