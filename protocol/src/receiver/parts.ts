/** Parts: which proxy of a request reads which part of the chunk, if they read it together. Rules: protocol.md §11. */
import type { Beginning } from "../planner/known";
import type { RequestFrame, Sharing } from "../types";

/** Of a body whose length is not known beforehand, each proxy reads so many generations first. */
const FIRST_GENERATIONS = 2;

/** Who reads which part of a chunk that is read once. */
export interface Parts extends Omit<Sharing, "ownIndex"> {
  /** By proxy, which of the readers it is. */
  readonly places: readonly number[];
}

/**
 * A proxy's part is as large as its share. Readers are in the order of their ids, so that clients with the same proxies
 * ask each for the same part.
 */
export function partsOf(
  sharing: readonly string[] | undefined,
  { mode, proofs, range }: RequestFrame,
  beginnings: readonly Beginning[],
): Parts | undefined {
  if (!sharing || mode !== "coded" || proofs || sharing.length < 2) return undefined;
  const order = [...sharing.keys()].sort((a, b) => (sharing[a]! < sharing[b]! ? -1 : 1));
  const readers = order.map((index) => {
    const { start, end } = beginnings[index]!.share;
    return { id: sharing[index]!, weight: Math.max(1, end - start) };
  });
  const places = sharing.map((_, index) => order.indexOf(index));
  return { readers, firstGenerations: range ? 0 : FIRST_GENERATIONS, places };
}

export function sharingOf({ readers, firstGenerations, places }: Parts, proxyIndex: number): Sharing {
  return { readers, firstGenerations, ownIndex: places[proxyIndex]! };
}
