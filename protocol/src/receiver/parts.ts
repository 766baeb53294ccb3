/** Parts: which proxy of a request reads which part of the chunk, if they read it together. Rules: protocol.md §11. */
import { BYTES_PER_SEC_ASSUMED, type Beginning, type KnownPath } from "../planner/known";
import type { RequestFrame, Sharing } from "../types";

/**
 * Of a body whose length is not known beforehand, each proxy first reads what it sends in this time. So its link has
 * work while it waits for its second answer.
 */
const FIRST_MS = 17;
/** A body may be this many times longer than expected, and is still read in one piece by each proxy. */
const LONGER_TIMES = 1.25;
const FIRST_GENERATIONS_MAX = 64;
/** Weights are steps of this factor, so that most clients cut a chunk alike. */
const WEIGHT_STEP = Math.SQRT2;
const WEIGHT_MOST = 1024;

/** Who reads which part of a chunk that is read once. */
export interface Parts extends Omit<Sharing, "ownIndex"> {
  /** By proxy, which of the readers it is. */
  readonly places: readonly number[];
}

interface Reading {
  /** The ids of the proxies. Undefined if each reads all. */
  sharing?: readonly string[];
  /** The length of the body, as earlier ones make it likely. */
  expectedBytes?: number;
}

/**
 * A proxy's part is about as large as its share. Readers are in the order of their ids, so that clients with the same
 * proxies ask each for the same part.
 */
export function partsOf(
  { sharing, expectedBytes }: Reading,
  request: RequestFrame,
  beginnings: readonly Beginning[],
  known: readonly (KnownPath | undefined)[],
): Parts | undefined {
  const { mode, proofs, range } = request;
  if (!sharing || mode !== "coded" || proofs || sharing.length < 2) return undefined;
  const order = [...sharing.keys()].sort((a, b) => (sharing[a]! < sharing[b]! ? -1 : 1));
  const sizes = beginnings.map(({ share: { start, end } }) => Math.max(1, end - start));
  const readers = order.map((index) => ({
    id: sharing[index]!,
    weight: Math.round(WEIGHT_MOST * stepped(sizes[index]! / Math.max(...sizes), WEIGHT_STEP)),
  }));
  const places = sharing.map((_, index) => order.indexOf(index));
  return { readers, firstGenerations: range ? 0 : firstGenerationsOf(request, known, expectedBytes), places };
}

/** How many generations each proxy reads before it knows the length: a power of 2. */
function firstGenerationsOf(
  { symbolBytes, generationSize }: RequestFrame,
  known: readonly (KnownPath | undefined)[],
  expectedBytes = Infinity,
): number {
  const sum = known.reduce((all, path) => all + (path?.bytesPerSec ?? BYTES_PER_SEC_ASSUMED), 0);
  const sent = stepped((sum / known.length / 1000) * (FIRST_MS / (symbolBytes * generationSize)), 2);
  const expected = stepped((expectedBytes * LONGER_TIMES) / known.length / (symbolBytes * generationSize), 2);
  return Math.max(1, Math.min(sent, expected, FIRST_GENERATIONS_MAX));
}

/** The power of `step` that is next to the value. */
const stepped = (value: number, step: number): number => step ** Math.round(Math.log(value) / Math.log(step));

export function sharingOf({ readers, firstGenerations, places }: Parts, proxyIndex: number): Sharing {
  return { readers, firstGenerations, ownIndex: places[proxyIndex]! };
}
