/**
 * Page script (MAIN world, document_start): puts the transport in front of the page's own `fetch` and XMLHttpRequest.
 * It holds no secret and no privilege: whatever the page does to it, it can reach only what any page can reach.
 */
import type { MakeCarrier } from "../shared/carry";
import {
  CARRY_READY_EVENT,
  CONNECTED_EVENT,
  NEED_EVENT,
  PORT_MESSAGE,
  RULES_EVENT,
  SWITCH_EVENT,
} from "../shared/names";
import { useRules, type RuleSet } from "../shared/rules";
import { patchFetch } from "./fetch";
import { Link } from "./link";
import { natives } from "./natives";
import { watchPlainVideos } from "./plain";
import { patchXhr } from "./xhr";

const EXTENSION_ORIGIN = /^(?:chrome|moz)-extension:\/\//;

const link = new Link({
  summon: () => document.dispatchEvent(new CustomEvent(NEED_EVENT)),
  connected: () => document.dispatchEvent(new CustomEvent(CONNECTED_EVENT)),
  nowMs: () => performance.now(),
  setTimeout: (callback, ms) => natives.setTimeout(callback, ms),
  clearTimeout: (timer) => natives.clearTimeout(timer as number | undefined),
});

window.addEventListener(
  "message",
  (event) => {
    if (!EXTENSION_ORIGIN.test(event.origin) || event.data !== PORT_MESSAGE || event.ports[0] === undefined) return;
    link.attach(event.ports[0]);
    event.stopImmediatePropagation();
  },
  true,
);

document.addEventListener(CARRY_READY_EVENT, (event) =>
  link.equip((event as CustomEvent<MakeCarrier>).detail(link, natives)),
);
document.addEventListener(SWITCH_EVENT, (event) => link.switch((event as CustomEvent<unknown>).detail === "on"));

// Parsed before they were stored; a page that forges them misleads itself alone, for the transport goes by its own.
document.addEventListener(RULES_EVENT, (event) =>
  useRules(JSON.parse((event as CustomEvent<string>).detail) as RuleSet),
);

/** A page that has a `<video>` while it loads is likely to play it: the port is there before its player is. */
function prepareForVideo(): void {
  const videos = document.getElementsByTagName("video");
  const observer = new MutationObserver(() => {
    if (videos.length === 0) return;
    observer.disconnect();
    link.prepare();
  });
  observer.observe(document, { childList: true, subtree: true });
  window.addEventListener("load", () => observer.disconnect());
}

// An opaque origin gets no port: nothing is patched there.
if (window.origin !== "null") {
  window.fetch = patchFetch(link);
  patchXhr(link);
  watchPlainVideos(link);
  prepareForVideo();
}
