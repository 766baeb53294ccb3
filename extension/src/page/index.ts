/**
 * Page script (MAIN world, document_start): puts the transport in front of the page's own `fetch` and XMLHttpRequest.
 * It holds no secret and no privilege, so a page that tampers with it gains nothing.
 */
import type { PortLike, ToTransport } from "../shared/messages";
import {
  CARRY_READY_EVENT,
  CONNECTED_EVENT,
  KEPT_EVENT,
  NEED_EVENT,
  PORT_MESSAGE,
  RULES_EVENT,
  SECOND_EVENT,
  SWITCH_EVENT,
  THERE_EVENT,
} from "../shared/names";
import { firstOf, matches, options, parseJson } from "../shared/primordials";
import { entriesOf, entryOf, observe, Observer, nodeCount, pageMs, select, takeRecords } from "../shared/platform";
import { useRules, type RuleSet } from "../shared/rules";
import { patchFetch } from "./fetch";
import { Link, type MakeCarrier } from "./link";
import { keepForLater, type Kept } from "../shared/kept";
import {
  blockedUri,
  dataOf,
  detailOf,
  dispositionOf,
  natives,
  originOf,
  portsOf,
  stopMutations,
  videoCountOf,
} from "./natives";
import { Permits, type HearListed } from "./permits";
import { watchPlainVideos } from "./plain";
import { keepSourceTexts } from "./wrap";
import { patchXhr } from "./xhr";

const permits = new Permits({
  countPolicies: () => nodeCount(select(document, "meta[http-equiv]")),
  takeListed,
  nowMs: pageMs,
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
  if (!matches(/^(?:chrome|moz)-extension:/, originOf(event))) return;
  const port = portsOf(event)[0];
  if (dataOf(event) !== PORT_MESSAGE || port === undefined) return;
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
    own.onmessage?.({ data: dataOf(event) as unknown } as MessageEvent),
  );
  natives.start(port);
  return own;
}

const kept = keepForLater();

function listen(): void {
  natives.listen(window, "message", takePort);
  natives.listen(document, SECOND_EVENT, natives.cancel);
  natives.listen<CustomEvent<(given: Kept) => void>>(document, KEPT_EVENT, (event) => detailOf(event)(kept));
  natives.listen<CustomEvent<MakeCarrier>>(document, CARRY_READY_EVENT, (event) =>
    link.equip(detailOf(event)(link, natives)),
  );
  natives.listen<SecurityPolicyViolationEvent>(window, "securitypolicyviolation", (event) => {
    if (dispositionOf(event) === "report") permits.refuse(blockedUri(event));
  });
  natives.listen<CustomEvent>(document, SWITCH_EVENT, (event) => link.switch(detailOf(event) === "on"));
  // The rules were parsed before they were stored. A page that forges them misleads only itself: the transport has its
  // own.
  natives.listen<CustomEvent<string>>(document, RULES_EVENT, (event) =>
    useRules(parseJson(detailOf(event)) as RuleSet),
  );
}

/**
 * The browser's list of requests (Resource Timing). The page's own list may be full or cleared; what an observer hears
 * does not depend on it.
 */
let observer: PerformanceObserver | undefined;

function takeListed(hear: HearListed): void {
  const note = (entries: PerformanceEntryList): void => {
    firstOf(entries, (entry) => {
      const { name, startTime } = entryOf(entry);
      hear(name, startTime);
    });
  };
  if (observer === undefined) {
    observer = new Observer((list) => note(entriesOf(list)));
    observe(observer, options({ type: "resource", buffered: true }));
  }
  note(takeRecords(observer));
}

/** Asks for a port as soon as a loading page has a `<video>`, so that the port is ready before the player. */
function prepareForVideo(): void {
  /* eslint-disable tributary/primordials -- This runs before the page. */
  const videos = document.getElementsByTagName("video");
  const observer = new MutationObserver(() => {
    if (videoCountOf(videos) === 0) return;
    stopMutations(observer);
    link.prepare();
  });
  observer.observe(document, { childList: true, subtree: true });
  /* eslint-enable tributary/primordials */
  natives.listen(window, "load", () => stopMutations(observer));
}

// A page with an opaque origin gets no port, so nothing is patched there. Firefox runs this script again in open pages
// when the extension is enabled or updated, where the first one stays.
if (window.origin !== "null" && !natives.tell(SECOND_EVENT)) {
  listen();
  keepSourceTexts();
  window.fetch = patchFetch(window.fetch, link, permits);
  patchXhr(link, permits);
  watchPlainVideos(link, permits);
  prepareForVideo();
}
