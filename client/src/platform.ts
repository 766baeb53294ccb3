/**
 * The edge to the environment: all that differs between a browser and Node. browser.ts and node.ts implement it,
 * tests replace it. Timers and `fetch` types are the standard ones.
 */
import type { FromEngine, ToEngine } from "./messages";

/** One data channel to a proxy: unordered, no retransmission, binary messages. */
export interface Channel {
  /** False when the message could not be taken; it is then lost, which the protocol survives. */
  send(bytes: Uint8Array): boolean;
  close(): void;
}

export interface ChannelOptions {
  /** Brings the offer to the proxy and its answer back. */
  exchange(offerSdp: string): Promise<string>;
  /** Gives the attempt up; the promise rejects and nothing stays open. */
  signal: AbortSignal;
  onMessage(bytes: Uint8Array): void;
  /** At most once, after the channel was open, and not for a `close()` of one's own. */
  onClosed(reason: string): void;
}

export interface EngineWorker {
  post(message: ToEngine, transfer: ArrayBuffer[]): void;
  onMessage(handler: (message: FromEngine) => void): void;
  /** The worker is gone. */
  onFailure(handler: (reason: string) => void): void;
  terminate(): void;
}

/** SHA-256, fed piece by piece. `update` may be given bytes that are transferred away right after it. */
export interface Hasher {
  update(bytes: Uint8Array): void;
  /** Lower-case hex. */
  digest(): Promise<string>;
  discard(): void;
}

export interface Platform {
  /** Monotonic, in ms. */
  now(): number;
  /** Milliseconds since 1970. */
  epochMs(): number;
  randomUUID(): string;
  fetch(input: string, init?: RequestInit): Promise<Response>;
  /** Runs `task` in a macrotask of its own, soon: behind what is queued now, not behind a throttled timer. */
  defer(task: () => void): void;
  openChannel(options: ChannelOptions): Promise<Channel>;
  spawnEngine(): EngineWorker;
  /** The bytes of the WebAssembly codec. */
  loadCodec(): Promise<ArrayBuffer>;
  /** Absent where hashing belongs to the engine's worker. */
  createHasher?(): Hasher;
}
