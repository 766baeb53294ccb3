/** One bulk transfer: from a source to destinations, by what its policy allows. */
import { maxFlow } from "./flow";
import { TopologyError, type Graph } from "./graph";

export interface Transfer {
  readonly source: string;
  readonly destinations: readonly string[];
  /** Sites and links (`from>to`) that the transfer must not use. */
  readonly without?: readonly string[];
}

/** A transfer on a graph, checked. */
export interface Task {
  /** The links that the policy excludes have no capacity. */
  readonly graph: Graph;
  readonly source: number;
  readonly destinations: readonly number[];
  /**
   * The capacity of the transfer: the least max flow over its destinations, which network coding reaches (Ahlswede et
   * al. 2000). In the unit of the links.
   */
  readonly capacity: number;
}

/** Throws TopologyError when the transfer makes no sense or a destination cannot be reached. */
export function taskOf(graph: Graph, { source: from, destinations: to, without = [] }: Transfer): Task {
  const source = graph.siteOf(from);
  if (to.length === 0) throw new TopologyError("the transfer has no destination: name at least one site");
  const destinations = to.map((name, at) => {
    if (name === from) throw new TopologyError(`destination ${name} is the source: remove it`);
    if (to.indexOf(name) !== at) throw new TopologyError(`destination ${name} is named twice: remove one`);
    return graph.siteOf(name);
  });
  const banned = new Set(without);
  const links = new Set(graph.links.map((_, link) => graph.nameOf(link)));
  for (const name of banned) {
    if (!links.has(name)) graph.siteOf(name);
    if (name === from || to.includes(name))
      throw new TopologyError(`the policy excludes ${name}, an end of the transfer: change the policy`);
  }
  const isBanned = (link: number): boolean => {
    const { from, to } = graph.links[link]!;
    return [graph.nameOf(link), graph.sites[from]!, graph.sites[to]!].some((name) => banned.has(name));
  };
  const allowed = graph.withCapacities(graph.links.map(({ capacity }, link) => (isBanned(link) ? 0 : capacity)));
  const flows = destinations.map((site) => maxFlow(allowed, source, site));
  flows.forEach((flow, at) => {
    if (flow > 0) return;
    const cause =
      banned.size > 0 && maxFlow(graph, source, destinations[at]!) > 0
        ? "the policy cuts all its paths: allow one of them"
        : "no path of links with capacity leads there: add a link or raise a capacity";
    throw new TopologyError(`destination ${to[at]} cannot be reached from ${from}: ${cause}`);
  });
  return { graph: allowed, source, destinations, capacity: Math.min(...flows) };
}
