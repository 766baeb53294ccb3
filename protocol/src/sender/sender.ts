/**
 * Sender: one accepted request at a proxy, from the request to the END. It decides what to send, not when the network
 * can take it: the caller paces. Pure: time arrives as `nowMs`, randomness as `rng`, and the body as a growing
 * `ChunkSource`. In: handle*. Out: pollTransmit, pollTimeout. Rules: protocol.md §5 and §6.
 */
import type { Rejection } from "@tributary/contract";
import type { Codec } from "../codec";
import { CodedSymbols, type CodedSymbol, type SymbolSupply } from "./coded-symbols";
import { digestAnnouncer, proofAnnouncer, type Announcer } from "./announcer";
import { EncoderPool } from "./encoder-pool";
import { encodeFrame, encodeData } from "../wire/frames";
import { geometryOf, isRejection, type Geometry } from "../geometry";
import { PLAN_REPEAT_PACKETS, TIMING } from "../limits";
import { GrantedSchedule } from "./granted-schedule";
import { Transit } from "./transit";
import { RandomSchedule, RarestGenerationSchedule, type Schedule } from "./schedule";
import type {
  ChunkSource,
  DigestFrame,
  FeedbackFrame,
  Frame,
  GrantFrame,
  PlanHead,
  ProofFrame,
  RequestFrame,
  Rng,
} from "../types";

export type SenderOutcome = "complete" | "aborted" | "failed" | "timedOut";

/** Gives a source of coded symbols for one body. */
export type SupplyFor = (geometry: Geometry, source: ChunkSource) => SymbolSupply;

interface Body {
  head: PlanHead;
  source: ChunkSource;
  geometry: Geometry;
  schedule: Schedule;
  coded: SymbolSupply;
  /** The digests or proofs that the client asked for, if the source has them. */
  announcer: Announcer<DigestFrame | ProofFrame> | undefined;
}

export class Sender {
  readonly requestId: number;
  readonly stats = { sentPackets: 0, sentBytes: 0, feedbackFrames: 0 };
  readonly #request: RequestFrame;
  readonly #encoders: EncoderPool;
  /** It is nobody else's. */
  readonly #ownEncoders: EncoderPool | undefined;
  readonly #rng: Rng;
  readonly #memoryFor: ((byteCount: number) => Uint8Array) | undefined;
  #body: Body | undefined;
  #failure: Rejection | undefined;
  #failureTries = 0;
  readonly #control: Frame[] = [];
  readonly #transit = new Transit();
  #clientHeard = false;
  #endQueued: SenderOutcome | undefined;
  #lastHeardMs: number;
  #lastSentMs: number;
  #lastFeedbackSequence = -1;
  #epoch = 0;
  #result: SenderOutcome | undefined;
  /** The generation of the next packet, whose coded symbol is being made. */
  #awaited: number | undefined;
  readonly #supplyFor: SupplyFor | undefined;

  /**
   * `memoryFor` gives the memory that a data frame is written to. By default each frame has memory of its own. Senders
   * with the same `encoders` share them. By default a sender has its own. `supplyFor` gives another source of coded
   * symbols. When a symbol that it was making is ready, the caller polls again.
   */
  constructor(options: {
    request: RequestFrame;
    codec: Codec;
    encoders?: EncoderPool;
    rng: Rng;
    nowMs: number;
    memoryFor?: (byteCount: number) => Uint8Array;
    supplyFor?: SupplyFor | undefined;
  }) {
    this.#request = options.request;
    this.requestId = options.request.requestId;
    if (!options.encoders) this.#ownEncoders = new EncoderPool(options.codec);
    this.#encoders = options.encoders ?? this.#ownEncoders!;
    this.#rng = options.rng;
    this.#memoryFor = options.memoryFor;
    this.#supplyFor = options.supplyFor;
    this.#lastHeardMs = options.nowMs;
    this.#lastSentMs = options.nowMs;
    this.#control.push({ type: "pending", requestId: this.requestId });
  }

  get finished(): boolean {
    return this.#result !== undefined;
  }
  get outcome(): SenderOutcome | undefined {
    return this.#result;
  }

  /** The sender has use for the first `wantedBytes` of the body. */
  get wantedBytes(): number {
    return this.#body?.schedule.wantedBytes ?? 0;
  }

