/**
 * A simulated download: the protocol's own Receiver and Senders, with a real codec, over simulated links. One seed
 * fixes everything. Every delivered byte is compared with the chunk. A sender may send while its serializer has fewer
 * than two packets (an ideal backpressure), or when the product's congestion control allows it.
 */
import {
  encodeFrame,
  parseFrame,
  Receiver,
  Sender,
  type Codec,
  type MutpMode,
  type ProxyStats,
} from "@tributary/protocol";
import { loadNativeTransport } from "@tributary/native-transport";
import { contentOf, sha256 } from "./content";
import { Flow } from "./flow";
import { Network, STREAM, type NetworkUser, type OnLinkEvent } from "./network";
import { feedFromOrigin } from "./origin";
import { Random } from "./random";
import {
  PACKET_BYTES,
  type Mode,
  type OnArrival,
  type Outcome,
  type ProxyLink,
  type Tuning,
  type World,
} from "./world";

const REQUEST_ID = 1;
/** The least time between two calls of one timer. */
const TIMER_STEP_MS = 0.01;
const ORIGIN_STEP_MS = 0.5;
/** In this time the last acknowledgements of a download arrive. */
const SETTLED_MS = 1000;

/** One number names an acknowledged packet and its proxy. */
const PROXIES_MAX = 64;

interface ProxySide {
  link: ProxyLink;
  flow: Flow | undefined;
  sender: Sender | undefined;
  timerMs: number;
  firedMs: number;
  lives: number;
}

/** Throws when the receiver refuses the mode. */
export function simulate(
  world: World,
  mode: Mode,
  codec: Codec,
  tuning: Tuning = {},
  onLinkEvent?: OnLinkEvent,
  onArrival?: OnArrival,
): Outcome {
  const { congestion } = world;
  const flows = congestion && flowsOver(world.links);
  if (congestion === "warm") {
    new Simulation(world, mode as MutpMode, codec, tuning, undefined, undefined, flows).run();
    for (const flow of flows!) flow.startAnew();
  }
  return new Simulation(world, mode as MutpMode, codec, tuning, onLinkEvent, onArrival, flows).run();
}

/** True when the protocol knows the mode. */
export function speaks(mode: string, codec: Codec): boolean {
  try {
    const receiver = new Receiver({
      requestId: REQUEST_ID,
      url: "http://origin/",
      mode: mode as MutpMode,
      proxyCount: 1,
      codec,
      nowMs: 0,
    });
    receiver.handleProxyReady(0, 0);
    const first = receiver.pollTransmit(0);
    receiver.free();
    const frame = first && parseFrame(first.bytes);
    return frame?.type === "request" && frame.mode === mode;
  } catch {
    return false;
  }
}

class Simulation implements NetworkUser {
  readonly #network: Network;
  readonly #original: Uint8Array;
  readonly #receiver: Receiver;
  readonly #proxies: ProxySide[];
  readonly #overheadBytes: number;
  readonly #receiverTimer: number;
  readonly #senderTimer: number;
  readonly #acknowledged: number;
  readonly #paced: number;
  #receiverTimerMs = Infinity;
  #receiverFiredMs = -1;
  #completionMs = Infinity;
  #firstBytesMs = Infinity;
  #deliveredBytes = 0;
  #bytesRight = true;
  readonly #delivered: Outcome["delivered"] = [];
  #failure: string | undefined;
  #dataPackets = 0;
  #dataBytes = 0;

  readonly #world: World;
  readonly #codec: Codec;
  readonly #onArrival: OnArrival | undefined;

