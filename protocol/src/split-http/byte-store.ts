/**
 * ByteStore: the bytes of one body as they arrive from several sources, in any order and more than once. It hands each
 * byte on once and in order, tells what is missing, and forgets bytes that were false. A stretch is [start, end). It
 * keeps references to what it is given and copies nothing. Pure.
 */

export interface Stretch {
  start: number;
  end: number;
}

/** Bytes as they came. */
export interface Part {
  readonly start: number;
  readonly bytes: Uint8Array;
  readonly source: number;
}

interface Kept extends Stretch {
  parts: Part[];
}

export class ByteStore {
  /** All bytes below this were handed on or are ready for `take`. */
  prefix = 0;
  /** All bytes below this were handed on. */
  #taken = 0;
  /** The bytes from #taken to the prefix. */
  #ready: Part[] = [];
  /** Bytes beyond the prefix, in order. */
  #kept: Kept[] = [];

  insert(start: number, bytes: Uint8Array, source: number): void {
    for (const gap of this.gaps(start, start + bytes.length))
      this.#keep(gap, { start: gap.start, bytes: bytes.subarray(gap.start - start, gap.end - start), source });
    while (this.#kept[0]?.start === this.prefix) {
      const { end, parts } = this.#kept.shift()!;
      this.prefix = end;
      this.#ready.push(...parts);
    }
  }

  /** The next bytes in order, once: the ready ones below `end`. */
  take(end: number): Part[] {
    const taken = this.peek(end);
    this.#taken = Math.max(this.#taken, Math.min(end, this.prefix));
    this.#ready = this.#ready.flatMap((part) => cut(part, this.#taken, Infinity));
    return taken;
  }

  /** What `take` would hand on. */
  peek(end: number): Part[] {
    return this.#ready.flatMap((part) => cut(part, 0, end));
  }

  /** Forgets parts that were not handed on. They are missing then. */
  forget(isFalse: (part: Part) => boolean): void {
    const parts = [...this.#ready, ...this.#kept.flatMap((kept) => kept.parts)];
    this.prefix = this.#taken;
    this.#ready = [];
    this.#kept = [];
    for (const part of parts) if (!isFalse(part)) this.insert(part.start, part.bytes, part.source);
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

  #keep({ start, end }: Stretch, part: Part): void {
    const after = this.#kept.findIndex((one) => one.start > start);
    const at = after < 0 ? this.#kept.length : after;
    const before = this.#kept[at - 1];
    if (before?.end === start) {
      before.end = end;
      before.parts.push(part);
    } else this.#kept.splice(at, 0, { start, end, parts: [part] });
  }
}

/** The bytes of a part in [start, end); none if it has none there. */
export function cut({ start: at, bytes, source }: Part, start: number, end: number): Part[] {
  const from = Math.max(start, at);
  const to = Math.min(end, at + bytes.length);
  return to > from ? [{ start: from, bytes: bytes.subarray(from - at, to - at), source }] : [];
}
