/** Makes the planner of a chunk that several proxies bring, with what is known of them when it begins. */
import { Planner } from "../planner/planner";
import type { ProxyState } from "./proxy-state";

type World = Omit<ConstructorParameters<typeof Planner>[0], "askedMs">;

export function plannerFor(world: World, proxies: readonly ProxyState[]): Planner {
  const askedMs = proxies.map(({ requestTries, requestSentMs }) => (requestTries > 0 ? requestSentMs : undefined));
  const planner = new Planner({ ...world, askedMs });
  proxies.forEach(({ stats: { rttMs, state } }, index) => {
    if (rttMs !== null) planner.handleRoundTrip(index, rttMs);
    if (state === "failed") planner.handleGone(index, true);
  });
  return planner;
}
