/**
 * Carrying script (MAIN world). The background brings it into a page together with the first port, so a page without
 * video does not load it.
 */
import type { MakeCarrier } from "../page/link";
import type { CarriedRequestEvents, Carrier, RequestHandle } from "../shared/carry";
import { PLAYERS, type Player } from "../shared/messages";
import { CARRY_READY_EVENT } from "../shared/names";
import { respond } from "./answer";
import { Checks } from "./checks";
import { CarriedRequest, type Surroundings } from "./carried-request";
import { Emulation } from "./emulation";
import { KnownFiles } from "./known-files";
import { PageWorker } from "./page-worker";
import { patienceMs } from "./patience";

const make: MakeCarrier = (link, natives) => {
  const page: Surroundings = {
    fetch: natives.fetch,
    checks: new Checks(natives, Math.random),
    patienceMs: () => Math.round(patienceMs(document.querySelectorAll("video"))),
    player,
  };
  const worker = new PageWorker(workerContainer(), performance);
  const known = new KnownFiles(document, PerformanceObserver);
  const carry: Carrier["carry"] = (request, events) =>
    worker.mayAnswer() || known.has(request) ? declined(events) : new CarriedRequest(link, page, request, events);
  return {
    carry,
    respond: (request, wanted) => respond(request, wanted, natives, carry),
    emulate: (page, wanted) => new Emulation(page, wanted, natives, carry),
  };
};

/** undefined where the page may have no service worker. */
function workerContainer(): ServiceWorkerContainer | undefined {
  try {
    return navigator.serviceWorker;
  } catch {
    return undefined;
  }
}

/** A request that is the browser's. */
function declined({ native }: CarriedRequestEvents): RequestHandle {
  let isOver = false;
  queueMicrotask(() => isOver || native());
  return { credit: () => undefined, abort: () => (isOver = true) };
}

function player(): Player | undefined {
  return (Object.keys(PLAYERS) as (keyof typeof PLAYERS)[])
    .filter((name) => name in window)
    .map((name) => PLAYERS[name])[0];
}

document.dispatchEvent(new CustomEvent(CARRY_READY_EVENT, { detail: make }));