  /** The origin has answered. `source` then grows by itself. */
  handlePlan(head: PlanHead, source: ChunkSource): void {
    if (this.#body || this.#failure || this.finished) return;
    const geometry = geometryOf(head.totalBytes, this.#request.symbolBytes, this.#request.generationSize);
    if (isRejection(geometry)) return this.handleFailure(geometry);
    const coded = this.#supplyFor?.(geometry, source) ?? new CodedSymbols(this.#encoders, this.#rng, geometry, source);
    const announcer = head.reads ? undefined : this.#announcerFor(geometry, source);
    this.#body = { head, source, geometry, schedule: this.#scheduleFor(geometry, head.reads), coded, announcer };
    this.#queuePlan();
  }

  #announcerFor(geometry: Geometry, source: ChunkSource): Announcer<DigestFrame | ProofFrame> | undefined {
    if (this.#request.proofs && source.proof) return proofAnnouncer(this.#request, source);
    return this.#request.digests && source.digest ? digestAnnouncer(this.requestId, geometry, source) : undefined;
  }

  #scheduleFor(geometry: Geometry, reads?: PlanHead["reads"]): Schedule {
    const { mode, windowPackets, share } = this.#request;
    if (mode === "uncoded-mutp") return new RandomSchedule(geometry, windowPackets, this.#rng);
    if (mode === "coded-mutp") return new RarestGenerationSchedule(geometry, windowPackets);
    return new GrantedSchedule(geometry, share!, windowPackets, reads);
  }

  /** The chunk cannot be delivered. REJECT is repeated until the client's final feedback. */
  handleFailure(rejection: Rejection): void {
    if (this.#failure || this.finished || this.#endQueued) return;
    this.#failure = rejection;
    this.#queueReject();
  }

  handleFrame(frame: Frame, nowMs: number): void {
    if (this.finished) return;
    if (frame.type === "request") {
      this.#lastHeardMs = nowMs;
      this.#body?.announcer?.handleAskedAgain();
      if (this.#failure) this.#queueReject();
      else if (this.#body) this.#queuePlan();
      else this.#control.push({ type: "pending", requestId: this.requestId });
    } else if (frame.type === "feedback") {
      this.#lastHeardMs = nowMs;
      this.#handleFeedback(frame, nowMs);
    } else if (frame.type === "grant") {
      this.#lastHeardMs = nowMs;
      this.#handleGrant(frame);
    } else if (frame.type === "digestsHeard" || frame.type === "proofHeard") {
      this.#lastHeardMs = nowMs;
      const isOurs = (frame.type === "proofHeard") === (this.#request.proofs === true);
      if (isOurs) this.#body?.announcer?.handleHeard(frame.digestCount);
    }
  }

  handleTimeout(nowMs: number): void {
    if (this.finished) return;
    if (nowMs - this.#lastHeardMs >= TIMING.clientSilenceMs) {
      this.#finish("timedOut");
      return;
    }
    if (this.#body) this.#transit.handleTimeout(this.#body.schedule, nowMs);
    this.#body?.announcer?.handleTimeout(nowMs);
    if (this.#control.length > 0 || nowMs - this.#lastSentMs < this.#quietMs()) return;
    if (!this.#failure) this.#control.push({ type: "pending", requestId: this.requestId });
    else if (this.#failureTries < TIMING.finalTries) this.#queueReject();
    else this.#finish("failed");
  }

  pollTimeout(): number | undefined {
    if (this.finished) return undefined;
    return Math.min(
      this.#lastHeardMs + TIMING.clientSilenceMs,
      this.#lastSentMs + this.#quietMs(),
      this.#transit.pollTimeout() ?? Infinity,
      (this.#failure ? undefined : this.#body?.announcer?.pollTimeout()) ?? Infinity,
    );
  }

  pollTransmit(nowMs: number): Uint8Array | undefined {
    if (this.finished) return undefined;
    const control = this.#control.shift();
    const bytes = control ? encodeFrame(control) : this.#nextOfBody(nowMs);
    if (!bytes) return undefined;
    this.#lastSentMs = nowMs;
    this.stats.sentBytes += bytes.length;
    if (control?.type === "end") this.#finish(this.#endQueued!);
    return bytes;
  }

  free(): void {
    this.#ownEncoders?.free();
  }

  #quietMs(): number {
    return this.#failure ? TIMING.finalRepeatMs : TIMING.pendingRepeatMs;
  }

  #queuePlan(): void {
    if (!this.#control.some((frame) => frame.type === "plan")) {
      this.#control.push({ type: "plan", requestId: this.requestId, head: this.#body!.head });
    }
  }

  #queueReject(): void {
    this.#failureTries++;
    this.#control.length = 0;
    this.#control.push({ type: "reject", requestId: this.requestId, rejection: this.#failure! });
  }

  #finish(outcome: SenderOutcome): void {
    this.#result = outcome;
    this.#control.length = 0;
    this.#transit.clear();
    this.free();
  }

  #handleFeedback(frame: FeedbackFrame, nowMs: number): void {
    this.stats.feedbackFrames++;
    this.#clientHeard = true;
    if (frame.final) {
      this.#endQueued = this.#failure ? "failed" : frame.reason === "complete" ? "complete" : "aborted";
      this.#control.length = 0;
      this.#control.push({ type: "end", requestId: this.requestId, sentPackets: this.stats.sentPackets });
      return;
    }
    if (!this.#body || this.#request.mode === "coded" || frame.epoch < this.#epoch) return;
    if (frame.epoch > this.#epoch) this.#startEpoch(this.#body, frame.epoch);
    this.#body.schedule.acknowledge(frame.received, frame.base);
    if (frame.feedbackSequence <= this.#lastFeedbackSequence) return;
    this.#lastFeedbackSequence = frame.feedbackSequence;
    this.#transit.handleReport(frame.nextSequence, this.#body.schedule, nowMs);
  }

  /** The client has taken back some of its reports. From here on its reports count from nothing. */
  #startEpoch(body: Body, epoch: number): void {
    this.#epoch = epoch;
    this.#transit.clear();
    this.#awaited = undefined;
    body.schedule = this.#scheduleFor(body.geometry);
  }

  #handleGrant(frame: GrantFrame): void {
    this.stats.feedbackFrames++;
    this.#clientHeard = true;
    if (!(this.#body?.schedule instanceof GrantedSchedule)) return;
    this.#body.schedule.grant(frame);
  }

  #nextOfBody(nowMs: number): Uint8Array | undefined {
    if (!this.#body || this.#failure) return undefined;
    const { announcer } = this.#body;
    const due = announcer?.poll(true, nowMs);
    if (due) return encodeFrame(due);
    const data = this.#nextData(this.#body, nowMs);
    if (data) {
      announcer?.handleDataSent();
      return data;
    }
    const idle = announcer?.poll(false, nowMs);
    return idle && encodeFrame(idle);
  }

  #nextData(body: Body, nowMs: number): Uint8Array | undefined {
    const { schedule } = body;
    const item = this.#awaited ?? schedule.next(body.source.availableBytes, body.source);
    if (item === undefined) return undefined;
    const symbol = this.#sourceSymbol(schedule, item);
    const coded = symbol === undefined && body.coded.next(item, (limit) => schedule.following(item, limit));
    this.#awaited = coded === undefined ? item : undefined;
    if (coded === undefined) return undefined;
    const sequence = this.stats.sentPackets++;
    if (this.#request.mode !== "coded") this.#transit.add({ sequence, item, sentMs: nowMs });
    const sent = this.stats.sentPackets;
    if (!this.#clientHeard && sent >= PLAN_REPEAT_PACKETS && (sent & (sent - 1)) === 0) this.#queuePlan();
    const grant = schedule instanceof GrantedSchedule ? schedule.lastGrantSequence & 0xff : 0;
    return coded ? this.#codedData(sequence, item, coded, grant) : this.#sourceData(sequence, symbol!, grant);
  }

  /** The source symbol of the chunk that the packet carries; undefined if it is a coded one. */
  #sourceSymbol(schedule: Schedule, item: number): number | undefined {
    if (this.#request.mode === "uncoded-mutp") return item;
    if (!(schedule instanceof GrantedSchedule) || schedule.symbolIndex === undefined) return undefined;
    return item * this.#request.generationSize + schedule.symbolIndex;
  }

  #sourceData(sequence: number, symbol: number, grant: number): Uint8Array {
    const { geometry, source } = this.#body!;
    const start = symbol * geometry.symbolBytes;
    const end = Math.min(start + geometry.symbolBytes, geometry.totalBytes);
    let payload = source.view(start, end);
    if (payload.length < geometry.symbolBytes) {
      const padded = new Uint8Array(geometry.symbolBytes);
      padded.set(payload);
      payload = padded;
    }
    const generationIndex = Math.floor(symbol / geometry.generationSize);
    const coding = { kind: "systematic", symbolIndex: symbol % geometry.generationSize, grant } as const;
    return encodeData(
      { type: "data", requestId: this.requestId, sequence, generationIndex, coding, payload },
      this.#memoryFor,
    );
  }

  #codedData(sequence: number, generationIndex: number, { seed, payload }: CodedSymbol, grant: number): Uint8Array {
    const coding = { kind: "seed", seed, grant } as const;
    return encodeData(
      { type: "data", requestId: this.requestId, sequence, generationIndex, coding, payload },
      this.#memoryFor,
    );
  }
}
