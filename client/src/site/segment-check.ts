/**
 * SegmentCheck: holds the bytes of a download back until the site's own digest of their segment is right. Bytes of no
 * segment, or of one that the body has only in part, go on unchecked. Pure.
 */
import { sha256 } from "@noble/hashes/sha2";
import type { ByteRange, Rejection, ResponseHead } from "@tributary/contract";
import { hexOf, joined } from "@tributary/contract/tree";

/** A part of a file and its digest in lower-case hex. */
export interface Segment {
  start: number;
  end: number;
  sha256: string;
}

export class SegmentCheck {
  /** Why the bytes are not the site's. Nothing is handed on from then on. */
  fault: Rejection | undefined;
  #left: Segment[] | undefined;
  #at = 0;
  #held: Uint8Array[] = [];
  #isChecked = true;

  readonly #segments: readonly Segment[];
  readonly #range: ByteRange | undefined;
  readonly #hash: (bytes: Uint8Array) => Uint8Array;

  constructor(
    segments: readonly Segment[],
    range: ByteRange | undefined,
    hash: ((bytes: Uint8Array) => Uint8Array) | undefined,
  ) {
    this.#segments = segments;
    this.#range = range;
    this.#hash = hash ?? sha256;
  }

  /** Every byte that was handed on had the site's digest. */
  get isWhole(): boolean {
    return this.#isChecked && this.#left !== undefined;
  }

  /** Takes the next bytes of the body with this head. Returns those that may be handed on now. */
  take(bytes: Uint8Array, head: ResponseHead | undefined): Uint8Array {
    const left = (this.#left ??= this.#begin(head));
    const ready: Uint8Array[] = [];
    for (let from = 0; from < bytes.length && !this.fault;) {
      const [segment] = left;
      const isIn = segment !== undefined && segment.start <= this.#at;
      const end = segment === undefined ? Infinity : isIn ? segment.end + 1 : segment.start;
      const part = bytes.subarray(from, from + end - this.#at);
      from += part.length;
      this.#at += part.length;
      if (!isIn) this.#isChecked = false;
      (isIn ? this.#held : ready).push(part);
      if (isIn && this.#at === end) {
        left.shift();
        ready.push(this.#checked(segment));
      }
    }
    return joined(ready);
  }

  /** The segments that the body has whole. */
  #begin(head: ResponseHead | undefined): Segment[] {
    const start = head?.status === 206 ? (this.#range?.start ?? 0) : 0;
    const end = start + (head?.totalBytes ?? 0);
    this.#at = start;
    // The digests show how long the file is at least. A body that ends earlier hides the end of a segment.
    const last = this.#segments.at(-1)?.end ?? -1;
    const least = Math.min(last, (head?.status === 206 ? this.#range?.end : undefined) ?? Infinity);
    if (end <= least)
      this.#refuse(`The proxies' body ends before byte ${end}, and the site has digests up to byte ${last}.`);
    return this.#segments.filter((segment) => segment.start >= start && segment.end < end);
  }

  #checked({ start, end, sha256: expected }: Segment): Uint8Array {
    const bytes = joined(this.#held);
    this.#held = [];
    if (hexOf(this.#hash(bytes)) === expected) return bytes;
    this.#refuse(`The proxies' bytes ${start}-${end} do not have the digest that the site published.`);
    return new Uint8Array();
  }

  #refuse(message: string): void {
    this.fault = { kind: "bodyDiffers", message };
  }
}
