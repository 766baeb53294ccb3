/**
 * Chunk shares: who gives way when memory or connections run out, and how much a client may have fetched that it does
 * not read. Whoever holds much and reads slowly goes first, so a client that reads well is served beside others that do
 * not. Pure: time arrives as `nowMs`.
 */
import { egressError } from "./egress/error";

/** What counts of a reader. */
export interface Reading {
  readonly client: string;
  readonly sinceMs: number;
  /** The bytes that it has taken. */
  takenBytes: number;
}

/** A reader counts as this fast until it had time to read. */
const YOUNG_MS = 3000;
const YOUNG_BYTES_PER_SEC = 1024 * 1024;

function rateOf({ sinceMs, takenBytes }: Reading, nowMs: number): number {
  const ageMs = Math.max(1, nowMs - sinceMs);
  const rate = Math.max(1, (takenBytes * 1000) / ageMs);
  return ageMs < YOUNG_MS ? Math.max(rate, YOUNG_BYTES_PER_SEC) : rate;
}

/**
 * The chunk to give up: of what its client holds most, over how fast it is read. What several clients read counts as
 * the one's that holds least and as fast as the fastest reads it.
 */
export function firstToGo<T extends { readonly readers: Iterable<Reading> }>(
  chunks: Iterable<T>,
  sizeOf: (chunk: T) => number,
  nowMs: number,
): T | undefined {
  const all = [...chunks].map((chunk) => ({ chunk, size: sizeOf(chunk), readers: [...chunk.readers] }));
  const held = new Map<string, number>();
  for (const { size, readers } of all)
    for (const client of new Set(readers.map((reader) => reader.client)))
      held.set(client, (held.get(client) ?? 0) + size);
  let worst: { chunk: T; score: number } | undefined;
  for (const { chunk, readers } of all) {
    const least = Math.min(...readers.map(({ client }) => held.get(client)!));
    const score = least / Math.max(...readers.map((reader) => rateOf(reader, nowMs)));
    if (worst === undefined || score > worst.score) worst = { chunk, score };
  }
  return worst?.chunk;
}

/** What is spent comes back within this time, if nothing is read. */
const RETURN_MS = 60_000;

/** How many bytes each client may have fetched beyond what it takes. */
export class UnreadBudget {
  readonly #spent = new Map<string, { bytes: number; atMs: number }>();

  /** Counts bytes that were fetched for the client (positive) or that it has taken (negative). */
  add(client: string, bytes: number, limit: number, nowMs: number): void {
    const spent = Math.max(0, this.spentBy(client, limit, nowMs) + bytes);
    this.#spent.delete(client);
    if (spent > 0) this.#spent.set(client, { bytes: spent, atMs: nowMs });
    for (const [name, { atMs }] of this.#spent) {
      if (nowMs - atMs < RETURN_MS) break;
      this.#spent.delete(name);
    }
  }

  /** Throws when the client has had too much fetched that it did not take. */
  check(client: string, limit: number, nowMs: number): void {
    const got = Math.ceil(this.spentBy(client, limit, nowMs));
    if (got < limit) return;
    const message = `This address had ${got} bytes fetched that it did not take, limit ${limit}. Try again later.`;
    throw egressError("proxyBusy", message, { got, limit });
  }

  spentBy(client: string, limit: number, nowMs: number): number {
    const spent = this.#spent.get(client);
    return spent ? Math.max(0, spent.bytes - (limit * (nowMs - spent.atMs)) / RETURN_MS) : 0;
  }
}
