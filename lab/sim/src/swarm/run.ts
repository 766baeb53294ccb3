/**
 * One run of the swarm: the protocol's own Receiver and Senders in the world that draw.ts drew. It returns each broken
 * rule as a text and throws nothing. The rules: all delivered bytes are of one body; the download ends exactly once, as
 * complete, failed or aborted; it fails only when no honest proxy can be reached; no honest proxy is blamed; all
 * packets are accounted for; no coder, packet or timer is left at the end; nothing throws; the download is complete
 * within `boundMs` (bound.ts). Where proxies contradict each other and nobody vouches for the digests, it may fail, and
 * it may believe any of them.
 */
import {
  encodeFrame,
  geometryOf,
  parseFrame,
  Receiver,
  Sender,
  TIMING,
  type Codec,
  type Geometry,
  type RequestFrame,
} from "@tributary/protocol";
import { Network, STREAM, type NetworkUser } from "../network";
import { Random } from "../random";
import { contentOf, sha256 } from "../content";
import { feedFromOrigin } from "../origin";
import { sharedOf } from "../shared-source";
import { boundMs, isSteady } from "./bound";
import { CountingCodec } from "./counting-codec";
import { isContested, type ProxyDraw, type SwarmDraw } from "./draw";
import { garble, MaliciousProxy } from "./malice";
import { RogueClient } from "./rogue-client";
import { headOf, objectWith } from "./object";

const REQUEST_ID = 1;
/** Frames of a proxy that carry no data. */
const CONTROL_FRAMES = new Set(["pending", "plan", "reject", "end", "digest", "proof"]);
/** The bodies of a proxy that answers with another object, or with another object's proofs. */
const OTHER_OBJECT = 4;
const FALSE_ROOT = 5;
/** Bodies differ from the original in this many bytes. */
const MARK_BYTES = 3;
const TIMER_STEP_MS = 0.01;
const ORIGIN_STEP_MS = 5;
/** Chunks differ: each begins at one of this many places in the same random bytes. */
const CONTENTS = 1000;
/** A sender may send while the serializer has fewer packets than this. */
const QUEUED_PACKETS = 2;
/** A run with more events than this would never end. */
const EVENTS_MAX = 3_000_000;
/** A timer that is due at once this many times in a row makes no progress. */
const SPINS_MAX = 300;
/** After the bound, senders may wait this long for a silent client. */
const AFTERWARDS_MS = TIMING.clientSilenceMs + 5000;
const USER_STREAM = {
  sender: STREAM.user,
  malice: STREAM.user + 100,
  way: STREAM.user + 101,
  rogue: STREAM.user + 102,
} as const;

interface Side {
  readonly draw: ProxyDraw;
  readonly malice: MaliciousProxy | undefined;
  /** Decides which messages are corrupted on the way. */
  readonly way: Random;
  sender: Sender | undefined;
  /** Counts sessions. Messages of an old session are dropped. */
  session: number;
  /** True when the client believes that it has a session. */
  up: boolean;
  timerMs: number;
  firedMs: number;
  lastArrivalMs: number;
  /** Messages that the receiver must count: data, and anything that is no valid frame of this request. */
  handed: number;
  originFailed: boolean;
}

export interface SwarmOutcome {
  end: "complete" | "failed" | "aborted" | "none";
  endMs: number;
  /** When the first bytes were handed on. */
  firstBytesMs: number;
  boundMs: number;
  excluded: number;
  events: number;
  eventHash: string;
  /** Broken rules; empty after a good run. */
  wrongs: string[];
}

export function runSwarm(draw: SwarmDraw, codec: Codec): SwarmOutcome {
  const run = new SwarmRun(draw, codec);
  try {
    run.play();
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    run.wrong(`exception: ${text.split("\n").slice(0, 3).join(" ")}`);
  }
  return run.outcome();
}

class SwarmRun implements NetworkUser {
  readonly #network: Network;
  readonly #codec: CountingCodec;
  readonly #original: Uint8Array;
  /** By proxy. */
  readonly #bodies: readonly Uint8Array[];
  /** The bodies that have all delivered bytes. */
  #possible: ReadonlySet<Uint8Array>;
  readonly #geometry: Geometry;
  /** By proxy, if the chunk is of an object: how it proves that. */
  readonly #proofs: readonly (((piece: number) => Uint8Array) | undefined)[];
  readonly #receiver: Receiver;
  readonly #sides: Side[];
  readonly #wrongs: string[] = [];
  readonly #boundMs: number;
  readonly #receiverTimer: number;
  readonly #senderTimer: number;
  #receiverTimerMs = Infinity;
  #receiverFiredMs = -1;
  #spins = 0;
  #events = 0;
  #end: SwarmOutcome["end"] = "none";
  #endMs = Infinity;
  #firstBytesMs = Infinity;
  #deliveredBytes = 0;

