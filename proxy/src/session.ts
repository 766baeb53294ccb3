/**
 * Session: handles the frames of one client. It makes a delivery with a `Sender` for each request, lets deliveries take
 * turns, sends while the channel has room and the shaper allows it, and keeps their timers. It does not know its
 * transport: a `Channel` sends, and calls handle* with messages and reports. Rules: docs/spec/protocol.md §2 to §5.
 */
import type { Rejection } from "@tributary/contract";
import { encodeFrame, LIMITS, parseFrame, requestIdOf, Sender } from "@tributary/protocol";
import type { Codec, Frame, RequestFrame, Rng } from "@tributary/protocol";
import type { Channel, ChannelHandlers } from "./channel";
import type { ChunkListener, ChunkStore, Lease } from "./chunks";
import { SessionWork, type Client } from "./clients";
import type { ProxyCoder } from "./coder/coder";
import type { Counters } from "./counters";
import { EgressError } from "./egress/error";
import { hostForLog, type Log } from "./log";
import type { Feeder, Shaper } from "./shaper";
import type { SharedChunks } from "./sharing/shared-chunks";
import { budgetSpent, type Allowance } from "./token";

export interface SessionOptions {
  id: string;
  channel: Channel;
  codec: Codec;
  /** That of all sessions. By default, each request's symbols are coded anew. */
  coder?: Pick<ProxyCoder, "encoders" | "supplyFor" | "metrics">;
  rng: Rng;
  chunks: Pick<ChunkStore, "open">;
  /** For requests that share the reading. By default each is served from the whole chunk. */
  shared?: Pick<SharedChunks, "open">;
  shaper: Shaper;
  counters: Counters;
  log: Log;
  /** Whose session it is. */
  client: Client;
  /** Called once, when the session is over. */
  onClosed: () => void;
  idleMs?: number;
  /** Says how much a request with this token may get. By default every request is served. */
  admit?: (token: string | undefined) => Allowance | Rejection | undefined;
  /** The most sessions that use one token. */
  tokenSessionsMax?: () => number;
}

/**
 * Short answers do not wait for their turn. They may exceed a full queue by this much; after that a client that does
 * not read gets no answers.
 */
const ANSWER_OVERDRAFT_BYTES = 1024 * 1024;
/** A blocked channel is checked again after this time, in case its own report is lost. */
const BLOCKED_MS = 50;
const IDLE_MS = 60_000;
/** This many ended requests are remembered, because repeats may arrive late. */
const ENDED_REQUESTS_MAX = 64;

const FROM_CLIENT: ReadonlySet<Frame["type"]> = new Set<Frame["type"]>([
  "request",
  "feedback",
  "grant",
  "digestsHeard",
  "proofHeard",
]);

/** Memory for one message at a time. A channel copies a message before `send` returns. */
const scratch = new Uint8Array(LIMITS.dataFrameBytesMax);
const memoryFor = (byteCount: number): Uint8Array => scratch.subarray(0, byteCount);

/** The delivery of one chunk to the client. */
interface PacketDelivery {
  readonly sender: Sender;
  lease: Lease | undefined;
  readonly allowance: Allowance | undefined;
  /** When the request came. Undefined when its first data packet has left. */
  askedMs: number | undefined;
  /** Nothing more is sent, because a budget is used up. */
  isSpent: boolean;
}

export class Session implements Feeder, ChannelHandlers {
  readonly id: string;
  /** By request id. */
  readonly #deliveries = new Map<number, PacketDelivery>();
  /** In the order of their turns. */
  readonly #turns: PacketDelivery[] = [];
  /** The tokens that were shown in this session. */
  readonly #allowances = new Set<Allowance>();
  /** The packets sent for each ended request, by request id, the oldest first. */
  readonly #ended = new Map<number, number>();
  #timer: NodeJS.Timeout | undefined;
  #timerDueMs = Infinity;
  #blocked = false;
  #closed = false;
  #draining = false;
  #lastFrameMs = performance.now();
  readonly #idleMs: number;
  readonly #work = new SessionWork();

