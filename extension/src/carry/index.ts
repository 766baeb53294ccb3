/**
 * Carrying script (MAIN world). The background brings it into a page together with the first port, so a page without
 * video does not load it.
 */
import type { MakeCarrier } from "../page/link";
import type { Carrier } from "../shared/carry";
import { PLAYERS, type Player } from "../shared/messages";
import { CARRY_READY_EVENT } from "../shared/names";
import { respond } from "./answer";
import { Checks } from "./checks";
import { CarriedRequest, type Surroundings } from "./carried-request";
import { patienceMs } from "./patience";

const make: MakeCarrier = (link, natives) => {
  const page: Surroundings = {
    fetch: natives.fetch,
    checks: new Checks(natives, Math.random),
    patienceMs: () => Math.round(patienceMs(document.querySelectorAll("video"))),
    player,
  };
  const carry: Carrier["carry"] = (request, events) => new CarriedRequest(link, page, request, events);
  return { carry, respond: (request, wanted) => respond(request, wanted, link, natives, carry) };
};

function player(): Player | undefined {
  return (Object.keys(PLAYERS) as (keyof typeof PLAYERS)[])
    .filter((name) => name in window)
    .map((name) => PLAYERS[name])[0];
}

document.dispatchEvent(new CustomEvent(CARRY_READY_EVENT, { detail: make }));
