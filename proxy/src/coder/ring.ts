/**
 * Ring: the coded symbols of one generation that are ready, and how far each viewer has come in them. A viewer is one
 * download of one client, at whatever session: each symbol goes to it at most once. Symbols have positions, which count
 * up. The oldest symbols leave when there are more than two for each source symbol. It codes nothing.
 */
import type { CodedSymbol } from "@tributary/protocol";

/** Symbols that were made together. */
export interface Block {
  readonly first: number;
  readonly count: number;
  readonly payloads: Uint8Array;
  readonly madeMs: number;
}

/** A viewer's place: the position of the symbol that it gets next. */
export interface Cursor {
  position: number;
  /** The ring has forgotten it. */
  isGone: boolean;
}

/** What a cursor takes in memory, about. */
export const CURSOR_BYTES = 100;
/** More viewers than this are not remembered. */
const CURSORS_MAX = 4096;
/** Symbols that a ring keeps for each source symbol. */
const KEPT_PER_SYMBOL = 2;

export class Ring {
  /** The position of the symbol that is made next. */
  head = 0;
  readonly #blocks: Block[] = [];
  /** The symbols of all blocks, from the position `#first` on. Handing one out must cost far less than coding it. */
  readonly #symbols: CodedSymbol[] = [];
  #first = 0;
  /** No symbol from this position on was sent. */
  #unsentFrom = 0;
  readonly #cursors = new Map<number, Cursor>();
  /** Where a viewer that is not known begins: no viewer that was forgotten had come further. */
  #floor = 0;
  readonly #symbolBytes: number;
  readonly #keptMax: number;
  /** Seeds count up from it, so that no two symbols of the ring have the same. */
  readonly #firstSeed: number;

  constructor(symbolCount: number, symbolBytes: number, firstSeed: number) {
    this.#symbolBytes = symbolBytes;
    this.#keptMax = KEPT_PER_SYMBOL * symbolCount;
    this.#firstSeed = firstSeed;
  }

  get viewers(): number {
    return this.#cursors.size;
  }

  cursorOf(viewer: number): Cursor {
    let cursor = this.#cursors.get(viewer);
    if (cursor) return cursor;
    if (this.#cursors.size >= CURSORS_MAX) this.#forgetOne();
    cursor = { position: this.#floor, isGone: false };
    this.#cursors.set(viewer, cursor);
    return cursor;
  }

  /** The seeds of the next `count` symbols. */
  nextSeeds(count: number): Uint32Array {
    return Uint32Array.from({ length: count }, (_, index) => this.#firstSeed + this.head + index);
  }

  /** Adds the symbols of `nextSeeds`. Returns the blocks that leave. */
  add(count: number, payloads: Uint8Array, nowMs: number): Block[] {
    const symbolBytes = this.#symbolBytes;
    for (let index = 0; index < count; index++) {
      const payload = payloads.subarray(index * symbolBytes, (index + 1) * symbolBytes);
      this.#symbols.push({ seed: (this.#firstSeed + this.head + index) >>> 0, payload });
    }
    this.#blocks.push({ first: this.head, count, payloads, madeMs: nowMs });
    this.head += count;
    let leaving = 0;
    while (leaving < this.#blocks.length - 1 && this.head - this.#blocks[leaving + 1]!.first >= this.#keptMax)
      leaving++;
    const first = this.#blocks[leaving]!.first;
    if (leaving > 0) this.#symbols.splice(0, first - this.#first);
    this.#first = first;
    return this.#blocks.splice(0, leaving);
  }

  /** How many ready symbols the viewer has not had. */
  readyFor(cursor: Cursor): number {
    if (cursor.position < this.#first) cursor.position = this.#first;
    return this.head - cursor.position;
  }

  /** The viewer's next symbol. `readyFor` must have counted one. */
  take(cursor: Cursor): CodedSymbol {
    return this.#symbols[cursor.position++ - this.#first]!;
  }

  /** The block of the symbol at `position`, if no symbol of it or of later ones was noted as sent before. */
  noteSent(position: number): Block | undefined {
    if (position < this.#unsentFrom) return undefined;
    const block = this.#blocks.findLast(({ first }) => first <= position);
    if (block) this.#unsentFrom = block.first + block.count;
    return block;
  }

  /** Takes all symbols out. */
  clear(): Block[] {
    for (const cursor of this.#cursors.values()) cursor.isGone = true;
    this.#cursors.clear();
    this.#symbols.length = 0;
    this.#first = this.head;
    return this.#blocks.splice(0);
  }

  /** Forgets the viewer that has come least far. Viewers that are not known begin where it is. */
  #forgetOne(): void {
    let [least, position] = [0, Infinity];
    for (const [viewer, cursor] of this.#cursors)
      if (cursor.position < position) [least, position] = [viewer, cursor.position];
    this.#cursors.get(least)!.isGone = true;
    this.#cursors.delete(least);
    this.#floor = Math.max(this.#floor, position);
  }
}
