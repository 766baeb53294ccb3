/**
 * Viewer: one client of the proxy. It has one session and asks for one group after another, each when the video needs
 * it. The receiver is the product's own. It notes when each request went out, when its first data frame came and when
 * the group was complete.
 */
import { randomInt } from "node:crypto";
import { encodeFrame, parseFrame, Receiver, requestIdOf, type Codec, type KnownPath } from "@tributary/protocol";
import type { Channel } from "@tributary/client";
import { GROUP_BYTES, GROUP_MS, GROUP_SYMBOLS, GROUPS_PER_VIDEO, groupOf, pathOf } from "./content";

export type CapacityMode = "coded" | "coded-mutp" | "uncoded-mutp";

export interface ViewerOptions {
  mode: CapacityMode;
  originUrl: string;
  channel: number;
  codec: Codec;
  /** Compares every byte with what the origin has. `codec` must decode. */
  verifies: boolean;
  tally: Tally;
}

/** What all viewers of a process have seen since the last look. */
export class Tally {
  /** From a request to its first data frame, ms. */
  responseMs: number[] = [];
  /** From a request to its complete group, ms. */
  completeMs: number[] = [];
  /** Groups that were not complete when the video needed the next one. */
  late = 0;
  packets = 0;
  bytes = 0;
  verifiedBytes = 0;
  wrongGroups = 0;
  failures: string[] = [];

  take(): TallySample {
    const { responseMs, completeMs, late, packets, bytes, verifiedBytes, wrongGroups, failures } = this;
    Object.assign(this, new Tally());
    return { responseMs, completeMs, late, packets, bytes, verifiedBytes, wrongGroups, failures };
  }
}

export type TallySample = Omit<Tally, "take">;

/** The paper's w, large enough for a whole group. */
const WINDOW_PACKETS = 2 * GROUP_SYMBOLS;

export class Viewer {
  #channel: Channel | undefined;
  #receiver: Receiver | undefined;
  /** Ids begin at random (protocol.md §4.1), because viewers with the same id share no coded packets. */
  #requestId = randomInt(2 ** 32);
  #group = 0;
  #bytesOk = true;
  #sentMs = 0;
  #dueMs = 0;
  #isAnswered = false;
  #isLate = false;
  #pingMs = 0;
  #known: KnownPath | undefined;
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Receivers of earlier groups that still owe the proxy a final feedback. */
  readonly #ending = new Map<number, Receiver>();

  readonly #options: ViewerOptions;

  constructor(options: ViewerOptions) {
    this.#options = options;
  }

  /** The session is open: the viewer begins to watch. */
  start(channel: Channel, nowMs: number): void {
    this.#channel = channel;
    this.#dueMs = nowMs;
    this.#pingMs = nowMs;
    channel.send(encodeFrame({ type: "ping", token: 1 }));
    this.#ask();
  }

  /** Since when the present request waits for its first data frame. Undefined if none waits. */
  get waitsSinceMs(): number | undefined {
    return this.#receiver && !this.#isAnswered ? this.#sentMs : undefined;
  }

  handleMessage(bytes: Uint8Array, nowMs: number): void {
    const requestId = requestIdOf(bytes);
    const receiver = requestId === this.#requestId ? this.#receiver : this.#ending.get(requestId ?? -1);
    if (!receiver) return this.#handleOther(bytes, nowMs);
    receiver.handleFrame(0, bytes, nowMs);
  }

