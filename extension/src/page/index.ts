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
  REFUSES_EVENT,
  RULES_EVENT,
  SECOND_EVENT,
  SWITCH_EVENT,
  THERE_EVENT,
} from "../shared/names";
import { firstOf, itemOf, matches, options, parseJson } from "../shared/primordials";
import { entriesOf, entryOf, observe, Observer, nodeCount, pageMs, select, takeRecords } from "../shared/platform";
import { useRules, type RuleSet } from "../shared/rules";
import { patchFetch } from "./fetch";
import { Link, type MakeCarrier } from "./link";
import { keepForLater, type Kept } from "../shared/kept";
import {
  blockedUri,
  cancel,
  close,
  dataOf,
  dispositionOf,
  hear,
  hide,
  listen,
  natives,
  originOf,
  portsOf,
  send,
  start,
  stopMutations,
  tell,
} from "./natives";
import { Permits, type HearListed } from "./permits";
import { watchPlainVideos } from "./plain";
import { keepSourceTexts } from "./wrap";
import { patchXhr } from "./xhr";

const permits = new Permits({
  refuses: (url) => tell(REFUSES_EVENT, url),
  countPolicies: () => nodeCount(select(document, "meta[http-equiv]")),
  takeListed,
  nowMs: pageMs,
  setTimeout: natives.setTimeout,
});
const link = new Link({
  permits,
  summon: () => tell(NEED_EVENT),
  connected: () => tell(CONNECTED_EVENT),
  isThere: () => tell(THERE_EVENT),
});

/**
 * In Firefox the origin of the frame's message names this installation, so the page's own functions must not meet the
 * event.
 */
function takePort(event: MessageEvent): void {
  if (!matches(/^(?:chrome|moz)-extension:/, originOf(event))) return;
  const port = itemOf(portsOf(event), 0);
  if (dataOf(event) !== PORT_MESSAGE || port === undefined) return;
  hide(event);
  link.attach(portOf(port));
}

/** The port, as the browser's own functions use it. A getter or method of the page would meet it and could keep it. */
function portOf(port: MessagePort): PortLike<ToTransport> {
  const own: PortLike<ToTransport> = {
    postMessage: (message, transfer = []) => send(port, message, transfer),
    onmessage: null,
    close: () => close(port),
  };
  listen<MessageEvent>(port, "message", (event) => own.onmessage?.({ data: dataOf(event) as unknown } as MessageEvent));
  start(port);
  return own;
}

const kept = keepForLater();

function listenToOthers(): void {
  listen(window, "message", takePort);
  listen(document, SECOND_EVENT, cancel);
  hear<(given: Kept) => void>(KEPT_EVENT, (take) => take(kept));
  hear<MakeCarrier>(CARRY_READY_EVENT, (make) => link.equip(make(link, natives)));
  listen<SecurityPolicyViolationEvent>(window, "securitypolicyviolation", (event) => {
    if (dispositionOf(event) === "report") permits.refuse(blockedUri(event));
  });
  hear(SWITCH_EVENT, (state) => link.switch(state === "on"));
  // The rules were parsed before they were stored. A page that forges them misleads only itself: the transport has its
  // own.
  hear<string>(RULES_EVENT, (rules) => useRules(parseJson(rules) as RuleSet));
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
  const observer = new MutationObserver(() => {
    if (nodeCount(select(document, "video")) === 0) return;
    stopMutations(observer);
    link.prepare();
  });
  observer.observe(document, { childList: true, subtree: true });
  /* eslint-enable tributary/primordials */
  listen(window, "load", () => stopMutations(observer));
}

// A page with an opaque origin gets no port, so nothing is patched there. Firefox runs this script again in open pages
// when the extension is enabled or updated, where the first one stays.
if (window.origin !== "null" && !tell(SECOND_EVENT)) {
  listenToOthers();
  keepSourceTexts();
  window.fetch = patchFetch(window.fetch, link, permits);
  patchXhr(link, permits);
  watchPlainVideos(link, permits);
  prepareForVideo();
}
