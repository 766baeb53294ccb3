/**
 * Configuration: the current values of the settings, their versions, and the experiments. They are in the store, so
 * `refresh` also finds the changes of other Origos over the same database. What a value does is not decided here.
 */
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import {
  ADMIN_LIMITS,
  type ClientConfig,
  type ConfigHistory,
  type ConfigResponse,
  type Experiment,
  type Setting,
  type SettingValues,
} from "@tributary/contract/admin-schema";
import {
  defaultsOf,
  nameOf,
  ORIGO_SETTINGS,
  settingFault,
  SETTINGS,
  type OrigoSettings,
  type SettingKey,
  type SettingValue,
} from "@tributary/contract/settings";
import { notFound, Refusal } from "./http";
import { inTurn } from "./in-turn";
import { checkValues, DESCRIPTIONS, isSettingKey } from "./settings";
import type { AdminStore, ConfigVersion } from "./store/admin-store";

const HISTORY_MAX = 200;
const FIRST: ConfigVersion = { version: 0, author: "", reason: "", atMs: 0, values: {} };

export class Configuration extends EventEmitter<{ change: [] }> {
  #current = FIRST;
  #running: Experiment[] = [];
  /**
   * Reads the stored configuration and emits `change` if it is new. Calls run one after another, so that an older
   * reading never replaces a newer one.
   */
  readonly refresh = inTurn(() => this.#read());

  readonly #store: AdminStore;
  readonly #nowMs: () => number;

  constructor(store: AdminStore, nowMs: () => number) {
    super();
    this.#store = store;
    this.#nowMs = nowMs;

    this.setMaxListeners(0);
  }

  async #read(): Promise<void> {
    const [newest = FIRST] = await this.#store.configVersions(1);
    this.#running = (await this.#store.experiments()).filter(({ state }) => state === "running");
    if (newest.version === this.#current.version) return;
    this.#current = { ...newest, values: known(newest.values) };
    this.emit("change");
  }

  get version(): number {
    return this.#current.version;
  }

  value<Key extends SettingKey>(key: Key): SettingValue<Key> {
    return (this.#current.values[key] ?? SETTINGS[key].default) as SettingValue<Key>;
  }

  /** The values of Origo's own settings, by name. */
  origoSettings(): OrigoSettings {
    const own = Object.entries(this.valuesOf("origo")).map(([key, value]) => [nameOf(key), value]);
    return { ...defaultsOf(ORIGO_SETTINGS), ...Object.fromEntries(own) };
  }

  describe(): ConfigResponse {
    return { version: this.version, settings: [...DESCRIPTIONS], values: this.#current.values };
  }

  /** The values of this scope that differ from their defaults. */
  valuesOf(scope: Setting["scope"]): SettingValues {
    return Object.fromEntries(Object.entries(this.#current.values).filter(([key]) => key.startsWith(`${scope}.`)));
  }

  forClients(): ClientConfig {
    return {
      version: this.version,
      values: this.valuesOf("client"),
      experiments: this.#running.map(({ id, arms }) => ({ id, arms })),
    };
  }

  async history(): Promise<ConfigHistory> {
    return { versions: await this.#store.configVersions(HISTORY_MAX) };
  }

  /** Makes a new version. `values` holds every value that differs from its default. */
  async change(
    author: string,
    change: { baseVersion: number; values: SettingValues; reason: string },
  ): Promise<ConfigResponse> {
    const checked = checkValues(change.values, "values");
    if ("fault" in checked) throw new Refusal(400, checked.fault);
    const next = {
      version: change.baseVersion + 1,
      author,
      reason: change.reason,
      atMs: this.#nowMs(),
      values: checked.values,
    };
    await this.refresh();
    if (change.baseVersion !== this.version || !(await this.#store.addConfigVersion(next))) {
      const message =
        "baseVersion: someone else changed the configuration in the meantime. " +
        `Look at version ${this.version} and try again`;
      throw new Refusal(409, {
        kind: "versionConflict",
        field: "baseVersion",
        message,
        got: change.baseVersion,
        limit: this.version,
      });
    }
    await this.refresh();
    return this.describe();
  }

  experiments(): Promise<Experiment[]> {
    return this.#store.experiments();
  }

  /** Makes a draft. Its arms may set only settings that can differ from download to download. */
  async addExperiment(author: string, draft: Pick<Experiment, "name" | "question" | "arms">): Promise<Experiment> {
    const got = (await this.#store.experiments()).length + 1;
    const limit = ADMIN_LIMITS.experiments;
    if (got > limit)
      throw new Refusal(409, {
        kind: "tooManyExperiments",
        message: `got ${got} experiments, the limit is ${limit}`,
        got,
        limit,
      });
    const names = new Set<string>();
    const arms = draft.arms.map((arm, index) => {
      if (names.has(arm.name))
        throw new Refusal(400, {
          kind: "badField",
          field: `arms[${index}].name`,
          message: `arms[${index}].name: two arms have this name`,
        });
      names.add(arm.name);
      const checked = checkValues(arm.values, `arms[${index}].values`, { perDownloadOnly: true });
      if ("fault" in checked) throw new Refusal(400, checked.fault);
      // A value that equals the default stays in the arm, because the configuration may change.
      return arm;
    });
    checkArmsDiffer(arms);
    const experiment: Experiment = {
      id: randomUUID(),
      name: draft.name,
      question: draft.question,
      arms,
      state: "draft",
      createdAtMs: this.#nowMs(),
      startedAtMs: null,
      stoppedAtMs: null,
      author,
    };
    await this.#store.addDocument("experiments", experiment);
    return experiment;
  }

  /** Starts a draft or stops a running experiment. Two Origos cannot start overlapping experiments at the same time. */
  async moveExperiment(id: string, state: "running" | "stopped"): Promise<Experiment> {
    const moved = await this.#store.changeExperiment(id, (known, all) => {
      const from = state === "running" ? "draft" : "running";
      if (known.state !== from)
        throw new Refusal(409, {
          kind: "wrongState",
          field: "state",
          message: `state: only a ${from} experiment can become ${state}; this one is ${known.state}`,
        });
      if (state === "running") {
        checkArmsDiffer(known.arms.map((arm) => ({ ...arm, values: this.#inForce(arm.values) })));
        checkOverlap(
          known,
          all.filter((other) => other.state === "running"),
        );
      }
      return {
        ...known,
        state,
        ...(state === "running" ? { startedAtMs: this.#nowMs() } : { stoppedAtMs: this.#nowMs() }),
      };
    });
    if (moved === undefined) throw notFound(`there is no experiment ${id}`);
    await this.refresh();
    return moved;
  }

  /** What a download of this arm uses now: its own values over those of the configuration. */
  #inForce(values: SettingValues): SettingValues {
    return Object.fromEntries(
      Object.entries({ ...this.valuesOf("client"), ...values }).filter(
        ([key, value]) => isSettingKey(key) && value !== SETTINGS[key].default,
      ),
    );
  }
}

/** Leaves out stored settings and values that the table does not have. */
const known = (values: SettingValues): SettingValues =>
  Object.fromEntries(
    Object.entries(values).filter(
      ([key, value]) => isSettingKey(key) && settingFault(SETTINGS[key], value) === undefined,
    ),
  );

/** Throws if two arms give the same values, because their downloads would not differ. */
function checkArmsDiffer(arms: Experiment["arms"]): void {
  const names = new Map<string, string>();
  for (const [index, { name, values }] of arms.entries()) {
    const text = JSON.stringify(Object.entries(values).sort(([a], [b]) => (a < b ? -1 : 1)));
    const twin = names.get(text);
    if (twin !== undefined) {
      const message = `arms[${index}].values: the arms ${twin} and ${name} have the same values: change one of them`;
      throw new Refusal(400, { kind: "badField", field: `arms[${index}].values`, message });
    }
    names.set(text, name);
  }
}

/** Throws if a running experiment changes one of the same settings: the two would disturb each other. */
function checkOverlap(experiment: Experiment, running: readonly Experiment[]): void {
  const keysOf = ({ arms }: Experiment): Set<string> => new Set(arms.flatMap((arm) => Object.keys(arm.values)));
  const mine = keysOf(experiment);
  for (const other of running) {
    const shared = [...keysOf(other)].find((key) => mine.has(key));
    if (shared !== undefined)
      throw new Refusal(409, {
        kind: "experimentsOverlap",
        message: `the running experiment ${other.name} also sets ${shared}: stop it first`,
      });
  }
}
