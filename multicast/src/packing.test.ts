/** Trees and packings against each other, against brute force, and against the bound that coding reaches. */
import { drawn, randomGraph, randomOf } from "../test/random-graphs";
import { disjointPaths, maxFlow } from "./flow";
import { graphOf, type Graph } from "./graph";
import { loadHighs } from "./highs";
import { packTrees } from "./packing";
import { EXACT_DESTINATIONS_MAX, greedyTree, leastTree } from "./steiner";
import { B4, INTERNET2 } from "./topologies";
import { taskOf } from "./transfer";

/** Every site of the tree is entered once, and every destination is in it. */
function expectTree(graph: Graph, source: number, destinations: readonly number[], tree: readonly number[]): void {
  const entered = tree.map((link) => graph.links[link]!.to);
  expect(new Set(entered).size).toBe(entered.length);
  expect(entered).not.toContain(source);
  const reached = new Set([source]);
  for (const site of reached)
    for (const link of tree) if (graph.links[link]!.from === site) reached.add(graph.links[link]!.to);
  expect(reached.size).toBe(tree.length + 1);
  for (const site of destinations) expect(reached.has(site)).toBe(true);
}

const weightOf = (tree: readonly number[], weights: readonly number[]): number =>
  tree.reduce((sum, link) => sum + weights[link]!, 0);

/** The least weight of a tree, from all sets of links. */
function bruteForce(graph: Graph, source: number, destinations: readonly number[], weights: readonly number[]): number {
  let best = Infinity;
  for (let set = 0; set < 2 ** graph.links.length; set++) {
    const reached = new Set([source]);
    for (const site of reached)
      for (const link of graph.out(site)) if (set & (1 << link)) reached.add(graph.links[link]!.to);
    if (!destinations.every((site) => reached.has(site))) continue;
    best = Math.min(
      best,
      weights.reduce((sum, weight, link) => sum + (set & (1 << link) ? weight : 0), 0),
    );
  }
  return best;
}

test("the exact tree weighs as much as brute force finds, and the greedy one no less", () => {
  const next = randomOf(4);
  let found = 0;
  for (let draw = 0; draw < 60; draw++) {
    const graph = randomGraph(next, 6, 2, 1);
    if (graph.links.length > 13) continue;
    const [source, ...destinations] = drawn(next, 3, 6);
    const weights = graph.links.map(() => Math.floor(next() * 5));
    const best = bruteForce(graph, source!, destinations, weights);
    const [exact, greedy] = [leastTree, greedyTree].map((of) => of(graph, source!, destinations, weights));
    expect([exact === undefined, greedy === undefined]).toEqual([best === Infinity, best === Infinity]);
    if (!exact || !greedy) continue;
    found++;
    for (const tree of [exact, greedy]) expectTree(graph, source!, destinations, tree);
    expect(weightOf(exact, weights)).toBe(best);
    expect(weightOf(greedy, weights)).toBeGreaterThanOrEqual(best);
  }
  expect(found).toBeGreaterThan(20);
});

test.each([
  ["B4", B4, 12],
  ["Internet2", INTERNET2, 8],
])("%s: the best packing of trees carries as much as coding could", async (_, topology, most) => {
  const solve = await loadHighs();
  const graph = graphOf(topology);
  const next = randomOf(5);
  for (let count = 1; count <= most; count++)
    for (let draw = 0; draw < 4; draw++) {
      const [source, ...destinations] = drawn(next, count + 1, graph.sites.length);
      const task = taskOf(graph, { source: String(source), destinations: destinations.map(String) });
      const { rate, trees } = packTrees(task, solve);
      expect(rate).toBeCloseTo(task.capacity, 6);
      const load = new Float64Array(graph.links.length);
      for (const tree of trees) {
        expectTree(graph, source!, destinations, tree.links);
        for (const link of tree.links) load[link]! += tree.rate;
      }
      graph.links.forEach((link, at) => expect(load[at]).toBeLessThanOrEqual(link.capacity + 1e-6));
      expect(trees.reduce((sum, tree) => sum + tree.rate, 0)).toBeCloseTo(rate, 6);
    }
});