  readonly #options: SessionOptions;

  constructor(options: SessionOptions) {
    this.#options = options;

    this.id = options.id;
    this.#idleMs = options.idleMs ?? IDLE_MS;
    this.#arm();
  }

  get clientName(): string {
    return this.#options.client.name;
  }

  get activeRequests(): number {
    return this.#deliveries.size;
  }

  /** Since when no request runs and the client says nothing. Undefined while a request runs. */
  get idleSinceMs(): number | undefined {
    return this.#deliveries.size > 0 ? undefined : this.#lastFrameMs;
  }

  handleMessage(bytes: Uint8Array): void {
    if (this.#closed) return;
    const { client, counters } = this.#options;
    const nowMs = performance.now();
    const turn = client.mayWork(nowMs, this.#work);
    if (turn === "drop") return this.close("the client sends too much");
    if (turn === "later") return void counters.unreadMessages++;
    this.#lastFrameMs = nowMs;
    this.#read(bytes, nowMs);
    client.noteWork(performance.now() - nowMs, this.#work);
  }

  #read(bytes: Uint8Array, nowMs: number): void {
    const frame = parseFrame(bytes);
    if (frame.type === "parseError") {
      this.#options.counters.rejectedFrames++;
      const requestId = frame.requestId ?? requestIdOf(bytes);
      if (requestId !== undefined) this.#reject(requestId, frame.rejection);
    } else this.#handleFrame(frame, nowMs);
    this.#arm();
  }

  /** The queue of the channel is short again. */
  handleWritable(): void {
    if (this.#closed || !this.#blocked) return;
    this.#blocked = false;
    this.#options.shaper.wake(this);
  }

  /** The channel is gone. */
  handleClosed(reason: string): void {
    if (this.#closed) return;
    this.#closed = true;
    clearTimeout(this.#timer);
    this.#options.shaper.remove(this);
    for (const delivery of [...this.#deliveries.values()]) this.#end(delivery, "sessionClosed");
    for (const allowance of this.#allowances) allowance.sessions--;
    const { transport } = this.#options.channel;
    this.#options.log("sessionClosed", { session: this.id, transport, reason, ...this.#options.channel.stats() });
    this.#options.onClosed();
  }

  /** While `draining`, new requests are refused. */
  drain(draining = true): void {
    this.#draining = draining;
  }

  close(reason: string): void {
    if (this.#closed) return;
    this.handleClosed(reason);
    this.#options.channel.close(reason);
  }

  feed(budgetBytes: number, nowMs: number): number {
    let sentBytes = 0;
    while (!this.#closed && sentBytes < budgetBytes) {
      if (this.#options.channel.room <= 0) {
        this.#blocked = true;
        break;
      }
      const bytes = this.#nextMessage(nowMs);
      if (!bytes) break;
      this.#options.channel.send(bytes);
      this.#options.counters.sentPackets++;
      this.#options.client.noteSent(bytes.length);
      sentBytes += bytes.length;
    }
    for (const { sender, lease } of this.#turns) lease?.take(sender.stats.sentBytes, sender.wantedBytes);
    if (!this.#closed) this.#arm();
    return sentBytes;
  }

  #handleFrame(frame: Frame, nowMs: number): void {
    const delivery = "requestId" in frame ? this.#deliveries.get(frame.requestId) : undefined;
    if (frame.type === "ping") this.#answer({ type: "pong", token: frame.token });
    else if (frame.type === "pong") return;
    else if (!FROM_CLIENT.has(frame.type)) this.#options.counters.rejectedFrames++;
    else if (delivery) {
      delivery.sender.handleFrame(frame, nowMs);
      this.#settle(delivery);
      this.#wake();
    } else if (frame.type === "request") this.#handleRequest(frame, nowMs);
    else if (frame.type === "feedback" && frame.final) this.#answerEnd(frame.requestId);
  }

  #handleRequest(request: RequestFrame, nowMs: number): void {
    const { requestId } = request;
    if (this.#ended.has(requestId)) return this.#answerEnd(requestId);
    if (this.#draining)
      return this.#reject(requestId, { kind: "draining", message: "This proxy takes no new requests." });
    const limit = LIMITS.requestsPerSessionMax;
    if (this.#deliveries.size >= limit) {
      const message = `Too many requests at once in this session: got ${this.#deliveries.size + 1}, limit ${limit}.`;
      return this.#reject(requestId, { kind: "tooManyRequests", message, got: this.#deliveries.size + 1, limit });
    }
    const allowance = this.#admit(request.token);
    if (allowance && "kind" in allowance) return this.#reject(requestId, allowance);
    const { codec, coder, rng } = this.#options;
    const supplyFor = coder?.supplyFor(requestId, this.#onReady);
    const shared = { ...(coder ? { encoders: coder.encoders } : {}), supplyFor };
    const delivery: PacketDelivery = {
      sender: new Sender({ request, codec, ...shared, rng, nowMs, memoryFor }),
      askedMs: nowMs,
      lease: undefined,
      allowance,
      isSpent: false,
    };
    this.#deliveries.set(requestId, delivery);
    this.#turns.push(delivery);
    this.#fetchChunk(delivery, request);
    this.#wake();
  }

  #admit(token: string | undefined): Allowance | Rejection | undefined {
    const { client, admit, tokenSessionsMax } = this.#options;
    const refused = client.bytesRefusal();
    if (refused) return refused;
    const allowance = admit?.(token);
    if (!allowance || "kind" in allowance || this.#allowances.has(allowance)) return allowance;
    const [got, limit] = [allowance.sessions + 1, tokenSessionsMax?.() ?? Infinity];
    if (got > limit) {
      const message = `Too many sessions use this token: got ${got}, limit ${limit}.`;
      return { kind: "tooManySessions", message, got, limit };
    }
    allowance.sessions++;
    this.#allowances.add(allowance);
    return allowance;
  }

  #fetchChunk(delivery: PacketDelivery, request: RequestFrame): void {
    const fail = (rejection: Rejection): void => {
      this.#options.counters.errors.add(rejection.kind);
      this.#options.log(rejection.kind, { session: this.id, host: hostForLog(request.url) });
      delivery.sender.handleFailure(rejection);
      this.#wake();
    };
    try {
      const { url, range, cache, pageOrigin } = request;
      const wanted = { url, range, cache, pageOrigin, client: this.#options.client };
      const listener: ChunkListener = {
        onHead: (head, source) => {
          delivery.sender.handlePlan(head, source);
          this.#wake();
        },
        onGrowth: () => this.#wake(),
        onFailure: fail,
      };
      const { chunks, shared } = this.#options;
      const { mode, sharing, token, symbolBytes, generationSize } = request;
      delivery.lease =
        shared && sharing && mode === "coded"
          ? shared.open(wanted, { sharing, symbolBytes, generationSize, token }, listener)
          : chunks.open(wanted, listener);
    } catch (error) {
      if (!(error instanceof EgressError)) throw error;
      fail(error.rejection);
    }
  }

  readonly #onReady = (): void => {
    if (!this.#closed) this.#wake();
  };

  /** There may be more to send. If the channel is full, this waits for `handleWritable` or for BLOCKED_MS. */
  #wake(): void {
    if (this.#blocked && this.#options.channel.room <= 0) return;
    this.#options.shaper.wake(this);
  }

  /** The next message of the delivery whose turn it is. A delivery with nothing to send is skipped. */
  #nextMessage(nowMs: number): Uint8Array | undefined {
    for (let tried = this.#turns.length; tried > 0; tried--) {
      const delivery = this.#turns.shift()!;
      this.#turns.push(delivery);
      this.#checkBudget(delivery);
      const bytes = delivery.sender.pollTransmit(nowMs);
      this.#settle(delivery);
      if (!bytes) continue;
      if (delivery.allowance) delivery.allowance.leftBytes -= bytes.length;
      this.#noteResponse(delivery);
      return bytes;
    }
    return undefined;
  }

  /** Notes the time until the request's first data packet. */
  #noteResponse(delivery: PacketDelivery): void {
    if (delivery.askedMs === undefined || delivery.sender.stats.sentPackets === 0) return;
    this.#options.coder?.metrics.noteResponse(performance.now() - delivery.askedMs);
    delivery.askedMs = undefined;
  }

  /** Ends the request when its token or its address may get no more bytes. */
  #checkBudget(delivery: PacketDelivery): void {
    const { allowance, sender, isSpent } = delivery;
    if (isSpent) return;
    const spent = allowance && allowance.leftBytes <= 0 ? budgetSpent(allowance) : this.#options.client.bytesRefusal();
    if (!spent) return;
    delivery.isSpent = true;
    this.#options.counters.errors.add(spent.kind);
    this.#options.log(spent.kind, { session: this.id });
    sender.handleFailure(spent);
    delivery.lease?.close();
    delivery.lease = undefined;
  }

  #settle(delivery: PacketDelivery): void {
    if (delivery.sender.finished) this.#end(delivery, delivery.sender.outcome!);
  }

  #end(delivery: PacketDelivery, outcome: string): void {
    const { sender } = delivery;
    if (this.#deliveries.get(sender.requestId) !== delivery) return;
    this.#deliveries.delete(sender.requestId);
    this.#turns.splice(this.#turns.indexOf(delivery), 1);
    delivery.lease?.close();
    sender.free();
    this.#ended.set(sender.requestId, sender.stats.sentPackets);
    if (this.#ended.size > ENDED_REQUESTS_MAX) this.#ended.delete(this.#ended.keys().next().value!);
    this.#options.log("requestEnded", { session: this.id, request: sender.requestId, outcome, ...sender.stats });
  }

  #answerEnd(requestId: number): void {
    this.#answer({ type: "end", requestId, sentPackets: this.#ended.get(requestId) ?? 0 });
  }

  #reject(requestId: number, rejection: Rejection): void {
    this.#options.counters.errors.add(rejection.kind);
    this.#answer({ type: "reject", requestId, rejection });
  }

  #answer(frame: Frame): void {
    const { channel, counters, shaper } = this.#options;
    if (channel.room <= -ANSWER_OVERDRAFT_BYTES) return;
    const bytes = encodeFrame(frame);
    channel.send(bytes);
    counters.sentPackets++;
    shaper.debit(bytes.length);
  }

  /** Sets the timer to the earliest event: the timeout of a sender, the check of a full channel, or the idle limit. */
  #arm(): void {
    let dueMs = this.#deliveries.size === 0 ? this.#lastFrameMs + this.#idleMs : Infinity;
    for (const { sender } of this.#turns) dueMs = Math.min(dueMs, sender.pollTimeout() ?? Infinity);
    if (this.#blocked) dueMs = Math.min(dueMs, performance.now() + BLOCKED_MS);
    if (dueMs >= this.#timerDueMs || this.#closed) return;
    clearTimeout(this.#timer);
    this.#timerDueMs = dueMs;
    this.#timer = setTimeout(() => this.#handleTimer(), Math.max(1, Math.ceil(dueMs - performance.now())));
  }

  #handleTimer(): void {
    this.#timerDueMs = Infinity;
    const nowMs = performance.now();
    for (const delivery of [...this.#turns]) {
      if (nowMs < (delivery.sender.pollTimeout() ?? Infinity)) continue;
      delivery.sender.handleTimeout(nowMs);
      this.#settle(delivery);
    }
    if (this.#deliveries.size === 0 && nowMs - this.#lastFrameMs >= this.#idleMs) return this.close("idle");
    this.#blocked = false;
    if (this.#deliveries.size > 0) this.#options.shaper.wake(this);
    this.#arm();
  }
}
