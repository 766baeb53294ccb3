/**
 * Long bodies: a body, whole or a range, that is longer than a chunk is asked for again in ranges, one after the other.
 * The answer that told the length stays open for them, so that one request to the origin serves them all, also if the
 * address expires meanwhile or the origin limits requests. The ranges are then of one version. What may be fetched and
 * how: fetch.ts.
 */
import { formatContentRange, parseContentRange, type ByteRange, type RangeRequest } from "@tributary/contract";
import { LIMITS } from "@tributary/protocol";
import type { Client } from "../clients";
import { abortable } from "./abortable";
import { egressError } from "./error";
import type { Egress, FetchDetails, OriginResponse } from "./fetch";

/** A body that nobody reads is closed after this long. */
const IDLE_MS = 20_000;
/** An open body holds a connection, so there are not more than these. The viewers behind one address share its part. */
const OPEN_MAX = 128;
const OPEN_PER_CLIENT_MAX = 16;
/** Requests of one client that are left before their head came, and go on. */
const LINGERING_PER_CLIENT_MAX = 4;
/** A range that begins further ahead is asked for by a request of its own. */
const SKIP_BYTES_MAX = 8 * 1024 * 1024;
/**
 * The client hears from the fastest proxy that the body is long, and leaves the others before they know it. A request
 * that is left goes on for this long.
 */
const LINGER_MS = 2000;

export class LongBodies implements Pick<Egress, "fetch" | "vet"> {
  /** The first opened first. Two viewers of one film behind one address have a body each. */
  readonly #open = new Set<LongBody>();
  /** Requests that were left before their head came. Each resolves when it has ended or its body is open. */
  readonly #lingering = new Map<string, Promise<void>>();
  readonly #egress: Pick<Egress, "fetch" | "vet">;

  constructor(egress: Pick<Egress, "fetch" | "vet">) {
    this.#egress = egress;
  }

  vet(text: string): URL {
    return this.#egress.vet(text);
  }

  /** As `Egress.fetch`. */
  async fetch(
    text: string,
    range: RangeRequest | undefined,
    signal: AbortSignal,
    client?: Client,
    details?: FetchDetails,
  ): Promise<OriginResponse> {
    const key = `${client?.name ?? ""} ${details?.pageOrigin ?? ""} ${text}`;
    if (mayBeLong(range)) return this.#fetchLong(key, text, range, signal, client, details);
    await abortable(this.#lingering.get(key) ?? Promise.resolve(), signal).catch(() => undefined);
    const mayRead = client?.bytesRefusal() === undefined;
    const part = mayRead ? this.#part(key, range, signal) : undefined;
    return part ?? this.#egress.fetch(text, range, signal, client, details);
  }

  async #fetchLong(
    key: string,
    text: string,
    range: RangeRequest | undefined,
    signal: AbortSignal,
    client?: Client,
    details?: FetchDetails,
  ): Promise<OriginResponse> {
    const own = new AbortController();
    let leave = (): void => this.#linger(key, own, fetched);
    const fetched = this.#egress.fetch(text, range, own.signal, client, details);
    signal.addEventListener("abort", () => leave(), { once: true });
    if (signal.aborted) own.abort();
    const response = await fetched;
    const { status, totalBytes } = response;
    if (![200, 206].includes(status) || totalBytes === null || totalBytes <= LIMITS.chunkBytesMax) {
      if (signal.aborted) own.abort();
      leave = () => own.abort();
      return response;
    }
    let isRead = false;
    async function* body(): AsyncGenerator<Uint8Array> {
      isRead = true;
      yield* response.body;
    }
    leave = () => {
      leave = () => undefined;
      if (isRead) own.abort();
      else this.#keep(new LongBody(key, response, totalBytes, own, (body) => this.#open.delete(body)));
    };
    if (signal.aborted) leave();
    return { ...response, body: body(), cancel: () => leave() };
  }

  #linger(key: string, own: AbortController, fetched: Promise<OriginResponse>): void {
    const beside = [...this.#lingering.keys()].filter((other) => clientIn(other) === clientIn(key));
    if (this.#lingering.has(key) || beside.length >= LINGERING_PER_CLIENT_MAX) return own.abort();
    const timer = setTimeout(() => own.abort(), LINGER_MS);
    const ended = fetched.then(
      () => undefined,
      () => undefined,
    );
    const over = ended.then(() => {
      clearTimeout(timer);
      this.#lingering.delete(key);
    });
    this.#lingering.set(key, over);
  }

  #part(key: string, range: RangeRequest | undefined, signal: AbortSignal): OriginResponse | undefined {
    for (const body of this.#open) {
      const part = body.key === key ? body.part(range, signal) : undefined;
      if (part) return part;
    }
    return undefined;
  }

  /** Keeps the body open. If there are too many then, the first opened one that nobody reads is closed. */
  #keep(body: LongBody): void {
    this.#open.add(body);
    const own = [...this.#open].filter((other) => clientIn(other.key) === clientIn(body.key));
    const rivals = own.length > OPEN_PER_CLIENT_MAX ? own : this.#open.size > OPEN_MAX ? [...this.#open] : [];
    rivals.find(({ isRead }) => !isRead)?.close();
  }
}

