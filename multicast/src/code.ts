/**
 * Linear network codes for one source and many destinations: the linear information flow algorithm of Jaggi et al.
 * (IEEE Transactions on Information Theory 51(6), 2005), over GF(2^8). All links have the same capacity, that of one
 * symbol: `inUnits` cuts a graph so. The code moves `symbols` symbols from the source to every destination at once.
 */
import { addProduct, inverse, product } from "@tributary/contract/galois";
import { disjointPaths } from "./flow";
import { Graph } from "./graph";

/** With more destinations a good combination may not exist. */
export const CODE_DESTINATIONS_MAX = 255;

/** What one link carries: a sum of what its inputs carry, each times a coefficient that is not 0. */
export interface CodedLink {
  readonly link: number;
  /** Links that enter the site, or at the source the indices of symbols. */
  readonly inputs: readonly { readonly from: number; readonly coefficient: number }[];
  /** The same as a combination of the source's symbols: one coefficient for each. */
  readonly vector: Uint8Array;
}

export interface NetworkCode {
  readonly symbols: number;
  /** In an order in which each link comes after its inputs. */
  readonly links: readonly CodedLink[];
  /**
   * By destination, in the order asked for: the links that it decodes from, and for each symbol the coefficients of
   * these links that give it.
   */
  readonly decoders: readonly { readonly links: readonly number[]; readonly rows: readonly Uint8Array[] }[];
}

/** Cuts each link into parallel ones of capacity `unit`, and drops the rest. `linkOf` names the link of each. */
export function inUnits(graph: Graph, unit: number): { graph: Graph; linkOf: readonly number[] } {
  const linkOf: number[] = [];
  graph.links.forEach(({ capacity }, link) => {
    for (let count = Math.floor(capacity / unit + 1e-6); count > 0; count--) linkOf.push(link);
  });
  const links = linkOf.map((link) => ({ ...graph.links[link]!, capacity: unit }));
  return { graph: new Graph(graph.sites, links), linkOf };
}

/**
 * A code for `symbols` symbols, which must be no more than the max flow to each destination. Each destination gets as
 * many paths that share no link. They prefer links that another destination's paths use already, so that the code
 * uses few links.
 *
 * A link must come after its inputs. The paths of two destinations may run through two links in opposite orders, and
 * then there is no such order. The paths are chosen anew then, with the destinations in other orders. Undefined when
 * none of these gives an order.
 */
export function networkCode(
  graph: Graph,
  source: number,
  destinations: readonly number[],
  symbols: number,
): NetworkCode | undefined {
  if (destinations.length > CODE_DESTINATIONS_MAX)
    throw new RangeError(`${destinations.length} destinations, the limit of a code is ${CODE_DESTINATIONS_MAX}`);
  for (const shared of [0.5, 1, 0.01])
    for (let turn = 0; turn < destinations.length; turn++) {
      const turned = [...destinations.slice(turn), ...destinations.slice(0, turn)];
      const paths = pathsTo(graph, source, turned, symbols, shared);
      const inputs = inputsOf(paths);
      const order = orderOf(inputs);
      if (order)
        return codeOf(
          destinations.map((site) => paths[turned.indexOf(site)]!),
          order,
          inputs,
          symbols,
        );
    }
  return undefined;
}

/** By destination: its paths. A link that is used already costs `shared`, a new one 1. */
function pathsTo(
  graph: Graph,
  source: number,
  destinations: readonly number[],
  symbols: number,
  shared: number,
): number[][][] {
  const used = new Set<number>();
  const numbers = new Map<number, number>();
  return destinations.map((site) => {
    const paths = disjointPaths(graph, source, site, symbols, (link) => (used.has(link) ? shared : 1));
    if (paths.length < symbols)
      throw new RangeError(`${symbols} symbols, but only ${paths.length} paths to ${graph.sites[site]}`);
    for (const path of paths) for (const link of path) used.add(link);
    return numbered(paths, numbers);
  });
}

/**
 * Paths of different destinations that begin with the same link get the same number, where they can, since that is the
 * number of the symbol that they begin with: then the source need not code.
 */
function numbered(paths: readonly number[][], numbers: Map<number, number>): number[][] {
  const result = new Array<number[] | undefined>(paths.length).fill(undefined);
  const open: number[][] = [];
  for (const path of paths) {
    const number = numbers.get(path[0]!);
    if (number === undefined || result[number]) open.push(path);
    else result[number] = path;
  }
  return result.map((path, number) => {
    if (path) return path;
    const next = open.pop()!;
    if (!numbers.has(next[0]!)) numbers.set(next[0]!, number);
    return next;
  });
}

/** By link: the links before it on any path. */
function inputsOf(paths: readonly number[][][]): Map<number, Set<number>> {
  const inputs = new Map<number, Set<number>>();
  for (const path of paths.flat())
    path.forEach((link, at) => {
      const before = inputs.get(link) ?? new Set<number>();
      inputs.set(link, before);
      if (at > 0) before.add(path[at - 1]!);
    });
  return inputs;
}

/** The links, each after its inputs. Undefined when there is a circle. */
function orderOf(inputs: ReadonlyMap<number, ReadonlySet<number>>): number[] | undefined {
  const order = new Set<number>();
  for (let before = -1; before < order.size && order.size < inputs.size;) {
    before = order.size;
    for (const [link, from] of inputs) if ([...from].every((input) => order.has(input))) order.add(link);
  }
  return order.size === inputs.size ? [...order] : undefined;
}

