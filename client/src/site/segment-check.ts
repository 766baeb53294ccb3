/**
 * SegmentCheck: holds the bytes of a download back until the site's own digest of their segment is right. Bytes of no
 * segment, or of one that the body has only in part, go on unchecked. While nobody knows the digests yet, it holds all
 * bytes. Pure.
 */
import { sha256 } from "@noble/hashes/sha2";
import type { ByteRange, Rejection, ResponseHead } from "@tributary/contract";
import { hexOf, joined } from "@tributary/contract/tree";

/** A part of a file and its digest in lower-case hex. A whole file of any length ends at `Infinity`. */
export interface Segment {
  start: number;
  end: number;
  sha256: string;
}

/** The client holds a segment until its digest is right. It takes no longer ones. */
export const SEGMENT_BYTES_MAX = 16 * 2 ** 20;

export class SegmentCheck {
  /** Why the bytes are not the site's. Nothing is handed on from then on. */
  fault: Rejection | undefined;
  /** The segment at fault. */
  falseSegment: Segment | undefined;
  /** Resolves when the digests are known, or when nobody waits for them any more. */
  readonly known: Promise<void>;
  #segments: readonly Segment[] | undefined;
  #early: Uint8Array[] = [];
  #earlyBytes = 0;
  #left: Segment[] | undefined;
  #at = 0;
  #held: Uint8Array[] = [];
  #heldBytes = 0;
  #isChecked = true;
  #noteKnown!: () => void;

  readonly #range: ByteRange | undefined;
  readonly #hash: (bytes: Uint8Array) => Uint8Array;

  constructor(range: ByteRange | undefined, hash: ((bytes: Uint8Array) => Uint8Array) | undefined) {
    this.#range = range;
    this.#hash = hash ?? sha256;
    this.known = new Promise((resolve) => (this.#noteKnown = resolve));
  }

  /** The digests that the site has of the file, in order; none if it has none. Only the first call counts. */
  learn(segments: readonly Segment[]): void {
    this.#segments ??= segments;
    this.#noteKnown();
  }

  /** Every byte that was handed on had the site's digest. */
  get isWhole(): boolean {
    return this.#isChecked && this.#left !== undefined && this.#segments?.length !== 0;
  }

  /** Takes the next bytes of the body with this head. Returns those that may be handed on now. */
  take(bytes: Uint8Array, head: ResponseHead | undefined): Uint8Array {
    this.#early.push(bytes);
    this.#earlyBytes += bytes.length;
    if (this.#segments === undefined && this.#earlyBytes > SEGMENT_BYTES_MAX) this.learn([]);
    if (this.#segments === undefined) return new Uint8Array();
    const left = (this.#left ??= this.#begin(this.#segments, head));
    const ready = this.#early.splice(0).flatMap((each) => this.#takeKnown(each, left));
    this.#earlyBytes = 0;
    return joined(ready);
  }

  /** The body has ended. Returns the last bytes that may be handed on. */
  finish(head: ResponseHead | undefined): Uint8Array {
    const ready = this.take(new Uint8Array(), head);
    const [segment] = this.#left ?? [];
    if (this.fault || segment?.end !== Infinity) return ready;
    this.#left?.shift();
    return joined([ready, this.#checked(segment)]);
  }

  #takeKnown(bytes: Uint8Array, left: Segment[]): Uint8Array[] {
    const ready: Uint8Array[] = [];
    for (let from = 0; from < bytes.length && !this.fault;) {
      const [segment] = left;
      const isIn = segment !== undefined && segment.start <= this.#at;
      const end = segment === undefined ? Infinity : isIn ? segment.end + 1 : segment.start;
      const part = bytes.subarray(from, from + end - this.#at);
      from += part.length;
      this.#at += part.length;
      if (!isIn) {
        this.#isChecked = false;
        ready.push(part);
        continue;
      }
      this.#hold(part, segment);
      if (this.#at !== end) continue;
      left.shift();
      ready.push(this.#checked(segment));
    }
    return ready;
  }

  /** The segments that the body has whole. */
  #begin(segments: readonly Segment[], head: ResponseHead | undefined): Segment[] {
    const isPart = head?.status === 206;
    const start = isPart ? (this.#range?.start ?? 0) : 0;
    const end = start + (head?.totalBytes ?? 0);
    this.#at = start;
    if (segments.some((segment) => segment.end === Infinity)) return isPart ? [] : [...segments];
    // The digests show how long the file is at least. A body that ends earlier hides the end of a segment.
    const last = segments.at(-1)?.end ?? -1;
    const least = Math.min(last, (isPart ? this.#range?.end : undefined) ?? Infinity);
    if (end <= least) {
      this.falseSegment = segments.findLast((segment) => segment.end <= least);
      this.#refuse(`The proxies' body ends before byte ${end}, and the site has digests up to byte ${last}.`);
    }
    return segments.filter((segment) => segment.start >= start && segment.end < end);
  }

  #hold(part: Uint8Array, segment: Segment): void {
    this.#held.push(part);
    this.#heldBytes += part.length;
    if (this.#heldBytes <= SEGMENT_BYTES_MAX) return;
    this.falseSegment = segment;
    this.#refuse(`The proxies' body is longer than ${SEGMENT_BYTES_MAX} bytes, so its digest is not checked.`);
  }

  #checked(segment: Segment): Uint8Array {
    const bytes = joined(this.#held);
    this.#held = [];
    this.#heldBytes = 0;
    if (hexOf(this.#hash(bytes)) === segment.sha256) return bytes;
    this.falseSegment = segment;
    const what = segment.end === Infinity ? "file does" : `bytes ${segment.start}-${segment.end} do`;
    this.#refuse(`The proxies' ${what} not have the digest that the site published.`);
    return new Uint8Array();
  }

  #refuse(message: string): void {
    this.#held = [];
    this.fault = { kind: "bodyDiffers", message };
  }
}
