/**
 * ByteStore: the bytes of one body as they arrive from several proxies, in any order and more than once. It hands each
 * byte on once and in order, and tells what is missing. Offsets count from the start of the resource; a stretch is
 * [start, end). It keeps references to what it is given and copies nothing. Pure.
 */
export interface Stretch {
  start: number;
  end: number;
}

interface Kept extends Stretch {
  parts: Uint8Array[];
}

export class ByteStore {
  /** All bytes below this were handed on or are ready for the next `take`. */
  prefix: number;
  /** Bytes beyond the prefix, in order. */
  readonly #kept: Kept[] = [];
  readonly #ready: Uint8Array[] = [];

  constructor(start: number) {
    this.prefix = start;
  }

  insert(start: number, bytes: Uint8Array): void {
    for (const gap of this.gaps(start, start + bytes.length))
      this.#keep(gap, bytes.subarray(gap.start - start, gap.end - start));
    while (this.#kept[0]?.start === this.prefix) {
      const { end, parts } = this.#kept.shift()!;
      this.prefix = end;
      this.#ready.push(...parts);
    }
  }

  /** The next bytes in order, once. */
  take(): Uint8Array[] {
    return this.#ready.splice(0);
  }

  /** The missing stretches of [start, end), in order. */
  gaps(start: number, end: number): Stretch[] {
    const found: Stretch[] = [];
    let at = Math.max(start, this.prefix);
    for (const kept of this.#kept) {
      if (kept.end <= at) continue;
      if (kept.start >= end) break;
      if (kept.start > at) found.push({ start: at, end: kept.start });
      at = kept.end;
    }
    if (at < end) found.push({ start: at, end });
    return found;
  }

  missing(start: number, end: number): number {
    return this.gaps(start, end).reduce((sum, gap) => sum + gap.end - gap.start, 0);
  }

  #keep({ start, end }: Stretch, bytes: Uint8Array): void {
    const after = this.#kept.findIndex((one) => one.start > start);
    const at = after < 0 ? this.#kept.length : after;
    const before = this.#kept[at - 1];
    if (before?.end === start) {
      before.end = end;
      before.parts.push(bytes);
    } else this.#kept.splice(at, 0, { start, end, parts: [bytes] });
  }
}
