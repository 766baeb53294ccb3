/**
 * Topologies of the paper (Wang, Li 2006, section II-B): peers join in stages, and each takes its upstream neighbours
 * from those that are there. Peer 0 has the content.
 */
import { Random } from "../random";

export interface Node {
  /** Bytes a second. */
  readonly upBytesPerSec: number;
  readonly downBytesPerSec: number;
  readonly upstream: number[];
  readonly downstream: number[];
}

export interface TopologyOptions {
  peers: number;
  upstream: number;
  seed: number;
}

/** Peers that join at once. */
const STAGE = 10;
const ETHERNET_SHARE = 0.3;
const ETHERNET_BYTES_PER_SEC = 1e6;
const DSL_UP = [50_000, 80_000] as const;
const DSL_DOWN = [100_000, 200_000] as const;

/** `peers` nodes beside the first one, which is on Ethernet. */
export function mixedTopology({ peers, upstream, seed }: TopologyOptions): Node[] {
  const random = new Random(seed);
  const between = ([low, high]: readonly [number, number]): number => low + random.unit() * (high - low);
  const nodes: Node[] = [];
  for (let id = 0; id <= peers; id++) {
    const isEthernet = id === 0 || random.unit() < ETHERNET_SHARE;
    const up = isEthernet ? ETHERNET_BYTES_PER_SEC : between(DSL_UP);
    const down = isEthernet ? ETHERNET_BYTES_PER_SEC : between(DSL_DOWN);
    const there = id === 0 ? 0 : 1 + Math.floor((id - 1) / STAGE) * STAGE;
    const chosen = new Set<number>();
    while (chosen.size < Math.min(upstream, there)) chosen.add(Math.floor(random.unit() * there));
    for (const from of chosen) nodes[from]!.downstream.push(id);
    nodes.push({ upBytesPerSec: up, downBytesPerSec: down, upstream: [...chosen], downstream: [] });
  }
  return nodes;
}
