/**
 * Peers: nodes that get one object of `blockCount` blocks from their upstream neighbours and serve it to their
 * downstream neighbours, while they still get it (Wang, Li: How practical is network coding?, INFOCOM 2006). A peer
 * decides what to send and what to ask for. The caller carries control messages and blocks, and asks for the next block
 * for a neighbour whenever the way to it is free. Pure: no clock, no socket; randomness is `rng`.
 */
import type { Rng } from "../types";

/** A block on its way. `vector`: its coefficients on the source blocks. Without one it is source block `index`. */
export interface Block {
  readonly index?: number;
  readonly vector?: Uint8Array;
  readonly payload: Uint8Array;
  /** Bytes that were multiplied to make it. */
  readonly codedBytes: number;
}

/** What neighbours tell each other. */
export type Control =
  /** Upstream: it now has this source block. */
  | { readonly kind: "have"; readonly index: number }
  /** Downstream: send, or do not send, this source block. */
  | { readonly kind: "request" | "cancel"; readonly index: number }
  /** Upstream: it could send a block with this vector. */
  | { readonly kind: "offer"; readonly vector: Uint8Array }
  /** Downstream: the answer to the open offer; offer again; nothing more is wanted. */
  | { readonly kind: "accept" | "refuse" | "ask" | "done" };

export interface PeerOptions {
  blockCount: number;
  blockBytes: number;
  /** Neighbours that serve this peer, and neighbours that it serves. */
  upstream: readonly number[];
  downstream: readonly number[];
  rng: Rng;
  /** All blocks, one after the other. Only the first peer has them at its start. */
  source?: Uint8Array | undefined;
}

export interface Peer {
  readonly isComplete: boolean;
  /** Blocks that came, and those of them that brought something new. */
  readonly counts: { readonly received: number; readonly innovative: number };
  /** Called once, before anything else. */
  start(): void;
  handleControl(from: number, control: Control): void;
  handleBlock(from: number, block: Block): void;
  /** A neighbour is gone, and what it promised with it. Nothing comes from it any more. */
  handleGone(neighbour: number): void;
  /** The next control message and the neighbour that it is for. */
  pollControl(): { to: number; control: Control } | undefined;
  /** What to send to a downstream neighbour now. */
  nextBlock(to: number): Block | undefined;
  /** Whether a block that is on its way to a neighbour should go on. */
  isWanted(to: number, block: Block): boolean;
  /** The content of a complete peer. */
  content(): Uint8Array;
  free(): void;
}
