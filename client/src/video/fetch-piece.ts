/** Fetches a segment or an init segment through the proxies, decrypts it with its key, and writes it. */
import { createDecipheriv } from "node:crypto";
import { open } from "node:fs/promises";
import type { GetOptions } from "../api";
import type { ProxyClient } from "../client";
import { repeatedly, shown, type Keys } from "./load";
import type { Piece } from "./presentation";

export interface PieceFetcherOptions {
  client: Pick<ProxyClient, "get">;
  get: GetOptions;
  keys: Keys;
  headersFor(url: string): Record<string, string>;
  retries: number;
  signal: AbortSignal;
  /** Bytes that arrived. A repeated piece counts again. */
  onBytes(count: number): void;
}

export class PieceFetcher {
  readonly #options: PieceFetcherOptions;
  /** Init segments belong to many segments. */
  readonly #inits = new Map<string, Promise<Uint8Array>>();

  constructor(options: PieceFetcherOptions) {
    this.#options = options;
  }

  /** Writes `init`, if there is one, and the piece. `name` is for messages. */
  async toFile(piece: Piece, init: Piece | undefined, target: string, name: string): Promise<void> {
    const before = init ? await this.#init(init) : undefined;
    await this.#repeatedly(piece, name, async () => {
      const file = await open(target, "w");
      try {
        if (before) await file.writeFile(before);
        for await (const bytes of this.#bytes(piece)) await file.writeFile(bytes);
      } finally {
        await file.close();
      }
    });
  }

  #init(piece: Piece): Promise<Uint8Array> {
    const id = JSON.stringify([piece.url, piece.range]);
    const known = this.#inits.get(id);
    if (known) return known;
    const init = this.toMemory(piece, "The init segment");
    this.#inits.set(id, init);
    init.catch(() => this.#inits.delete(id));
    return init;
  }

  toMemory(piece: Piece, name: string): Promise<Uint8Array> {
    return this.#repeatedly(piece, name, async () => {
      const pieces: Uint8Array[] = [];
      for await (const bytes of this.#bytes(piece)) pieces.push(bytes);
      return Buffer.concat(pieces);
    });
  }

  #repeatedly<T>(piece: Piece, name: string, attempt: () => Promise<T>): Promise<T> {
    return repeatedly(this.#options, `${name} (${shown(piece.url)})`, attempt);
  }

  async *#bytes({ key, ...piece }: Piece): AsyncGenerator<Uint8Array> {
    if (!key) return yield* this.#sent(piece);
    const decipher = createDecipheriv("aes-128-cbc", await this.#options.keys.get(key.url), key.iv);
    for await (const bytes of this.#sent(piece)) yield decipher.update(bytes);
    yield lastOf(decipher);
  }

  /** The bytes as the origin sends them. Throws if they are not those of the piece. */
  async *#sent({ url, range }: Piece): AsyncGenerator<Uint8Array> {
    const { client, get, headersFor, signal, onBytes } = this.#options;
    const headers = get.headers ? { headers: headersFor(url) } : {};
    const download = client.get(url, { ...get, ...headers, signal, ...(range ? { range } : {}) });
    try {
      const { status } = await download.head;
      if (status !== 200 && status !== 206) throw new Error(`the origin answered ${status}`);
      let count = 0;
      for await (const bytes of download.body) {
        count += bytes.length;
        onBytes(bytes.length);
        yield bytes;
      }
      const expected = range && range.end - range.start + 1;
      if (expected !== undefined && count !== expected)
        throw new Error(`the origin sent ${count} bytes where ${expected} were asked for`);
    } finally {
      download.abort("The piece is not read further.");
    }
  }
}

function lastOf(decipher: ReturnType<typeof createDecipheriv>): Uint8Array {
  try {
    return decipher.final();
  } catch {
    throw new Error("its bytes do not open with the key");
  }
}
