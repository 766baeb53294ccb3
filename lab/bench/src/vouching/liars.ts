/**
 * A download with one liar of four proxies over one with three honest proxies, in simulation: the protocol's own
 * receiver and senders on equal links. Seeds decide which proxy lies, and how.
 */
import type { Codec } from "@tributary/protocol";
import { runSwarm, type Malice, type SwarmDraw } from "@tributary/lab-sim";
import { median } from "../kit/figures";

const BYTES_PER_SEC = 896_000;
const RTT_MS = 50;
const PROXIES = 4;
/** A segment, and a long chunk. */
export const CHUNKS = [1_500_000, 8_000_000] as const;
export const LIES: Readonly<Record<string, Malice>> = { "all bytes": "pollute-all", "1 % of bytes": "pollute-bytes" };

export interface LiarFigures {
  chunkBytes: number;
  /** Medians over the seeds. */
  threeHonestMs: number;
  fourHonestMs: number;
  /** By lie. */
  withLiarMs: Record<string, number>;
}

function drawOf(seed: number, chunkBytes: number, count: number, lie?: Malice): SwarmDraw {
  const proxies = Array.from({ length: count }, (_, index) => ({
    link: { bytesPerSec: BYTES_PER_SEC, rttMs: RTT_MS },
    malice: lie !== undefined && index === seed % count ? [lie] : [],
    readyMs: 0,
    noticeMs: 0,
    corruption: 0,
    originFailsMs: Infinity,
  }));
  return {
    seed,
    mode: "coded",
    chunkBytes,
    range: undefined,
    symbolBytes: 1024,
    generationSize: 128,
    windowPackets: 256,
    proxies,
    known: proxies.map(() => ({ rttMs: RTT_MS })),
    isVouched: true,
    bodies: proxies.map(() => 0),
    abortMs: Infinity,
    healMs: 0,
    rogueClient: false,
  };
}

export function measureLiars(chunkBytes: number, seeds: number, codec: Codec): LiarFigures {
  const time = (count: number, lie?: Malice): number =>
    median(
      Array.from({ length: seeds }, (_, index) => {
        const { end, endMs, wrongs } = runSwarm(drawOf(index + 1, chunkBytes, count, lie), codec);
        if (end !== "complete" || wrongs.length > 0) throw new Error(`seed ${index + 1}: ${end}; ${wrongs.join("; ")}`);
        return endMs;
      }),
    );
  const withLiarMs = Object.fromEntries(Object.entries(LIES).map(([about, lie]) => [about, time(PROXIES, lie)]));
  return { chunkBytes, threeHonestMs: time(PROXIES - 1), fourHonestMs: time(PROXIES), withLiarMs };
}
