/** Flows and paths between two sites. */
import type { Graph } from "./graph";

/** Capacities are measured, so a rest of this share of the largest one counts as nothing. */
const NOTHING = 1e-9;

/** The value of a maximum flow, by shortest augmenting paths (Edmonds, Karp 1972). */
export function maxFlow(graph: Graph, source: number, target: number): number {
  const { links } = graph;
  const flow = new Float64Array(links.length);
  const nothing = NOTHING * Math.max(...links.map(({ capacity }) => capacity), 0);
  const rest = (link: number, isForward: boolean): number =>
    isForward ? links[link]!.capacity - flow[link]! : flow[link]!;
  for (let value = 0; ;) {
    const path = shortestPath(graph, source, target, (link, isForward) =>
      rest(link, isForward) > nothing ? 1 : Infinity,
    );
    if (!path) return value;
    const more = Math.min(...path.map(({ link, isForward }) => rest(link, isForward)));
    for (const { link, isForward } of path) flow[link]! += isForward ? more : -more;
    value += more;
  }
}

/**
 * Up to `count` paths that share no link, of the least total cost: a flow of unit capacities along cheapest augmenting
 * paths (Suurballe 1974). Links without capacity are not used. Each path is a list of links. Fewer come back where
 * there are fewer.
 */
export function disjointPaths(
  graph: Graph,
  source: number,
  target: number,
  count: number,
  costOf: (link: number) => number = () => 1,
): number[][] {
  const { links } = graph;
  const used = new Set<number>();
  for (let found = 0; found < count; found++) {
    const path = shortestPath(graph, source, target, (link, isForward) => {
      if (!isForward) return used.has(link) ? -costOf(link) : Infinity;
      return used.has(link) || links[link]!.capacity <= 0 ? Infinity : costOf(link);
    });
    if (!path) break;
    for (const { link, isForward } of path)
      if (isForward) used.add(link);
      else used.delete(link);
  }
  return pathsOf(graph, source, target, used);
}

interface Step {
  link: number;
  /** False: the step takes back flow, from the link's end to its start. */
  isForward: boolean;
}

/**
 * The cheapest path over links in both directions (Bellman, Ford, with a queue). Infinity forbids a step. Costs may be
 * negative, but no circle may be. Undefined when there is no path.
 */
function shortestPath(
  graph: Graph,
  source: number,
  target: number,
  costOf: (link: number, isForward: boolean) => number,
): Step[] | undefined {
  const { sites, links } = graph;
  const costs = new Float64Array(sites.length).fill(Infinity);
  const last = new Array<Step | undefined>(sites.length);
  const waiting = new Uint8Array(sites.length);
  const queue = [source];
  costs[source] = 0;
  const look = (from: number, to: number, step: Step): void => {
    const cost = costs[from]! + costOf(step.link, step.isForward);
    if (!(cost < costs[to]! - 1e-12)) return;
    costs[to] = cost;
    last[to] = step;
    if (waiting[to]) return;
    waiting[to] = 1;
    queue.push(to);
  };
  for (let at = 0; at < queue.length; at++) {
    const site = queue[at]!;
    waiting[site] = 0;
    for (const link of graph.out(site)) look(site, links[link]!.to, { link, isForward: true });
    for (const link of graph.into(site)) look(site, links[link]!.from, { link, isForward: false });
  }
  if (costs[target] === Infinity) return undefined;
  const path: Step[] = [];
  for (let site = target; site !== source;) {
    const step = last[site]!;
    path.unshift(step);
    site = step.isForward ? links[step.link]!.from : links[step.link]!.to;
  }
  return path;
}

/** Splits a flow of unit links into paths. Circles in the flow are left out. */
function pathsOf({ links }: Graph, source: number, target: number, used: ReadonlySet<number>): number[][] {
  const left = new Map<number, number[]>();
  for (const link of used) left.set(links[link]!.from, [...(left.get(links[link]!.from) ?? []), link]);
  const paths: number[][] = [];
  while ((left.get(source) ?? []).length > 0) {
    const path: number[] = [];
    for (let site = source; site !== target;) {
      const link = left.get(site)!.pop()!;
      site = links[link]!.to;
      const back = path.findIndex((earlier) => links[earlier]!.from === site);
      if (back >= 0) path.splice(back);
      else path.push(link);
    }
    paths.push(path);
  }
  return paths;
}
