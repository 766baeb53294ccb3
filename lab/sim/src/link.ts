/**
 * One direction of a link: a serializer with a drop-tail queue, then loss, delay, jitter, reordering and repeats.
 * A rate counts all bytes of a packet, headers included. All random choices come from one given stream. A link knows no
 * protocol: a packet is a slot of the pool.
 */
import { LINK_EVENTS, type EventLog, type LinkEvent } from "./event-log";
import type { EventQueue } from "./events";
import type { Random } from "./random";

/** Packets in flight. Slots are reused. `message` holds a frame of the protocol; `tag` and `mark` are the user's. */
export class PacketPool {
  readonly message: (Uint8Array | undefined)[] = [];
  readonly bytes: number[] = [];
  readonly tag: number[] = [];
  readonly mark: number[] = [];
  readonly #spare: number[] = [];

  take(message: Uint8Array | undefined, bytes: number, tag = 0, mark = 0): number {
    const slot = this.#spare.pop() ?? this.bytes.length;
    this.message[slot] = message;
    this.bytes[slot] = bytes;
    this.tag[slot] = tag;
    this.mark[slot] = mark;
    return slot;
  }

  /** Slots that were taken and not given back. */
  get inUse(): number {
    return this.bytes.length - this.#spare.length;
  }

  giveBack(slot: number): void {
    this.message[slot] = undefined;
    this.#spare.push(slot);
  }
}

/** A chain of two states (Gilbert 1960). In the bad state a packet is lost with the chance `loss`. */
export interface BurstLoss {
  /** Chance per packet to go from good to bad. */
  enter: number;
  /** Chance per packet to go back to good. */
  leave: number;
  loss: number;
}

export interface LinkOptions {
  /** Infinity: no serializer. 0: nothing moves until a rate change. */
  bytesPerSec: number;
  delayMs: number;
  /** Each packet gets an extra delay, uniform in [0, jitterMs). Packets can overtake each other unless `inOrder`. */
  jitterMs?: number;
  inOrder?: boolean;
  loss?: number;
  burst?: BurstLoss;
  /** This share of packets comes `extraMs` late. */
  reorder?: { share: number; extraMs: number };
  /** This share of packets comes twice. */
  repeat?: number;
  /** Packets that do not fit are dropped. The packet in the serializer counts. */
  queueBytes?: number;
  /** From `atMs` on the serializer works at this rate. */
  rateChanges?: readonly { atMs: number; bytesPerSec: number }[];
  /** Packets that leave the serializer from `atMs` on have this delay. They can overtake others. */
  delayChanges?: readonly { atMs: number; delayMs: number }[];
  /** From this time on nothing is lost, late or repeated by chance. */
  healMs?: number;
}

interface LinkPlace {
  events: EventQueue;
  pool: PacketPool;
  log: EventLog;
  random: Random;
  /** Identifies this link and direction in the log. */
  name: number;
  /** The packet is at the other end. The callee owns the slot. */
  deliver(slot: number): void;
  /** The serializer can take another packet. */
  onFree?(): void;
  onEvent?(event: LinkEvent, link: number, slot: number): void;
}

const [SENT, DROPPED, LOST, DELIVERED] = [0, 1, 2, 3] as const;

export class Link {
  /** While true, every packet that leaves the serializer is lost. */
  down = false;
  readonly #queue: number[] = [];
  #head = 0;
  #queuedBytes = 0;
  #sending = false;
  #bytesPerSec: number;
  #bad = false;
  #lastArrivalMs = 0;
  readonly #onSent: number;
  readonly #onArrival: number;

  readonly #options: LinkOptions;
  readonly #place: LinkPlace;

