/** Sites and the links between them. A full-duplex line is two links. */

/** A topology as a person writes it. Capacities are in any one unit, for example Mbit/s. */
export interface Topology {
  readonly sites: readonly string[];
  readonly links: readonly {
    readonly from: string;
    readonly to: string;
    readonly capacity: number;
    /** Money for one unit of data. 0 if missing. */
    readonly price?: number;
  }[];
}

export interface Link {
  readonly from: number;
  readonly to: number;
  readonly capacity: number;
  readonly price: number;
}

/** A topology, or a question about it, that cannot be worked with. The message names the site or link. */
export class TopologyError extends Error {}

export class Graph {
  readonly sites: readonly string[];
  readonly links: readonly Link[];
  readonly #out: number[][];
  readonly #into: number[][];

  /** The ends of the links are indices of sites. Links may be parallel. */
  constructor(sites: readonly string[], links: readonly Link[]) {
    this.sites = sites;
    this.links = links;
    this.#out = sites.map(() => []);
    this.#into = sites.map(() => []);
    links.forEach(({ from, to }, link) => {
      this.#out[from]!.push(link);
      this.#into[to]!.push(link);
    });
  }

  /** The links that leave the site. */
  out(site: number): readonly number[] {
    return this.#out[site]!;
  }

  into(site: number): readonly number[] {
    return this.#into[site]!;
  }

  /** Throws TopologyError when no site has the name. */
  siteOf(name: string): number {
    const site = this.sites.indexOf(name);
    if (site < 0) throw new TopologyError(`site ${name} is not in the topology: add it, or correct the name`);
    return site;
  }

  nameOf(link: number): string {
    const { from, to } = this.links[link]!;
    return `${this.sites[from]}>${this.sites[to]}`;
  }

  /** The same sites with other capacities, by link. Links keep their indices. */
  withCapacities(capacities: ArrayLike<number>): Graph {
    return new Graph(
      this.sites,
      this.links.map((link, index) => ({ ...link, capacity: capacities[index]! })),
    );
  }
}

/** Throws TopologyError for a site that is there twice, a link that is, and ends or capacities that make no sense. */
export function graphOf({ sites, links }: Topology): Graph {
  const index = new Map<string, number>();
  for (const site of sites) {
    if (index.has(site)) throw new TopologyError(`site ${site} is in the topology twice: remove one`);
    index.set(site, index.size);
  }
  const seen = new Set<string>();
  const endOf = (name: string, site: string): number => {
    const found = index.get(site);
    if (found === undefined) throw new TopologyError(`link ${name}: site ${site} is not in the topology: add it`);
    return found;
  };
  return new Graph(
    [...sites],
    links.map(({ from, to, capacity, price = 0 }) => {
      const name = `${from}>${to}`;
      if (seen.has(name)) throw new TopologyError(`link ${name} is in the topology twice: remove one`);
      seen.add(name);
      if (from === to) throw new TopologyError(`link ${name} leads to its own site: remove it`);
      if (!(capacity >= 0 && capacity < Infinity))
        throw new TopologyError(`link ${name}: the capacity must be a number from 0, got ${capacity}`);
      if (!(price >= 0 && price < Infinity))
        throw new TopologyError(`link ${name}: the price must be a number from 0, got ${price}`);
      return { from: endOf(name, from), to: endOf(name, to), capacity, price };
    }),
  );
}
