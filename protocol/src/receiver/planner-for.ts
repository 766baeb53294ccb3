/** Makes the planner of a chunk that several proxies bring, with what is known of them when it begins. */
import { Planner } from "../planner/planner";
import { partOf } from "../sharing";
import type { Sharing } from "../types";
import type { ProxyState } from "./proxy-state";

type World = Omit<ConstructorParameters<typeof Planner>[0], "askedMs" | "parts">;

/** `sharing`: the proxies read the chunk together. */
export function plannerFor(
  world: World,
  proxies: readonly ProxyState[],
  sharing: Omit<Sharing, "ownIndex"> | undefined,
): Planner {
  const askedMs = proxies.map(({ requestTries, requestSentMs }) => (requestTries > 0 ? requestSentMs : undefined));
  const { generationCount } = world.geometry;
  const parts = sharing && proxies.map((_, index) => partOf(sharing, index, generationCount));
  const planner = new Planner({ ...world, askedMs, parts });
  proxies.forEach(({ stats: { rttMs, state } }, index) => {
    if (rttMs !== null) planner.handleRoundTrip(index, rttMs);
    if (state === "failed") planner.handleGone(index, true);
  });
  return planner;
}