test("the butterfly: trees carry 1.5 where coding carries 2", async () => {
  const lines = ["sa", "sb", "am", "bm", "mw", "ax", "by", "wx", "wy"];
  const links = lines.map(([from, to]) => ({ from: from!, to: to!, capacity: 1 }));
  const graph = graphOf({ sites: [..."sabmwxy"], links });
  const task = taskOf(graph, { source: "s", destinations: ["x", "y"] });
  expect(task.capacity).toBe(2);
  const { rate, isBest } = packTrees(task, await loadHighs());
  expect(rate).toBeCloseTo(1.5, 6);
  expect(isBest).toBe(true);
});

test("paths that share no link are as many as the max flow of unit links, and of the least length", () => {
  const next = randomOf(6);
  for (let draw = 0; draw < 100; draw++) {
    const graph = randomGraph(next, 10, 3, 1);
    const [source, target] = drawn(next, 2, 10) as [number, number];
    const paths = disjointPaths(graph, source, target, Infinity);
    expect(paths.length).toBe(maxFlow(graph, source, target));
    const used = paths.flat();
    expect(new Set(used).size).toBe(used.length);
    for (const path of paths) {
      expect([graph.links[path[0]!]!.from, graph.links[path.at(-1)!]!.to]).toEqual([source, target]);
      path.slice(1).forEach((link, at) => expect(graph.links[link]!.from).toBe(graph.links[path[at]!]!.to));
    }
  }
});

test("a question with mistakes gets a sentence that names the site or link", () => {
  const line = { from: "a", to: "b", capacity: 1 };
  const sites = ["a", "b", "c"];
  const graph = graphOf({
    sites,
    links: [line, { from: "b", to: "c", capacity: 0 }, { from: "c", to: "a", capacity: 1 }],
  });
  for (const [topology, message] of [
    [{ sites: ["a", "a"], links: [] }, "site a is in the topology twice"],
    [{ sites, links: [line, line] }, "link a>b is in the topology twice"],
    [{ sites, links: [{ ...line, to: "d" }] }, "link a>d: site d is not in the topology"],
    [{ sites, links: [{ ...line, to: "a" }] }, "link a>a leads to its own site"],
    [{ sites, links: [{ ...line, capacity: -1 }] }, "link a>b: the capacity must be a number from 0, got -1"],
    [{ sites, links: [{ ...line, capacity: NaN }] }, "got NaN"],
    [{ sites, links: [{ ...line, price: Infinity }] }, "link a>b: the price must be a number from 0, got Infinity"],
  ] as const)
    expect(() => graphOf(topology)).toThrow(message);
  for (const [transfer, message] of [
    [{ source: "d", destinations: ["a"] }, "site d is not in the topology"],
    [{ source: "a", destinations: [] }, "no destination"],
    [{ source: "a", destinations: ["a"] }, "destination a is the source"],
    [{ source: "a", destinations: ["b", "b"] }, "destination b is named twice"],
    [{ source: "a", destinations: ["c"] }, "destination c cannot be reached from a: no path of links with capacity"],
    [{ source: "a", destinations: ["b"], without: ["a>b"] }, "destination b cannot be reached from a: the policy cuts"],
    [{ source: "a", destinations: ["b"], without: ["b"] }, "the policy excludes b, an end of the transfer"],
    [{ source: "a", destinations: ["b"], without: ["e"] }, "site e is not in the topology"],
  ] as const)
    expect(() => taskOf(graph, transfer)).toThrow(message);
  const many = Array.from({ length: EXACT_DESTINATIONS_MAX + 1 }, (_, site) => site);
  expect(() => leastTree(graph, 0, many, [1, 1, 1])).toThrow("13 destinations, the limit of an exact tree is 12");
});
