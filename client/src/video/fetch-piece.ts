/** Fetches a segment or an init segment through the proxies, decrypts it with its key, and writes it. */
import { createDecipheriv } from "node:crypto";
import { open } from "node:fs/promises";
import type { ByteRange } from "@tributary/contract";
import type { Download, GetOptions } from "../api";
import type { ProxyClient } from "../client";
import { repeatedly, shown, StatusError, type Keys } from "./load";
import { VideoError, type Piece } from "./presentation";
import { isOther, versionOf, type Version } from "./version";

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

  /** The version of each file that is fetched in parts. */
  readonly #versions = new Map<string, Version>();

  constructor(options: PieceFetcherOptions) {
    this.#options = options;
  }

  /** Writes `init`, if there is one, and the piece. `name` is for messages. If the piece is missing, `init` stays. */
  async toFile(piece: Piece, init: Piece | undefined, target: string, name: string): Promise<Version> {
    const before = init ? await this.#init(init) : undefined;
    return this.#repeatedly(piece, name, async () => {
      const file = await open(target, "w");
      try {
        if (before) await file.writeFile(before);
        const { version, body } = await this.#ask(piece);
        for await (const bytes of body) await file.writeFile(bytes);
        return version;
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
      for await (const bytes of (await this.#ask(piece)).body) pieces.push(bytes);
      return Buffer.concat(pieces);
    });
  }

  #repeatedly<T>(piece: Piece, name: string, attempt: () => Promise<T>): Promise<T> {
    return repeatedly(this.#options, `${name} (${shown(piece.url)})`, attempt);
  }

  /** Asks for a piece, and reads its head. Its body is decrypted. */
  async #ask({ key, ...piece }: Piece): Promise<{ version: Version; body: AsyncIterable<Uint8Array> }> {
    const { client, get, headersFor, signal } = this.#options;
    const { url, range } = piece;
    const secret = key && (await this.#options.keys.get(key.url));
    const headers = get.headers ? { headers: headersFor(url) } : {};
    const download = client.get(url, { ...get, ...headers, signal, ...(range ? { range } : {}) });
    try {
      const head = await download.head;
      if (head.status !== 200 && head.status !== 206) throw new StatusError(head.status, url);
      const version = versionOf(head);
      if (range) this.#check(url, version);
      const body = this.#sent(download, range);
      return { version, body: secret ? opened(body, secret, key.iv) : body };
    } catch (error) {
      download.abort("The piece is not read.");
      throw error;
    }
  }

  /** All pieces of one file must be of one version. */
  #check(url: string, version: Version): void {
    const known = this.#versions.get(url);
    if (known && isOther(known, version))
      throw new VideoError(`${shown(url)} has changed while it was downloaded. Repeat the command to begin anew.`);
    this.#versions.set(url, version);
  }

  /** The bytes as the origin sends them. Throws if they are not as many as the range has. */
  async *#sent(download: Download, range: ByteRange | undefined): AsyncGenerator<Uint8Array> {
    try {
      let count = 0;
      for await (const bytes of download.body) {
        count += bytes.length;
        this.#options.onBytes(bytes.length);
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

async function* opened(body: AsyncIterable<Uint8Array>, key: Uint8Array, iv: Uint8Array): AsyncGenerator<Uint8Array> {
  const decipher = createDecipheriv("aes-128-cbc", key, iv);
  for await (const bytes of body) yield decipher.update(bytes);
  yield lastOf(decipher);
}

function lastOf(decipher: ReturnType<typeof createDecipheriv>): Uint8Array {
  try {
    return decipher.final();
  } catch {
    throw new Error("its bytes do not open with the key");
  }
}
