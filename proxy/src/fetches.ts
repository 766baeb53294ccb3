/**
 * Fetches: the chunks that hold or wait for a connection to their origin. It says which fetch gives way when the
 * connections to an origin are taken, and it knows the left fetches: those that go on for the cache after their last
 * reader has left. A client leaves the slower proxies as soon as it has a chunk. If they gave up the fetch, each would
 * ask the origin again for the next client, and might get another version while other proxies have the fresh one. Left
 * fetches are few and brief, and they give way first.
 */
import type { Rejection } from "@tributary/contract";
import { leaderOf, type Reader, type StoredChunk } from "./chunk";
import { firstToGo } from "./chunk-shares";

/** A fetch that is given up costs the origin about this much more, so one that lacks no more may as well go on. */
export const IN_SOCKETS_BYTES = 4 * 1024 * 1024;
export const LEFT_MS_MAX = 10_000;
export const LEFT_MAX = 32;
/** An origin gets this many requests at once. Egress has as many connections for it. */
const PER_ORIGIN_MAX = 128;
/** A younger fetch is not given up for its connection. */
const OLD_MS = 5000;

/** The fetch that gives way, and the numbers that explain it. */
export interface Rival<C> {
  chunk: C;
  got: number;
  limit: number;
}

export class Fetches {
  readonly #all = new Set<StoredChunk>();
  /** The oldest first. */
  readonly #left = new Map<StoredChunk, NodeJS.Timeout>();

  /** Ends a left fetch. */
  readonly #giveUp: (chunk: StoredChunk) => void;

  constructor(giveUp: (chunk: StoredChunk) => void) {
    this.#giveUp = giveUp;
  }

  [Symbol.iterator](): Iterator<StoredChunk> {
    return [...this.#all].values();
  }

  add(chunk: StoredChunk): void {
    this.#all.add(chunk);
  }

  delete(chunk: StoredChunk): void {
    this.#all.delete(chunk);
    this.noteReader(chunk);
  }

  noteLeft(chunk: StoredChunk): void {
    if (this.#left.size >= LEFT_MAX) this.giveUpLeft();
    this.#left.set(
      chunk,
      setTimeout(() => this.#giveUp(chunk), LEFT_MS_MAX),
    );
  }

  /** The chunk has a reader again, or needs none. */
  noteReader(chunk: StoredChunk): void {
    clearTimeout(this.#left.get(chunk));
    this.#left.delete(chunk);
  }

  /** Gives up the oldest left fetch. False if there is none. */
  giveUpLeft(isCandidate: (chunk: StoredChunk) => boolean = () => true): boolean {
    const oldest = [...this.#left.keys()].find(isCandidate);
    if (oldest === undefined) return false;
    this.noteReader(oldest);
    this.#giveUp(oldest);
    return true;
  }

  /**
   * The fetch that gives way to the reader's if there are `limit` of them: a slow one of the client that has most of
   * them. `chunk` is undefined if no client has more than the reader's would have. Null: there is room.
   */
  rivalAmongAll({ client }: Reader, nowMs: number, limit: number): Rival<StoredChunk | undefined> | null {
    if (this.#all.size < limit || this.giveUpLeft()) return null;
    const read = [...this.#all].filter((chunk) => chunk.readers.size > 0);
    const counts = new Map<string, number>();
    const clients = read.map((chunk) => leaderOf(chunk).client);
    for (const each of clients) counts.set(each, (counts.get(each) ?? 0) + 1);
    const own = counts.get(client) ?? 0;
    const most = Math.max(0, ...counts.values());
    const candidates = most > own + 1 ? read.filter((_chunk, at) => counts.get(clients[at]!) === most) : [];
    return { chunk: firstToGo(candidates, () => 1, nowMs), got: this.#all.size + 1, limit };
  }

  /**
   * The slow fetch that gives way to the reader's if the connections to the origin are taken: one of the client's own
   * if it has its share of half of them, otherwise an old one. Without one, the reader's fetch waits.
   */
  rivalAtOrigin({ chunk: { origin }, client }: Reader, nowMs: number): Rival<StoredChunk> | null {
    const isHere = (chunk: StoredChunk): boolean => chunk.origin === origin;
    const taken = [...this.#all].filter(isHere);
    if (taken.length >= PER_ORIGIN_MAX && this.giveUpLeft(isHere)) return null;
    const rivals = taken.filter((chunk) => chunk.readers.size > 0);
    const own = rivals.filter((chunk) => leaderOf(chunk).client === client);
    const isShareFull = own.length >= PER_ORIGIN_MAX / 4;
    const limit = isShareFull ? PER_ORIGIN_MAX / 2 : PER_ORIGIN_MAX;
    if (rivals.length < limit) return null;
    const candidates = isShareFull ? own : rivals.filter(({ askedMs }) => nowMs - askedMs >= OLD_MS);
    const chunk = firstToGo(candidates, () => 1, nowMs);
    return chunk ? { chunk, got: rivals.length + 1, limit } : null;
  }
}

export function tooManyFetches({ got, limit }: Pick<Rival<unknown>, "got" | "limit">): Rejection {
  const message = `The proxy sends as many requests to origins as it may: got ${got}, limit ${limit}. Try again.`;
  return { kind: "proxyBusy", message, got, limit };
}
