/**
 * ObjectRequest: what a request for a published file asks of its holders, and what the caller gets. Holders are asked
 * for whole blocks, because only those can be checked. The head comes from the signed manifest. Pure.
 */
import { formatContentRange, type ByteRange, type ResponseHead } from "@tributary/contract";
import { BLOCK_BYTES, objectId, type ObjectName } from "@tributary/contract/tree";

export class ObjectRequest {
  readonly id: string;
  readonly head: ResponseHead;
  /** The bytes that the caller gets. */
  readonly #start: number;
  readonly #end: number;
  /** The next byte that comes from the holders. */
  #at = 0;
  #handedOn = 0;

  constructor(
    readonly object: ObjectName,
    readonly type: string,
    range: ByteRange | undefined,
  ) {
    const { bytes } = object;
    this.id = objectId(object);
    const isThere = !range || range.start < bytes;
    this.#start = range?.start ?? 0;
    this.#end = isThere ? Math.min(range?.end ?? Infinity, bytes - 1) + 1 : this.#start;
    const totalBytes = this.#end - this.#start;
    const headers: Record<string, string> = {
      "content-type": type,
      "accept-ranges": "bytes",
      etag: `"${this.id}"`,
      "access-control-allow-origin": "*",
      "access-control-expose-headers": "*",
    };
    if (range)
      headers["content-range"] = isThere
        ? formatContentRange({ start: this.#start, end: this.#end - 1 }, bytes)
        : `bytes */${bytes}`;
    this.head = { status: !isThere ? 416 : range ? 206 : 200, headers, totalBytes };
  }

  get url(): string {
    return `object:${this.id}`;
  }

  get isDone(): boolean {
    return this.#start + this.#handedOn >= this.#end;
  }

  /**
   * What to ask of the holders: the blocks of everything that was not handed on yet. Undefined: the whole object. What
   * comes from then on is this.
   */
  begin(): ByteRange | undefined {
    const { bytes } = this.object;
    const start = floorBlock(this.#start + this.#handedOn);
    const end = Math.min(floorBlock(this.#end + BLOCK_BYTES - 1), bytes);
    this.#at = start;
    return start === 0 && end === bytes ? undefined : { start, end: end - 1 };
  }

  /** The part of these bytes that the caller wants. */
  take(bytes: Uint8Array): Uint8Array {
    const from = this.#start + this.#handedOn - this.#at;
    const wanted = bytes.subarray(Math.max(0, from), Math.max(0, this.#end - this.#at));
    this.#at += bytes.length;
    this.#handedOn += wanted.length;
    return wanted.length === bytes.length ? wanted : wanted.slice();
  }
}

/** The longest part of an object of at most `bytes` bytes that is whole blocks. */
export const wholeBlocks = (bytes: number): number => Math.max(BLOCK_BYTES, floorBlock(bytes));

const floorBlock = (byte: number): number => byte - (byte % BLOCK_BYTES);
