/**
 * Steiner arborescences: trees of links from the source that reach every destination. Each function takes the weight
 * of each link, Infinity for a link that must not be used, and gives the tree as a list of links.
 */
import type { Graph } from "./graph";

/** The exact tree takes 3^destinations steps for each site. */
export const EXACT_DESTINATIONS_MAX = 12;

/**
 * A tree of the least weight, by dynamic programming over the sets of destinations (Dreyfus, Wagner 1971, for directed
 * graphs). Undefined when a destination cannot be reached. Throws RangeError over EXACT_DESTINATIONS_MAX.
 */
export function leastTree(
  graph: Graph,
  source: number,
  destinations: readonly number[],
  weights: ArrayLike<number>,
): number[] | undefined {
  if (destinations.length > EXACT_DESTINATIONS_MAX)
    throw new RangeError(
      `${destinations.length} destinations, the limit of an exact tree is ${EXACT_DESTINATIONS_MAX}`,
    );
  const { sites } = graph;
  const all = (1 << destinations.length) - 1;
  /** By set and site: the weight of the best tree from the site to the set, and how it begins: a link, or a split. */
  const costs = Array.from({ length: all + 1 }, () => new Float64Array(sites.length).fill(Infinity));
  const first = Array.from({ length: all + 1 }, () => new Int32Array(sites.length));
  for (let set = 1; set <= all; set++) {
    const cost = costs[set]!;
    const begin = first[set]!;
    if ((set & (set - 1)) === 0) cost[destinations[Math.log2(set)]!] = 0;
    for (let part = (set - 1) & set; part > set >> 1; part = (part - 1) & set)
      for (let site = 0; site < sites.length; site++) {
        const sum = costs[part]![site]! + costs[set ^ part]![site]!;
        if (sum < cost[site]!) [cost[site], begin[site]] = [sum, ~part];
      }
    spread(graph, weights, cost, begin);
  }
  if (costs[all]![source] === Infinity) return undefined;
  const tree = new Set<number>();
  const open: [set: number, site: number][] = [[all, source]];
  for (let next = open.pop(); next; next = open.pop()) {
    const [set, site] = next;
    if (costs[set]![site] === 0 && (set & (set - 1)) === 0 && destinations[Math.log2(set)] === site) continue;
    const begin = first[set]![site]!;
    if (begin < 0) open.push([~begin, site], [set ^ ~begin, site]);
    else {
      tree.add(begin);
      open.push([set, graph.links[begin]!.to]);
    }
  }
  return withoutDeadEnds(graph, source, destinations, tree);
}

/** Shortest ways to the sites that have a cost (Dijkstra). `begin` gets the first link of each way. */
function spread(graph: Graph, weights: ArrayLike<number>, cost: Float64Array, begin: Int32Array): void {
  const queue = new Heap();
  cost.forEach((value, site) => value < Infinity && queue.push(value, site));
  for (let next = queue.pop(); next; next = queue.pop()) {
    const [value, site] = next;
    if (value > cost[site]!) continue;
    for (const link of graph.into(site)) {
      const { from } = graph.links[link]!;
      const sum = value + weights[link]!;
      if (!(sum < cost[from]!)) continue;
      [cost[from], begin[from]] = [sum, link];
      queue.push(sum, from);
    }
  }
}

/** A binary heap of numbers with their keys. */
class Heap {
  readonly #entries: [key: number, value: number][] = [];

  push(key: number, value: number): void {
    const entries = this.#entries;
    let at = entries.push([key, value]) - 1;
    for (let up = (at - 1) >> 1; at > 0 && entries[up]![0] > key; at = up, up = (at - 1) >> 1)
      [entries[at], entries[up]] = [entries[up]!, entries[at]!];
  }

  pop(): [key: number, value: number] | undefined {
    const entries = this.#entries;
    const least = entries[0];
    const last = entries.pop();
    if (!least || entries.length === 0) return least;
    entries[0] = last!;
    for (let at = 0; ;) {
      let down = 2 * at + 1;
      if (down + 1 < entries.length && entries[down + 1]![0] < entries[down]![0]) down++;
      if (down >= entries.length || entries[down]![0] >= entries[at]![0]) return least;
      [entries[at], entries[down]] = [entries[down]!, entries[at]!];
      at = down;
    }
  }
}

