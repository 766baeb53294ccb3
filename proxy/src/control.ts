/**
 * Control: combines the limits that a proxy was started with and the settings that Origo sends. Of two limits the
 * smaller one holds, so Origo can only lower a limit. Pure; proxy.ts applies the result.
 */
import type { ProxyControl } from "@tributary/contract/schema";
import { nameOf, PROXY_SETTINGS, settingFault, type ProxySettings } from "@tributary/contract/settings";
import type { ProxyConfig } from "./config";

/** The values that the proxy works with. The table of settings describes each of them. */
export type Limits = ProxySettings;

type Row = (typeof PROXY_SETTINGS)[keyof typeof PROXY_SETTINGS];
type StartVariable = Extract<Row, { start: unknown }>["start"]["variable"];

/** The limits of a proxy without Origo. */
export function limitsOf(config: Pick<ProxyConfig, StartVariable>): Limits {
  const values = Object.entries(PROXY_SETTINGS).map(([key, row]) => [
    nameOf(key),
    "start" in row ? config[row.start.variable] : row.default,
  ]);
  return Object.fromEntries(values) as Limits;
}

/** Lowers the limits to Origo's settings. A value that the table does not allow is ignored. */
export function narrowed(own: Limits, values: ProxyControl["values"]): Limits {
  const limits: Record<string, unknown> = { ...own };
  for (const [key, row] of Object.entries(PROXY_SETTINGS)) {
    const value = values[key];
    if (value === undefined || settingFault(row, value)) continue;
    const name = nameOf(key) as keyof Limits;
    limits[name] = row.effect === "narrows" ? stricter(row, own[name], value) : value;
  }
  return limits as unknown as Limits;
}

/** Of two numbers the smaller one is stricter; true is stricter than false. */
function stricter(row: Row, own: number | boolean, value: number | boolean | string): number | boolean {
  if (typeof own !== "number" || typeof value !== "number") return own || value === true;
  const rank = (limit: number): number => ("zero" in row && limit === 0 ? Infinity : limit);
  return rank(value) < rank(own) ? value : own;
}
