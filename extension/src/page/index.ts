/**
 * Page script (MAIN world, document_start): puts the transport in front of the page's own `fetch` and XMLHttpRequest.
 * It holds no secret and no privilege: whatever the page does to it, it can reach only what any page can reach.
 */
import type { GivenRule } from "../shared/given-rules";
import { PLAYERS } from "../shared/messages";
import { CONNECTED_EVENT, NEED_EVENT, PORT_MESSAGE, RULES_EVENT, SWITCH_EVENT } from "../shared/names";
import { useGivenRules } from "../shared/rules";
import { patchFetch } from "./fetch";
import { Link } from "./link";
import { nativeClearTimeout, nativeSetTimeout } from "./natives";
import { patienceMs } from "./patience";
import { watchPlainVideos } from "./plain";
import { patchXhr } from "./xhr";

const EXTENSION_ORIGIN = /^(?:chrome|moz)-extension:\/\//;

const link = new Link({
  summon: () => document.dispatchEvent(new CustomEvent(NEED_EVENT)),
  connected: () => document.dispatchEvent(new CustomEvent(CONNECTED_EVENT)),
  nowMs: () => performance.now(),
  patienceMs: () => Math.round(patienceMs(document.querySelectorAll("video"))),
  player: () => (Object.keys(PLAYERS) as (keyof typeof PLAYERS)[]).filter((name) => name in window).map((name) => PLAYERS[name])[0],
  setTimeout: (callback, ms) => nativeSetTimeout(callback, ms),
  clearTimeout: (timer) => nativeClearTimeout(timer as number | undefined),
});

window.addEventListener("message", (event) => {
  if (!EXTENSION_ORIGIN.test(event.origin) || event.data !== PORT_MESSAGE || event.ports[0] === undefined) return;
  link.attach(event.ports[0]);
  event.stopImmediatePropagation();
}, true);

document.addEventListener(SWITCH_EVENT, (event) => link.switch((event as CustomEvent<unknown>).detail === "on"));

// Parsed before they were stored; a page that forges them misleads itself alone, for the transport goes by its own.
document.addEventListener(RULES_EVENT, (event) => useGivenRules(JSON.parse((event as CustomEvent<string>).detail) as GivenRule[]));

// An opaque origin gets no port: nothing is patched there.
if (window.origin !== "null") {
  window.fetch = patchFetch(link);
  patchXhr(link);
  watchPlainVideos(link);
}
