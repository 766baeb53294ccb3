/**
 * Object origin: answers addresses `object:ROOT-BYTES` from the library as an origin does (RFC 9110 §14), and hands all
 * other addresses on. So the store of chunks serves objects and origins alike.
 */
import { formatContentRange, resolveRange, type RangeRequest } from "@tributary/contract";
import { parseObjectId } from "@tributary/contract/tree";
import type { Origins } from "../chunk";
import type { Client } from "../clients";
import { egressError } from "../egress/error";
import type { FetchDetails, OriginResponse } from "../egress/fetch";
import { missing, type Library } from "./library";

const SCHEME = "object:";

export const objectAddress = (id: string): string => SCHEME + id;

/** An object never changes, so its answers never age. */
export const objectHeaders = (id: string): Record<string, string> => ({
  etag: `"${id}"`,
  "accept-ranges": "bytes",
  "cache-control": "public, max-age=31536000, immutable",
});

export class ObjectOrigin implements Origins {
  readonly #others: Origins;
  readonly #library: Library | undefined;

  constructor(others: Origins, library: Library | undefined) {
    this.#others = others;
    this.#library = library;
  }

  vet(text: string): ReturnType<Origins["vet"]> {
    if (!isObject(text)) return this.#others.vet(text);
    const id = idOf(text);
    if (!parseObjectId(id))
      throw egressError("badUrl", `${SCHEME} must have an object's id: 64 hex digits, a hyphen, its bytes.`);
    return { href: objectAddress(id), origin: objectAddress(id), object: id };
  }

  countSent(object: string, bytes: number): void {
    this.#library?.countSent(object, bytes);
  }

  async fetch(
    text: string,
    range: RangeRequest | undefined,
    signal: AbortSignal,
    client?: Client,
    details?: FetchDetails,
  ): Promise<OriginResponse> {
    if (!isObject(text)) return this.#others.fetch(text, range, signal, client, details);
    const startMs = performance.now();
    const id = idOf(text);
    if (!this.#library) throw missing(id);
    const tree = await this.#library.treeOf(id);
    const { bytes } = parseObjectId(id)!;
    const headers: Record<string, string> = { ...objectHeaders(id), "content-type": "application/octet-stream" };
    const answer = { headers, serverFetchMs: performance.now() - startMs };
    if (details?.conditions?.["if-none-match"] === headers["etag"]) return { ...answer, status: 304, ...NOTHING };
    const part = range ? resolveRange(range, bytes) : { start: 0, end: bytes - 1 };
    if (!part)
      return { ...answer, headers: { ...headers, "content-range": `bytes */${bytes}` }, status: 416, ...NOTHING };
    const reading = await this.#library.read(id, tree, part);
    if (range) headers["content-range"] = formatContentRange(part, bytes);
    return {
      ...answer,
      status: range ? 206 : 200,
      totalBytes: part.end - part.start + 1,
      ...reading,
      proof: (piece) => tree.proofOf(piece),
    };
  }
}

const NOTHING = {
  totalBytes: 0,
  body: { async *[Symbol.asyncIterator](): AsyncGenerator<Uint8Array> {} },
  cancel: () => undefined,
};

const isObject = (text: string): boolean => text.slice(0, SCHEME.length).toLowerCase() === SCHEME;
/** Without a fragment, which no server sees. */
const idOf = (text: string): string => text.slice(SCHEME.length).replace(/#.*$/s, "");
