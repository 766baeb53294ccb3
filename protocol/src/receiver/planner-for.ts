/** Makes the planner of a chunk that several proxies bring, with what is known of them when it begins. */
import { Planner } from "../planner/planner";
import { partOf } from "../sharing";
import type { Parts } from "./parts";
import type { ProxyState } from "./proxy-state";

type World = Omit<ConstructorParameters<typeof Planner>[0], "askedMs" | "parts">;

/** `shared`: who reads which part, if the proxies read the chunk together. */
export function plannerFor(world: World, proxies: readonly ProxyState[], shared: Parts | undefined): Planner {
  const askedMs = proxies.map(({ requestTries, requestSentMs }) => (requestTries > 0 ? requestSentMs : undefined));
  const { generationCount } = world.geometry;
  const parts = shared?.places.map((place) => partOf(shared, place, generationCount));
  const planner = new Planner({ ...world, askedMs, parts });
  proxies.forEach(({ stats: { rttMs, state } }, index) => {
    if (rttMs !== null) planner.handleRoundTrip(index, rttMs);
    if (state === "failed") planner.handleGone(index, true);
  });
  return planner;
}
