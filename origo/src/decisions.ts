/** Decisions: reads from the store what was decided about proxies, here or at another Origo. */
import type { Registry } from "./registry";
import type { AdminStore } from "./store/admin-store";

export class Decisions {
  /** The number of decisions made at this Origo. */
  #made = 0;
  readonly #store: AdminStore;
  readonly #registry: Registry;
  readonly #onChange: (proxyId: string) => void;

  /** Calls `onChange` for each proxy whose decision differs from what the registry knew. */
  constructor(store: AdminStore, registry: Registry, onChange: (proxyId: string) => void) {
    this.#store = store;
    this.#registry = registry;
    this.#onChange = onChange;
  }

  /** A decision was made at this Origo, so a reading that is running may be out of date. */
  noteOwn(): void {
    this.#made++;
  }

  async refresh(): Promise<void> {
    for (const { id, ...decision } of await this.#read()) {
      const before = this.#registry.decisionOn(id);
      const { state, name, isConvicted } = decision;
      if (before.state === state && before.name === name && before.isConvicted === isConvicted) continue;
      this.#registry.decide(id, decision);
      this.#onChange(id);
    }
  }

  async #read(): ReturnType<AdminStore["proxyStates"]> {
    for (;;) {
      const made = this.#made;
      const states = await this.#store.proxyStates();
      if (made === this.#made) return states;
    }
  }
}
