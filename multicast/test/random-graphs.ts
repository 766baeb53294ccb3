/** Random graphs for tests, the same for the same seed. */
import { Graph } from "../src/graph";

/** Uniform in [0, 1) (the minimal standard generator of Park and Miller). */
export function randomOf(seed: number): () => number {
  let state = (seed % 2147483646) + 1;
  return () => (state = (state * 48271) % 2147483647) / 2147483647;
}

/** About `degree` links leave each site. Capacities are whole numbers from 0 to `capacityMax`. */
export function randomGraph(next: () => number, siteCount: number, degree: number, capacityMax: number): Graph {
  const links = [];
  for (let from = 0; from < siteCount; from++)
    for (let to = 0; to < siteCount; to++)
      if (from !== to && next() < degree / (siteCount - 1))
        links.push({ from, to, capacity: Math.floor(next() * (capacityMax + 1)), price: 0 });
  return new Graph(
    Array.from({ length: siteCount }, (_, site) => `s${site}`),
    links,
  );
}

/** `count` different numbers from 0 to `below` - 1. */
export function drawn(next: () => number, count: number, below: number): number[] {
  const all = Array.from({ length: below }, (_, index) => index);
  return Array.from({ length: count }, () => all.splice(Math.floor(next() * all.length), 1)[0]!);
}
