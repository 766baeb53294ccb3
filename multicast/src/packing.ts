/**
 * Fractional packing of arborescences: trees from the source that reach every destination, each with a rate, as much
 * as the links carry. The optimum is a linear program with one column for each tree. Columns are generated: the least
 * tree under the prices of the links is the only one that can help (Lau, Jain: "Packing Steiner trees").
 */
import type { Graph } from "./graph";
import { leastTree } from "./steiner";

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
}

/** A tree helps when it costs less than its gain of 1 by more than this. */
const TOLERANCE = 1e-7;
const TREES_MAX = 2000;

/** The best packing. Its rate is at most the capacity of the transfer. Every destination must be reachable. */
export function packTrees(graph: Graph, source: number, destinations: readonly number[], solve: LinearSolver): Packing {
  const open = graph.links.map(({ capacity }) => capacity > 0);
  const treeUnder = (prices: readonly number[]): number[] =>
    // A little weight on each link prefers the shorter one of two trees of the same price.
    leastTree(
      graph,
      source,
      destinations,
      prices.map((price, link) => (open[link] ? Math.max(0, price) + 1e-10 : Infinity)),
    )!;
  const trees = [treeUnder(graph.links.map(() => 1))];
  for (;;) {
    const used = [...new Set(trees.flat())];
    const solution = solve({
      gains: trees.map(() => 1),
      rows: used.map((link) => ({
        of: trees.flatMap((tree, column) => (tree.includes(link) ? [[column, 1] as const] : [])),
        limit: graph.links[link]!.capacity,
      })),
    });
    const prices = new Array<number>(graph.links.length).fill(0);
    used.forEach((link, row) => (prices[link] = solution.prices[row]!));
    const tree = treeUnder(prices);
    const price = tree.reduce((sum, link) => sum + prices[link]!, 0);
    if (price >= 1 - TOLERANCE || trees.length === TREES_MAX)
      return {
        rate: solution.gain,
        trees: trees.flatMap((links, column) => {
          const rate = solution.values[column]!;
          return rate > TOLERANCE * solution.gain ? [{ links, rate }] : [];
        }),
      };
    trees.push(tree);
  }
}
