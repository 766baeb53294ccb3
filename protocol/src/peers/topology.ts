/**
 * Topologies of the paper (Wang, Li 2006, section II-B): peers join in stages, and each takes its upstream neighbours
 * from those that are there. Node 0 has the content. The same seed gives the same topology. Pure.
 */
import { below, xorshift128 } from "../rng";

export interface TopologyNode {
  readonly link: "Ethernet" | "DSL";
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
export function mixedTopology({ peers, upstream, seed }: TopologyOptions): TopologyNode[] {
  const rng = xorshift128(seed);
  const unit = (): number => rng() / 0x1_0000_0000;
  const between = ([low, high]: readonly [number, number]): number => low + unit() * (high - low);
  const nodes: TopologyNode[] = [];
  for (let id = 0; id <= peers; id++) {
    const link = id === 0 || unit() < ETHERNET_SHARE ? "Ethernet" : "DSL";
    const isEthernet = link === "Ethernet";
    const up = isEthernet ? ETHERNET_BYTES_PER_SEC : between(DSL_UP);
    const down = isEthernet ? ETHERNET_BYTES_PER_SEC : between(DSL_DOWN);
    const there = id === 0 ? 0 : 1 + Math.floor((id - 1) / STAGE) * STAGE;
    const chosen = new Set<number>();
    while (chosen.size < Math.min(upstream, there)) chosen.add(below(rng, there));
    for (const from of chosen) nodes[from]!.downstream.push(id);
    nodes.push({ link, upBytesPerSec: up, downBytesPerSec: down, upstream: [...chosen], downstream: [] });
  }
  return nodes;
}
