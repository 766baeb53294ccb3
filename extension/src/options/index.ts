/**
 * Options: all settings, the sites that the viewer allowed, and what a record contains. Texts from outside are set as
 * text nodes.
 */
import { SettingsView, element } from "../shared/controls";
import { localize, say } from "../shared/say";
import { readsEverySite, sitesOf } from "../shared/sites";
import { parseOrigoUrls } from "../shared/settings";

const origo = element<HTMLTextAreaElement>("origo");
const records = element<HTMLInputElement>("records");
const experimental = element<HTMLInputElement>("experimental");
const view = new SettingsView(show);

function show(): void {
  if (document.activeElement !== origo) origo.value = view.settings.origoUrls.join("\n");
  records.checked = view.settings.sendRecords;
  experimental.checked = view.settings.experimental;
  void showSites();
}

function tellSaved(key: string): void {
  element("saved").textContent = say(key);
}

async function showSites(): Promise<void> {
  const { offSites } = view.settings;
  const { origins = [] } = readsEverySite() ? {} : await chrome.permissions.getAll();
  element("sites-help").textContent = say(readsEverySite() ? "sitesAll" : "sitesHelp");
  element("no-sites").hidden = readsEverySite() || origins.length > 0;
  const allowed = sitesOf(origins);
  fill("sites", [...allowed.keys()], (site) =>
    chrome.permissions.remove({ origins: allowed.get(site) ?? [] }).then(showSites),
  );
  element("off-title").hidden = offSites.length === 0;
  fill("off-sites", offSites, (site) => view.save({ offSites: offSites.filter((each) => each !== site) }));
}

function fill(id: string, names: readonly string[], remove: (name: string) => unknown): void {
  const rows = names.map((name) => {
    const row = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "plain";
    button.textContent = say("remove");
    button.setAttribute("aria-label", `${say("remove")} ${name}`);
    button.addEventListener("click", () => void remove(name));
    row.append(name, button);
    return row;
  });
  element(id).replaceChildren(...rows);
}

function changeOrigo(): void {
  const parsed = parseOrigoUrls(origo.value.split(/\s+/).filter(Boolean));
  origo.setAttribute("aria-invalid", String(parsed === undefined));
  element("origo-problem").textContent = parsed === undefined ? say("origoProblem") : "";
  if (parsed === undefined || String(parsed) === String(view.settings.origoUrls)) return;
  view.save({ origoUrls: parsed });
  tellSaved("saved");
}

async function changeRecords(): Promise<void> {
  const wanted = records.checked;
  const allowed = !wanted || (await mayCollect());
  records.checked = wanted && allowed;
  view.save({ sendRecords: wanted && allowed });
  tellSaved("saved");
}

/** Asks for consent where the browser keeps it: Firefox does, beside the setting. */
async function mayCollect(): Promise<boolean> {
  if (!location.protocol.startsWith("moz")) return true;
  const wanted = { data_collection: ["technicalAndInteraction"] } as chrome.permissions.Permissions;
  return chrome.permissions.request(wanted);
}

async function reset(): Promise<void> {
  await chrome.storage.local.clear();
  const { origins = [] } = readsEverySite() ? {} : await chrome.permissions.getAll();
  if (origins.length > 0) await chrome.permissions.remove({ origins });
  location.hash = "reset";
  location.reload();
}

localize();
if (location.hash === "#reset") tellSaved("resetDone");
origo.addEventListener("change", changeOrigo);
records.addEventListener("change", () => void changeRecords());
experimental.addEventListener("change", () => {
  view.save({ experimental: experimental.checked });
  tellSaved("saved");
});
element("reset").addEventListener("click", () => void reset());
void view.start();
