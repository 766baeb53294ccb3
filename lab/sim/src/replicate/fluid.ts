/**
 * Max-min fair rates of transfers that share links, as hop-by-hop flow control and TCP bring them about: the rates of
 * all flows grow together, and a flow stops where a link of it is full (Bertsekas, Gallager: Data Networks, section
 * 6.5.2).
 */

/** A flow with one rate: what is coded or mirrored together moves at one rate. */
export interface Flow {
  /** By link: how many times the flow's rate it carries. */
  readonly load: ReadonlyMap<number, number>;
}

/** The flow that uses each of the links once for each time it is named. */
export function flowOver(links: readonly number[]): Flow {
  const load = new Map<number, number>();
  for (const link of links) load.set(link, (load.get(link) ?? 0) + 1);
  return { load };
}

/** The rates of the flows, in the unit of the capacities. */
export function fairRates(flows: readonly Flow[], capacities: ArrayLike<number>): number[] {
  const left = Float64Array.from(capacities);
  const rates = flows.map(() => 0);
  const open = new Set(flows.keys());
  while (open.size > 0) {
    const use = new Float64Array(left.length);
    for (const flow of open) for (const [link, times] of flows[flow]!.load) use[link]! += times;
    const shareOf = (link: number): number => left[link]! / use[link]!;
    const share = Math.min(...[...use.keys()].filter((link) => use[link]! > 0).map(shareOf));
    const isFull = (link: number): boolean => shareOf(link) <= share * (1 + 1e-9);
    const full = new Set([...use.keys()].filter((link) => use[link]! > 0 && isFull(link)));
    for (const flow of open) {
      rates[flow]! += share;
      for (const [link, times] of flows[flow]!.load) left[link] = Math.max(0, left[link]! - times * share);
    }
    for (const flow of open) if ([...flows[flow]!.load.keys()].some((link) => full.has(link))) open.delete(flow);
  }
  return rates;
}

/** What the flows leave of the capacities. */
export function restOf(flows: readonly Flow[], rates: readonly number[], capacities: ArrayLike<number>): Float64Array {
  const left = Float64Array.from(capacities);
  flows.forEach(({ load }, flow) => {
    for (const [link, times] of load) left[link] = Math.max(0, left[link]! - times * rates[flow]!);
  });
  return left;
}
