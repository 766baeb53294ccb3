/**
 * Two published topologies between data centres, with full-duplex lines of one capacity: Google's B4 (Jain et al.,
 * SIGCOMM 2013) and Internet2, as CodedBulk (Tseng et al., NSDI 2021) numbers and links their sites.
 */
import type { Topology } from "./graph";

const B4_LINES = [
  [0, 1],
  [0, 3],
  [1, 2],
  [2, 3],
  [2, 4],
  [2, 12],
  [3, 4],
  [3, 5],
  [3, 12],
  [4, 6],
  [4, 7],
  [5, 6],
  [5, 7],
  [6, 7],
  [6, 9],
  [7, 10],
  [7, 12],
  [8, 9],
  [8, 10],
  [9, 10],
  [9, 11],
  [10, 11],
] as const;

const INTERNET2_LINES = [
  [0, 1],
  [0, 2],
  [1, 2],
  [1, 3],
  [2, 4],
  [3, 4],
  [3, 5],
  [4, 6],
  [5, 6],
  [5, 7],
  [6, 7],
  [6, 8],
  [7, 8],
] as const;

export const B4 = topologyOf(13, B4_LINES);
export const INTERNET2 = topologyOf(9, INTERNET2_LINES);

/** Each link has capacity 1. */
function topologyOf(count: number, lines: readonly (readonly [number, number])[]): Topology {
  return {
    sites: Array.from({ length: count }, (_, site) => String(site)),
    links: lines.flatMap(([a, b]) => [
      { from: String(a), to: String(b), capacity: 1 },
      { from: String(b), to: String(a), capacity: 1 },
    ]),
  };
}
