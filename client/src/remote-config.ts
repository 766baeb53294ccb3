/**
 * Remote configuration: the operator's values for clients, and the arms of running experiments. The client asks for it
 * together with the list of proxies. The caller's own values always win. A download joins an experiment only if the
 * caller set none of the values that the arms set, so a record never names an arm that was not followed.
 */
import type { ClientConfig } from "@tributary/contract/admin-schema";
import type { DrawnArm } from "@tributary/contract/schema";
import { nameOf } from "@tributary/contract/settings";
import type { GetOptions } from "./api";
import type { Platform } from "./platform";
import { splitValues, type Settings } from "./settings";

export interface Configured {
  /** These options count as if the caller had set them. */
  options: GetOptions;
  settings: Partial<Settings>;
  /** The version for the record. Undefined before Origo's first answer. */
  configVersion: number | undefined;
  experiments: DrawnArm[];
}

const NOTHING: ClientConfig = { version: 0, values: {}, experiments: [] };

export class RemoteConfig {
  #known: ClientConfig | undefined;

  readonly #origoUrl: string;
  readonly #platform: Platform;
  readonly #settings: Pick<Settings, "directoryTimeoutMs">;

  constructor(origoUrl: string, platform: Platform, settings: Pick<Settings, "directoryTimeoutMs">) {
    this.#origoUrl = origoUrl;
    this.#platform = platform;
    this.#settings = settings;
  }

  /** Asks Origo again. Keeps the known values if Origo does not answer. */
  async refresh(): Promise<void> {
    try {
      const response = await this.#platform.fetch(`${this.#origoUrl}/v1/client-config`, {
        signal: AbortSignal.timeout(this.#settings.directoryTimeoutMs),
        cache: "no-store",
        credentials: "omit",
      });
      const answer: unknown = response.ok ? await response.json() : undefined;
      if (isClientConfig(answer)) this.#known = answer;
    } catch {
      // The directory reports an Origo that cannot be reached. Downloads use the known values.
    }
  }

  /** The settings that apply to the whole client. */
  get clientSettings(): Partial<Settings> {
    return splitValues(this.#known?.values ?? {}).settings;
  }

  /** Draws the arms of a download. `given` names the options that the caller set. The same ids draw the same arms. */
  draw(clientId: string, downloadId: string, given: ReadonlySet<string>): Configured {
    const { version, values, experiments } = this.#known ?? NOTHING;
    const merged = { ...values };
    const drawn: DrawnArm[] = [];
    for (const { id, arms } of experiments) {
      const isFixed = arms.some((arm) => Object.keys(arm.values).some((key) => given.has(nameOf(key))));
      const arm = isFixed ? undefined : pick(arms, unitOf(`${clientId} ${downloadId} ${id}`));
      if (!arm) continue;
      Object.assign(merged, arm.values);
      drawn.push({ id, arm: arm.name });
    }
    return { ...splitValues(merged), configVersion: this.#known && version, experiments: drawn };
  }
}

function pick<T extends { weight: number }>(arms: readonly T[], unit: number): T | undefined {
  let left = unit * arms.reduce((sum, arm) => sum + arm.weight, 0);
  return arms.find((arm) => (left -= arm.weight) < 0) ?? arms[arms.length - 1];
}

/** Maps a text evenly to 0 up to 1: FNV-1a with the finisher of MurmurHash3. */
export function unitOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return ((hash ^ (hash >>> 16)) >>> 0) / 2 ** 32;
}

function isClientConfig(value: unknown): value is ClientConfig {
  if (typeof value !== "object" || value === null) return false;
  const { version, values, experiments } = value as Record<string, unknown>;
  return typeof version === "number" && typeof values === "object" && values !== null && Array.isArray(experiments);
}
