/**
 * Naive broadcast: a peer forwards each block that is new to it to all of its downstream neighbours, in the order in
 * which blocks came. Neighbours throw away what they have. Source: Wang, Li 2006, section II-B.
 */
import { Outbox } from "./outbox";
import type { Block, Control, Peer, PeerOptions } from "./peer";
import { SourceBlocks } from "./source-blocks";

export class NaivePeer implements Peer {
  readonly #options: PeerOptions;
  readonly #blocks: SourceBlocks;
  readonly #outbox = new Outbox();
  /** Blocks to forward, in order, and how many of them each neighbour has got. */
  readonly #order: number[];
  readonly #sent = new Map<number, number>();
  readonly #done = new Set<number>();

  constructor(options: PeerOptions) {
    this.#options = options;
    this.#blocks = new SourceBlocks(options);
    this.#order = this.#blocks.indices;
  }

  get isComplete(): boolean {
    return this.#blocks.isComplete;
  }
  get counts(): Peer["counts"] {
    return this.#blocks.counts;
  }

  start(): void {}

  handleControl(from: number, { kind }: Control): void {
    if (kind === "done") this.#done.add(from);
  }

  handleBlock(_from: number, block: Block): void {
    if (!this.#blocks.take(block)) return;
    this.#order.push(block.index!);
    if (this.isComplete) this.#outbox.tellAll(this.#options.upstream, { kind: "done" });
  }

  handleGone(neighbour: number): void {
    this.#done.add(neighbour);
  }

  pollControl(): ReturnType<Peer["pollControl"]> {
    return this.#outbox.poll();
  }

  nextBlock(to: number): Block | undefined {
    const sent = this.#sent.get(to) ?? 0;
    if (this.#done.has(to) || sent === this.#order.length) return undefined;
    this.#sent.set(to, sent + 1);
    return this.#blocks.blockOf(this.#order[sent]!);
  }

  isWanted(to: number): boolean {
    return !this.#done.has(to);
  }

  content(): Uint8Array {
    return this.#blocks.content();
  }

  free(): void {}
}
