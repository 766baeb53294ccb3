/**
 * The physical bound: no scheme can have L packets sooner. Packets are treated as a fluid. Proxy i sends at the rate
 * R_i from the moment when the request reaches it, and the share (1 - p_i) arrives. T is the time when the sum reaches
 * L packets. Equal links give T = RTT + L / ((1 - p) * sum R); unequal links give water-filling. The bound knows a
 * shared downlink, changes of rate, outages and an origin's leg beforehand. Pure.
 */
import { meanLoss } from "./link";
import type { World } from "./world";

type Step = { atMs: number; change: number };

/**
 * The earliest time in ms at which packet number `packets` can be at the client; Infinity if it never can. The number
 * may be a fraction. An origin sends `bodyBytes` for these packets, without headers.
 */
export function boundMs(
  world: Pick<World, "links" | "downlink">,
  packets: number,
  packetBytes: number,
  bodyBytes = packets * packetBytes,
): number {
  const steps = world.links.flatMap((link) => arrivalSteps(link, packetBytes)).sort((a, b) => a.atMs - b.atMs);
  const limit = world.downlink ? world.downlink.bytesPerSec / packetBytes / 1000 : Infinity;
  return Math.max(fillTime(steps, limit, packets), originTime(world.links, bodyBytes));
}

/** The changes of the rate at which a link's packets arrive, in packets per ms. */
function arrivalSteps(link: World["links"][number], packetBytes: number): Step[] {
  const share = (1 - meanLoss(link)) / packetBytes / 1000;
  const firstMs = link.rttMs / 2 + (link.origin?.rttMs ?? 0);
  const changes = [{ atMs: -Infinity, bytesPerSec: link.bytesPerSec }, ...(link.rateChanges ?? [])];
  const rateAt = (ms: number): number => {
    if (link.outages?.some(({ fromMs, toMs }) => ms >= fromMs && ms < toMs)) return 0;
    return (changes.findLast((change) => change.atMs <= ms)?.bytesPerSec ?? 0) * share;
  };
  const times = [
    firstMs,
    ...changes.map(({ atMs }) => atMs),
    ...(link.outages ?? []).flatMap(({ fromMs, toMs }) => [fromMs, toMs]),
  ];
  let before = 0;
  return [...new Set(times)]
    .filter((ms) => ms >= firstMs && ms < Infinity)
    .sort((a, b) => a - b)
    .map((ms) => {
      const now = rateAt(ms);
      const change = now - before;
      before = now;
      return { atMs: ms + link.rttMs / 2, change };
    });
}

/** When the fluid has filled `packets`, after an endless queue that passes `limit` packets per ms. */
function fillTime(steps: readonly Step[], limit: number, packets: number): number {
  let [nowMs, rate, backlog, served] = [0, 0, 0, 0];
  for (let i = 0; i <= steps.length; i++) {
    const endMs = steps[i]?.atMs ?? Infinity;
    while (nowMs < endMs) {
      const out = backlog > 1e-9 ? limit : Math.min(rate, limit);
      const drainedMs = backlog > 1e-9 && limit > rate ? nowMs + backlog / (limit - rate) : Infinity;
      const untilMs = Math.min(endMs, drainedMs);
      if (out > 0 && served + out * (untilMs - nowMs) >= packets) return nowMs + (packets - served) / out;
      if (untilMs === Infinity) return Infinity;
      served += out * (untilMs - nowMs);
      backlog = drainedMs <= endMs ? 0 : Math.max(0, backlog + (rate - out) * (untilMs - nowMs));
      nowMs = untilMs;
    }
    rate += steps[i]?.change ?? 0;
    if (Math.abs(rate) < 1e-12) rate = 0;
  }
  return Infinity;
}

/** When the fastest proxy has the origin's last byte. No packet leaves a proxy before its bytes are there. */
function originTime(links: World["links"], bodyBytes: number): number {
  const times = links.map(({ origin, rttMs }) =>
    origin ? rttMs + origin.rttMs + (bodyBytes / origin.bytesPerSec) * 1000 : 0,
  );
  return Math.min(...times);
}
