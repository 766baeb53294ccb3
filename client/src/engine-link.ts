/**
 * The main thread's side of the engine. It starts the worker on first use, batches incoming packets, and passes the
 * engine's messages to the handlers of each request and of each channel in the worker. If the worker dies, its requests
 * fail, and the next request gets a new worker. This file decides nothing about downloads.
 */
import type { Rejection } from "@tributary/contract";
import type { TransportName } from "@tributary/contract/schema";
import type { PlanHead, ReceiverStats, ShownEvidence } from "@tributary/protocol";
import { messageOf } from "./errors";
import {
  bufferOf,
  pack,
  unpack,
  type FromEngine,
  type RequestTrace,
  type StartOptions,
  type ToEngine,
} from "./messages";
import type { Channel, ChannelOptions, EngineWorker, Hasher, Platform, Transport } from "./platform";

/** A batch of this many bytes is posted at once. A smaller batch is posted at the end of the macrotask. */
const BATCH_BYTES = 65_536;

export interface RequestHandlers {
  onHead(head: PlanHead): void;
  onBytes(bytes: Uint8Array): void;
  onStats(stats: ReceiverStats): void;
  /** A proxy sent a false packet of an object. */
  onConviction?(evidence: ShownEvidence): void;
  onComplete(): void;
  onFailed(rejection: Rejection): void;
  /** Called once for a traced request, before `onClosed`. */
  onTrace?(trace: RequestTrace): void;
  /** The last call for a request. */
  onClosed(): void;
}

export interface SessionHandlers {
  send(session: number, bytes: Uint8Array): void;
  /** The proxy did not answer a check. */
  silent(session: number): void;
}

/** A channel in the worker. It exists here from the moment that it is asked for. */
interface WorkerChannel {
  sendOffer(offer: string): void;
  opened(): void;
  closed(reason: string): void;
}

interface Pending<T> {
  resolve(value: T): void;
  reject(error: Error): void;
}

export class EngineLink {
  /** The name of the codec's engine. Undefined until a worker reports it. */
  engineName: string | undefined;
  #worker: EngineWorker | undefined;
  /** Resolves when the worker has started or ended. */
  #started = Promise.resolve();
  #noteStarted = (): void => undefined;
  readonly #requests = new Map<number, RequestHandlers>();
  readonly #digests = new Map<number, Pending<string>>();
  /** The messages that wait to be posted, by session. */
  readonly #batches = new Map<number, Uint8Array[]>();
  #batchedBytes = 0;
  #flushQueued = false;
  /** Request ids begin at random, so that a proxy tells this client's downloads from those of others. */
  #lastRequestId = Math.floor(Math.random() * 0xffff_ffff);
  #lastHashId = 0;
  readonly #channels = new Map<number, WorkerChannel>();
  #lastChannelId = 0;

  readonly #platform: Platform;
  readonly #sessions: SessionHandlers;

  constructor(platform: Platform, sessions: SessionHandlers) {
    this.#platform = platform;
    this.#sessions = sessions;
  }

  /** Starts the worker before it is needed, so that its codec is ready. Resolves when it has started or ended. */
  prepare(): Promise<void> {
    this.#worker ??= this.#spawn();
    return this.#started;
  }