/** A key begins with the name of its client. */
const clientIn = (key: string): string => key.slice(0, key.indexOf(" "));

/** Whether the answer may be longer than a chunk. */
function mayBeLong(range: RangeRequest | undefined): boolean {
  if (range === undefined) return true;
  if ("suffixBytes" in range) return range.suffixBytes > LIMITS.chunkBytesMax;
  return range.end === undefined || range.end - range.start >= LIMITS.chunkBytesMax;
}

/** An open answer whose body is read once, from its start to its end, by one range after the other. */
class LongBody {
  /** Of its client, the page's origin and its address. */
  readonly key: string;
  readonly #response: OriginResponse;
  /** Of the last byte that it has. */
  readonly #end: number;
  /** Of the whole resource; null if the origin does not tell it. */
  readonly #resourceBytes: number | null;
  readonly #controller: AbortController;
  readonly #onClosed: (body: LongBody) => void;
  readonly #pieces: AsyncIterator<Uint8Array>;
  /** A piece that is on its way. It survives the range that waits for it. */
  #pending: Promise<IteratorResult<Uint8Array>> | undefined;
  #rest: Uint8Array = new Uint8Array(0);
  /** Of the first byte of `#rest`. */
  #position: number;
  /** Where the next range may begin. */
  #nextStart: number;
  /** Resolves when the last range has ended. */
  #turn = Promise.resolve();
  /** The ranges that have not ended. */
  #activeCount = 0;
  #isClosed = false;
  #timer: NodeJS.Timeout | undefined;

  constructor(
    key: string,
    response: OriginResponse,
    totalBytes: number,
    controller: AbortController,
    onClosed: (body: LongBody) => void,
  ) {
    this.key = key;
    this.#response = response;
    const told = response.status === 206 ? parseContentRange(response.headers["content-range"]) : undefined;
    this.#position = this.#nextStart = told?.start ?? 0;
    this.#end = this.#position + totalBytes - 1;
    this.#resourceBytes = told ? told.resourceBytes : totalBytes;
    this.#controller = controller;
    this.#onClosed = onClosed;
    this.#pieces = response.body[Symbol.asyncIterator]();
    this.#wait();
  }

  get isRead(): boolean {
    return this.#activeCount > 0;
  }

  close(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#onClosed(this);
    this.#controller.abort();
    this.#response.cancel();
  }

  /** The answer to a request for `range`. Undefined if it cannot come from this body. */
  part(range: RangeRequest | undefined, signal: AbortSignal): OriginResponse | undefined {
    if (!range || !("start" in range) || range.end === undefined) return undefined;
    const { start } = range;
    const end = Math.min(range.end, this.#end);
    if (start < this.#nextStart || start > this.#nextStart + SKIP_BYTES_MAX || end < start) return undefined;
    this.#nextStart = end + 1;
    this.#activeCount++;
    clearTimeout(this.#timer);
    const before = this.#turn;
    let finish = (): void => undefined;
    this.#turn = new Promise((resolve) => (finish = resolve));
    void this.#turn.then(() => {
      this.#activeCount--;
      this.#wait();
    });
    const totalBytes = end - start + 1;
    const contentRange = formatContentRange({ start, end }, this.#resourceBytes);
    const headers = { ...this.#response.headers, "content-range": contentRange, "content-length": String(totalBytes) };
    let isRead = false;
    const read = (): AsyncGenerator<Uint8Array> => this.#read({ start, end }, before, signal);
    async function* body(): AsyncGenerator<Uint8Array> {
      isRead = true;
      try {
        yield* read();
      } catch (error) {
        throw signal.aborted ? egressError("aborted", "The request was given up.") : error;
      } finally {
        finish();
      }
    }
    const leave = (): void => {
      if (!isRead) finish();
    };
    signal.addEventListener("abort", leave, { once: true });
    return { status: 206, headers, totalBytes, serverFetchMs: 0, body: body(), cancel: leave };
  }

  async *#read({ start, end }: ByteRange, before: Promise<void>, signal: AbortSignal): AsyncGenerator<Uint8Array> {
    await abortable(before, signal);
    while (this.#position <= end) {
      if (this.#rest.length === 0) await this.#next(signal);
      const skip = Math.min(this.#rest.length, Math.max(0, start - this.#position));
      const piece = this.#rest.subarray(skip, skip + end + 1 - Math.max(start, this.#position));
      this.#position += skip + piece.length;
      this.#rest = this.#rest.subarray(skip + piece.length);
      if (piece.length > 0) yield piece;
    }
  }

  async #next(signal: AbortSignal): Promise<void> {
    this.#pending ??= this.#pieces.next();
    try {
      const { done, value } = await abortable(this.#pending, signal);
      this.#pending = undefined;
      if (done) throw egressError("shortBody", "The origin's body ended early.");
      this.#rest = value as Uint8Array;
    } catch (error) {
      if (!signal.aborted) this.close();
      throw error;
    }
  }

  /** Closes the body when it is at its end, or if no range is asked for in time. */
  #wait(): void {
    clearTimeout(this.#timer);
    if (this.#activeCount > 0 || this.#isClosed) return;
    if (this.#nextStart > this.#end) return this.close();
    this.#timer = setTimeout(() => this.close(), IDLE_MS).unref();
  }
}
