/** A node's two kinds of neighbours, each with its connection and its flow on one of the node's links. */
import type { Block, Control } from "@tributary/protocol";
import type { Connection } from "./connection";
import type { LinkFlow } from "./shared-link";
import { HEADER_BYTES, PIECE_BYTES, type SwarmFault, type SwarmFrame } from "./wire";

/** Payload bytes that are sent and have not passed the receiver's link. More keep a fast flow busy across timers. */
export const WINDOW_BYTES = 4 * PIECE_BYTES;

export type BlockHead = Extract<SwarmFrame, { kind: "sourceBlock" | "codedBlock" }>;

export interface UpstreamEvents {
  control(control: Control): void;
  /** A whole block passed the link. Returns whether it brought something new. */
  block(block: Block): boolean;
  /** Payload passed the link. */
  received(bytes: number): void;
}

/** One that serves us. Its blocks wait for our downlink, and its control messages do not. */
export class UpstreamNeighbour implements LinkFlow {
  /** Since when something was to come and nothing came. */
  silentSinceMs: number | undefined;
  #owed = 0;
  readonly #queue: (BlockHead | Extract<SwarmFrame, { kind: "piece" }>)[] = [];
  #waitingBytes = 0;
  /** Bytes that are still to be read of the block that is read, and the block that passes the link. */
  #leftBytes = 0;
  #head: BlockHead | undefined;
  #payload: Uint8Array;
  #filledBytes = 0;

  constructor(
    readonly connection: Connection,
    readonly blockBytes: number,
    readonly events: UpstreamEvents,
  ) {
    this.#payload = new Uint8Array(blockBytes);
  }

  /** What we tell it: blocks that it promised, or that we asked it for, are owed. */
  noteSent({ kind }: Control): void {
    if (kind === "accept" || kind === "request") this.#owe(1);
    if (kind === "cancel") this.#owe(-1);
  }

  handleFrame(frame: SwarmFrame): SwarmFault | undefined {
    if (this.silentSinceMs !== undefined) this.silentSinceMs = performance.now();
    if (frame.kind === "piece") return this.#queuePiece(frame);
    if (frame.kind !== "sourceBlock" && frame.kind !== "codedBlock") {
      this.events.control(frame as Control);
      return this.connection.countUseless();
    }
    const fault = this.#leftBytes > 0 ? this.connection.countUseless() : undefined;
    this.#leftBytes = this.blockBytes;
    this.#queue.push(frame);
    return fault;
  }

  take(): number {
    let bytes = 0;
    for (let frame = this.#queue.shift(); frame; frame = this.#queue.shift()) {
      if (frame.kind !== "piece") {
        bytes += HEADER_BYTES + (frame.kind === "codedBlock" ? frame.vector.length : 2);
        this.#head = frame;
        this.#filledBytes = 0;
        continue;
      }
      this.#pass(frame.payload);
      return bytes + HEADER_BYTES + frame.payload.length;
    }
    return bytes;
  }

  #queuePiece(frame: Extract<SwarmFrame, { kind: "piece" }>): SwarmFault | undefined {
    const { length } = frame.payload;
    if (length > this.#leftBytes) return { fault: "blockBytes", got: length, limit: this.#leftBytes };
    this.#leftBytes -= length;
    this.#waitingBytes += length;
    if (this.#waitingBytes > WINDOW_BYTES) return { fault: "window", got: this.#waitingBytes, limit: WINDOW_BYTES };
    this.#queue.push(frame);
    return undefined;
  }

  #pass(piece: Uint8Array): void {
    this.#waitingBytes -= piece.length;
    this.#payload.set(piece, this.#filledBytes);
    this.#filledBytes += piece.length;
    this.events.received(piece.length);
    this.connection.send({ kind: "credit", bytes: piece.length });
    if (this.#filledBytes < this.blockBytes) return;
    this.#owe(-1);
    const [head, payload] = [this.#head!, this.#payload];
    this.#payload = new Uint8Array(this.blockBytes);
    const named = head.kind === "codedBlock" ? { vector: head.vector } : { index: head.index };
    const fault = this.events.block({ ...named, payload, codedBytes: 0 }) ? undefined : this.connection.countUseless();
    if (fault) this.connection.end(fault);
  }

  #owe(change: number): void {
    this.#owed = Math.max(0, this.#owed + change);
    this.silentSinceMs = this.#owed > 0 ? (this.silentSinceMs ?? performance.now()) : undefined;
  }
}

export interface DownstreamEvents {
  control(control: Control): void;
  /** The next block for this neighbour, and whether one that is on its way should go on. */
  nextBlock(): Block | undefined;
  isWanted(block: Block): boolean;
  /** Credit came. */
  freed(): void;
}

/** One that we serve, a block at a time. */
export class DownstreamNeighbour implements LinkFlow {
  #block: Block | undefined;
  #sentBytes = 0;
  #openBytes = 0;

  constructor(
    readonly connection: Connection,
    readonly events: DownstreamEvents,
  ) {}

  handleFrame(frame: SwarmFrame): SwarmFault | undefined {
    if (frame.kind === "credit") {
      if (frame.bytes > this.#openBytes) return { fault: "credit", got: frame.bytes, limit: this.#openBytes };
      this.#openBytes -= frame.bytes;
      this.events.freed();
      return undefined;
    }
    this.events.control(frame as Control);
    if (this.#block && !this.events.isWanted(this.#block)) this.#block = undefined;
    return this.connection.countUseless();
  }

  take(): number {
    if (this.#openBytes > WINDOW_BYTES - PIECE_BYTES) return 0;
    const bytes = this.#block ? 0 : this.#begin();
    if (!this.#block) return 0;
    const payload = this.#block.payload.subarray(this.#sentBytes, this.#sentBytes + PIECE_BYTES);
    this.#sentBytes += payload.length;
    this.#openBytes += payload.length;
    if (this.#sentBytes === this.#block.payload.length) this.#block = undefined;
    return bytes + this.connection.send({ kind: "piece", payload });
  }

  #begin(): number {
    const block = this.events.nextBlock();
    this.#block = block;
    this.#sentBytes = 0;
    if (!block) return 0;
    const { index, vector } = block;
    return this.connection.send(vector ? { kind: "codedBlock", vector } : { kind: "sourceBlock", index: index! });
  }
}
