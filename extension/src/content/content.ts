/**
 * Content script (isolated world, document_start): puts the extension's frame into the document when the page script
 * first needs it, and tells the page script when the viewer turns the extension off. It gives access to nothing else.
 */
import { isOnAt } from "../shared/sites";
import {
  ACCESS_KEY,
  CONNECTED_EVENT,
  FRAME_PATH,
  NEED_EVENT,
  PLAIN_ANSWER_EVENT,
  PLAIN_NEED_EVENT,
  REFUSES_EVENT,
  RULES_EVENT,
  SWITCH_EVENT,
  THERE_EVENT,
} from "../shared/names";
import type { RuleSet } from "../shared/rules";
import type { BroughtScript } from "../shared/runtime";
import { ask } from "./ask";
import { mayFetchAny, mayPlay, refuses } from "./policies";

/** A frame that brought no working port by then is removed. */
const FRAME_LIFE_MS = 10_000;
/**
 * To bring a port takes much of the processor for a moment. A hidden page waits, so that the page in front and the
 * first answers of all tabs come first. The waits differ, so tabs that were opened together do not end them together.
 */
const HIDDEN_WAIT_MS_MIN = 2000;
const HIDDEN_WAIT_MS_SPREAD = 6000;

/** `keepFrame` says that the frame itself is the transport. */
export function startContent({ keepFrame }: { keepFrame: boolean }): void {
  let frame: HTMLElement | null = null;
  let lifeTimer: ReturnType<typeof setTimeout> | undefined;
  let waitTimer: ReturnType<typeof setTimeout> | undefined;
  let isOff = false;
  let isReadable = true;
  /** This content script has brought a port. After an update Firefox starts another one, which knows of no port. */
  let isUsed = false;

  hear(NEED_EVENT, () => {
    if (isOff || (frame?.isConnected === true && !keepFrame)) return;
    removeFrame();
    if (document.hidden) waitTimer = setTimeout(() => void connect(), hiddenWaitMs());
    else void connect();
  });

  hear("visibilitychange", () => {
    if (waitTimer !== undefined && !document.hidden) void connect();
  });

  hear(PLAIN_NEED_EVENT, async (event) => {
    const url = String((event as CustomEvent).detail);
    const answer = !isOff && isThere() ? await mayPlay(url) : "no";
    if (answer !== "no") bring("plain");
    tell(PLAIN_ANSWER_EVENT, `${answer} ${url}`);
  });

  hear(REFUSES_EVENT, (event) => {
    if (refuses(String((event as CustomEvent).detail))) event.preventDefault();
  });

  hear(THERE_EVENT, (event) => {
    if (isUsed && isThere()) event.preventDefault();
  });

  hear(CONNECTED_EVENT, () => {
    if (keepFrame) clearTimeout(lifeTimer);
    else removeFrame();
  });

  // For "back", Firefox keeps no page with open sessions or with a video on a MediaSource, and Chromium none with a
  // frame of an extension. Both look before `pagehide`. A page that is shown again, or is not left, asks for a port
  // again.
  window.addEventListener("beforeunload", () => {
    if (frame === null) return;
    removeFrame();
    tell(SWITCH_EVENT, "off");
    tell(SWITCH_EVENT, "on");
  });

  void heedStored();

  chrome.storage.onChanged.addListener((changes, area) => {
    if (area === "local") void heedStored(ACCESS_KEY in changes);
  });

  /**
   * Tells the page the rules, and after a change whether the extension is on for the site of this tab and may read the
   * page.
   */
  async function heedStored(isOtherAccess = false): Promise<void> {
    const stored = await chrome.storage.local.get(["siteRules", "experimental", "enabled", "offSites"]);
    if (isOtherAccess) isReadable = await mayRead();
    const rules = { given: stored.siteRules ?? [], experimental: stored.experimental === true } as RuleSet;
    tell(RULES_EVENT, JSON.stringify(rules));
    const isOn = isReadable && isOnAt([...location.ancestorOrigins].at(-1) ?? location.href, stored);
    if (isOn !== isOff) return;
    isOff = !isOff;
    if (isOff) removeFrame();
    tell(SWITCH_EVENT, isOff ? "off" : "on");
  }

  async function connect(): Promise<void> {
    stopWaiting();
    if (!isThere()) return;
    if (!(await mayFetchAny())) return tell(SWITCH_EVENT, "off");
    if (isOff || frame !== null) return;
    bring("carry");
    frame = placeFrame();
    isUsed = true;
    lifeTimer = setTimeout(removeFrame, FRAME_LIFE_MS);
  }

  function stopWaiting(): void {
    clearTimeout(waitTimer);
    waitTimer = undefined;
  }

  function removeFrame(): void {
    stopWaiting();
    clearTimeout(lifeTimer);
    frame?.remove();
    frame = null;
  }
}

const hiddenWaitMs = (): number => HIDDEN_WAIT_MS_MIN + HIDDEN_WAIT_MS_SPREAD * Math.random();

/**
 * Places the frame in a closed shadow root. In Firefox the frame's address is unique to this browser, so the page must
 * not see it.
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

/**
 * False in Chromium in a page that is older than an update of the extension. Firefox ends the content script itself.
 * The updated extension cannot reach such a page.
 */
function isThere(): boolean {
  return chrome.runtime?.id !== undefined;
}

/** Whether the viewer still lets the extension read this page. */
async function mayRead(): Promise<boolean> {
  return (await ask({ type: "may", origin: location.origin }, () => true)) !== false;
}

const brought = new Set<BroughtScript>();

/**
 * Asks the background to bring a script, once per page, because any script of the page can cause this. If no background
 * answers, the next call asks again.
 */
function bring(script: BroughtScript): void {
  if (brought.has(script)) return;
  brought.add(script);
  void ask({ type: "bring", script }, () => brought.delete(script));
}

function hear(type: string, listener: (event: Event) => void): void {
  document.addEventListener(type, listener);
}

function tell(type: string, detail: string): void {
  document.dispatchEvent(new CustomEvent(type, { detail }));
}
