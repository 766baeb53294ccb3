/** The clients of the HTTP modes. They decide which proxy gets which request, and when a request is cancelled. */
import { SplitHttp, type SplitHttpCommand } from "@tributary/protocol";

export const SEGMENT_BYTES = 1100;

/** It asks and cancels by commands. Each connection hands it the bytes of its answers in order. */
export interface HttpUser {
  readonly isComplete: boolean;
  handleHead(askId: number, nowMs: number): void;
  handleBytes(askId: number, bytes: Uint8Array, nowMs: number): void;
  handleEnd(askId: number, nowMs: number): void;
  handleTick(nowMs: number): void;
  pollCommand(): SplitHttpCommand | undefined;
  /** The next bytes of the body in order. */
  pollBytes(): Uint8Array | undefined;
}

/** The product's own scheduler of byte ranges. Proxies are believed, so no digests are on the wire. */
export class SplitUser implements HttpUser {
  isComplete = false;
  readonly #split: SplitHttp;
  readonly #chunkBytes: number;

  constructor(proxyCount: number, chunkBytes: number) {
    this.#chunkBytes = chunkBytes;
    this.#split = new SplitHttp({ proxyCount, nowMs: 0, alignBytes: SEGMENT_BYTES });
  }

  handleHead(askId: number, nowMs: number): void {
    this.#split.handleTotal(this.#chunkBytes, nowMs);
    this.#split.handleHead(askId, nowMs);
  }
  handleBytes(askId: number, bytes: Uint8Array, nowMs: number): void {
    this.#split.handleBytes(askId, bytes, nowMs);
  }
  handleEnd(askId: number, nowMs: number): void {
    this.#split.handleEnd(askId, nowMs);
  }
  handleTick(nowMs: number): void {
    this.#split.handleTimeout(nowMs);
  }
  pollCommand(): SplitHttpCommand | undefined {
    return this.#split.pollCommand();
  }
  pollBytes(): Uint8Array | undefined {
    for (let event = this.#split.pollEvent(); event; event = this.#split.pollEvent()) {
      if (event.kind === "bytes") return event.bytes;
      if (event.kind === "complete") this.isComplete = true;
    }
    return undefined;
  }
}

/**
 * Mode parallel-http as in section III of the paper: sends the same request to all proxies and takes the bytes of the
 * one that is furthest ahead. The first whole answer wins, and the other requests are cancelled.
 */
export class ParallelUser implements HttpUser {
  readonly #positions: number[];
  readonly #commands: SplitHttpCommand[];
  readonly #bytes: Uint8Array[] = [];
  #deliveredBytes = 0;

  readonly #proxyCount: number;
  readonly #chunkBytes: number;

  constructor(proxyCount: number, chunkBytes: number) {
    this.#proxyCount = proxyCount;
    this.#chunkBytes = chunkBytes;

    this.#positions = Array.from({ length: proxyCount }, () => 0);
    this.#commands = this.#positions.map((_, proxyIndex) => ({
      kind: "ask",
      askId: proxyIndex,
      proxyIndex,
      part: { start: 0, end: chunkBytes - 1 },
    }));
  }

  get isComplete(): boolean {
    return this.#deliveredBytes === this.#chunkBytes;
  }
  handleBytes(askId: number, bytes: Uint8Array): void {
    this.#positions[askId]! += bytes.length;
    const fresh = this.#positions[askId]! - this.#deliveredBytes;
    if (fresh <= 0) return;
    this.#bytes.push(bytes.subarray(bytes.length - fresh));
    this.#deliveredBytes += fresh;
    if (!this.isComplete) return;
    for (let other = 0; other < this.#proxyCount; other++)
      if (other !== askId) this.#commands.push({ kind: "cancel", askId: other });
  }
  handleHead(): void {
    // All heads agree in a simulation.
  }
  handleEnd(): void {
    // The bytes tell when an answer is whole.
  }
  handleTick(): void {
    // It waits only for bytes.
  }
  pollCommand(): SplitHttpCommand | undefined {
    return this.#commands.shift();
  }
  pollBytes(): Uint8Array | undefined {
    return this.#bytes.shift();
  }
}
