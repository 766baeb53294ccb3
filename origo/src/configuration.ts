/**
 * Configuration: the settings' values now, their versions, and the experiments, over the store. Another Origo over the
 * same database is noticed when `refresh` is called. What the values do is not known here.
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
import { notFound, Refusal } from "./http";
import { inTurn } from "./in-turn";
import { checkValues, presetOf, SETTINGS } from "./settings";
import type { AdminStore, ConfigVersion } from "./store/admin-store";

const HISTORY_MAX = 200;
const FIRST: ConfigVersion = { version: 0, author: "", reason: "", atMs: 0, values: {} };

export class Configuration extends EventEmitter<{ change: [] }> {
  #current = FIRST;
  #running: Experiment[] = [];
  /**
   * Reads what is stored; tells listeners when it differs from what was known. What was read before a change is not put
   * in its place.
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
    this.#current = newest;
    this.emit("change");
  }

  get version(): number {
    return this.#current.version;
  }

  number(key: string): number {
    return Number(this.#value(key));
  }

  text(key: string): string {
    return String(this.#value(key));
  }

  describe(): ConfigResponse {
    return { version: this.version, settings: [...SETTINGS], values: this.#current.values };
  }

  /** Values of this scope that differ from the defaults. */
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

  /** `values` is all that shall differ from the defaults. */
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
      const message = `baseVersion: somebody changed the configuration meanwhile, to version ${this.version}: look at it and try again`;
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

  /** Makes a draft. Arms may set what each download can have a value of its own for. */
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
      const checked = checkValues(arm.values, `arms[${index}].values`, (setting) => setting.perDownload === true);
      if ("fault" in checked) throw new Refusal(400, checked.fault);
      // A value equal to its default stays: the arm means it, whatever the configuration becomes.
      return arm;
    });
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

  /** Starts a draft, or stops a running one. What another Origo starts at the same time is known. */
  async moveExperiment(id: string, state: "running" | "stopped"): Promise<Experiment> {
    const moved = await this.#store.changeExperiment(id, (known, all) => {
      const from = state === "running" ? "draft" : "running";
      if (known.state !== from)
        throw new Refusal(409, {
          kind: "wrongState",
          field: "state",
          message: `state: only a ${from} experiment can become ${state}, this one is ${known.state}`,
        });
      if (state === "running")
        checkOverlap(
          known,
          all.filter((other) => other.state === "running"),
        );
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

  #value(key: string): SettingValues[string] {
    return this.#current.values[key] ?? presetOf(key);
  }
}

/** Two experiments that set the same thing would undo each other. */
function checkOverlap(experiment: Experiment, running: readonly Experiment[]): void {
  const keysOf = ({ arms }: Experiment): Set<string> => new Set(arms.flatMap((arm) => Object.keys(arm.values)));
  const mine = keysOf(experiment);
  for (const other of running) {
    const shared = [...keysOf(other)].find((key) => mine.has(key));
    if (shared !== undefined)
      throw new Refusal(409, {
        kind: "experimentsOverlap",
        message: `the running experiment ${other.name} sets ${shared} too: stop it first`,
      });
  }
}
