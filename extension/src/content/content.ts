/**
 * Content script (isolated world, document_start): on the page script's first need it puts the extension's frame into
 * the document, and switches off. Nothing else of the extension is reachable through it.
 */
import { isOnAt } from "../shared/sites";
import { CONNECTED_EVENT, FRAME_PATH, NEED_EVENT, PLAIN_NEED_EVENT, RULES_EVENT, SWITCH_EVENT } from "../shared/names";
import type { RuleSet } from "../shared/rules";
import type { BroughtScript, ToBackground } from "../shared/runtime";

/** A frame that has led to nothing by then goes. */
const FRAME_LIFE_MS = 10_000;

/** `keepFrame`: the frame is the transport, not only the way to it. */
export function startContent({ keepFrame }: { keepFrame: boolean }): void {
  let frame: HTMLElement | null = null;
  let lifeTimer: ReturnType<typeof setTimeout> | undefined;
  let isOff = false;

  document.addEventListener(NEED_EVENT, () => {
    if (isOff || (frame?.isConnected === true && !keepFrame)) return;
    removeFrame();
    if (!isThere()) return;
    bring("carry");
    frame = placeFrame();
    lifeTimer = setTimeout(removeFrame, FRAME_LIFE_MS);
  });

  document.addEventListener(PLAIN_NEED_EVENT, () => {
    if (!isOff && isThere()) bring("plain");
  });

  document.addEventListener(CONNECTED_EVENT, () => {
    if (keepFrame) clearTimeout(lifeTimer);
    else removeFrame();
  });

  void heedStored();

  chrome.storage.onChanged.addListener((_, area) => {
    if (area === "local") void heedStored();
  });

  /**
   * Tells the page the rules, and whether the viewer has it on, and on for the site of this tab, where that is news.
   */
  async function heedStored(): Promise<void> {
    const stored = await chrome.storage.local.get(["siteRules", "experimental", "enabled", "offSites"]);
    const rules = { given: stored.siteRules ?? [], experimental: stored.experimental === true } as RuleSet;
    tell(RULES_EVENT, JSON.stringify(rules));
    if (isOnAt([...location.ancestorOrigins].at(-1) ?? location.href, stored) !== isOff) return;
    isOff = !isOff;
    if (isOff) removeFrame();
    tell(SWITCH_EVENT, isOff ? "off" : "on");
  }

  function removeFrame(): void {
    clearTimeout(lifeTimer);
    frame?.remove();
    frame = null;
  }
}

/**
 * The frame in an element that shows nothing of it to the page: in Firefox its address would tell this browser from all
 * others.
 */
function placeFrame(): HTMLElement {
  const placed = document.createElement("div");
  const inside = document.createElement("iframe");
  placed.style.cssText = "display:none!important";
  inside.src = chrome.runtime.getURL(FRAME_PATH);
  placed.attachShadow({ mode: "closed" }).append(inside);
  (document.body ?? document.documentElement).append(placed);
  return placed;
}

/** False in a page that was there before the extension was updated: its new copy has no way to it. */
function isThere(): boolean {
  return chrome.runtime?.id !== undefined;
}

const brought = new Set<BroughtScript>();

/**
 * Once: it stays in the document, and any script of the page can call for it. Where no background was there, the next
 * call tries again.
 */
function bring(script: BroughtScript): void {
  if (brought.has(script)) return;
  brought.add(script);
  const need: ToBackground = { to: "background", type: "bring", script };
  chrome.runtime.sendMessage(need).catch(() => brought.delete(script));
}

function tell(type: string, detail: string): void {
  document.dispatchEvent(new CustomEvent(type, { detail }));
}
