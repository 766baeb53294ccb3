/**
 * Selection: orders the live proxies for a client. Pure. Each method starts from a random order, so that equal proxies
 * get equally many clients. `random` is the method of the paper (Braun, Médard and Ekler 2019).
 */
import { ORIGO_SETTINGS } from "@tributary/contract/settings";
import { distanceKm } from "./geo";
import type { FleetProxy, Place } from "@tributary/contract/schema";

export const SELECTIONS = ORIGO_SETTINGS["origo.selection"].options;
export type Selection = (typeof SELECTIONS)[number];

export interface SelectionInput {
  select: Selection;
  /** The place of the client. Without it `near` is the same as `random`. */
  place?: Place | undefined;
  nearKm: number;
}

/**
 * The proxies that the client may use, the best first. `near` leaves out proxies that are not near, unless none is
 * near. Each call of `rng` gives a u32.
 */
export function inOrder(proxies: readonly FleetProxy[], input: SelectionInput, rng: () => number): FleetProxy[] {
  const shuffled = shuffle(proxies, rng);
  if (input.select === "random" || (input.select === "near" && input.place === undefined)) return shuffled;
  const ranks = new Map(shuffled.map((proxy) => [proxy.id, rankOf(proxy, input)]));
  if (input.select === "operators") rankByTurns(shuffled, ranks);
  const near = input.select === "near" ? shuffled.filter(({ id }) => ranks.get(id) === NEAR) : [];
  if (near.length > 0) return near;
  return shuffled.sort((a, b) => compare(ranks.get(a.id) ?? 0, ranks.get(b.id) ?? 0));
}

/** The rank of a proxy within `nearKm`. */
const NEAR = 0;

function rankOf(proxy: FleetProxy, { select, place, nearKm }: SelectionInput): number {
  if (select === "least-loaded") return proxy.status?.load ?? Infinity;
  if (place === undefined || proxy.place === undefined) return Infinity;
  const km = distanceKm(place, proxy.place);
  return km <= nearKm ? NEAR : km;
}

/** Puts one proxy of each operator before the second of any. Proxies without an operator count as one operator. */
function rankByTurns(proxies: readonly FleetProxy[], ranks: Map<string, number>): void {
  const seen = new Map<string, number>();
  for (const { id, operator = "" } of proxies) {
    const turn = seen.get(operator) ?? 0;
    seen.set(operator, turn + 1);
    ranks.set(id, turn);
  }
}

function shuffle<T>(items: readonly T[], rng: () => number): T[] {
  const shuffled = [...items];
  for (let left = shuffled.length; left > 1; left--) {
    const at = Math.floor((rng() / 2 ** 32) * left);
    [shuffled[left - 1], shuffled[at]] = [shuffled[at]!, shuffled[left - 1]!];
  }
  return shuffled;
}

const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);