  /** Starts a request. Each of `sessions` takes part when `ready` is called. Returns an id, unique in this client. */
  start(sessions: number[], options: StartOptions, handlers: RequestHandlers): number {
    const requestId = (this.#lastRequestId = (this.#lastRequestId % 0xffff_ffff) + 1);
    this.#requests.set(requestId, handlers);
    this.#post({ type: "start", requestId, sessions, options });
    this.#hold();
    return requestId;
  }

  ready(requestId: number, proxyIndex: number): void {
    if (this.#requests.has(requestId)) this.#post({ type: "ready", requestId, proxyIndex });
  }

  lost(requestId: number, proxyIndex: number, reason: string, away = false): void {
    this.#flush();
    if (this.#requests.has(requestId)) this.#post({ type: "lost", requestId, proxyIndex, reason, away });
  }

  /** Asks the proxy of an open session whether it is there. Only a proxy that does not answer is reported. */
  check(session: number): void {
    if (this.#worker) this.#post({ type: "check", session });
  }

  /** Aborts a request. Its handlers get only `onStats`, `onTrace` and `onClosed` after this. */
  abort(requestId: number): void {
    if (this.#requests.has(requestId)) this.#post({ type: "abort", requestId });
  }

  /** Takes a message from a session. The bytes must not change before the macrotask ends. */
  receive(session: number, bytes: Uint8Array): void {
    const batch = this.#batches.get(session);
    if (batch) batch.push(bytes);
    else this.#batches.set(session, [bytes]);
    this.#batchedBytes += bytes.length;
    if (this.#batchedBytes >= BATCH_BYTES) this.#flush();
    else if (!this.#flushQueued) {
      this.#flushQueued = true;
      this.#platform.defer(() => {
        this.#flushQueued = false;
        this.#flush();
      });
    }
  }

  /** Makes a transport whose channels are in the worker. */
  transport(name: TransportName, reaches: Transport["reaches"]): Transport {
    return { name, reaches, started: () => this.prepare(), open: (options) => this.#openChannel(name, options) };
  }

  #openChannel(
    transport: TransportName,
    { proxy, session, sendOffer, signal, onClosed }: ChannelOptions,
  ): Promise<Channel> {
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const id = ++this.#lastChannelId;
    return new Promise((resolve, reject) => {
      let isOpen = false;
      const end = (): void => {
        this.#channels.delete(id);
        signal.removeEventListener("abort", onAbort);
      };
      const close = (): void => {
        end();
        if (this.#worker) this.#post({ type: "closeChannel", channel: id });
      };
      const fail = (reason: unknown): void => {
        if (isOpen || !this.#channels.has(id)) return;
        close();
        reject(reason as Error);
      };
      const onAbort = (): void => fail(signal.reason);
      signal.addEventListener("abort", onAbort);
      this.#channels.set(id, {
        sendOffer: (offer) =>
          void sendOffer(offer).then(
            (sdp) => this.#channels.has(id) && this.#post({ type: "answer", channel: id, sdp }),
            fail,
          ),
        opened: () => {
          isOpen = true;
          resolve({ send: () => false, close });
        },
        closed: (reason) => {
          end();
          if (isOpen) onClosed(reason);
          else reject(new Error(reason));
        },
      });
      this.#post({ type: "open", channel: id, session, transport, proxy });
    });
  }

  /** Makes a hasher that works in the engine's worker. If the worker ends, the hashed bytes and the digest are lost. */
  createHasher(): Hasher {
    const hashId = ++this.#lastHashId;
    let worker: EngineWorker | undefined;
    const isLost = (): boolean => worker !== undefined && worker !== this.#worker;
    return {
      update: (bytes) => {
        if (isLost()) return;
        const copy = bytes.slice();
        this.#post({ type: "hash", hashId, bytes: copy }, [bufferOf(copy)]);
        worker = this.#worker;
      },
      digest: () =>
        new Promise((resolve, reject) => {
          if (isLost()) return reject(new Error("The engine's worker has ended, and what it had hashed with it."));
          this.#digests.set(hashId, { resolve, reject });
          this.#post({ type: "digest", hashId });
          this.#hold();
        }),
      discard: () => this.#worker && !isLost() && this.#post({ type: "discard", hashId }),
    };
  }

  close(): void {
    this.#fail("The client was closed.");
  }

  #flush(): void {
    for (const [session, batch] of this.#worker ? this.#batches : []) {
      const frames = pack(batch);
      this.#post({ type: "frames", session, frames }, [bufferOf(frames.bytes)]);
    }
    this.#batches.clear();
    this.#batchedBytes = 0;
  }

  #post(message: ToEngine, transfer: ArrayBuffer[] = []): void {
    void this.prepare();
    this.#worker!.post(message, transfer);
  }

  #hold(): void {
    this.#worker?.hold?.(this.#requests.size + this.#digests.size > 0);
  }

  #spawn(): EngineWorker {
    const worker = this.#platform.spawnEngine();
    this.#started = new Promise((resolve) => (this.#noteStarted = resolve));
    const failed = (reason: string): void => {
      if (this.#worker === worker) this.#fail(reason);
    };
    worker.onMessage((message) => {
      this.#noteStarted();
      if (message.type === "initFailed") failed(`The codec could not be made: ${message.message}`);
      else if (this.#worker === worker) this.#dispatch(message);
    });
    worker.onFailure(failed);
    this.#platform.loadCodec().then(
      (wasm) => worker.post({ type: "init", wasm }, [wasm]),
      (error: unknown) => failed(`The codec could not be loaded: ${messageOf(error)}`),
    );
    return worker;
  }

  #fail(reason: string): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    this.#noteStarted();
    const requests = [...this.#requests.values()];
    this.#requests.clear();
    for (const handlers of requests) {
      handlers.onFailed({ kind: "engineFailed", message: reason });
      handlers.onClosed();
    }
    for (const channel of [...this.#channels.values()]) channel.closed(reason);
    for (const digest of this.#digests.values()) digest.reject(new Error(reason));
    this.#digests.clear();
  }

  #dispatch(message: FromEngine): void {
    if (message.type === "send") {
      for (const bytes of unpack(message.frames)) this.#sessions.send(message.session, bytes);
    } else if (message.type === "digested") {
      this.#digests.get(message.hashId)?.resolve(message.hex);
      this.#digests.delete(message.hashId);
      this.#hold();
    } else if (message.type === "sendOffer") this.#channels.get(message.channel)?.sendOffer(message.offer);
    else if (message.type === "opened") this.#channels.get(message.channel)?.opened();
    else if (message.type === "channelClosed") this.#channels.get(message.channel)?.closed(message.reason);
    else if (message.type === "silent") this.#sessions.silent(message.session);
    else if (message.type === "inited") this.engineName = message.engine;
    else if ("requestId" in message) this.#dispatchToRequest(message);
  }

  #dispatchToRequest(message: Extract<FromEngine, { requestId: number }>): void {
    const handlers = this.#requests.get(message.requestId);
    if (!handlers) return;
    switch (message.type) {
      case "head":
        return handlers.onHead(message.head);
      case "bytes":
        return handlers.onBytes(message.bytes);
      case "stats":
        return handlers.onStats(message.stats);
      case "conviction":
        return handlers.onConviction?.(message.evidence);
      case "complete":
        return handlers.onComplete();
      case "failed":
        return handlers.onFailed(message.rejection);
      case "trace":
        return handlers.onTrace?.(message.trace);
      case "closed":
        this.#requests.delete(message.requestId);
        this.#hold();
        handlers.onStats(message.stats);
        handlers.onClosed();
        if (this.#requests.size === 0) this.#platform.collect?.();
    }
  }
}
