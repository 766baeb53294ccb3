/**
 * Carrying script (MAIN world). The background brings it into a page together with the first port, so a page without
 * video does not load it.
 */
import "../shared/handed-over";
import type { MakeCarrier } from "../page/link";
import { keepSourceTexts } from "../page/wrap";
import type {
  CarriedRequestEvents,
  Carrier,
  MediaRequest,
  RequestHandle,
  SiteBody,
  SiteRequest,
} from "../shared/carry";
import { PLAYERS, type Player, type SiteHead } from "../shared/messages";
import { CARRY_READY_EVENT } from "../shared/names";
import { isPublishedUrl } from "../shared/rules";
import { respond } from "./answer";
import { Calls, type Clock } from "./calls";
import { CarriedRequest, type Surroundings } from "./carried-request";
import { showTransport } from "./show";
import { dressResponses } from "./dress";
import { firstOf, namesOf, options } from "../shared/primordials";
import { round } from "../shared/late-primordials";
import { pageMs } from "../shared/platform";
import { announce, containerOf, soon } from "../shared/late-platform";
import { copyOf, headOf } from "./site-fetch";
import { bodyOfXhr, headOfXhr } from "./site-xhr";
import { Emulation } from "./emulation";
import { Endings } from "./endings";
import { FirstPublished } from "./first-published";
import { KnownFiles } from "./known-files";
import { PageWorker } from "./page-worker";
import { bufferedVideos, patienceMs } from "./patience";
import { Asked } from "./site";
import { noteUnchecked } from "./unchecked";

const make: MakeCarrier = (link, natives) => {
  const clock: Clock = {
    nowMs: pageMs,
    setTimeout: natives.setTimeout,
    clearTimeout: natives.clearTimeout as Clock["clearTimeout"],
  };
  const page: Surroundings = {
    fetch: natives.fetch,
    asked: new Asked(),
    patienceMs: () => round(patienceMs(bufferedVideos())),
    player,
  };
  keepSourceTexts();
  dressResponses();
  const calls = new Calls(link, clock);
  const worker = new PageWorker(workerContainer());
  const endings = new Endings();
  const known = new KnownFiles();
  noteUnchecked(link);
  const carry: Carrier["carry"] = (request, events) => {
    const isPublished = isPublishedUrl(request.url);
    // A copy of a published file in the browser's cache was not checked.
    if (worker.mayAnswer() || (!isPublished && known.has(request))) return declined(events);
    const begin = (heard: typeof events): RequestHandle => new CarriedRequest(calls, page, request, heard);
    return isPublished && !link.allows(request.url)
      ? new FirstPublished(link, request.url, events, begin)
      : begin(events);
  };
  const shows = (wanted: MediaRequest): ((head: SiteHead, copy: () => SiteBody) => void) => {
    const startedMs = clock.nowMs();
    return (head, copy) => {
      if (!worker.mayAnswer()) void showTransport(calls, page.asked, wanted, { head, startedMs, copy });
    };
  };
  return {
    carry,
    respond: (request, wanted, fetchNatively) => respond(request, wanted, fetchNatively, natives, carry, endings),
    emulate: (xhr, wanted) => new Emulation(xhr, wanted, natives, carry),
    observe: (wanted, response) => shows(wanted)(headOf(response), () => copyOf(response)),
    observeXhr: (wanted, xhr) => {
      const show = shows(wanted);
      const body = bodyOfXhr(xhr, natives);
      void whenHeaded(headOfXhr(xhr, natives), (head) => show(head, () => body.copy()));
      return (response) => body.see(response);
    },
    handle: (message) => calls.handle(message),
    lost: () => calls.lost(),
  };
};

async function whenHeaded(head: Promise<SiteHead>, hear: (head: SiteHead) => void): Promise<void> {
  try {
    hear(await head);
  } catch {
    // The browser got no answer.
  }
}

/** undefined where the page may have no service worker. */
function workerContainer(): ServiceWorkerContainer | undefined {
  try {
    return containerOf();
  } catch {
    return undefined;
  }
}

/** A request that is the browser's. */
function declined<Site extends SiteRequest>({ askSite, native }: CarriedRequestEvents<Site>): RequestHandle {
  let isOver = false;
  const useSite = (): void => {
    if (!isOver) native(askSite());
    isOver = true;
  };
  void soon(useSite);
  return { credit: () => undefined, abort: () => (isOver = true), useSite };
}

function player(): Player | undefined {
  const name = firstOf(namesOf(options(PLAYERS)), (each) => each in window);
  return name === undefined ? undefined : PLAYERS[name as keyof typeof PLAYERS];
}

announce(CARRY_READY_EVENT, make);