/**
 * A tree by the greedy algorithm GreedyFLAC (Watel, Weisser 2016), which the paper's baselines use. Water flows from
 * each open destination against the links, at rate 1 each, until the source is wet. The tree of the links that are
 * full is kept and costs nothing from then on, and the destinations that it does not reach begin anew. Undefined when
 * a destination cannot be reached.
 */
export function greedyTree(
  graph: Graph,
  source: number,
  destinations: readonly number[],
  weights: ArrayLike<number>,
): number[] | undefined {
  const left = new Set(destinations);
  const cost = Float64Array.from(weights);
  const tree = new Set<number>();
  while (left.size > 0) {
    const { links, reached } = flood(graph, source, left, cost);
    if (reached.length === 0) return undefined;
    for (const link of links) {
      tree.add(link);
      cost[link] = 0;
    }
    for (const site of reached) left.delete(site);
  }
  return withoutDeadEnds(graph, source, destinations, tree);
}

/** The algorithm FLAC: one tree, and the destinations that it reaches. */
function flood(
  graph: Graph,
  source: number,
  destinations: ReadonlySet<number>,
  weights: ArrayLike<number>,
): { links: number[]; reached: number[] } {
  const { sites, links } = graph;
  const full = new Set<number>();
  /** Links that would lead water to a destination on two ways are left out. */
  const shut = new Set<number>();
  const filled = new Float64Array(links.length);
  /** By site: the destinations whose water it has. */
  const wet = sites.map((_, site) => new Set(destinations.has(site) ? [site] : []));
  const cheapest = (site: number): number | undefined =>
    graph
      .into(site)
      .filter((link) => !full.has(link) && !shut.has(link) && weights[link]! < Infinity)
      .sort((a, b) => weights[a]! - weights[b]! || a - b)[0];
  for (;;) {
    let [next, soonest] = [-1, Infinity];
    /** The links that water fills now, and how fast. */
    const filling: [link: number, rate: number][] = [];
    wet.forEach(({ size: rate }, site) => {
      const link = rate > 0 ? cheapest(site) : undefined;
      if (link === undefined) return;
      filling.push([link, rate]);
      const time = (weights[link]! - filled[link]!) / rate;
      if (time < soonest) [next, soonest] = [link, time];
    });
    if (next < 0) return { links: [], reached: [] };
    for (const [link, rate] of filling) filled[link]! += soonest * rate;
    const { from, to } = links[next]!;
    if (!joins(graph, full, wet, from, wet[to]!)) {
      shut.add(next);
      continue;
    }
    full.add(next);
    if (from !== source) continue;
    const reached = [...wet[to]!];
    return { links: below(graph, full, to, next), reached };
  }
}

/**
 * Adds the water to the site and to all above it along full links. False, and nothing is added, when one of them has
 * some of it already.
 */
function joins(
  graph: Graph,
  full: ReadonlySet<number>,
  wet: readonly Set<number>[],
  site: number,
  water: ReadonlySet<number>,
): boolean {
  const above = new Set([site]);
  for (const at of above) for (const link of graph.into(at)) if (full.has(link)) above.add(graph.links[link]!.from);
  for (const at of above) for (const drop of water) if (wet[at]!.has(drop)) return false;
  for (const at of above) for (const drop of water) wet[at]!.add(drop);
  return true;
}

/** The link, and the full links that can be reached behind it. */
function below(graph: Graph, full: ReadonlySet<number>, site: number, link: number): number[] {
  const found = new Set([link]);
  const open = [site];
  for (let at = open.pop(); at !== undefined; at = open.pop())
    for (const next of graph.out(at))
      if (full.has(next) && !found.has(next)) {
        found.add(next);
        open.push(graph.links[next]!.to);
      }
  return [...found];
}

/** The part of the links that leads from the source to destinations, each site entered once. */
function withoutDeadEnds(
  graph: Graph,
  source: number,
  destinations: readonly number[],
  links: ReadonlySet<number>,
): number[] {
  const entry = new Map<number, number>();
  const open = [source];
  for (const site of open)
    for (const link of graph.out(site)) {
      const { to } = graph.links[link]!;
      if (!links.has(link) || to === source || entry.has(to)) continue;
      entry.set(to, link);
      open.push(to);
    }
  const kept = new Set<number>();
  for (const destination of destinations)
    for (let site = destination; site !== source;) {
      const link = entry.get(site)!;
      kept.add(link);
      site = graph.links[link]!.from;
    }
  return [...kept].sort((a, b) => a - b);
}
