/** Codes on published and random graphs: data goes through each code link by link, and every destination decodes it. */
import { addProduct } from "@tributary/contract/galois";
import { drawn, randomGraph, randomOf } from "../test/random-graphs";
import { CODE_DESTINATIONS_MAX, inUnits, invert, networkCode, type NetworkCode } from "./code";
import { maxFlow } from "./flow";
import { Graph, graphOf } from "./graph";
import { B4, INTERNET2 } from "./topologies";

/** Sends one random symbol a path, as sites would: each link from its inputs alone. */
function decoded(graph: Graph, source: number, code: NetworkCode, sent: readonly Uint8Array[]): Uint8Array[][] {
  const carried = new Map<number, Uint8Array>();
  const bytes = sent[0]!.length;
  for (const { link, inputs } of code.links) {
    expect(carried.has(link)).toBe(false);
    const sum = new Uint8Array(bytes);
    const isFirst = graph.links[link]!.from === source;
    for (const { from, coefficient } of inputs) {
      if (!isFirst) expect(graph.links[from]!.to).toBe(graph.links[link]!.from);
      addProduct(sum, (isFirst ? sent[from] : carried.get(from))!, coefficient);
    }
    carried.set(link, sum);
  }
  return code.decoders.map(({ links, rows }) =>
    rows.map((row) => {
      const sum = new Uint8Array(bytes);
      links.forEach((link, at) => addProduct(sum, carried.get(link)!, row[at]!));
      return sum;
    }),
  );
}

function check(graph: Graph, source: number, destinations: readonly number[], next: () => number): boolean {
  const symbols = Math.min(...destinations.map((site) => maxFlow(graph, source, site)));
  const units = inUnits(graph, 1);
  const code = networkCode(units.graph, source, destinations, symbols);
  if (!code) return false;
  code.decoders.forEach(({ links }, at) => {
    for (const link of links) expect(units.graph.links[link]!.to).toBe(destinations[at]);
  });
  const sent = Array.from({ length: symbols }, () => Uint8Array.from({ length: 16 }, () => Math.floor(next() * 256)));
  for (const got of decoded(units.graph, source, code, sent)) expect(got).toEqual(sent);
  return true;
}

test.each([
  ["B4", B4],
  ["Internet2", INTERNET2],
])("%s: every destination decodes, for sources and destinations of every number", (_, topology) => {
  const graph = graphOf(topology);
  const next = randomOf(1);
  for (let count = 1; count < graph.sites.length; count++)
    for (let draw = 0; draw < 10; draw++) {
      const [source, ...destinations] = drawn(next, count + 1, graph.sites.length);
      expect([source, destinations, check(graph, source!, destinations, next)]).toEqual([source, destinations, true]);
    }
});

test("random graphs with parallel links: every destination decodes, and nearly all graphs have an order", () => {
  const next = randomOf(2);
  let [found, all] = [0, 0];
  for (let draw = 0; draw < 250; draw++) {
    const graph = randomGraph(next, 12, 3, 3);
    const [source, ...destinations] = drawn(next, 5, 12);
    if (destinations.some((site) => maxFlow(graph, source!, site) === 0)) continue;
    all++;
    found += Number(check(graph, source!, destinations, next));
  }
  expect(all).toBeGreaterThan(100);
  expect(found / all).toBeGreaterThan(0.9);
});

test("the butterfly needs XOR on one link, and nothing else is coded", () => {
  const names = ["s", "a", "b", "m", "w", "x", "y"];
  const lines = ["sa", "sb", "am", "bm", "mw", "ax", "by", "wx", "wy"];
  const graph = graphOf({ sites: names, links: lines.map(([from, to]) => ({ from: from!, to: to!, capacity: 1 })) });
  const code = networkCode(graph, 0, [5, 6], 2)!;
  const coded = code.links.filter(({ inputs }) => inputs.length > 1);
  expect(coded.map(({ link, inputs }) => [graph.nameOf(link), inputs.map(({ coefficient }) => coefficient)])).toEqual([
    ["m>w", [1, 1]],
  ]);
});

test("many destinations behind pairs of links: coefficients other than 1 are found", () => {
  // Every pair of 8 relays has a destination, so no two relays may carry the same combination (Jaggi et al., fig. 3).
  const relays = 8;
  const pairs = Array.from({ length: relays }, (_, a) => Array.from({ length: a }, (_, b) => [a, b] as const)).flat();
  const sites = [
    "s",
    "m",
    ...Array.from({ length: relays }, (_, r) => `r${r}`),
    ...pairs.map(([a, b]) => `d${a}.${b}`),
  ];
  const graph = new Graph(sites, [
    { from: 0, to: 1, capacity: 2, price: 0 },
    ...Array.from({ length: relays }, (_, relay) => ({ from: 1, to: 2 + relay, capacity: 1, price: 0 })),
    ...pairs.flatMap((pair, at) => pair.map((r) => ({ from: 2 + r, to: 2 + relays + at, capacity: 1, price: 0 }))),
  ]);
  expect(
    check(
      graph,
      0,
      pairs.map((_, at) => 2 + relays + at),
      randomOf(3),
    ),
  ).toBe(true);
});

test("bad questions are refused", () => {
  const graph = graphOf({ sites: ["a", "b"], links: [{ from: "a", to: "b", capacity: 1 }] });
  expect(() => networkCode(graph, 0, [1], 2)).toThrow("2 symbols, but only 1 paths to b");
  expect(() => networkCode(graph, 0, new Array<number>(CODE_DESTINATIONS_MAX + 1).fill(1), 1)).toThrow(
    "256 destinations",
  );
  expect(() => invert([Uint8Array.of(1, 2), Uint8Array.of(2, 4)])).toThrow("rank 1");
});
