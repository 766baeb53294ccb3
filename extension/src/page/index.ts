/**
 * Page script (MAIN world, document_start): puts the transport in front of the page's own `fetch` and XMLHttpRequest.
 * It holds no secret and no privilege, so a page that tampers with it gains nothing.
 */
import type { PortLike, ToTransport } from "../shared/messages";
import {
  CARRY_READY_EVENT,
  CONNECTED_EVENT,
  NEED_EVENT,
  PORT_MESSAGE,
  RULES_EVENT,
  SECOND_EVENT,
  SWITCH_EVENT,
  THERE_EVENT,
} from "../shared/names";
import { useRules, type RuleSet } from "../shared/rules";
import { patchFetch } from "./fetch";
import { Link, type MakeCarrier } from "./link";
import { natives } from "./natives";
import { Permits } from "./permits";
import { watchPlainVideos } from "./plain";
import { patchXhr } from "./xhr";

const LISTED_MAX = 256;

const permits = new Permits({
  countPolicies: () => document.querySelectorAll("meta[http-equiv]").length,
  takeListed: makeTakeListed(),
  nowMs: () => performance.now(),
  setTimeout: natives.setTimeout,
});
const link = new Link({
  permits,
  summon: () => natives.tell(NEED_EVENT),
  connected: () => natives.tell(CONNECTED_EVENT),
  isThere: () => natives.tell(THERE_EVENT),
});

/**
 * In Firefox the origin of the frame's message names this installation, so the page's own functions must not meet the
 * event.
 */
function takePort(event: MessageEvent): void {
  const origin = natives.origin(event);
  if (!natives.startsWith(origin, "chrome-extension://") && !natives.startsWith(origin, "moz-extension://")) return;
  const port = natives.ports(event)[0];
  if (natives.data(event) !== PORT_MESSAGE || port === undefined) return;
  natives.hide(event);
  link.attach(portOf(port));
}

/** The port, as the browser's own functions use it. A getter or method of the page would meet it and could keep it. */
function portOf(port: MessagePort): PortLike<ToTransport> {
  const own: PortLike<ToTransport> = {
    postMessage: (message, transfer = []) => natives.send(port, message, transfer),
    onmessage: null,
    close: () => natives.close(port),
  };
  natives.listen<MessageEvent>(port, "message", (event) =>
    own.onmessage?.({ data: natives.data(event) as unknown } as MessageEvent),
  );
  natives.start(port);
  return own;
}

function listen(): void {
  natives.listen(window, "message", takePort);
  natives.listen(document, SECOND_EVENT, natives.cancel);
  natives.listen<CustomEvent<MakeCarrier>>(document, CARRY_READY_EVENT, (event) =>
    link.equip(natives.detail(event)(link, natives)),
  );
  natives.listen<CustomEvent>(document, SWITCH_EVENT, (event) => link.switch(natives.detail(event) === "on"));
  // The rules were parsed before they were stored. A page that forges them misleads only itself: the transport has its
  // own.
  natives.listen<CustomEvent<string>>(document, RULES_EVENT, (event) =>
    useRules(JSON.parse(natives.detail(event)) as RuleSet),
  );
}

/**
 * The browser's list of requests (Resource Timing). The page's own list may be full or cleared; what an observer hears
 * does not depend on it.
 */
function makeTakeListed(): () => PerformanceEntry[] {
  const heard: PerformanceEntry[] = [];
  let observer: PerformanceObserver | undefined;
  const note = (entries: PerformanceEntryList): void => {
    heard.push(...entries.slice(-LISTED_MAX));
    heard.splice(0, heard.length - LISTED_MAX);
  };
  return () => {
    if (observer === undefined) {
      observer = new PerformanceObserver((list) => note(list.getEntries()));
      observer.observe({ type: "resource", buffered: true });
    }
    note(observer.takeRecords());
    return heard.splice(0);
  };
}

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

// A page with an opaque origin gets no port, so nothing is patched there. Firefox runs this script again in open pages
// when the extension is enabled or updated, where the first one stays.
if (window.origin !== "null" && !natives.tell(SECOND_EVENT)) {
  listen();
  window.fetch = patchFetch(link, permits);
  patchXhr(link, permits);
  watchPlainVideos(link, permits);
  prepareForVideo();
}
