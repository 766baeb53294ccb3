/**
 * Pieces: one body as it is divided among proxies. It knows which bytes have arrived, which are asked for, and
 * which no proxy was asked for yet. It decides nothing and knows no time. Offsets count from the start of the resource;
 * ends are exclusive.
 */
import { ByteStore, type Part, type Stretch } from "./byte-store";

/** One HTTP request for bytes of the body at one proxy. */
export interface Ask {
  readonly id: number;
  readonly proxyIndex: number;
  readonly start: number;
  end: number;
  /** The answer is wanted up to here. Other proxies took over the rest. */
  wantedEnd: number;
  /** The next byte that the answer brings. */
  position: number;
  /** Other proxies were asked for the same bytes up to here. */
  repeatedEnd: number;
  /** No other proxy is to bring a part of it. */
  isAlone: boolean;
  readonly askedMs: number;
  heardMs: number;
  answered: boolean;
}

export interface PiecesOptions {
  /** Pieces begin and end at multiples of this. */
  alignBytes: number;
  /** No piece begins further than this beyond the first missing byte. */
  aheadBytesMax: number;
}

export class Pieces {
  readonly asks = new Map<number, Ask>();
  readonly store = new ByteStore();
  /** Infinity while the length of the body is not known. */
  end = Infinity;
  readonly alignBytes: number;
  /** Nothing beyond it may be asked for yet. */
  openedEnd = Infinity;
  /** Some bytes were asked for twice, or another proxy took them over. */
  hasOverlaps = false;
  /** Bytes that were never asked for or that a failed proxy gave back, in order. */
  #unasked: Stretch[] = [{ start: 0, end: Infinity }];
  readonly #aheadBytesMax: number;

  constructor({ alignBytes, aheadBytesMax }: PiecesOptions) {
    this.alignBytes = alignBytes;
    this.#aheadBytesMax = aheadBytesMax;
  }

  get isWhole(): boolean {
    return this.store.prefix >= this.end;
  }

  get firstUnasked(): number | undefined {
    return this.#unasked[0]?.start;
  }

  get unaskedBytes(): number {
    return this.#unasked.reduce((sum, { start, end }) => sum + end - start, 0);
  }

  /** The length of the body is known. */
  settle(end: number): void {
    this.end = end;
    this.openedEnd = Infinity;
    this.askAnew();
  }

  /** Forgets false bytes, so that they are asked for again. They may be what came in place of a silent answer. */
  forget(isFalse: (part: Part) => boolean): void {
    this.store.forget(isFalse);
    for (const ask of this.asks.values()) {
      const [gap] = this.store.gaps(ask.position, Math.min(ask.repeatedEnd, this.end));
      if (gap && !ask.isAlone) ask.repeatedEnd = gap.start;
    }
    this.askAnew();
  }

  asksOf(proxyIndex: number): Ask[] {
    return [...this.asks.values()].filter((ask) => ask.proxyIndex === proxyIndex);
  }

  /** Bytes of an answer that are still to come and still wanted. */
  wantedOf(ask: Ask): number {
    return this.store.missing(ask.position, Math.min(ask.wantedEnd, this.end));
  }

  /** The missing parts of an answer that were not asked for again. */
  repeatableOf(ask: Ask): Stretch[] {
    return this.store.gaps(Math.max(ask.position, ask.repeatedEnd), Math.min(ask.wantedEnd, this.end));
  }

  /** Some bytes may be asked for now. */
  hasMore(): boolean {
    const limit = Math.min(this.store.prefix + this.#aheadBytesMax, this.openedEnd);
    return (this.firstUnasked ?? Infinity) < limit;
  }

  /** Takes the next bytes to ask for, at most `bytes`. */
  takeUnasked(bytes: number): Stretch | undefined {
    const first = this.#unasked[0];
    if (!first || !this.hasMore()) return undefined;
    const { start } = first;
    const end = Math.min(first.end, start + bytes);
    if (end === first.end) this.#unasked.shift();
    else first.start = end;
    return { start, end };
  }

  /**
   * The ask is over. Its missing bytes become unasked, unless another proxy was asked for them. If that one is silent,
   * they may be asked for again.
   */
  giveBack(ask: Ask): void {
    for (const other of this.asks.values())
      if (other.start < ask.end) other.repeatedEnd = Math.min(other.repeatedEnd, Math.max(other.start, ask.position));
    const left = this.#uncovered({ start: ask.position, end: Math.min(ask.wantedEnd, this.end) });
    this.#unasked = [...this.#unasked, ...left].sort((a, b) => a.start - b.start);
  }

  /** Everything that is missing and that no proxy was asked for is unasked. */
  askAnew(): void {
    this.#unasked = this.#uncovered({ start: 0, end: this.end });
  }

  aligned(bytes: number): number {
    return Math.ceil(bytes / this.alignBytes) * this.alignBytes;
  }

  /** The parts of a stretch that are missing and not asked for. */
  #uncovered({ start, end }: Stretch): Stretch[] {
    let left = this.store.gaps(start, end);
    for (const ask of this.asks.values())
      left = left.flatMap((gap) => without(gap, { start: ask.position, end: ask.wantedEnd }));
    return left;
  }
}

function without(gap: Stretch, covered: Stretch): Stretch[] {
  if (covered.start >= gap.end || covered.end <= gap.start) return [gap];
  const rest = [
    { start: gap.start, end: covered.start },
    { start: covered.end, end: gap.end },
  ];
  return rest.filter(({ start, end }) => end > start);
}
