/**
 * A download with one liar of four proxies over one with three honest proxies, in simulation: the protocol's own
 * receiver and senders on equal links. Seeds decide which proxy lies, and how.
 */
import type { Codec } from "@tributary/protocol";
import { faultlessDraw, runSwarm, type Malice } from "@tributary/lab-sim";
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

export function measureLiars(chunkBytes: number, seeds: number, codec: Codec): LiarFigures {
  const time = (count: number, lie?: Malice): number =>
    median(
      Array.from({ length: seeds }, (_, index) => {
        const draw = faultlessDraw(
          count,
          { bytesPerSec: BYTES_PER_SEC, rttMs: RTT_MS },
          { seed: index + 1, chunkBytes },
        );
        if (lie !== undefined) draw.proxies[(index + 1) % count]!.malice.push(lie);
        const { end, endMs, wrongs } = runSwarm(draw, codec);
        if (end !== "complete" || wrongs.length > 0) throw new Error(`seed ${index + 1}: ${end}; ${wrongs.join("; ")}`);
        return endMs;
      }),
    );
  const withLiarMs = Object.fromEntries(Object.entries(LIES).map(([about, lie]) => [about, time(PROXIES, lie)]));
  return { chunkBytes, threeHonestMs: time(PROXIES - 1), fourHonestMs: time(PROXIES), withLiarMs };
}