  constructor(options: LinkOptions, place: LinkPlace) {
    this.#options = options;
    this.#place = place;

    this.#bytesPerSec = options.bytesPerSec;
    this.#onSent = place.events.register(() => this.#handleSent());
    this.#onArrival = place.events.register((slot) => this.#handleArrival(slot));
    const changes = options.rateChanges ?? [];
    const onChange = place.events.register((index) => this.#handleRate(changes[index]!.bytesPerSec));
    changes.forEach((change, index) => place.events.schedule(change.atMs, onChange, index));
  }

  /** Packets that wait, and the one in the serializer. */
  get queuedPackets(): number {
    return this.#queue.length - this.#head;
  }

  send(slot: number): void {
    const bytes = this.#place.pool.bytes[slot]!;
    if (this.#queuedBytes + bytes > (this.#options.queueBytes ?? Infinity) && this.queuedPackets > 0)
      return this.#discard(slot, DROPPED);
    this.#note(SENT, slot);
    if (this.#bytesPerSec === Infinity) return this.#depart(slot);
    this.#queue.push(slot);
    this.#queuedBytes += bytes;
    this.#startNext();
  }

  #startNext(): void {
    if (this.#sending || this.#bytesPerSec === 0 || this.queuedPackets === 0) return;
    const { events, pool } = this.#place;
    this.#sending = true;
    events.schedule(events.nowMs + (pool.bytes[this.#queue[this.#head]!]! * 1000) / this.#bytesPerSec, this.#onSent, 0);
  }

  #handleSent(): void {
    const slot = this.#queue[this.#head++]!;
    if (this.#head === 64) {
      this.#queue.splice(0, 64);
      this.#head = 0;
    }
    this.#queuedBytes -= this.#place.pool.bytes[slot]!;
    this.#sending = false;
    this.#depart(slot);
    this.#startNext();
    this.#place.onFree?.();
  }

  #handleRate(bytesPerSec: number): void {
    this.#bytesPerSec = bytesPerSec;
    this.#startNext();
    this.#place.onFree?.();
  }

  #depart(slot: number): void {
    const { repeat } = this.#options;
    const { pool, random } = this.#place;
    if (this.#isLost() || this.down) return this.#discard(slot, LOST);
    if (repeat !== undefined && !this.#healed && random.unit() < repeat) {
      this.#travel(pool.take(pool.message[slot], pool.bytes[slot]!, pool.tag[slot], pool.mark[slot]));
    }
    this.#travel(slot);
  }

  #travel(slot: number): void {
    const { jitterMs = 0, reorder } = this.#options;
    const { events, random } = this.#place;
    let atMs = events.nowMs + this.#delayMs;
    if (this.#healed) return events.schedule(atMs, this.#onArrival, slot);
    if (jitterMs > 0) atMs += random.unit() * jitterMs;
    if (reorder && random.unit() < reorder.share) atMs += reorder.extraMs;
    if (this.#options.inOrder) atMs = this.#lastArrivalMs = Math.max(atMs, this.#lastArrivalMs);
    events.schedule(atMs, this.#onArrival, slot);
  }

  get #delayMs(): number {
    const { delayMs, delayChanges = [] } = this.#options;
    return delayChanges.findLast(({ atMs }) => atMs <= this.#place.events.nowMs)?.delayMs ?? delayMs;
  }

  get #healed(): boolean {
    return this.#place.events.nowMs >= (this.#options.healMs ?? Infinity);
  }

  #isLost(): boolean {
    const { loss = 0, burst } = this.#options;
    const { random } = this.#place;
    if (this.#healed) return false;
    if (burst && random.unit() < (this.#bad ? burst.leave : burst.enter)) this.#bad = !this.#bad;
    if (burst && this.#bad && random.unit() < burst.loss) return true;
    return loss > 0 && random.unit() < loss;
  }

  #handleArrival(slot: number): void {
    this.#note(DELIVERED, slot);
    this.#place.deliver(slot);
  }

  #discard(slot: number, event: 1 | 2): void {
    this.#note(event, slot);
    this.#place.pool.giveBack(slot);
  }

  #note(event: 0 | 1 | 2 | 3, slot: number): void {
    const { events, log, pool, name, onEvent } = this.#place;
    const message = pool.message[slot];
    log.add(
      events.nowMs,
      event,
      name,
      pool.bytes[slot]!,
      message ? wordOf(message) : (pool.tag[slot]! << 20) ^ pool.mark[slot]!,
    );
    onEvent?.(LINK_EVENTS[event], name, slot);
  }
}

/** The first bytes of a frame hold its type, sequence and coding. The last byte stands for its payload. */
function wordOf(message: Uint8Array): number {
  let word = 0;
  const headBytes = Math.min(message.length, 20);
  for (let i = 0; i < headBytes; i++) word = Math.imul(word ^ message[i]!, 0x01000193);
  return word ^ message[message.length - 1]!;
}

/** The share of packets that random loss and burst loss take together in the long run. */
export function meanLoss(options: Pick<LinkOptions, "loss" | "burst">): number {
  const { loss = 0, burst } = options;
  const burstLoss = burst ? (burst.loss * burst.enter) / (burst.enter + burst.leave) : 0;
  return 1 - (1 - loss) * (1 - burstLoss);
}
