/**
 * Site: the popup's switch for the site of the active tab. Turning it on asks for access if the package has none.
 * Turning it off stores the site's name, and its pages load directly at once.
 */
import { element, type SettingsView } from "../shared/controls";
import { say } from "../shared/say";
import { isBoundToViewer, patternsOf, siteOf } from "../shared/sites";

export class SiteSwitch {
  readonly #view: SettingsView;
  readonly #button = element<HTMLButtonElement>("site");
  #tab: chrome.tabs.Tab | undefined;
  #site: string | undefined;
  #isAllowed = false;

  constructor(view: SettingsView) {
    this.#view = view;
    this.#button.addEventListener("click", () => void this.#turn());
    element("reload").addEventListener("click", () => {
      if (this.#tab?.id !== undefined) void chrome.tabs.reload(this.#tab.id).then(() => window.close());
    });
    chrome.permissions.onRemoved.addListener(() => void this.#heedAccess());
  }

  async start(): Promise<void> {
    const told = new URLSearchParams(location.search).get("tab");
    [this.#tab] =
      told === null
        ? await chrome.tabs.query({ active: true, currentWindow: true })
        : [await chrome.tabs.get(Number(told))];
    this.#site = siteOf(this.#tab?.url);
    await this.#heedAccess();
  }

  async #heedAccess(): Promise<void> {
    if (this.#site !== undefined)
      this.#isAllowed = await chrome.permissions.contains({ origins: patternsOf(this.#site) });
    this.show();
  }

  show(): void {
    const site = this.#site;
    this.#button.disabled = site === undefined;
    this.#button.setAttribute("aria-checked", String(this.#isOn()));
    element("site-name").textContent = site ?? "";
    element("site-state").textContent = say(this.#stateKey());
  }

  #isOn(): boolean {
    return this.#site !== undefined && this.#isAllowed && !this.#view.settings.offSites.includes(this.#site);
  }

  #stateKey(): string {
    if (this.#site === undefined) return "siteNone";
    if (isBoundToViewer(this.#site)) return this.#view.settings.experimental ? "siteYouTubeTried" : "siteYouTube";
    return this.#isOn() ? "siteOn" : this.#isAllowed ? "siteOff" : "siteAsk";
  }

  /** The browser allows the question for access only within the click, so nothing is awaited before it. */
  async #turn(): Promise<void> {
    const site = this.#site;
    if (site === undefined) return;
    const { offSites } = this.#view.settings;
    const others = offSites.filter((each) => each !== site);
    if (this.#isOn()) return this.#view.save({ offSites: [...others, site] });
    if (!this.#isAllowed) {
      this.#isAllowed = await chrome.permissions.request({ origins: patternsOf(site) });
      if (!this.#isAllowed) return this.show();
      element("reload").hidden = false;
    }
    this.#view.save({ offSites: others });
  }
}
