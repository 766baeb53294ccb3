/**
 * Rarest first, as BitTorrent peers do it: upstream neighbours say which blocks they have, and a peer asks for the
 * block that the fewest of them have. No block is asked for twice until all that are missing are asked for. Then an
 * idle neighbour is asked for one of these too, and what would come second is cancelled.
 */
import { below } from "../rng";
import { Outbox } from "./outbox";
import type { Block, Control, Peer, PeerOptions } from "./peer";
import { SourceBlocks } from "./source-blocks";

/** Requests that a neighbour has at once, so that its way to this peer is never idle for a round trip. */
const REQUESTS = 2;

export class RarestPeer implements Peer {
  readonly #options: PeerOptions;
  readonly #blocks: SourceBlocks;
  readonly #outbox = new Outbox();
  /** By upstream neighbour: the blocks that it has, and those that it was asked for. */
  readonly #has = new Map<number, Set<number>>();
  readonly #asked = new Map<number, Set<number>>();
  /** By block: how many upstream neighbours have it, and how many were asked for it. */
  readonly #copies: Uint16Array;
  readonly #askers: Uint16Array;
  /** By downstream neighbour: blocks that it asked for. */
  readonly #wanted = new Map<number, Set<number>>();
  /** By downstream neighbour: the block that is on its way. */
  readonly #sending = new Map<number, number>();

  constructor(options: PeerOptions) {
    this.#options = options;
    this.#blocks = new SourceBlocks(options);
    this.#copies = new Uint16Array(options.blockCount);
    this.#askers = new Uint16Array(options.blockCount);
    for (const from of options.upstream) {
      this.#has.set(from, new Set());
      this.#asked.set(from, new Set());
    }
    for (const to of options.downstream) this.#wanted.set(to, new Set());
  }

  get isComplete(): boolean {
    return this.#blocks.isComplete;
  }
  get counts(): Peer["counts"] {
    return this.#blocks.counts;
  }

  start(): void {
    for (const index of this.#blocks.indices) this.#outbox.tellAll(this.#options.downstream, { kind: "have", index });
  }

  handleControl(from: number, control: Control): void {
    if (control.kind === "have") {
      const has = this.#has.get(from);
      if (!has || control.index >= this.#options.blockCount || has.has(control.index)) return;
      has.add(control.index);
      this.#copies[control.index]!++;
      this.#ask(from);
    } else if (control.kind === "request") {
      if (this.#blocks.has(control.index)) this.#wanted.get(from)?.add(control.index);
    } else if (control.kind === "cancel") {
      this.#wanted.get(from)?.delete(control.index);
      if (this.#sending.get(from) === control.index) this.#sending.delete(from);
    }
  }

  handleBlock(from: number, block: Block): void {
    const { index } = block;
    const isNew = this.#blocks.take(block);
    if (index === undefined) return;
    this.#forget(from, index);
    if (isNew) {
      for (const [other, asked] of this.#asked) {
        if (!asked.has(index)) continue;
        this.#forget(other, index);
        this.#outbox.tell(other, { kind: "cancel", index });
        this.#ask(other);
      }
      this.#outbox.tellAll(this.#options.downstream, { kind: "have", index });
    }
    this.#ask(from);
  }

  handleGone(neighbour: number): void {
    this.#wanted.delete(neighbour);
    for (const index of this.#has.get(neighbour) ?? []) this.#copies[index]!--;
    for (const index of this.#asked.get(neighbour) ?? []) this.#forget(neighbour, index);
    this.#has.delete(neighbour);
    this.#asked.delete(neighbour);
    for (const other of this.#asked.keys()) this.#ask(other);
  }

  pollControl(): ReturnType<Peer["pollControl"]> {
    return this.#outbox.poll();
  }

  nextBlock(to: number): Block | undefined {
    const wanted = this.#wanted.get(to);
    const [index] = wanted ?? [];
    if (index === undefined) return undefined;
    wanted!.delete(index);
    this.#sending.set(to, index);
    return this.#blocks.blockOf(index);
  }

  isWanted(to: number, { index }: Block): boolean {
    return this.#sending.get(to) === index;
  }

  content(): Uint8Array {
    return this.#blocks.content();
  }

  free(): void {}

  /** Asks the neighbour for as many blocks as it may have open. */
  #ask(from: number): void {
    const asked = this.#asked.get(from)!;
    while (!this.isComplete && asked.size < REQUESTS) {
      const index = this.#choose(this.#has.get(from)!, asked);
      if (index === undefined) return;
      asked.add(index);
      this.#askers[index]!++;
      this.#outbox.tell(from, { kind: "request", index });
    }
  }

  /** The rarest block that nobody was asked for. At the end: one that the fewest were asked for. Ties are drawn. */
  #choose(has: ReadonlySet<number>, asked: ReadonlySet<number>): number | undefined {
    let [best, rank, ties] = [undefined as number | undefined, Infinity, 0];
    for (const index of has) {
      if (this.#blocks.has(index) || asked.has(index)) continue;
      const askers = this.#askers[index]!;
      if (askers > 0 && asked.size > 0) continue;
      const own = askers * 65_536 + this.#copies[index]!;
      if (own > rank) continue;
      ties = own < rank ? 1 : ties + 1;
      rank = own;
      if (below(this.#options.rng, ties) === 0) best = index;
    }
    return best;
  }

  #forget(from: number, index: number): void {
    if (this.#asked.get(from)?.delete(index)) this.#askers[index]!--;
  }
}