  readonly #draw: SwarmDraw;

  constructor(draw: SwarmDraw, codec: Codec) {
    this.#draw = draw;

    const { seed, chunkBytes, symbolBytes, generationSize, windowPackets, mode, range, proxies, known } = draw;
    this.#codec = new CountingCodec(codec);
    this.#network = new Network({ seed, chunkBytes, links: proxies.map(({ link }) => link) }, this, undefined);
    this.#original = contentOf((seed % CONTENTS) + chunkBytes).subarray(seed % CONTENTS);
    this.#geometry = geometryOf(chunkBytes, symbolBytes, generationSize) as Geometry;
    this.#boundMs = boundMs(draw, this.#geometry);
    const marked = new Map([[0, this.#original]]);
    this.#bodies = draw.bodies.map((drawn, index) => {
      const body = proxies[index]!.malice.includes("other-object") ? OTHER_OBJECT : drawn;
      const known = marked.get(body) ?? markedCopy(this.#original, body);
      marked.set(body, known);
      return known;
    });
    this.#possible = new Set(draw.bodies.map((body) => marked.get(body) ?? this.#original));
    const { object, tree } = draw.isVouched ? objectWith(this.#original, draw) : {};
    this.#proofs = this.#bodies.map((body, index) => {
      const isFalse = body !== this.#original || proxies[index]!.malice.includes("false-root");
      const own = tree && isFalse ? objectWith(markedCopy(body, FALSE_ROOT), draw).tree : tree;
      return own && ((piece) => own.proofOf(piece));
    });
    const verified = draw.isUnchecked ? {} : { hash: sha256, ...(object ? { object } : {}) };
    const given = { mode, symbolBytes, generationSize, windowPackets, known, ...verified, ...(range ? { range } : {}) };
    const sharing = draw.fillMs ? { sharing: proxies.map((_, index) => String(index)) } : {};
    const own = { requestId: REQUEST_ID, ...sharing, proxyCount: proxies.length, codec: this.#codec, nowMs: 0 };
    this.#receiver = new Receiver({ url: "http://origin/segment.m4s", ...own, ...given });
    this.#receiverTimer = this.#network.events.register(() => this.#handleReceiverTimer());
    this.#senderTimer = this.#network.events.register((index) => this.#handleSenderTimer(index));
    this.#sides = proxies.map((proxy, index) => this.#sideOf(proxy, index));
  }

  #sideOf(draw: ProxyDraw, index: number): Side {
    const { seed, symbolBytes } = this.#draw;
    const malice =
      draw.malice.length > 0
        ? new MaliciousProxy(draw.malice, new Random(seed, index, USER_STREAM.malice), REQUEST_ID, symbolBytes)
        : undefined;
    const way = new Random(seed, index, USER_STREAM.way);
    return {
      draw,
      malice,
      way,
      sender: undefined,
      session: 0,
      up: false,
      timerMs: Infinity,
      firedMs: -1,
      lastArrivalMs: 0,
      handed: 0,
      originFailed: false,
    };
  }

  wrong(text: string): void {
    if (this.#wrongs.length < 5) this.#wrongs.push(`${text} (at ${this.#nowMs.toFixed(1)} ms)`);
  }

  get #nowMs(): number {
    return this.#network.events.nowMs;
  }

  play(): void {
    const { proxies, abortMs, rogueClient, seed } = this.#draw;
    proxies.forEach(({ readyMs, originFailsMs }, index) => {
      this.#at(readyMs, () => this.#bringUp(index, this.#sides[index]!.session));
      if (originFailsMs < Infinity) this.#at(originFailsMs, () => this.#failOrigin(index));
    });
    if (abortMs < Infinity) this.#at(abortMs, () => this.#abort());
    if (!proxies.some(isSteady) || isContested(this.#draw)) this.#at(this.#boundMs, () => this.#abort());
    if (rogueClient)
      new RogueClient(new Random(seed, 0, USER_STREAM.rogue), this.#codec, this.#draw.symbolBytes, (text) =>
        this.wrong(text),
      ).play();
    const untilMs = this.#boundMs + AFTERWARDS_MS;
    while (this.#network.events.step(untilMs)) {
      if (++this.#events > EVENTS_MAX) return this.wrong(`more than ${EVENTS_MAX} events`);
    }
    this.#checkEnd();
  }

  outcome(): SwarmOutcome {
    const excluded = this.#receiver
      .stats()
      .proxies.filter(({ error }) => error && /digestMismatch|proofWrong/.test(error.kind)).length;
    this.#receiver.free();
    for (const { sender } of this.#sides) sender?.free();
    return {
      end: this.#end,
      endMs: this.#endMs,
      firstBytesMs: this.#firstBytesMs,
      boundMs: this.#boundMs,
      excluded,
      events: this.#events,
      eventHash: this.#network.log.hash,
      wrongs: this.#wrongs,
    };
  }

  #at(ms: number, what: () => void): void {
    this.#network.events.schedule(ms, this.#network.events.register(what), 0);
  }

  // ---- sessions ----------------------------------------------------------------------------------

  #bringUp(index: number, session: number): void {
    const side = this.#sides[index]!;
    if (side.up || side.session !== session || this.#network.dead[index]) return;
    side.up = true;
    side.lastArrivalMs = this.#nowMs;
    this.#receiver.handleProxyReady(index, this.#nowMs);
    this.#pumpReceiver();
  }

  onOutage(index: number, phase: "crash" | "cut" | "over"): void {
    const side = this.#sides[index]!;
    if (phase === "crash") {
      side.sender?.free();
      side.sender = undefined;
      const session = ++side.session;
      this.#at(this.#nowMs + side.draw.noticeMs, () => this.#replace(index, session));
    } else if (phase === "over") {
      this.#pumpSender(index);
      this.#at(this.#nowMs + side.draw.noticeMs, () => this.#bringUp(index, side.session));
    }
  }

  /** The client sees that the session is gone, and makes a new one if the proxy is there. */
  #replace(index: number, session: number): void {
    const side = this.#sides[index]!;
    if (side.session !== session) return;
    side.up = false;
    this.#receiver.handleProxyLost(index, "crash", this.#nowMs);
    this.#pumpReceiver();
    this.#bringUp(index, session);
  }

  #abort(): void {
    if (this.#end !== "none") return;
    this.#finish("aborted");
    this.#receiver.abort(this.#nowMs);
    this.#pumpReceiver();
  }

  // ---- client --------------------------------------------------------------------------------------

  atClient(index: number, slot: number): void {
    const side = this.#sides[index]!;
    const { pool } = this.#network;
    const message = pool.message[slot]!;
    const session = pool.tag[slot]!;
    pool.giveBack(slot);
    if (session !== side.session || !side.up) return;
    const frame = parseFrame(message);
    const known = frame.type !== "parseError" && "requestId" in frame && frame.requestId === REQUEST_ID;
    if (known) side.lastArrivalMs = this.#nowMs;
    if (!known || !CONTROL_FRAMES.has(frame.type)) side.handed++;
    this.#receiver.handleFrame(index, message, this.#nowMs);
    this.#pumpReceiver();
  }

  #handleReceiverTimer(): void {
    if (this.#nowMs !== this.#receiverTimerMs) return;
    this.#receiverFiredMs = this.#nowMs;
    this.#receiver.handleTimeout(this.#nowMs);
    this.#receiverTimerMs = Infinity;
    this.#pumpReceiver();
  }

  #pumpReceiver(): void {
    const receiver = this.#receiver;
    const nowMs = this.#nowMs;
    for (let out = receiver.pollTransmit(nowMs); out; out = receiver.pollTransmit(nowMs))
      this.#toProxy(out.proxyIndex, out.bytes);
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      if (this.#end !== "none") this.wrong(`event ${event.kind} after the end (${this.#end})`);
      if (event.kind === "bytes") this.#handleBytes(event.offset, event.bytes);
      else if (event.kind === "complete") this.#complete();
      else if (event.kind === "failed") this.#fail();
    }
    const asked = receiver.pollTimeout();
    if (asked === undefined) return;
    this.#countSpins(asked);
    const atMs = Math.max(asked, nowMs, this.#receiverFiredMs + TIMER_STEP_MS);
    if (atMs >= this.#receiverTimerMs) return;
    this.#receiverTimerMs = atMs;
    this.#network.events.schedule(atMs, this.#receiverTimer, 0);
  }

  #countSpins(askedMs: number): void {
    this.#spins = askedMs <= this.#nowMs ? this.#spins + 1 : 0;
    if (this.#spins === SPINS_MAX) this.wrong("a timer is always due");
  }

  #handleBytes(offset: number, bytes: Uint8Array): void {
    if (offset !== this.#deliveredBytes) this.wrong(`bytes at ${offset}, expected them at ${this.#deliveredBytes}`);
    const isRight = (body: Uint8Array) => Buffer.compare(body.subarray(offset, offset + bytes.length), bytes) === 0;
    this.#possible = new Set([...this.#possible].filter(isRight));
    if (this.#possible.size === 0) this.wrong(`wrong bytes from ${offset} on`);
    this.#deliveredBytes += bytes.length;
    this.#firstBytesMs = Math.min(this.#firstBytesMs, this.#nowMs);
  }

  #complete(): void {
    this.#finish("complete");
    if (this.#deliveredBytes !== this.#original.length)
      this.wrong(`complete with ${this.#deliveredBytes} of ${this.#original.length} bytes`);
  }

  /** A download may fail only when every honest proxy is gone, has failed, or was silent for the limit. */
  #fail(): void {
    this.#finish("failed");
    if (isContested(this.#draw)) return;
    this.#sides.forEach((side, index) => {
      const silent = this.#nowMs - side.lastArrivalMs >= TIMING.proxySilenceMs;
      if (!side.malice && side.up && !side.originFailed && !silent)
        this.wrong(`failed although honest proxy ${index} could be reached`);
    });
  }

  #finish(end: SwarmOutcome["end"]): void {
    this.#end = end;
    this.#endMs = this.#nowMs;
  }

  // ---- proxies -------------------------------------------------------------------------------------

  #toProxy(index: number, bytes: Uint8Array): void {
    const side = this.#sides[index]!;
    this.#network.toProxy(index, this.#onTheWay(side, bytes), bytes.length, side.session);
  }

  #toClient(index: number, bytes: Uint8Array): void {
    const side = this.#sides[index]!;
    for (const message of side.malice?.twist(bytes) ?? [bytes]) {
      this.#network.toClient(index, this.#onTheWay(side, message), message.length, side.session);
    }
  }

  #onTheWay({ draw, way }: Side, bytes: Uint8Array): Uint8Array {
    const corrupt = this.#nowMs < this.#draw.healMs && draw.corruption > 0 && way.unit() < draw.corruption;
    return corrupt ? garble(bytes, way) : bytes;
  }

