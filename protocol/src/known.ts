/**
 * What is remembered of a proxy and the way to it from earlier chunks, and what a proxy is to begin a new one with. It may
 * be wrong: it decides only what goes out before the first grant, and what loss is taken for until enough was seen. Pure.
 * Specification: docs/protocol.md §8.10.
 */
import { sharesOf } from "./grants";
import { LIMITS } from "./limits";
import type { Share } from "./types";

export interface KnownPath {
  /** The least round trip. */
  rttMs: number;
  /** Of whole data frames. */
  bytesPerSec: number;
  /** From 0 up to, not including, 1. */
  loss: number;
}

/** What a proxy sends before the first grant. */
export interface Beginning {
  share: Share;
  windowPackets: number;
}

/** No proxy's share is smaller than this part of the mean: its memory may be old, and what it sends tells how it is now. */
const WEIGHT_MIN = 0.3;
/** The first share covers the round trip and what grants reach beyond it. */
const BEYOND_MS = 43;

/**
 * One a proxy. Without memory shares are equal; a proxy that is not known counts as the mean of those that are. A proxy that
 * is further away than others begins with the generation that these will have come to when its first packet is here.
 */
export function beginningsOf(known: readonly (KnownPath | undefined)[], { windowPackets, generationSize }: { windowPackets: number; generationSize: number }, packetBytes: number): Beginning[] {
  const rates = known.flatMap((path) => (path ? [path.bytesPerSec] : []));
  const mean = rates.length > 0 ? rates.reduce((sum, rate) => sum + rate, 0) / rates.length : 1;
  const shares = sharesOf(known.map((path) => Math.max(path?.bytesPerSec ?? mean, WEIGHT_MIN * mean)));
  return known.map((path, index) => {
    const onTheWay = path ? Math.ceil(((path.bytesPerSec / 1000) * (path.rttMs + BEYOND_MS)) / packetBytes) : 0;
    const share = { ...shares[index]!, firstGeneration: path ? Math.round(packetsBy(path.rttMs, known, packetBytes) / generationSize) : 0 };
    return { share, windowPackets: Math.min(LIMITS.windowPacketsMax, Math.max(windowPackets, onTheWay)) };
  });
}

/** What all that are known will have brought, at their rates, so long after the request. */
function packetsBy(ms: number, known: readonly (KnownPath | undefined)[], packetBytes: number): number {
  return known.reduce((sum, path) => sum + (path ? (Math.max(0, ms - path.rttMs) * path.bytesPerSec) / 1000 : 0), 0) / packetBytes;
}
