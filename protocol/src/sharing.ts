/**
 * Sharing: which generations of a chunk each proxy of a request reads from the origin, so that together they read it
 * once. Client and proxies compute the same parts from the same request. Pure arithmetic. Rules: protocol.md §11.
 */
import { symbolsIn, type Geometry } from "./geometry";
import type { GenerationSpan, Sharing } from "./types";

/**
 * The generations that reader `index` reads, in ascending order. Reader i reads first `firstGenerations` generations
 * from i x `firstGenerations` on, which it knows before it knows the body's length. The rest is cut in proportion to
 * the weights.
 */
export function partOf(
  { readers, firstGenerations }: Omit<Sharing, "ownIndex">,
  index: number,
  generationCount: number,
): GenerationSpan[] {
  const whole = readers.reduce((sum, { weight }) => sum + weight, 0);
  const before = readers.slice(0, index).reduce((sum, { weight }) => sum + weight, 0);
  const restFrom = Math.min(readers.length * firstGenerations, generationCount);
  const cut = (weight: number) => restFrom + Math.round(((generationCount - restFrom) * weight) / whole);
  const first = clipped({ from: index * firstGenerations, end: (index + 1) * firstGenerations }, generationCount);
  const rest = { from: cut(before), end: cut(before + readers[index]!.weight) };
  const isJoined = first.end === rest.from && first.from < first.end;
  const spans = isJoined ? [{ from: first.from, end: rest.end }] : [first, rest];
  return spans.filter(({ from, end }) => from < end);
}

/** The part of a span below `generationCount`. It may be empty. */
export function clipped({ from, end }: GenerationSpan, generationCount: number): GenerationSpan {
  return { from: Math.min(from, generationCount), end: Math.min(end, generationCount) };
}

/** The generation of each packet that a proxy with these spans begins with: each source symbol, at most `limit`. */
export function firstOfSpans(geometry: Geometry, spans: readonly GenerationSpan[], limit: number): number[] {
  const order: number[] = [];
  for (const span of spans) {
    const { from, end } = clipped(span, geometry.generationCount);
    for (let index = from; index < end && order.length < limit; index++) {
      const count = Math.min(symbolsIn(geometry, index), limit - order.length);
      for (let at = 0; at < count; at++) order.push(index);
    }
  }
  return order;
}

/** Which proxy holds or reads which generations, as the client knows it. */
export class Holdings {
  readonly #holds: Uint8Array[];

  constructor(proxyCount: number, generationCount: number) {
    this.#holds = Array.from({ length: proxyCount }, () => new Uint8Array(generationCount));
  }

  holds(proxyIndex: number, generationIndex: number): boolean {
    return this.#holds[proxyIndex]![generationIndex] === 1;
  }

  /** The proxy says what it holds or reads. */
  handleReads(proxyIndex: number, spans: readonly GenerationSpan[]): void {
    this.#holds[proxyIndex]!.fill(0);
    for (const { from, end } of spans) this.#holds[proxyIndex]!.fill(1, from, end);
  }

  /** The proxy is asked to get this generation. */
  add(proxyIndex: number, generationIndex: number): void {
    this.#holds[proxyIndex]![generationIndex] = 1;
  }
}
