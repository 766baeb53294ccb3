/**
 * KnownPath holds what earlier chunks or the session measured of a proxy. Beginning holds what the proxy sends first
 * because of that. The measurements may be out of date, so they decide only two things: what the proxy sends before the
 * first grant, and which loss the planner assumes until enough packets came. Pure. Rules: protocol.md §8.10.
 */
import { LIMITS } from "../limits";
import { sharesOf } from "../packet-order";
import type { Share } from "../types";
import { dataHeaderBytes } from "../wire/frames";
import { AHEAD_MS, SLACK_MS } from "./round-trip";

export interface KnownPath {
  /** The least round trip. */
  rttMs: number;
  /** Counts whole data frames. Absent before the first chunk, when only the round trip is known. */
  bytesPerSec?: number;
  /** At least 0 and below 1. Absent when `bytesPerSec` is absent. */
  loss?: number;
}

/** What a proxy sends before the first grant. */
export interface Beginning {
  share: Share;
  windowPackets: number;
}

/**
 * No proxy's share is smaller than this part of the mean. The measured rate of a slow proxy may be old, and only new
 * packets show its current rate.
 */
const WEIGHT_MIN = 0.3;
/** The rate that every proxy is assumed to have if no rate is known. */
export const BYTES_PER_SEC_ASSUMED = 1_000_000;

/**
 * The beginning of each proxy. Without known rates the shares are equal. A proxy whose rate is not known counts as the
 * mean of the others. A proxy that is further away begins with the generation that the nearer ones will have reached
 * when its first packet arrives.
 */
export function beginningsOf(
  known: readonly (KnownPath | undefined)[],
  { windowPackets, generationSize }: { windowPackets: number; generationSize: number },
  packetBytes: number,
): Beginning[] {
  const rates = known.flatMap((path) => path?.bytesPerSec ?? []);
  const mean = rates.length > 0 ? rates.reduce((sum, rate) => sum + rate, 0) / rates.length : BYTES_PER_SEC_ASSUMED;
  const shares = sharesOf(known.map((path) => Math.max(path?.bytesPerSec ?? mean, WEIGHT_MIN * mean)));
  return known.map((path, index) => {
    const reachMs = (path?.rttMs ?? 0) + AHEAD_MS + SLACK_MS;
    const onTheWay = path?.bytesPerSec ? Math.ceil(((path.bytesPerSec / 1000) * reachMs) / packetBytes) : 0;
    const share = {
      ...shares[index]!,
      firstGeneration: path ? Math.round(packetsBy(path.rttMs, known, mean, packetBytes) / generationSize) : 0,
    };
    return { share, windowPackets: Math.min(LIMITS.windowPacketsMax, Math.max(windowPackets, onTheWay)) };
  });
}

/** What is known of each proxy of a request, and what it begins with because of that. */
export function pathsOf(
  { proxyCount, known: given }: { proxyCount: number; known?: readonly (KnownPath | undefined)[] },
  request: { windowPackets: number; generationSize: number; symbolBytes: number },
) {
  const packetBytes = request.symbolBytes + dataHeaderBytes("seed", 0);
  const known = Array.from({ length: proxyCount }, (_, index) => given?.[index]);
  return { known, packetBytes, beginnings: beginningsOf(known, request, packetBytes) };
}

/** The packets that all known proxies have brought `ms` after the request, at their own rates or the mean rate. */
function packetsBy(ms: number, known: readonly (KnownPath | undefined)[], mean: number, packetBytes: number): number {
  const bytes = known.reduce(
    (sum, path) => sum + (path ? (Math.max(0, ms - path.rttMs) * (path.bytesPerSec ?? mean)) / 1000 : 0),
    0,
  );
  return bytes / packetBytes;
}
