/**
 * Content script (isolated world, document_start): on the page script's first need it puts the extension's frame into
 * the document, and takes it out once the port works. Nothing else of the extension is reachable through it.
 */
import { CONNECTED_EVENT, FRAME_PATH, NEED_EVENT, SWITCH_EVENT } from "../shared/names";

/** A frame that has led to nothing by then goes. */
const FRAME_LIFE_MS = 10_000;

let frame: HTMLIFrameElement | null = null;
let isOff = false;

document.addEventListener(NEED_EVENT, () => {
  if (frame !== null) return;
  placeFrame();
  void chrome.storage.local.get("enabled").then(({ enabled }) => {
    if (enabled === false) switchOff();
  });
});

document.addEventListener(CONNECTED_EVENT, removeFrame);

chrome.storage.onChanged.addListener((changes, area) => {
  if (area !== "local" || changes.enabled === undefined) return;
  if (changes.enabled.newValue === false) switchOff();
  else if (isOff) tell("on");
});

function placeFrame(): void {
  const placed = document.createElement("iframe");
  placed.src = chrome.runtime.getURL(FRAME_PATH);
  placed.style.cssText = "display:none!important";
  placed.setAttribute("aria-hidden", "true");
  placed.tabIndex = -1;
  frame = placed;
  (document.body ?? document.documentElement).append(placed);
  setTimeout(() => {
    if (frame === placed) removeFrame();
  }, FRAME_LIFE_MS);
}

function removeFrame(): void {
  frame?.remove();
  frame = null;
}

function switchOff(): void {
  isOff = true;
  removeFrame();
  tell("off");
}

function tell(detail: "on" | "off"): void {
  if (detail === "on") isOff = false;
  document.dispatchEvent(new CustomEvent(SWITCH_EVENT, { detail }));
}
