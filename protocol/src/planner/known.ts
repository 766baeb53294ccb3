/**
 * What is known of a proxy and the way to it before a chunk is asked of it, from earlier chunks or from its session,
 * and what it is to begin with. It may be wrong: it decides only what goes out before the first grant, and what loss is
 * taken for until enough was seen. Pure. Specification: docs/spec/protocol.md §8.10.
 */
import { sharesOf } from "../sender/grants";
import { LIMITS } from "../limits";
import type { Share } from "../types";

export interface KnownPath {
  /** The least round trip. */
  rttMs: number;
  /** Of whole data frames; not there before the first chunk, when the session has told the round trip alone. */
  bytesPerSec?: number;
  /** From 0 up to, not including, 1; not there as `bytesPerSec`. */
  loss?: number;
}

/** What a proxy sends before the first grant. */
export interface Beginning {
  share: Share;
  windowPackets: number;
}

/**
 * No proxy's share is smaller than this part of the mean: its memory may be old, and what it sends tells how it is now.
 */
const WEIGHT_MIN = 0.3;
/** Supposed of each proxy as long as no rate is known. */
const BYTES_PER_SEC_SUPPOSED = 1_000_000;
/** The first share covers the round trip and what grants reach beyond it. */
const BEYOND_MS = 43;

/**
 * One a proxy. Where no rate is known shares are equal; a proxy whose rate is not counts as the mean of the others. A
 * proxy that is further away than others begins with the generation that these will have come to when its first packet
 * is here.
 */
export function beginningsOf(
  known: readonly (KnownPath | undefined)[],
  { windowPackets, generationSize }: { windowPackets: number; generationSize: number },
  packetBytes: number,
): Beginning[] {
  const rates = known.flatMap((path) => path?.bytesPerSec ?? []);
  const mean = rates.length > 0 ? rates.reduce((sum, rate) => sum + rate, 0) / rates.length : BYTES_PER_SEC_SUPPOSED;
  const shares = sharesOf(known.map((path) => Math.max(path?.bytesPerSec ?? mean, WEIGHT_MIN * mean)));
  return known.map((path, index) => {
    const onTheWay = path?.bytesPerSec
      ? Math.ceil(((path.bytesPerSec / 1000) * (path.rttMs + BEYOND_MS)) / packetBytes)
      : 0;
    const share = {
      ...shares[index]!,
      firstGeneration: path ? Math.round(packetsBy(path.rttMs, known, mean, packetBytes) / generationSize) : 0,
    };
    return { share, windowPackets: Math.min(LIMITS.windowPacketsMax, Math.max(windowPackets, onTheWay)) };
  });
}

/** What all that are known will have brought, at their rates or the mean one, so long after the request. */
function packetsBy(ms: number, known: readonly (KnownPath | undefined)[], mean: number, packetBytes: number): number {
  return (
    known.reduce(
      (sum, path) => sum + (path ? (Math.max(0, ms - path.rttMs) * (path.bytesPerSec ?? mean)) / 1000 : 0),
      0,
    ) / packetBytes
  );
}
