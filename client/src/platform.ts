/**
 * The interface to the environment: everything that differs between a browser and Node. browser.ts and node.ts
 * implement it, and tests replace it. Timers and `fetch` types are the standard ones.
 */
import type { TransportName } from "@tributary/contract/schema";
import type { ProxyInfo } from "./api";
import type { FromEngine, ToEngine } from "./messages";

/** A way to carry a session's messages. Each passes the same suite: test/transports. */
export interface Transport {
  readonly name: TransportName;
  /** Whether this end has it and that proxy offers it. */
  reaches(proxy: ProxyInfo): boolean;
  /** Rejects with the reason, or with the signal's. */
  open(options: ChannelOptions): Promise<Channel>;
  /** Resolves when there is what opens it, as where a worker has to start first. Starts it; never rejects. */
  started?(): Promise<void>;
}

/** An unreliable, unordered path to a proxy for messages of up to 16,384 bytes. */
export interface Channel {
  /** False when the message could not be taken; it is then lost, which the protocol survives. */
  send(bytes: Uint8Array): boolean;
  close(): void;
}

export interface ChannelOptions {
  proxy: ProxyInfo;
  /** The session's key at the engine. */
  session: number;
  /** For WebRTC: brings the offer to the proxy and its answer back. */
  sendOffer(offerSdp: string): Promise<string>;
  /** Gives the attempt up; the promise rejects and nothing stays open. */
  signal: AbortSignal;
  /**
   * The first message, for a transport that can take it along to the proxy while the channel opens: a round trip
   * sooner. It may get lost, or come twice: the protocol sends it again once the channel is open.
   */
  first?: Uint8Array | undefined;
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
  /** Lower-case hex; null from one that makes none. */
  digest(): Promise<string | null>;
  discard(): void;
}

export interface Platform {
  /** Family and major version of browser or runtime, e.g. `chrome/156`, and family of the system: for records. */
  describe(): { agent?: string; os?: string };
  /** Monotonic, in ms. */
  now(): number;
  /** Milliseconds since 1970. */
  epochMs(): number;
  randomUUID(): string;
  fetch(input: string, init?: RequestInit): Promise<Response>;
  /** Runs `task` in a macrotask of its own, soon: behind what is queued now, not behind a throttled timer. */
  defer(task: () => void): void;
  /** The transports of this thread. */
  readonly transports: readonly Transport[];
  /** The names of those that the engine's worker has. */
  readonly engineTransports: readonly TransportName[];
  spawnEngine(): EngineWorker;
  /** The bytes of the WebAssembly codec. */
  loadCodec(): Promise<ArrayBuffer>;
  /** `inPieces` makes one that works in the engine's worker, which is what there is where this is absent. */
  createHasher?(inPieces: () => Hasher): Hasher;
  /** Has garbage collected, where that is worth it: nothing is under way. */
  collect?(): void;
}
