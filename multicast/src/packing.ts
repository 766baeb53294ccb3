/**
 * Fractional packing of arborescences: trees from the source that reach every destination, each with a rate, as much
 * as the links carry. The optimum is a linear program with one column for each tree. Columns are generated: the least
 * tree under the prices of the links is the one that helps most.
 */
import { EXACT_DESTINATIONS_MAX, greedyTree, leastTree } from "./steiner";
import type { Task } from "./transfer";

/** Maximizes the sum of gains times values over values from 0, within the limit of every row. */
export type LinearSolver = (program: {
  readonly gains: readonly number[];
  readonly rows: readonly {
    readonly of: readonly (readonly [column: number, value: number])[];
    readonly limit: number;
  }[];
}) => { readonly gain: number; readonly values: readonly number[]; readonly prices: readonly number[] };

export interface Packing {
  /** The sum of the rates, in the unit of the links. */
  readonly rate: number;
  readonly trees: readonly { readonly links: readonly number[]; readonly rate: number }[];
  /** False: a better packing may exist, since there are too many destinations to look for all trees. */
  readonly isBest: boolean;
}

/** A tree helps when it costs less than its gain of 1 by more than this. */
const TOLERANCE = 1e-7;
const TREES_MAX = 2000;

/** The best packing for a transfer. The capacity of the transfer is the bound of any code, so it ends the search. */
export function packTrees({ graph, source, destinations, capacity }: Task, solve: LinearSolver): Packing {
  const open = graph.links.map((link) => link.capacity > 0);
  /** The least tree under the prices. A little weight on each link prefers the shorter of two trees. */
  const treeBy = (of: typeof leastTree, prices: readonly number[]): number[] =>
    of(
      graph,
      source,
      destinations,
      prices.map((price, link) => (open[link] ? Math.max(0, price) + 1e-10 : Infinity)),
    )!;
  const trees = [
    treeBy(
      greedyTree,
      graph.links.map(() => 1),
    ),
  ];
  for (;;) {
    const used = [...new Set(trees.flat())];
    const solution = solve({
      gains: trees.map(() => 1),
      rows: used.map((link) => ({
        of: trees.flatMap((tree, column) => (tree.includes(link) ? [[column, 1] as const] : [])),
        limit: graph.links[link]!.capacity,
      })),
    });
    const end = (isBest: boolean): Packing => ({
      rate: solution.gain,
      trees: trees.flatMap((links, column) => {
        const rate = solution.values[column]!;
        return rate > TOLERANCE * solution.gain ? [{ links, rate }] : [];
      }),
      isBest,
    });
    if (solution.gain >= capacity * (1 - TOLERANCE)) return end(true);
    const prices = new Array<number>(graph.links.length).fill(0);
    used.forEach((link, row) => (prices[link] = solution.prices[row]!));
    const helps = (tree: readonly number[]): boolean =>
      tree.reduce((sum, link) => sum + prices[link]!, 0) < 1 - TOLERANCE;
    let tree = treeBy(greedyTree, prices);
    if (!helps(tree)) {
      if (destinations.length > EXACT_DESTINATIONS_MAX) return end(false);
      tree = treeBy(leastTree, prices);
      if (!helps(tree)) return end(true);
    }
    if (trees.push(tree) > TREES_MAX) return end(false);
  }
}