  constructor(
    world: World,
    mode: MutpMode,
    codec: Codec,
    tuning: Tuning,
    onLinkEvent: OnLinkEvent | undefined,
    onArrival: OnArrival | undefined,
    flows: readonly Flow[] | undefined,
  ) {
    this.#world = world;
    this.#codec = codec;
    this.#onArrival = onArrival;

    this.#network = new Network(world, this, onLinkEvent);
    this.#original = contentOf(world.chunkBytes);
    this.#overheadBytes = world.overheadBytes ?? 0;
    // The sessions are open: they know their round trips.
    const known = world.links.map(({ rttMs }) => ({ rttMs }));
    this.#receiver = new Receiver({
      requestId: REQUEST_ID,
      url: "http://origin/segment.m4s",
      mode,
      proxyCount: world.links.length,
      codec,
      nowMs: 0,
      known,
      hash: sha256,
      ...tuning,
    });
    this.#receiverTimer = this.#network.events.register(() => this.#handleReceiverTimer());
    this.#senderTimer = this.#network.events.register((index) => this.#handleSenderTimer(index));
    this.#acknowledged = this.#network.events.register((packet) => this.#handleAcknowledged(packet));
    this.#paced = this.#network.events.register((index) => this.#offer(index));
    this.#proxies = world.links.map((link, index) => ({
      link,
      flow: flows?.[index],
      sender: undefined,
      timerMs: Infinity,
      firedMs: -1,
      lives: 0,
    }));
  }

  run(): Outcome {
    const untilMs = this.#world.untilMs ?? 60_000;
    this.#proxies.forEach((_, index) => this.#receiver.handleProxyReady(index, 0));
    this.#pumpReceiver();
    while (!this.#isOver() && this.#network.events.step(untilMs));
    const outcome = this.#outcome();
    if (this.#world.congestion) this.#settle();
    this.#receiver.free();
    for (const { sender } of this.#proxies) sender?.free();
    return outcome;
  }

  /** Lets the last acknowledgements arrive before another download begins. */
  #settle(): void {
    const { events } = this.#network;
    for (const untilMs = events.nowMs + SETTLED_MS; events.step(untilMs););
  }

  /** True when both sides have ended and no packet is in flight that would count as late. */
  #isOver(): boolean {
    return (
      this.#receiver.finished &&
      this.#proxies.every(({ sender }, index) => !sender || sender.finished || this.#network.dead[index]) &&
      this.#network.pool.inUse === 0
    );
  }

  onOutage(index: number, phase: "crash" | "cut" | "over"): void {
    const proxy = this.#proxies[index]!;
    if (phase === "crash") {
      proxy.sender?.free();
      proxy.sender = undefined;
    } else if (phase === "over") this.#pumpSender(index);
  }

  atClient(index: number, slot: number): void {
    const { pool, events } = this.#network;
    const message = pool.message[slot]!;
    const { flow, link } = this.#proxies[index]!;
    if (flow) events.schedule(events.nowMs + link.rttMs / 2, this.#acknowledged, pool.tag[slot]! * PROXIES_MAX + index);
    pool.giveBack(slot);
    const before = this.#onArrival && this.#receiver.stats().proxies[index]!;
    this.#receiver.handleFrame(index, message, events.nowMs);
    if (before) this.#tellArrival(index, before);
    this.#pumpReceiver();
  }

  /** Tells the kind that the receiver counted. */
  #tellArrival(index: number, before: ProxyStats): void {
    const after = this.#receiver.stats().proxies[index]!;
    const kind = (["innovative", "duplicate", "late"] as const).find((name) => after[name] > before[name]);
    if (kind) this.#onArrival!(this.#network.events.nowMs, index, kind);
  }

  #handleAcknowledged(packet: number): void {
    const index = packet % PROXIES_MAX;
    this.#proxies[index]!.flow!.acknowledge(Math.floor(packet / PROXIES_MAX), this.#network.events.nowMs);
    this.#offer(index);
  }

  #handleReceiverTimer(): void {
    const { nowMs } = this.#network.events;
    if (nowMs !== this.#receiverTimerMs) return;
    this.#receiverFiredMs = nowMs;
    this.#receiver.handleTimeout(nowMs);
    this.#receiverTimerMs = Infinity;
    this.#pumpReceiver();
  }

  #pumpReceiver(): void {
    const receiver = this.#receiver;
    const network = this.#network;
    const { events } = network;
    const { nowMs } = events;
    for (let out = receiver.pollTransmit(nowMs); out; out = receiver.pollTransmit(nowMs)) {
      this.#network.toProxy(out.proxyIndex, out.bytes, out.bytes.length);
    }
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      if (event.kind === "bytes") this.#handleBytes(event.offset, event.bytes);
      else if (event.kind === "complete") this.#completionMs = nowMs;
      else if (event.kind === "failed") this.#failure = `${event.rejection.kind}: ${event.rejection.message}`;
    }
    const asked = receiver.pollTimeout();
    if (asked === undefined) return;
    const atMs = Math.max(asked, nowMs, this.#receiverFiredMs + TIMER_STEP_MS);
    if (atMs >= this.#receiverTimerMs) return;
    this.#receiverTimerMs = atMs;
    events.schedule(atMs, this.#receiverTimer, 0);
  }

  #handleBytes(offset: number, bytes: Uint8Array): void {
    const expected = this.#original.subarray(offset, offset + bytes.length);
    this.#bytesRight &&= offset === this.#deliveredBytes && Buffer.compare(expected, bytes) === 0;
    this.#deliveredBytes += bytes.length;
    this.#firstBytesMs = Math.min(this.#firstBytesMs, this.#network.events.nowMs);
    this.#delivered.push({ untilByte: this.#deliveredBytes, atMs: this.#network.events.nowMs });
  }

  atProxy(index: number, slot: number): void {
    const proxy = this.#proxies[index]!;
    const message = this.#network.pool.message[slot]!;
    this.#network.pool.giveBack(slot);
    const frame = parseFrame(message);
    if (frame.type === "parseError") return;
    const localMs = this.#localMs(proxy);
    if (proxy.sender && !proxy.sender.finished) proxy.sender.handleFrame(frame, localMs);
    else if (frame.type === "request" && !proxy.sender) this.#accept(proxy, index, frame);
    else if (frame.type === "feedback" && frame.final)
      this.#transmit(index, encodeFrame({ type: "end", requestId: REQUEST_ID, sentPackets: 0 }));
    this.#pumpSender(index);
  }

  #accept(proxy: ProxySide, index: number, request: Parameters<typeof encodeFrame>[0] & { type: "request" }): void {
    const random = new Random(this.#world.seed, index, STREAM.user + proxy.lives++);
    const sender = new Sender({ request, codec: this.#codec, rng: () => random.u32(), nowMs: this.#localMs(proxy) });
    proxy.sender = sender;
    const head = { status: 200, totalBytes: this.#world.chunkBytes, headers: { etag: '"1"' } };
    feedFromOrigin(sender, head, {
      events: this.#network.events,
      leg: proxy.link.origin,
      original: this.#original,
      stepMs: ORIGIN_STEP_MS,
      isCurrent: () => proxy.sender === sender,
      onBytes: () => this.#pumpSender(index),
    });
  }

  #handleSenderTimer(index: number): void {
    const proxy = this.#proxies[index]!;
    if (this.#network.events.nowMs !== proxy.timerMs) return;
    proxy.timerMs = Infinity;
    proxy.firedMs = this.#network.events.nowMs;
    if (!proxy.sender || proxy.sender.finished) return;
    proxy.sender.handleTimeout(this.#localMs(proxy));
    this.#pumpSender(index);
  }

  #pumpSender(index: number): void {
    this.#offer(index);
    const proxy = this.#proxies[index]!;
    const asked = proxy.sender?.pollTimeout();
    if (asked === undefined) return;
    const atMs = Math.max(
      asked - (proxy.link.clockOffsetMs ?? 0),
      this.#network.events.nowMs,
      proxy.firedMs + TIMER_STEP_MS,
    );
    if (atMs >= proxy.timerMs) return;
    proxy.timerMs = atMs;
    this.#network.events.schedule(atMs, this.#senderTimer, index);
  }

  onFree(index: number): void {
    this.#offer(index);
  }

  #offer(index: number): void {
    const proxy = this.#proxies[index]!;
    const { sender } = proxy;
    while (sender && !sender.finished && this.#maySend(index)) {
      const sentBefore = sender.stats.sentPackets;
      const message = sender.pollTransmit(this.#localMs(proxy));
      if (!message) break;
      if (sender.stats.sentPackets > sentBefore) {
        this.#dataPackets++;
        this.#dataBytes += message.length + this.#overheadBytes;
      }
      this.#transmit(index, message);
    }
  }

  /** Under congestion control this also schedules the next look. */
  #maySend(index: number): boolean {
    const { flow, link } = this.#proxies[index]!;
    const { events, down } = this.#network;
    if (!flow) return down[index]!.queuedPackets < (link.backpressurePackets ?? 2);
    const atMs = flow.readyMs(events.nowMs);
    if (atMs > events.nowMs && atMs < Infinity) events.schedule(atMs, this.#paced, index);
    return atMs <= events.nowMs;
  }

  #transmit(index: number, message: Uint8Array): void {
    const number = this.#proxies[index]!.flow?.send(this.#network.events.nowMs, message.length + this.#overheadBytes);
    this.#network.toClient(index, message, message.length, number);
  }

  #localMs(proxy: ProxySide): number {
    return this.#network.events.nowMs + (proxy.link.clockOffsetMs ?? 0);
  }

  #outcome(): Outcome {
    const stats = this.#receiver.stats();
    const receivedPackets = stats.proxies.reduce((sum, { packets }) => sum + packets, 0);
    return {
      completionMs: this.#completionMs,
      firstBytesMs: this.#firstBytesMs,
      normalizedGoodput: receivedPackets > 0 ? stats.symbolCount / receivedPackets : 0,
      symbolCount: stats.symbolCount,
      receivedPackets,
      sentPackets: this.#dataPackets,
      packetBytes: this.#dataPackets > 0 ? this.#dataBytes / this.#dataPackets : 0,
      delivered: this.#delivered,
      bytesRight:
        this.#bytesRight && (this.#completionMs === Infinity || this.#deliveredBytes === this.#original.length),
      eventHash: this.#network.log.hash,
      events: this.#network.log.events,
      ...(this.#failure === undefined ? {} : { failure: this.#failure }),
    };
  }
}

function flowsOver(links: readonly ProxyLink[]): Flow[] {
  const transport = loadNativeTransport();
  if (!transport.native) throw new Error(`congestion control cannot be simulated: ${transport.reason}`);
  const { native } = transport;
  return links.map(({ rttMs }) => new Flow(native.congestionControl(PACKET_BYTES), rttMs));
}
