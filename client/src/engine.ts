/**
 * The download engine: owns the Receivers and their codec, and turns frames into bytes in order. It is pure: time
 * arrives as `nowMs`, messages come in by `handle` and leave by `post`. worker-shell.ts runs it in a worker and calls
 * `handleTimeout` at `pollTimeout()`.
 */
import type { Rejection } from "@tributary/contract";
import { sha256 } from "@noble/hashes/sha2";
import {
  encodeFrame,
  farewell,
  LIMITS,
  parseFrame,
  Receiver,
  requestIdOf,
  type Codec,
  type KnownPath,
  type ReceiverEvent,
  type ReceiverStats,
} from "@tributary/protocol";
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
import { hexOf } from "@tributary/contract/tree";
import { piecesOf } from "./bytes";

const STATS_EVERY_MS = 100;
/** A longer frame is not a REJECT. Symbols of the default size are longer, so few frames are parsed twice. */
const REJECT_BYTES_MAX = 800;
/** A check sends this many pings, because packets may be lost, and waits this long for an answer to each. */
const CHECK_PINGS = 4;
const CHECK_PING_MS = 500;

interface Request {
  readonly requestId: number;
  readonly sessions: readonly number[];
  readonly receiver: Receiver;
  readonly chunkBytesMax: number;
  statsDueMs: number;
  statsDirty: boolean;
  /** True when the outcome is posted. */
  settled: boolean;
  readonly trace: RequestTrace | undefined;
  readonly startMs: number;
}

/** The messages for the engine. The worker's shell handles the messages about channels. */
export type EngineMessage = Exclude<ToEngine, { type: "open" | "closeChannel" | "answer" }>;

/** SHA-256. */
export type Hash = (bytes: Uint8Array) => Uint8Array;

export type Post = (message: FromEngine, transfer: ArrayBuffer[]) => void;

export class Engine {
  readonly #requests = new Map<number, Request>();
  readonly #hashes = new Map<number, ReturnType<typeof sha256.create>>();
  readonly #outgoing = new Map<number, Uint8Array[]>();
  /** By session: the request that the session took to its proxy while it opened. */
  readonly #askedFirst = new Map<number, number>();
  /**
   * By session: when the engine sent the first ping, the round trip that the answer showed, and the request that the
   * session took along.
   */
  readonly #ways = new Map<number, { pingMs: number; rttMs?: number; requestId?: number | undefined }>();
  /** By session that is being checked: the number of pings sent, and when the next step is due. */
  readonly #checks = new Map<number, { pings: number; dueMs: number }>();

  readonly #codec: Codec;
  readonly #post: Post;
  readonly #hash: Hash;

  /** `hash` checks the bytes of the proxies. It is the environment's fastest one that is synchronous. */
  constructor(codec: Codec, post: Post, hash: Hash = sha256) {
    this.#codec = codec;
    this.#post = post;
    this.#hash = hash;
  }

  /** The number of requests that are not closed. */
  get openCount(): number {
    return this.#requests.size;
  }

