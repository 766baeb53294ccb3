/**
 * `npm run sim -- replicate`: bulk transfers between sites, as CodedBulk (Tseng et al., NSDI 2021) measured them, in a
 * fluid model: the flows of all transfers share the links fairly.
 *
 *   npm run sim -- replicate --figure 8|9|10 [--topology B4|Internet2] [--draws 150] [--seed N]
 *
 * It prints a line for each point of the figure: the sum of the throughputs of all transfers by scheme, as a mean over
 * the draws, and below it the authors' measurement. The throughput of a transfer is that of its slowest destination.
 * Exit status: 0 done, 2 wrong option.
 */
import { parseArgs } from "node:util";
import { graphOf, type Graph, type LinearSolver } from "@tributary/multicast";
import { loadHighs } from "@tributary/multicast/highs";
import { B4, INTERNET2 } from "@tributary/multicast/topologies";
import { Random } from "../random";
import { fairRates, restOf } from "./fluid";
import { FIGURES, PUBLISHED, TOPOLOGY_NAMES, type Figure, type Published, type TopologyName } from "./published";
import { plansOf, SCHEMES, sum, type Plan, type Scheme } from "./schemes";

export const USAGE = `usage: npm run sim -- replicate --figure ${FIGURES.join("|")}
                      [--topology ${TOPOLOGY_NAMES.join("|")}] [--draws 150] [--seed N]`;

/** Of each line and direction, as in the paper. */
const LINE_MBIT_PER_SEC = 200;
const TOPOLOGIES = { B4, Internet2: INTERNET2 };
const DRAWS_MAX = 10_000;

const TITLES: Readonly<Record<Scheme, string>> = {
  single: "single path",
  multi: "multi-path",
  steiner: "Steiner",
  stored: "stored",
  packing: "packing",
  coded: "coded",
  filled: "coded+fill",
};

export type Point = Pick<Published, "transfers" | "destinations" | "load">;

/** The sum of the throughputs of the transfers, in Mbit/s, by scheme: the mean over the draws. */
export function throughputs(
  graph: Graph,
  point: Point,
  draws: number,
  seed: number,
  solve: LinearSolver,
): Record<Scheme, number> {
  const totals = Object.fromEntries(SCHEMES.map((scheme) => [scheme, 0])) as Record<Scheme, number>;
  for (let draw = 0; draw < draws; draw++) {
    const transfers = drawTransfers(new Random(seed, draw), graph.sites.length, point);
    const plans = transfers.map(({ source, destinations }) => plansOf(graph, source, destinations, solve));
    for (const scheme of SCHEMES)
      totals[scheme] += together(
        plans.map((of) => of[scheme]),
        graph.links.map(({ capacity }) => capacity * (1 - point.load)),
      );
  }
  for (const scheme of SCHEMES) totals[scheme] /= draws;
  return totals;
}

/** Each site is the source of at most one transfer. */
function drawTransfers(
  random: Random,
  sites: number,
  { transfers, destinations }: Point,
): { source: number; destinations: number[] }[] {
  const all = Array.from({ length: sites }, (_, site) => site);
  return drawn(random, all, transfers).map((source) => ({
    source,
    destinations: drawn(
      random,
      all.filter((site) => site !== source),
      destinations,
    ),
  }));
}

function drawn(random: Random, from: readonly number[], count: number): number[] {
  const left = [...from];
  return Array.from({ length: count }, () => left.splice(Math.floor(random.unit() * left.length), 1)[0]!);
}

function together(plans: readonly Plan[], capacities: readonly number[]): number {
  const flows = plans.flatMap((plan) => plan.flows);
  const fill = plans.flatMap((plan) => plan.fill);
  const rates = fairRates(flows, capacities);
  const fillRates = fairRates(fill, restOf(flows, rates, capacities));
  let [at, fillAt] = [0, 0];
  return sum(
    plans.map((plan) => {
      const own = rates.slice(at, (at += plan.flows.length));
      const ownFill = fillRates.slice(fillAt, (fillAt += plan.fill.length));
      return Math.min(...plan.goodputs(own, ownFill));
    }),
  );
}

interface Options {
  figure: Figure;
  topologies: readonly TopologyName[];
  draws: number;
  seed: number;
}

export async function replicate(words: string[]): Promise<number> {
  const options = readOptions(words);
  if (typeof options === "string") {
    console.error(`${options}\n${USAGE}`);
    return 2;
  }
  const { figure, topologies, draws, seed } = options;
  const solve = await loadHighs();
  for (const name of topologies) {
    const lines = graphOf(TOPOLOGIES[name]);
    const graph = lines.withCapacities(lines.links.map(() => LINE_MBIT_PER_SEC));
    console.log(`Figure ${figure}, ${name}, ${draws} draws from seed ${seed}: Mbit/s of all transfers\n`);
    console.log(cells(["", "", "", ...SCHEMES.map((scheme) => TITLES[scheme])]));
    for (const row of PUBLISHED[name][figure]) {
      const ours = throughputs(graph, row, draws, seed, solve);
      const { transfers, destinations, load } = row;
      console.log(
        cells([
          `${transfers} to ${destinations}`,
          `load ${load}`,
          "model",
          ...SCHEMES.map((scheme) => ours[scheme].toFixed(0)),
        ]),
      );
      // The authors' coded transfers always have their fill.
      const theirs = { ...row, coded: undefined, packing: undefined, filled: row.coded };
      console.log(cells(["", "", "authors", ...SCHEMES.map((scheme) => theirs[scheme]?.toFixed(0) ?? "-")]));
    }
    console.log("");
  }
  return 0;
}

const cells = (texts: readonly string[]): string =>
  texts.map((text, at) => (at < 3 ? text.padEnd(10) : text.padStart(12))).join("");

function readOptions(words: string[]): Options | string {
  let values;
  try {
    ({ values } = parseArgs({
      args: words,
      options: {
        figure: { type: "string" },
        topology: { type: "string" },
        draws: { type: "string", default: "150" },
        seed: { type: "string", default: "1" },
      },
    }));
  } catch (error) {
    return (error as Error).message;
  }
  const figure = FIGURES.find((each) => String(each) === values.figure);
  if (!figure) return `--figure must be one of ${FIGURES.join(", ")}, got ${values.figure ?? "nothing"}`;
  const topologies = TOPOLOGY_NAMES.filter((name) => values.topology === undefined || name === values.topology);
  if (topologies.length === 0) return `--topology must be one of ${TOPOLOGY_NAMES.join(", ")}, got ${values.topology}`;
  const draws = Number(values.draws);
  if (!Number.isInteger(draws) || draws < 1 || draws > DRAWS_MAX)
    return `--draws must be a whole number from 1 to ${DRAWS_MAX}, got ${values.draws}`;
  const seed = Number(values.seed);
  if (!Number.isInteger(seed) || seed < 0) return `--seed must be a whole number from 0, got ${values.seed}`;
  return { figure, topologies, draws, seed };
}
