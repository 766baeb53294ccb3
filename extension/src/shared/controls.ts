/**
 * Controls: what the popup and the options page share. They show the settings, save a change, and both have the
 * controls for the mode and the number of proxies.
 */
import { CONNECTIONS_MAX, MODES, type Mode } from "@tributary/contract";
import { MODE_KEYS } from "./words";
import type { SettingsAnswer, ToBackground } from "./runtime";
import { say } from "./say";
import { parseSettings, type Settings } from "./settings";

export function element<E extends Element = HTMLElement>(id: string): E {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`${location.pathname} has no element ${id}`);
  return found as unknown as E;
}

export class SettingsView {
  settings: Settings = parseSettings(null);
  readonly #changed: () => void;
  readonly #mode = element<HTMLSelectElement>("mode");
  readonly #connections = element<HTMLInputElement>("connections");

  /** `changed` is called after each change of the settings, in whichever page. */
  constructor(changed: () => void) {
    this.#changed = changed;
  }

  async start(): Promise<void> {
    for (const mode of MODES) this.#mode.add(new Option(say(MODE_KEYS[mode]), mode));
    const question: ToBackground = { to: "background", type: "settings" };
    this.settings = ((await chrome.runtime.sendMessage(question)) as SettingsAnswer).settings;
    this.#mode.addEventListener("change", () => this.save({ mode: this.#mode.value as Mode }));
    this.#connections.max = String(CONNECTIONS_MAX);
    this.#connections.addEventListener("input", () => this.save({ connections: this.#connections.valueAsNumber }));
    chrome.storage.onChanged.addListener((changes, area) => {
      if (area !== "local") return;
      this.settings = parseSettings(
        Object.fromEntries(Object.entries(changes).map(([key, { newValue }]) => [key, newValue])),
        this.settings,
      );
      this.#show();
    });
    this.#show();
  }

  save(change: Partial<Settings>): void {
    this.settings = { ...this.settings, ...change };
    void chrome.storage.local.set(change);
    this.#show();
  }

  #show(): void {
    this.#mode.value = this.settings.mode;
    element("mode-meaning").textContent = say(`${MODE_KEYS[this.settings.mode]}Meaning`);
    this.#connections.value = String(this.settings.connections);
    element("connections-shown").textContent = String(this.settings.connections);
    this.#changed();
  }
}