  handle(message: EngineMessage, nowMs: number): void {
    switch (message.type) {
      case "start":
        this.#start(message.requestId, message.sessions, message.options, nowMs);
        break;
      case "ready":
        this.#with(message.requestId, nowMs, (request) => {
          request.receiver.handleProxyReady(message.proxyIndex, nowMs);
          // The counts show that the proxy is back, even if it sends nothing.
          request.statsDirty = true;
        });
        break;
      case "lost":
        this.#with(message.requestId, nowMs, ({ receiver }) =>
          receiver.handleProxyLost(message.proxyIndex, message.reason, nowMs, message.away),
        );
        break;
      case "frames":
        this.#handleFrames([[message.session, unpack(message.frames)]], nowMs);
        break;
      case "check":
        if (!this.#checks.has(message.session)) this.#check(message.session, 1, nowMs);
        break;
      case "abort":
        this.#with(message.requestId, nowMs, (request) => {
          request.settled = true;
          request.receiver.abort(nowMs);
        });
        break;
      default:
        this.#handleHash(message);
    }
    this.#flush();
  }

  /** Takes frames from the worker's own channels, by session. */
  receive(bySession: Iterable<[number, Iterable<Uint8Array>]>, nowMs: number): void {
    this.#handleFrames(bySession, nowMs);
    this.#flush();
  }

  /** Returns the first request for a session that opens. Undefined if no request waits for its proxy. */
  firstOf(session: number, nowMs: number): Uint8Array | undefined {
    this.#ways.delete(session);
    for (const { requestId, sessions, receiver } of this.#requests.values()) {
      const first = receiver.firstRequest(sessions.indexOf(session), nowMs);
      if (!first) continue;
      this.#askedFirst.set(session, requestId);
      return first;
    }
    return undefined;
  }

  /**
   * Handles a session that has opened. If it took a request along and that request is decided, the engine tells the
   * proxy to stop. A ping measures the round trip: no answer to a request that was taken along tells it.
   */
  handleOpened(session: number, nowMs: number): void {
    const requestId = this.#askedFirst.get(session);
    this.#askedFirst.delete(session);
    this.#checks.delete(session);
    this.#ways.set(session, { pingMs: nowMs, requestId });
    this.#queue(session, encodeFrame({ type: "ping", token: session }));
    if (requestId !== undefined && this.#requests.get(requestId)?.receiver.decided !== false)
      this.#queue(session, farewell(requestId));
    this.#flush();
  }

  /**
   * Handles the end of a channel that had brought messages. Another channel of the session stays. The receiver asks
   * again over it for the request that the lost channel took along.
   */
  handleChannelGone(session: number, nowMs: number): void {
    for (const { sessions, receiver } of this.#requests.values())
      receiver.handleFirstGone(sessions.indexOf(session), nowMs);
  }

  handleTimeout(nowMs: number): void {
    for (const { requestId } of [...this.#requests.values()]) {
      this.#with(
        requestId,
        nowMs,
        (request) => (request.statsDirty = request.receiver.handleTimeout(nowMs) || request.statsDirty),
      );
    }
    for (const [session, { pings, dueMs }] of [...this.#checks])
      if (dueMs <= nowMs) this.#check(session, pings + 1, nowMs);
    this.#flush();
  }

  /** The time in ms, on the clock of `nowMs`, at which `handleTimeout` is due. */
  pollTimeout(): number | undefined {
    let at = Infinity;
    for (const { dueMs } of this.#checks.values()) at = Math.min(at, dueMs);
    for (const { receiver, statsDirty, statsDueMs } of this.#requests.values()) {
      at = Math.min(at, receiver.pollTimeout() ?? Infinity, statsDirty ? statsDueMs : Infinity);
    }
    return at === Infinity ? undefined : at;
  }

  #start(requestId: number, sessions: readonly number[], options: StartOptions, nowMs: number): void {
    let receiver: Receiver;
    const { traced, chunkBytesMax = LIMITS.chunkBytesMax, ...rest } = options;
    const known = sessions.map((session, index) => options.known?.[index] ?? this.#wayOf(session));
    const trace: RequestTrace | undefined = traced ? { packets: [], feedback: [] } : undefined;
    try {
      receiver = new Receiver({
        ...rest,
        known,
        renewsSessions: true,
        requestId,
        proxyCount: sessions.length,
        codec: this.#codec,
        hash: this.#hash,
        nowMs,
        ...(trace
          ? { onPacket: (atMs, ...packet) => void trace.packets.push([msBetween(nowMs, atMs), ...packet]) }
          : {}),
      });
    } catch (error) {
      const stats = {
        deliveredBytes: 0,
        grossBytes: 0,
        rank: 0,
        symbolCount: 0,
        generationCount: 0,
        feedbackFrames: 0,
        agreeingOperators: 0,
        proxies: [],
      };
      this.#post({ type: "failed", requestId, rejection: { kind: "requestInvalid", message: messageOf(error) } }, []);
      this.#post({ type: "closed", requestId, stats }, []);
      return;
    }
    const request = {
      requestId,
      sessions,
      receiver,
      chunkBytesMax,
      statsDueMs: nowMs + STATS_EVERY_MS,
      statsDirty: false,
      settled: false,
      trace,
      startMs: nowMs,
    };
    this.#requests.set(requestId, request);
    this.#pump(request, nowMs);
  }

  /** Runs `step` on an open request and posts the results. If it throws, only this request ends. */
  #with(requestId: number, nowMs: number, step: (request: Request) => unknown): void {
    const request = this.#requests.get(requestId);
    if (!request) return;
    try {
      step(request);
      this.#pump(request, nowMs);
    } catch (error) {
      this.#settle(request, { kind: "engineError", message: messageOf(error) });
      this.#close(request);
    }
  }

  /**
   * Counts all received frames before it answers any of them. Otherwise a session could seem silent while its frames
   * wait here.
   */
  #handleFrames(bySession: Iterable<[number, Iterable<Uint8Array>]>, nowMs: number): void {
    const byRequest = new Map<number, [number, Uint8Array][]>();
    for (const [session, frames] of bySession) {
      this.#checks.delete(session);
      for (const bytes of frames) {
        const requestId = this.#requestOf(session, bytes);
        if (requestId === undefined) this.#handlePing(session, bytes, nowMs);
        else if (!byRequest.get(requestId)?.push([session, bytes])) byRequest.set(requestId, [[session, bytes]]);
      }
    }
    for (const [requestId, batch] of byRequest) {
      this.#with(requestId, nowMs, (request) => {
        request.statsDirty = true;
        for (const [session, bytes] of batch)
          this.#handleFrame(request, request.sessions.indexOf(session), bytes, nowMs);
      });
    }
  }

  #handleFrame(request: Request, proxyIndex: number, bytes: Uint8Array, nowMs: number): void {
    const rejection = request.settled || bytes.length > REJECT_BYTES_MAX ? undefined : rejectionOf(bytes);
    const unfounded = rejection && unfoundedOf(rejection, request.chunkBytesMax);
    request.receiver.handleFrame(
      proxyIndex,
      unfounded ? encodeFrame({ type: "reject", requestId: request.requestId, rejection: unfounded }) : bytes,
      nowMs,
    );
  }

  /**
   * Returns the request that the frame belongs to. An unreadable frame belongs to a request that uses its session, and
   * counts there as rejected. A frame of a closed request belongs to no request.
   */
  #requestOf(session: number, bytes: Uint8Array): number | undefined {
    const requestId = requestIdOf(bytes);
    if (requestId !== undefined && this.#requests.get(requestId)?.sessions.includes(session)) return requestId;
    if (parseFrame(bytes).type !== "parseError") return undefined;
    for (const request of this.#requests.values()) if (request.sessions.includes(session)) return request.requestId;
    return undefined;
  }

  /** Sends ping number `pings` of a check, or ends the check after the last one. */
  #check(session: number, pings: number, nowMs: number): void {
    if (pings > CHECK_PINGS) {
      this.#checks.delete(session);
      return this.#post({ type: "silent", session }, []);
    }
    this.#checks.set(session, { pings, dueMs: nowMs + CHECK_PING_MS });
    this.#queue(session, encodeFrame({ type: "ping", token: session }));
  }

  #handlePing(session: number, bytes: Uint8Array, nowMs: number): void {
    const frame = parseFrame(bytes);
    if (frame.type === "ping") this.#queue(session, encodeFrame({ type: "pong", token: frame.token }));
    const way = frame.type === "pong" ? this.#ways.get(session) : undefined;
    if (way) way.rttMs ??= nowMs - way.pingMs;
  }

  #wayOf(session: number): KnownPath | undefined {
    const rttMs = this.#ways.get(session)?.rttMs;
    return rttMs === undefined ? undefined : { rttMs };
  }

  /** The receiver's counts, with the ping's round trip for a proxy whose session took the request along. */
  #statsOf({ requestId, receiver, sessions }: Request): ReceiverStats {
    const stats = receiver.stats();
    stats.proxies.forEach((proxy, index) => {
      const way = this.#ways.get(sessions[index]!);
      if (way?.requestId === requestId) proxy.rttMs ??= way.rttMs ?? null;
    });
    return stats;
  }

  #pump(request: Request, nowMs: number): void {
    const { receiver } = request;
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) this.#postEvent(request, event);
    for (let out = receiver.pollTransmit(nowMs); out; out = receiver.pollTransmit(nowMs)) {
      if (request.trace && /feedback|grant/.test(parseFrame(out.bytes).type))
        request.trace.feedback.push([msBetween(request.startMs, nowMs), out.proxyIndex]);
      this.#queue(request.sessions[out.proxyIndex]!, out.bytes);
    }
    if (receiver.finished) this.#close(request);
    else if (request.statsDirty && nowMs >= request.statsDueMs) {
      request.statsDirty = false;
      request.statsDueMs = nowMs + STATS_EVERY_MS;
      this.#post({ type: "stats", requestId: request.requestId, stats: this.#statsOf(request) }, []);
    }
  }

  #postEvent(request: Request, event: ReceiverEvent): void {
    const { requestId } = request;
    if (event.kind === "conviction") this.#post({ type: "conviction", requestId, evidence: event.evidence }, []);
    else if (event.kind === "head") this.#post({ type: "head", requestId, head: event.head }, []);
    else if (event.kind === "bytes") {
      for (const bytes of piecesOf(event.bytes)) this.#post({ type: "bytes", requestId, bytes }, [bufferOf(bytes)]);
    } else this.#settle(request, event.kind === "failed" ? event.rejection : undefined);
  }

  #settle(request: Request, rejection: Rejection | undefined): void {
    if (request.settled) return;
    request.settled = true;
    const { requestId } = request;
    this.#post({ type: "stats", requestId, stats: this.#statsOf(request) }, []);
    this.#post(rejection ? { type: "failed", requestId, rejection } : { type: "complete", requestId }, []);
  }

  #close(request: Request): void {
    this.#requests.delete(request.requestId);
    if (request.trace) this.#post({ type: "trace", requestId: request.requestId, trace: request.trace }, []);
    this.#post({ type: "closed", requestId: request.requestId, stats: this.#statsOf(request) }, []);
    request.receiver.free();
  }

  #queue(session: number, bytes: Uint8Array): void {
    const frames = this.#outgoing.get(session);
    if (frames) frames.push(bytes);
    else this.#outgoing.set(session, [bytes]);
  }

  #flush(): void {
    for (const [session, waiting] of this.#outgoing) {
      const frames = pack(waiting);
      this.#post({ type: "send", session, frames }, [bufferOf(frames.bytes)]);
    }
    this.#outgoing.clear();
  }

  #handleHash(message: EngineMessage): void {
    if (message.type === "hash") {
      let hash = this.#hashes.get(message.hashId);
      if (!hash) this.#hashes.set(message.hashId, (hash = sha256.create()));
      hash.update(message.bytes);
      release(message.bytes);
    } else if (message.type === "digest") {
      const hex = hexOf((this.#hashes.get(message.hashId)?.clone() ?? sha256.create()).digest());
      this.#post({ type: "digested", hashId: message.hashId, hex }, []);
    } else if (message.type === "discard") this.#hashes.delete(message.hashId);
  }
}

/** Rounded to 0.01 ms, and at least 0. */
const msBetween = (startMs: number, nowMs: number): number => Math.max(0, Math.round((nowMs - startMs) * 100) / 100);

function rejectionOf(bytes: Uint8Array): Rejection | undefined {
  const frame = parseFrame(bytes);
  return frame.type === "reject" ? frame.rejection : undefined;
}

/**
 * Checks a proxy's claim that the chunk is too large. If the claimed size is within the limit, or missing, the claim is
 * the proxy's own fault. Returns the rejection for that fault.
 */
function unfoundedOf({ kind, got }: Rejection, chunkBytesMax: number): Rejection | undefined {
  if (kind !== "chunkTooLarge" || (Number.isSafeInteger(got) && got! > chunkBytesMax)) return undefined;
  return {
    kind: "proxyFailed",
    message: `The proxy found a chunk too large that is not: got ${got} bytes, limit ${chunkBytesMax}.`,
  };
}

/**
 * Frees the memory of a buffer at once, if the JavaScript engine can. An idle worker collects garbage late.
 */
function release({ buffer }: Uint8Array): void {
  (buffer as { transfer?: (bytes: number) => unknown }).transfer?.(0);
}
