/**
 * Page script (MAIN world, document_start): puts the transport in front of the page's own `fetch` and XMLHttpRequest.
 * It holds no secret and no privilege, so a page that tampers with it gains nothing.
 */
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
import { Link, type LinkEnvironment, type MakeCarrier } from "./link";
import { natives } from "./natives";
import { Permits } from "./permits";
import { watchPlainVideos } from "./plain";
import { patchXhr } from "./xhr";

const EXTENSION_ORIGIN = /^(?:chrome|moz)-extension:\/\//;

const permits = new Permits(
  () => document.querySelectorAll("meta[http-equiv]").length,
  (url) => performance.getEntriesByName(url, "resource").length > 0,
);
const link = new Link({
  permits,
  summon: () => document.dispatchEvent(new CustomEvent(NEED_EVENT)),
  connected: () => document.dispatchEvent(new CustomEvent(CONNECTED_EVENT)),
  nowMs: () => performance.now(),
  setTimeout: natives.setTimeout,
  clearTimeout: natives.clearTimeout as LinkEnvironment["clearTimeout"],
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

// The rules were parsed before they were stored. A page that forges them misleads only itself: the transport has its
// own.
document.addEventListener(RULES_EVENT, (event) =>
  useRules(JSON.parse((event as CustomEvent<string>).detail) as RuleSet),
);

/** Asks for a port as soon as a loading page has a `<video>`, so that the port is ready before the player. */
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

// A page with an opaque origin gets no port, so nothing is patched there.
if (window.origin !== "null") {
  window.fetch = patchFetch(link, permits);
  patchXhr(link, permits);
  watchPlainVideos(link, permits);
  prepareForVideo();
}
