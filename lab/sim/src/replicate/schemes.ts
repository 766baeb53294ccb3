/** The ways to move one transfer: each as flows that share the links with the flows of other transfers. */
import {
  disjointPaths,
  greedyTree,
  networkCode,
  packTrees,
  taskOf,
  type Graph,
  type LinearSolver,
} from "@tributary/multicast";
import { flowOver, type Flow } from "./fluid";

export const SCHEMES = ["single", "multi", "steiner", "stored", "packing", "coded", "filled"] as const;
export type Scheme = (typeof SCHEMES)[number];

/** One transfer under one scheme. */
export interface Plan {
  readonly flows: readonly Flow[];
  /** Flows of lower priority, which use what all transfers' flows leave. */
  readonly fill: readonly Flow[];
  /** What each destination gets, from the rates of the flows and of the fill. */
  goodputs(rates: readonly number[], fillRates: readonly number[]): number[];
}

/** The links have one capacity. Every destination must be reachable. */
export function plansOf(
  graph: Graph,
  source: number,
  destinations: readonly number[],
  solve: LinearSolver,
): Record<Scheme, Plan> {
  const ones = graph.links.map(() => 1);
  const paths = destinations.map((site) => disjointPaths(graph, source, site, Infinity));
  const tree = greedyTree(graph, source, destinations, ones)!;
  const symbols = Math.min(...paths.map(({ length }) => length));
  const code = networkCode(graph, source, destinations, symbols);
  if (!code) throw new Error("no order of the links suits a code");
  const coded = flowOver(code.links.map(({ link }) => link));
  const nameOf = (site: number): string => graph.sites[site]!;
  const packing = packTrees(taskOf(graph, { source: nameOf(source), destinations: destinations.map(nameOf) }), solve);
  const everywhere = (value: number): number[] => destinations.map(() => value);
  return {
    single: byPaths(shortestPaths(graph, source, destinations).map((path) => [path])),
    multi: byPaths(paths),
    steiner: { flows: [flowOver(tree)], fill: [], goodputs: ([rate]) => everywhere(rate!) },
    stored: stored(graph, source, destinations, tree),
    packing: {
      flows: [together(packing.trees)],
      fill: packing.trees.map(({ links }) => flowOver(links)),
      goodputs: ([rate], fill) => everywhere(rate! + sum(fill)),
    },
    coded: { flows: [coded], fill: [], goodputs: ([rate]) => everywhere(symbols * rate!) },
    filled: {
      flows: [coded],
      fill: [flowOver(tree)],
      goodputs: ([rate], [fill]) => everywhere(symbols * rate! + fill!),
    },
  };
}

/** A shortest path to each destination. Of several, the one that shares most links with those before. */
function shortestPaths(graph: Graph, source: number, destinations: readonly number[]): number[][] {
  const used = new Set<number>();
  return destinations.map((site) => {
    const [path] = disjointPaths(graph, source, site, 1, (link) => (used.has(link) ? 0.999 : 1));
    for (const link of path!) used.add(link);
    return path!;
  });
}

/** Each path to each destination is a flow of its own: nothing is mirrored. */
function byPaths(paths: readonly (readonly number[][])[]): Plan {
  const owners = paths.flatMap((of, destination) => of.map(() => destination));
  return {
    flows: paths.flat().map(flowOver),
    fill: [],
    goodputs: (rates) => paths.map((_, at) => sum(rates.filter((_rate, flow) => owners[flow] === at))),
  };
}

/** Each link of the tree is a flow of its own, since each site stores what it cannot send on yet. */
function stored(graph: Graph, source: number, destinations: readonly number[], tree: readonly number[]): Plan {
  const entry = new Map(tree.map((link, flow) => [graph.links[link]!.to, { flow, from: graph.links[link]!.from }]));
  return {
    flows: tree.map((link) => flowOver([link])),
    fill: [],
    goodputs: (rates) =>
      destinations.map((destination) => {
        let least = Infinity;
        for (let site = destination; site !== source; site = entry.get(site)!.from)
          least = Math.min(least, rates[entry.get(site)!.flow]!);
        return least;
      }),
  };
}

/** All trees as one flow, each with its share. */
function together(trees: readonly { readonly links: readonly number[]; readonly rate: number }[]): Flow {
  const all = sum(trees.map(({ rate }) => rate));
  const load = new Map<number, number>();
  for (const { links, rate } of trees) for (const link of links) load.set(link, (load.get(link) ?? 0) + rate / all);
  return { load };
}

export const sum = (values: readonly number[]): number => values.reduce((all, value) => all + value, 0);
