/**
 * Content script (isolated world, document_start): on the page script's first need it puts the extension's frame into
 * the document, and switches off. Nothing else of the extension is reachable through it.
 */
import { parseSettings } from "../shared/settings";
import { siteOf } from "../shared/sites";
import { CONNECTED_EVENT, FRAME_PATH, NEED_EVENT, PLAIN_NEED_EVENT, RULES_EVENT, SWITCH_EVENT } from "../shared/names";
import type { GivenRule } from "../shared/given-rules";
import type { ToBackground } from "../shared/runtime";

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
    frame = placeFrame();
    lifeTimer = setTimeout(removeFrame, FRAME_LIFE_MS);
    void readIsOn().then((on) => {
      if (!on) switchOff();
    });
  });

  document.addEventListener(PLAIN_NEED_EVENT, () => {
    const need: ToBackground = { to: "background", type: "plain" };
    chrome.runtime.sendMessage(need).catch(() => undefined);
  });

  document.addEventListener(CONNECTED_EVENT, () => {
    if (keepFrame) clearTimeout(lifeTimer);
    else removeFrame();
  });

  void chrome.storage.local.get("siteRules").then(({ siteRules }) => tellRules(siteRules as GivenRule[] | undefined));

  chrome.storage.onChanged.addListener((changes, area) => {
    if (area === "local" && changes.siteRules !== undefined) tellRules((changes.siteRules.newValue ?? []) as GivenRule[]);
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
  const stored = await chrome.storage.local.get(["enabled", "offSites"]);
  const { enabled, offSites } = parseSettings(stored);
  const site = siteOf([...location.ancestorOrigins].at(-1) ?? location.href);
  return enabled && (site === undefined || !offSites.includes(site));
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

function tellRules(rules: GivenRule[] | undefined): void {
  if (rules !== undefined) document.dispatchEvent(new CustomEvent(RULES_EVENT, { detail: JSON.stringify(rules) }));
}

function tell(detail: "on" | "off"): void {
  document.dispatchEvent(new CustomEvent(SWITCH_EVENT, { detail }));
}