/** The link before this one on the path. */
const lastOf = (path: readonly number[], link: number): number => path[path.indexOf(link) - 1]!;

/**
 * What one destination knows so far: by path, the dual of the vectors that its paths have come to. `duals[i]` times
 * the vector of path j is 1 for i = j, else 0.
 */
interface Front {
  readonly duals: Uint8Array[];
}

function codeOf(
  paths: readonly number[][][],
  order: readonly number[],
  inputs: ReadonlyMap<number, ReadonlySet<number>>,
  symbols: number,
): NetworkCode {
  const unit = (index: number): Uint8Array => Uint8Array.from({ length: symbols }, (_, at) => Number(at === index));
  const fronts = paths.map((): Front => ({ duals: Array.from({ length: symbols }, (_, index) => unit(index)) }));
  const coded = new Map<number, CodedLink>();
  for (const link of order) {
    const before = [...inputs.get(link)!];
    /** The paths that run through the link, and at the source the symbols that they begin with. */
    const through = paths.flatMap((of, to) => {
      const path = of.findIndex((each) => each.includes(link));
      return path < 0 ? [] : [{ front: fronts[to]!, path, from: before.length > 0 ? lastOf(of[path]!, link) : path }];
    });
    const sources = before.length > 0 ? before : [...new Set(through.map(({ path }) => path))];
    const vectors = before.length > 0 ? before.map((from) => coded.get(from)!.vector) : sources.map(unit);
    const coefficients = combine(
      vectors,
      through.map(({ front, path, from }) => ({ own: sources.indexOf(from), dual: front.duals[path]! })),
    );
    const vector = sumOf(vectors, coefficients);
    coded.set(link, {
      link,
      inputs: sources.flatMap((from, index) =>
        coefficients[index] === 0 ? [] : [{ from, coefficient: coefficients[index]! }],
      ),
      vector,
    });
    for (const { front, path } of through) advance(front, path, vector);
  }
  const decoders = paths.map((of) => {
    const last = of.map((path) => path.at(-1)!);
    return { links: last, rows: invert(last.map((link) => coded.get(link)!.vector)) };
  });
  return { symbols, links: order.map((link) => coded.get(link)!), decoders };
}

/** Corrects the dual basis after the vector took the place of the path's last one. */
function advance({ duals }: Front, path: number, vector: Uint8Array): void {
  const scale = inverse(dot(duals[path]!, vector));
  const dual = duals[path]!.map((value) => product(value, scale));
  duals.forEach((other, index) => {
    if (index !== path) addProduct(other, dual, dot(other, vector));
  });
  duals[path] = dual;
}

/** What one destination asks of a link: that the dual times the link's vector is not 0, as it is for its own input. */
interface Need {
  /** The place of its own input among the inputs. */
  readonly own: number;
  readonly dual: Uint8Array;
}

/**
 * Coefficients for which the sum of the vectors meets every need (lemma 8 of the paper). The needs are met one after
 * the other: each one before excludes one multiple of the sum so far, so one of 256 is left. One vector alone is tried
 * first, then XOR.
 */
function combine(vectors: readonly Uint8Array[], needs: readonly Need[]): number[] {
  let coefficients = vectors.map(() => 0);
  const isMet = ({ dual }: Need, of: readonly number[]): boolean => dot(dual, sumOf(vectors, of)) !== 0;
  needs.forEach((need, at) => {
    if (isMet(need, coefficients)) return;
    const upToHere = needs.slice(0, at + 1);
    for (let multiple = 0; ; multiple++) {
      const changed = coefficients.map((each, input) => product(each, multiple) ^ Number(input === need.own));
      if (!upToHere.every((each) => isMet(each, changed))) continue;
      coefficients = changed;
      return;
    }
  });
  return coefficients;
}

function sumOf(vectors: readonly Uint8Array[], coefficients: readonly number[]): Uint8Array {
  const sum = new Uint8Array(vectors[0]!.length);
  vectors.forEach((vector, index) => addProduct(sum, vector, coefficients[index]!));
  return sum;
}

function dot(a: Uint8Array, b: Uint8Array): number {
  let sum = 0;
  for (let at = 0; at < a.length; at++) sum ^= product(a[at]!, b[at]!);
  return sum;
}

/**
 * The inverse of a square matrix, by rows. It proves that a destination can decode: throws when the rows are dependent.
 */
export function invert(rows: readonly Uint8Array[]): Uint8Array[] {
  const size = rows.length;
  const left = rows.map((row) => Uint8Array.from(row));
  const right = rows.map((_, index) => Uint8Array.from({ length: size }, (_, at) => Number(at === index)));
  for (let column = 0; column < size; column++) {
    const pivot = left.findIndex((row, index) => index >= column && row[column] !== 0);
    if (pivot < 0) throw new Error(`the vectors have rank ${column}, ${size} are needed`);
    for (const matrix of [left, right]) [matrix[column], matrix[pivot]] = [matrix[pivot]!, matrix[column]!];
    const scale = inverse(left[column]![column]!);
    for (const matrix of [left, right]) matrix[column] = matrix[column]!.map((value) => product(value, scale));
    for (let row = 0; row < size; row++) {
      if (row === column) continue;
      const coefficient = left[row]![column]!;
      for (const matrix of [left, right]) addProduct(matrix[row]!, matrix[column]!, coefficient);
    }
  }
  return right;
}
