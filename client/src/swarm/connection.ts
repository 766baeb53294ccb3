/** One TCP connection between two swarm peers: frames in and out, what was broken, and how much came for nothing. */
import type { Socket } from "node:net";
import { encodeSwarmFrame, FrameReader, type Role, type SwarmFault, type SwarmFrame } from "./wire";

/**
 * Control messages and useless blocks that a neighbour may send for each block of the object, and beside them. A
 * neighbour that keeps to the rules sends fewer than ten for each block.
 */
const FLOOD_PER_BLOCK = 32;
const FLOOD_BASE = 256;

export interface ConnectionHandler {
  /** Returns what the frame broke. */
  handleFrame(frame: SwarmFrame): SwarmFault | undefined;
  /** Called once. The fault is why we ended it. */
  handleEnd(fault: SwarmFault | undefined): void;
}

export class Connection {
  handler: ConnectionHandler;
  readonly #socket: Socket;
  readonly #reader: FrameReader;
  readonly #floodMax: number;
  #flood = 0;
  #isOver = false;

  constructor(socket: Socket, role: Role, blockCount: number, handler: ConnectionHandler) {
    this.handler = handler;
    this.#socket = socket;
    this.#reader = new FrameReader(role, blockCount);
    this.#floodMax = FLOOD_PER_BLOCK * blockCount + FLOOD_BASE;
    socket.setNoDelay(true);
    socket.on("data", (bytes) => this.#read(bytes));
    // "close" follows.
    socket.on("error", () => undefined);
    socket.on("close", () => this.end());
  }

  become(role: Role, handler: ConnectionHandler): void {
    this.#reader.become(role);
    this.handler = handler;
  }

  /** Returns the bytes that it sent. */
  send(frame: SwarmFrame): number {
    if (this.#isOver) return 0;
    const bytes = encodeSwarmFrame(frame);
    // Frames of one turn leave together.
    if (this.#socket.writableCorked === 0) {
      this.#socket.cork();
      process.nextTick(() => this.#socket.uncork());
    }
    this.#socket.write(bytes);
    return bytes.length;
  }

  /** Counts a message that brought no new block. */
  countUseless(): SwarmFault | undefined {
    return ++this.#flood > this.#floodMax ? { fault: "flood", got: this.#flood, limit: this.#floodMax } : undefined;
  }

  end(fault?: SwarmFault): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#socket.destroy();
    this.handler.handleEnd(fault);
  }

  #read(bytes: Uint8Array): void {
    this.#reader.push(bytes);
    while (!this.#isOver) {
      const frame = this.#reader.next();
      if (frame === undefined) return;
      const fault = "fault" in frame ? frame : this.handler.handleFrame(frame);
      if (fault) this.end(fault);
    }
  }
}
