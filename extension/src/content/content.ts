/**
 * Content script (isolated world, document_start): on the page script's first need it puts the extension's frame into
 * the document, and switches off. Nothing else of the extension is reachable through it.
 */
import { siteOf } from "../shared/sites";
import { CONNECTED_EVENT, FRAME_PATH, NEED_EVENT, PLAIN_NEED_EVENT, RULES_EVENT, SWITCH_EVENT } from "../shared/names";
import type { RuleSet } from "../shared/rules";
import type { BroughtScript, ToBackground } from "../shared/runtime";

/** A frame that has led to nothing by then goes. */
const FRAME_LIFE_MS = 10_000;

/** `keepFrame`: the frame is the transport, not only the way to it. */
export function startContent({ keepFrame }: { keepFrame: boolean }): void {
  let frame: HTMLIFrameElement | null = null;
  let lifeTimer: ReturnType<typeof setTimeout> | undefined;
  let isOff = false;

  document.addEventListener(NEED_EVENT, () => {
    if (frame?.isConnected === true && !keepFrame) return;
    removeFrame();
    if (!isThere()) return;
    bring("carry");
    frame = placeFrame();
    lifeTimer = setTimeout(removeFrame, FRAME_LIFE_MS);
    void readIsOn().then((on) => {
      if (!on) switchOff();
    });
  });

  document.addEventListener(PLAIN_NEED_EVENT, () => {
    if (isThere()) bring("plain");
  });

  document.addEventListener(CONNECTED_EVENT, () => {
    if (keepFrame) clearTimeout(lifeTimer);
    else removeFrame();
  });

  void tellRules();

  chrome.storage.onChanged.addListener((changes, area) => {
    if (area === "local" && (changes.siteRules !== undefined || changes.experimental !== undefined)) void tellRules();
    if (area !== "local" || (changes.enabled === undefined && changes.offSites === undefined)) return;
    void readIsOn().then((on) => {
      if (!on && !isOff) switchOff();
      else if (on && isOff) switchOn();
    });
  });

  function removeFrame(): void {
    clearTimeout(lifeTimer);
    frame?.remove();
    frame = null;
  }

  function switchOff(): void {
    isOff = true;
    removeFrame();
    tell("off");
  }

  function switchOn(): void {
    isOff = false;
    tell("on");
  }
}

/** Whether the viewer has it on, and on for the site of this tab. */
async function readIsOn(): Promise<boolean> {
  const { enabled, offSites } = await chrome.storage.local.get(["enabled", "offSites"]);
  const site = siteOf([...location.ancestorOrigins].at(-1) ?? location.href);
  return enabled !== false && !(Array.isArray(offSites) && offSites.includes(site));
}

function placeFrame(): HTMLIFrameElement {
  const placed = document.createElement("iframe");
  placed.src = chrome.runtime.getURL(FRAME_PATH);
  placed.style.cssText = "display:none!important";
  placed.setAttribute("aria-hidden", "true");
  placed.tabIndex = -1;
  (document.body ?? document.documentElement).append(placed);
  return placed;
}

/** False in a page that was there before the extension was updated: its new copy has no way to it. */
function isThere(): boolean {
  return chrome.runtime?.id !== undefined;
}

const brought = new Set<BroughtScript>();

/** Once: it stays in the document, and any script of the page can call for it. Where no background was there, the next call tries again. */
function bring(script: BroughtScript): void {
  if (brought.has(script)) return;
  brought.add(script);
  const need: ToBackground = { to: "background", type: "bring", script };
  chrome.runtime.sendMessage(need).catch(() => brought.delete(script));
}

async function tellRules(): Promise<void> {
  const { siteRules = [], experimental } = await chrome.storage.local.get(["siteRules", "experimental"]);
  const rules = { given: siteRules, experimental: experimental === true } as RuleSet;
  document.dispatchEvent(new CustomEvent(RULES_EVENT, { detail: JSON.stringify(rules) }));
}

function tell(detail: "on" | "off"): void {
  document.dispatchEvent(new CustomEvent(SWITCH_EVENT, { detail }));
}