  /** Sends and reports what the messages so far have led to. */
  pump(nowMs: number): void {
    for (const [id, receiver] of this.#ending) {
      this.#transmit(receiver, nowMs);
      if (!receiver.finished) continue;
      receiver.free();
      this.#ending.delete(id);
    }
    const receiver = this.#receiver;
    if (!receiver || this.#isClosed) return;
    this.#transmit(receiver, nowMs);
    for (let event = receiver.pollEvent(); event; event = receiver.pollEvent()) {
      if (event.kind === "bytes") this.#check(event.offset, event.bytes);
      else if (event.kind === "complete") this.#finish(receiver, nowMs);
      else if (event.kind === "failed") this.#fail(`${event.rejection.kind}: ${event.rejection.message}`);
    }
  }

  handleTimeout(nowMs: number): void {
    for (const receiver of [...this.#ending.values(), ...(this.#receiver ? [this.#receiver] : [])])
      if ((receiver.pollTimeout() ?? Infinity) <= nowMs) receiver.handleTimeout(nowMs);
    if (this.#receiver && !this.#isLate && nowMs > this.#dueMs) {
      this.#isLate = true;
      this.#options.tally.late++;
    }
    this.pump(nowMs);
  }

  get isActive(): boolean {
    return this.#receiver !== undefined || this.#ending.size > 0;
  }

  fail(reason: string): void {
    this.#fail(reason);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    this.#receiver?.free();
    for (const receiver of this.#ending.values()) receiver.free();
    this.#receiver = undefined;
    this.#ending.clear();
    this.#channel?.close();
  }

  #ask(): void {
    if (this.#isClosed) return;
    const nowMs = performance.now();
    const { mode, originUrl, channel, codec, tally } = this.#options;
    this.#sentMs = nowMs;
    this.#isAnswered = this.#isLate = false;
    this.#bytesOk = true;
    // A viewer that is late has stalled, and its video goes on from here.
    this.#dueMs = Math.max(this.#dueMs, nowMs - 1) + GROUP_MS;
    this.#requestId = (this.#requestId + 1) >>> 0;
    const start = this.#group * GROUP_BYTES;
    this.#receiver = new Receiver({
      requestId: this.#requestId,
      url: `${originUrl}${pathOf(channel)}`,
      range: { start, end: start + GROUP_BYTES - 1 },
      mode,
      proxyCount: 1,
      codec,
      nowMs,
      generationSize: GROUP_SYMBOLS,
      ...(mode === "coded" ? {} : { windowPackets: WINDOW_PACKETS }),
      known: [this.#known],
      onPacket: (atMs) => {
        tally.packets++;
        if (this.#isAnswered) return;
        this.#isAnswered = true;
        tally.responseMs.push(atMs - this.#sentMs);
      },
    });
    this.#receiver.handleProxyReady(0, nowMs);
    this.pump(nowMs);
  }

  #handleOther(bytes: Uint8Array, nowMs: number): void {
    const frame = parseFrame(bytes);
    if (frame.type === "pong") this.#known ??= { rttMs: Math.max(0.1, nowMs - this.#pingMs) };
    else if (frame.type === "ping") this.#channel?.send(encodeFrame({ type: "pong", token: frame.token }));
  }

  #transmit(receiver: Receiver, nowMs: number): void {
    for (let next = receiver.pollTransmit(nowMs); next; next = receiver.pollTransmit(nowMs))
      this.#channel?.send(next.bytes);
  }

  #check(offset: number, bytes: Uint8Array): void {
    const { tally, verifies, channel } = this.#options;
    tally.bytes += bytes.length;
    if (!verifies) return;
    tally.verifiedBytes += bytes.length;
    const wanted = groupOf(channel, this.#group).subarray(offset, offset + bytes.length);
    this.#bytesOk &&= Buffer.compare(bytes, wanted) === 0;
  }

  #finish(receiver: Receiver, nowMs: number): void {
    const { tally } = this.#options;
    tally.completeMs.push(nowMs - this.#sentMs);
    if (!this.#bytesOk) tally.wrongGroups++;
    const [path] = receiver.stats().proxies;
    if (path && path.rttMs !== null) this.#known = { rttMs: Math.max(0.1, path.rttMs) };
    this.#receiver = undefined;
    this.#transmit(receiver, nowMs);
    if (receiver.finished) receiver.free();
    else this.#ending.set(this.#requestId, receiver);
    this.#group = (this.#group + 1) % GROUPS_PER_VIDEO;
    this.#timer = setTimeout(() => this.#ask(), Math.max(0, this.#dueMs - nowMs));
  }

  /** One failure ends a viewer, so that a proxy that refuses viewers does not look fast. */
  #fail(reason: string): void {
    if (this.#isClosed) return;
    this.#options.tally.failures.push(reason);
    this.close();
  }
}
