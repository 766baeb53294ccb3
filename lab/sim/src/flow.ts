/**
 * The packets of one session under the product's own congestion control (ADR 0006): when they may leave, which have
 * arrived, which are lost. Each packet has its own acknowledgement, and no acknowledgement is lost. A packet counts as
 * lost after 1.25 round trips if a later one has arrived, and otherwise after three round trips. Pure: it knows packets
 * by number and no link.
 */
import type { CongestionControl } from "@tributary/native-transport";

/** Windows per round trip, as QUIC and SCTP pace. */
const PACING_GAIN = 1.25;
const OVERTAKEN_ROUNDS = 1.25;
const OVERDUE_ROUNDS = 3;
/** Packets that have waited may leave together if they were due within this time. */
const BURST_MS = 2;
/** Time between two downloads. */
const PAUSE_MS = 1000;

interface Packet {
  number: number;
  sentMs: number;
  bytes: number;
}

export class Flow {
  readonly #open: Packet[] = [];
  #inFlightBytes = 0;
  #count = 0;
  #nextMs = 0;
  #smoothedMs: number;
  #latestMs = 0;
  /** The highest number that has arrived. */
  #newest = -1;
  /** The controller's clock at time 0. */
  #startMs = 0;
  #lastMs = 0;

  readonly #control: CongestionControl;

  constructor(control: CongestionControl, rttMs: number) {
    this.#control = control;

    this.#smoothedMs = rttMs;
  }

  get inFlightPackets(): number {
    return this.#open.length;
  }

  /** When another packet may leave. Infinity: only after a packet has arrived or is lost. */
  readyMs(nowMs: number): number {
    this.#lastMs = nowMs;
    this.#dropOverdue(nowMs);
    return this.#inFlightBytes < this.#control.window ? this.#nextMs : Infinity;
  }

  /** Returns the packet's number. */
  send(nowMs: number, bytes: number): number {
    this.#control.sent(nowMs + this.#startMs, bytes);
    this.#open.push({ number: this.#count, sentMs: nowMs, bytes });
    this.#inFlightBytes += bytes;
    this.#nextMs =
      Math.max(this.#nextMs, nowMs - BURST_MS) + (bytes * this.#smoothedMs) / (PACING_GAIN * this.#control.window);
    return this.#count++;
  }

  acknowledge(number: number, nowMs: number): void {
    const at = this.#open.findIndex((packet) => packet.number === number);
    if (at < 0) return;
    const [packet] = this.#open.splice(at, 1);
    this.#inFlightBytes -= packet!.bytes;
    this.#smoothedMs += (nowMs - packet!.sentMs - this.#smoothedMs) / 8;
    this.#control.arrived(nowMs + this.#startMs, packet!.sentMs + this.#startMs, packet!.bytes);
    this.#latestMs = nowMs - packet!.sentMs;
    this.#newest = Math.max(this.#newest, number);
    this.#dropOverdue(nowMs);
    this.#control.acknowledged(nowMs + this.#startMs, this.#inFlightBytes);
  }

  /** Begins another download at time 0, after a pause in which nothing is left on the way. */
  startAnew(): void {
    this.#startMs += this.#lastMs + PAUSE_MS;
    this.#open.length = this.#inFlightBytes = this.#nextMs = 0;
  }

  #dropOverdue(nowMs: number): void {
    for (let [first] = this.#open; first; [first] = this.#open) {
      const rounds = (nowMs - first.sentMs) / Math.max(this.#smoothedMs, this.#latestMs);
      if (rounds <= (first.number < this.#newest ? OVERTAKEN_ROUNDS : OVERDUE_ROUNDS)) return;
      this.#lose(nowMs);
    }
  }

  #lose(nowMs: number): void {
    const packet = this.#open.shift()!;
    this.#inFlightBytes -= packet.bytes;
    this.#control.lost(nowMs + this.#startMs, packet.sentMs + this.#startMs, packet.bytes);
  }
}
