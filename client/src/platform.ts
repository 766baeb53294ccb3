/**
 * The interface to the environment: everything that differs between a browser and Node. browser.ts and node.ts
 * implement it, and tests replace it. Timers and `fetch` types are the standard ones.
 */
import type { TransportName } from "@tributary/contract/schema";
import type { ProxyInfo } from "./api";
import type { FromEngine, ToEngine } from "./messages";
import type { AskOrigin } from "./origin";

/** A way to carry a session's messages. Every transport passes the suite in test/transports. */
export interface Transport {
  readonly name: TransportName;
  /** True if this environment has the transport and the proxy offers it. */
  reaches(proxy: ProxyInfo): boolean;
  /** Rejects with the reason of the failure, or with the signal's reason. */
  open(options: ChannelOptions): Promise<Channel>;
  /** Starts what the transport needs, for example a worker. Resolves when that has started, and never rejects. */
  started?(): Promise<void>;
  /** Unless the caller chose this transport, it is used only with proxies that no other one reaches. */
  readonly isStandIn?: boolean;
}

/** An unreliable, unordered path to a proxy for messages of up to 16,384 bytes. */
export interface Channel {
  /** Returns false when the transport did not take the message. The message is then lost, which is allowed. */
  send(bytes: Uint8Array): boolean;
  close(): void;
}

export interface ChannelOptions {
  proxy: ProxyInfo;
  /** The key of the session in the engine. */
  session: number;
  /** WebRTC: brings the offer to the proxy and resolves with its answer. */
  sendOffer(offerSdp: string): Promise<string>;
  /** Ends the attempt. The promise then rejects, and nothing stays open. */
  signal: AbortSignal;
  /**
   * The first message. Some transports can take it to the proxy while the channel opens, which saves a round trip. It
   * may be lost or come twice, since the protocol sends it again when the channel is open.
   */
  first?: Uint8Array | undefined;
  onMessage(bytes: Uint8Array): void;
  /** Called at most once, when an open channel is lost. It is not called after the caller's own `close()`. */
  onClosed(reason: string): void;
}

export interface EngineWorker {
  post(message: ToEngine, transfer: ArrayBuffer[]): void;
  onMessage(handler: (message: FromEngine) => void): void;
  /** The handler is called when the worker has ended. */
  onFailure(handler: (reason: string) => void): void;
  terminate(): void;
  /** Whether the program must not end while the worker works. Browsers need none. */
  hold?(isBusy: boolean): void;
}

/** SHA-256 of a body in pieces. After `update` returns, the caller may transfer the bytes away. */
export interface Hasher {
  update(bytes: Uint8Array): void;
  /** The digest of the bytes so far in lower-case hex, or null from a hasher that makes none. More bytes may follow. */
  digest(): Promise<string | null>;
  /** Frees the hasher. The last call. */
  discard(): void;
}

export interface Platform {
  /** For records: family and major version of the browser or runtime, e.g. `chrome/156`, and family of the system. */
  describe(): { agent?: string; os?: string };
  /** Milliseconds on a monotonic clock. */
  now(): number;
  /** Milliseconds since 1970. */
  epochMs(): number;
  randomUUID(): string;
  fetch(input: string, init?: RequestInit): Promise<Response>;
  /** Asks an origin directly. Default: by `fetch`. */
  readonly askOrigin?: AskOrigin;
  /** Runs `task` soon, in its own macrotask: after the tasks that are queued, but not after a throttled timer. */
  defer(task: () => void): void;
  /** The transports of this thread. */
  readonly transports: readonly Transport[];
  /** Whether the environment refuses new connections to a proxy with an open session. Never rejects. */
  isShut?(proxy: ProxyInfo): Promise<boolean>;
  /** The names of the transports in the engine's worker. */
  readonly engineTransports: readonly TransportName[];
  spawnEngine(): EngineWorker;
  /** The bytes of the WebAssembly codec. */
  loadCodec(): Promise<ArrayBuffer>;
  /** `inPieces` makes a hasher in the engine's worker. A platform without `createHasher` uses only that one. */
  createHasher?(inPieces: () => Hasher): Hasher;
  /** SHA-256 at once. A platform without it uses one in JavaScript. */
  hash?(bytes: Uint8Array): Uint8Array;
  /** Collects garbage. Called when no request is open. */
  collect?(): void;
}
