/** The time by which a run of the swarm must be complete. */
import type { Geometry } from "@tributary/protocol";
import type { ProxyDraw, SwarmDraw } from "./draw";

/** The sum of all timers of the protocol. */
const TIMERS_MS = 10_000;
/** Without a steady proxy a run can wait while its proxies report that they are alive. The user gives up after this. */
const PATIENCE_MS = 20_000;
const FRAME_HEADER_BYTES = 16;
/** In mode coded a window counts as this many packets. */
const CODED_WINDOW_PACKETS = 200;

/**
 * A run must be complete at this time. It is counted from the moment when faults have healed: every timer of the
 * protocol may have to run out, and each window takes a few round trips. The best honest proxy that is left must bring
 * the whole chunk alone, four times: before and after a dispute, and each of these again because of losses. Without an
 * honest proxy, the user's patience decides.
 */
export function boundMs(
  { healMs, proxies, windowPackets, generationSize, mode }: SwarmDraw,
  { symbolCount, symbolBytes, totalBytes }: Geometry,
): number {
  const packetBytes = symbolBytes + FRAME_HEADER_BYTES;
  const wholeGenerations = Math.max(1, windowPackets - (windowPackets % generationSize));
  const windows = symbolCount / (mode === "coded" ? CODED_WINDOW_PACKETS : wholeGenerations);
  const times = proxies.filter(isSteady).map(({ link }) => {
    const originMs = link.origin ? link.origin.rttMs + (totalBytes * 1000) / link.origin.bytesPerSec : 0;
    const sendMs = (4 * symbolCount * packetBytes * 1000) / link.bytesPerSec;
    return originMs + sendMs + (20 + 6 * windows) * (link.rttMs + 50);
  });
  return healMs + TIMERS_MS + (times.length > 0 ? Math.min(...times) : PATIENCE_MS);
}

/** An honest proxy that is alive once faults have healed, and whose origin does not fail. */
export function isSteady({ malice, originFailsMs, link: { outages = [] } }: ProxyDraw): boolean {
  return malice.length === 0 && originFailsMs === Infinity && outages.every(({ toMs }) => toMs < Infinity);
}
