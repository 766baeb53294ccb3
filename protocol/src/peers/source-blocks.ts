/** Source blocks: what a peer that does not code holds. */
import type { Block, PeerOptions } from "./peer";

export class SourceBlocks {
  readonly counts = { received: 0, innovative: 0 };
  readonly #blocks: (Uint8Array | undefined)[];
  readonly #blockBytes: number;
  #held = 0;

  constructor({ blockCount, blockBytes, source }: PeerOptions) {
    this.#blockBytes = blockBytes;
    this.#blocks = Array.from({ length: blockCount }, (_, index) =>
      source?.subarray(index * blockBytes, (index + 1) * blockBytes),
    );
    if (source) this.#held = blockCount;
  }

  get isComplete(): boolean {
    return this.#held === this.#blocks.length;
  }

  /** The blocks that are held. */
  get indices(): number[] {
    return this.#blocks.flatMap((block, index) => (block ? [index] : []));
  }

  has(index: number): boolean {
    return this.#blocks[index] !== undefined;
  }

  /** True if the block is new. */
  take({ index, payload }: Block): boolean {
    this.counts.received++;
    if (index === undefined || index >= this.#blocks.length || this.has(index)) return false;
    this.#blocks[index] = payload;
    this.#held++;
    this.counts.innovative++;
    return true;
  }

  blockOf(index: number): Block {
    return { index, payload: this.#blocks[index]!, codedBytes: 0 };
  }

  content(): Uint8Array {
    const whole = new Uint8Array(this.#blocks.length * this.#blockBytes);
    this.#blocks.forEach((block, index) => whole.set(block!, index * this.#blockBytes));
    return whole;
  }
}