  atProxy(index: number, slot: number): void {
    const side = this.#sides[index]!;
    const { pool } = this.#network;
    const message = pool.message[slot]!;
    const session = pool.tag[slot]!;
    pool.giveBack(slot);
    if (session !== side.session) return;
    const frame = parseFrame(message);
    if (frame.type === "parseError") return;
    if (side.sender && !side.sender.finished) side.sender.handleFrame(frame, this.#localMs(side));
    else if (frame.type === "request" && !side.sender) this.#accept(side, index, frame);
    else if (frame.type === "feedback" && frame.final)
      this.#toClient(index, encodeFrame({ type: "end", requestId: REQUEST_ID, sentPackets: 0 }));
    this.#pumpSender(index);
  }

  #accept(side: Side, index: number, request: RequestFrame): void {
    const random = new Random(this.#draw.seed, index, USER_STREAM.sender + side.session);
    const [rng, nowMs] = [() => random.u32(), this.#localMs(side)];
    const sender = (side.sender = new Sender({ request, codec: this.#codec, rng, nowMs }));
    if (side.originFailed) return sender.handleFailure({ kind: "originFailed", message: "The origin failed." });
    feedFromOrigin(sender, headOf(this.#draw, this.#draw.bodies[index]), {
      shared: sharedOf(request, this.#geometry, this.#draw.fillMs?.[index]),
      events: this.#network.events,
      leg: side.draw.link.origin,
      original: this.#bodies[index]!,
      proof: this.#proofs[index],
      stepMs: ORIGIN_STEP_MS,
      isCurrent: () => side.sender === sender && !side.originFailed,
      onBytes: () => this.#pumpSender(index),
    });
  }

  #failOrigin(index: number): void {
    const side = this.#sides[index]!;
    side.originFailed = true;
    side.sender?.handleFailure({ kind: "shortBody", message: "The origin's answer stopped early." });
    this.#pumpSender(index);
  }

  #handleSenderTimer(index: number): void {
    const side = this.#sides[index]!;
    if (this.#nowMs !== side.timerMs) return;
    side.timerMs = Infinity;
    side.firedMs = this.#nowMs;
    if (!side.sender || side.sender.finished) return;
    side.sender.handleTimeout(this.#localMs(side));
    this.#pumpSender(index);
  }

  #pumpSender(index: number): void {
    this.#offer(index);
    const side = this.#sides[index]!;
    const asked = side.sender?.pollTimeout();
    if (asked === undefined) return;
    const atMs = Math.max(asked - (side.draw.link.clockOffsetMs ?? 0), this.#nowMs, side.firedMs + TIMER_STEP_MS);
    if (atMs >= side.timerMs) return;
    side.timerMs = atMs;
    this.#network.events.schedule(atMs, this.#senderTimer, index);
  }

  onFree(index: number): void {
    this.#offer(index);
  }

  #offer(index: number): void {
    const side = this.#sides[index]!;
    const { sender } = side;
    const down = this.#network.down[index]!;
    while (sender && !sender.finished && down.queuedPackets < QUEUED_PACKETS) {
      const message = sender.pollTransmit(this.#localMs(side));
      if (!message) break;
      this.#toClient(index, message);
    }
  }

  #localMs({ draw }: Side): number {
    return this.#nowMs + (draw.link.clockOffsetMs ?? 0);
  }

  // ---- rules at the end ----------------------------------------------------------------------------

  #checkEnd(): void {
    const receiver = this.#receiver;
    if (this.#end === "none") this.wrong(`not complete by its bound of ${this.#boundMs.toFixed(0)} ms`);
    if (this.#end === "complete" && this.#endMs > this.#boundMs)
      this.wrong(`complete at ${this.#endMs.toFixed(0)} ms, bound ${this.#boundMs.toFixed(0)} ms`);
    this.#checkNothingIsLeft();
    receiver.stats().proxies.forEach(({ packets, innovative, duplicate, late, rejected, error }, index) => {
      const sum = innovative + duplicate + late + rejected;
      const { handed, malice } = this.#sides[index]!;
      if (packets !== sum || packets !== handed)
        this.wrong(`proxy ${index}: ${handed} packets came, ${packets} counted, ${sum} accounted for`);
      const blamed = error !== undefined && /digestMismatch|planMismatch|proofWrong|bodyDiffers/.test(error.kind);
      if (blamed && !malice && !isContested(this.#draw))
        this.wrong(`honest proxy ${index} is blamed: ${error.kind}: ${error.message}`);
    });
  }

  #checkNothingIsLeft(): void {
    const receiver = this.#receiver;
    const codec = this.#codec;
    const sides = this.#sides;
    const network = this.#network;
    if (!receiver.finished) this.wrong("the receiver has not finished");
    if (receiver.pollTimeout() !== undefined) this.wrong("the receiver still has a timer");
    sides.forEach(({ sender }, index) => {
      if (sender && !sender.finished) this.wrong(`sender ${index} has not finished`);
      if (sender?.pollTimeout() !== undefined) this.wrong(`sender ${index} still has a timer`);
    });
    if (network.events.pending > 0) this.wrong("events are left after the last timer");
    if (network.pool.inUse > 0) this.wrong(`${network.pool.inUse} packets are left`);
    if (codec.live > 0) this.wrong(`${codec.live} coders are left`);
    if (codec.freedTwice > 0) this.wrong(`${codec.freedTwice} coders were freed twice`);
  }
}

/** A body of the same length that differs in a few bytes. */
function markedCopy(original: Uint8Array, seed: number): Uint8Array {
  const random = new Random(seed, 0, USER_STREAM.malice);
  const copy = original.slice();
  for (let count = 0; count < MARK_BYTES && copy.length > 0; count++)
    copy[random.u32() % copy.length]! ^= 1 + (random.u32() % 255);
  return copy;
}
