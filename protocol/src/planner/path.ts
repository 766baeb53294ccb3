/**
 * Path: what the client knows of one proxy and of the way to it. It knows what was ordered, what came, how fast packets
 * come and how many get lost. It keeps estimates and decides nothing: the planner orders. Pure: time arrives as
 * `nowMs`. Rules: protocol.md §8.4, §8.6 and §8.9.
 */
import type { DataFrame } from "../types";
import { ArrivalRate } from "./arrival-rate";
import { GrantEchoes } from "./grant-echoes";
import type { KnownPath } from "./known";
import { PacketLoss } from "./packet-loss";
import { RoundTrip, SLACK_MS } from "./round-trip";
import { SlowStart } from "./slow-start";

/** While a proxy has sent fewer packets, for a shorter time, its order stays: its measured rate is still a guess. */
const YOUNG_PACKETS = 8;
const YOUNG_MS = 10;
/** A proxy whose round trip is remembered may answer this much later before nothing is expected of it. */
const EXPECTED_MS_LATE = 20;
/** A proxy with packets due that sends none for this long, or for the time of this many packets, has fallen quiet. */
const QUIET_MS_MIN = 20;
const QUIET_PACKETS = 6;
/** The measured rate falls with the silence itself, so a low rate excuses a silence of at most this time. */
const QUIET_MS_MAX = 500;
/** The time between two requests to a quiet proxy doubles this many times. */
const QUIET_DOUBLINGS = 2;
/** A link has fallen when packets come this many times slower than they were sent. In slow start it is up to twice. */
const FALLEN_TIMES = 3;
/** A queue fills before one link alone when its round trip grew by over this many times what all have grown by. */
const OWN_QUEUE_TIMES = 2;

/** Measurements of a proxy from before its first answer. */
export interface Remembered {
  rttMs: number;
  /** Packets per ms; 0 when not known. */
  perMs: number;
  loss: number | undefined;
}

export class Path {
  /** The generation of each packet by sequence, as ordered or as received. The proxy may send this whole list. */
  readonly order: number[];
  /** The soonest time at which each packet can come: a round trip after its order, or 0 in the first share. */
  readonly soonestMs: number[] = [];
  /** The grant that ordered each packet. */
  readonly #grantedBy: number[] = [];
  /** One more than the highest sequence received. */
  next = 0;
  /** The proxy has stopped sending. */
  gone = false;
  /** The first frame has come. */
  heard = false;
  /** The order may have this length. */
  limit = 0;
  /** The greatest length of the order in any request or grant. No packet from this sequence on was asked for. */
  quota: number;
  /** When the proxy was last heard, or asked again after it had fallen quiet. */
  lastArrivalMs: number;
  readonly roundTrip: RoundTrip;
  readonly rate: ArrivalRate;
  readonly loss: PacketLoss;
  #grants: GrantEchoes;
  readonly #slowStart = new SlowStart();
  readonly #remembered: Remembered | undefined;
  /** What each request to the proxy asked it to begin with, until its first data shows which request it followed. */
  readonly #begins: number[][];
  /** When the proxy was first asked; undefined before that. */
  #begunMs: number | undefined;
  /** The queue that all paths share: the time by which all round trips have grown. */
  #sharedMs = 0;
  #heardMs = 0;
  /** When the quiet proxy was last asked for more, and how often since it was heard. */
  #askedMs = -Infinity;
  #askedCount = 0;

  /** `begin`: the order that the proxy begins with. `askedMs`: when it was asked for that, if it was already. */
  constructor(begin: number[], nowMs: number, askedMs?: number, remembered?: Remembered) {
    this.#remembered = remembered;
    this.order = begin.slice();
    this.#begins = [begin];
    this.quota = begin.length;
    this.lastArrivalMs = nowMs;
    this.#begunMs = askedMs;
    this.roundTrip = new RoundTrip(remembered?.rttMs);
    this.rate = new ArrivalRate(remembered?.perMs ?? 0, () => this.#grants.forgetOld());
    this.loss = new PacketLoss(remembered?.loss);
    this.#grants = new GrantEchoes(begin.length);
  }

  /** The proxy is sent one more request, or a new sender is asked. */
  handleAsked(begin: number[], nowMs: number): void {
    if (this.heard) return;
    this.#begins.push(begin);
    this.quota = Math.max(this.quota, begin.length);
    this.#begunMs ??= nowMs;
  }

  /**
   * When the first packet of a proxy that has not answered yet will come, by the measurements of earlier chunks.
   * Undefined without these, and when the packet is long overdue.
   */
  expectedMs(nowMs: number): number | undefined {
    if (this.heard || !this.#remembered || this.#begunMs === undefined) return undefined;
    const atMs = this.#begunMs + this.#remembered.rttMs + SLACK_MS;
    return nowMs < atMs + EXPECTED_MS_LATE ? Math.max(atMs, nowMs) : undefined;
  }

  /** The sender at the other end is a new one: its sequence and grants start again. Estimates of the way stay. */
  restart(nowMs: number): void {
    this.#begunMs = undefined;
    for (const list of [this.#begins, this.order, this.soonestMs, this.#grantedBy]) list.length = 0;
    for (const estimate of [this.loss, this.rate, this.roundTrip, this.#slowStart]) estimate.restart();
    this.#grants = new GrantEchoes(0);
    this.next = this.quota = 0;
    this.gone = this.heard = false;
    this.lastArrivalMs = nowMs;
  }

  /** All proxies together bring less than before. */
  handleLess(): void {
    if (this.roundTrip.handleLess()) this.rate.forget();
  }

  /** How long a grant that leaves now takes to have an effect. With nothing on its way there is no queue either. */
  get delayMs(): number {
    return this.next < this.order.length ? this.roundTrip.latestMs : this.roundTrip.leastMs;
  }

  /** The first frame came. */
  handleHeard(nowMs: number): void {
    if (this.heard) return;
    this.heard = true;
    this.#heardMs = nowMs;
    this.lastArrivalMs = nowMs;
    this.rate.begin(nowMs);
  }

  /** `useful`: the packet was innovative, or its generation needed nothing more. */
  handleData({ sequence, generationIndex, coding }: DataFrame, useful: boolean, nowMs: number): void {
    this.loss.received++;
    this.handleHeard(nowMs);
    if (this.#begins.length > 0) this.#settleBegin(sequence, generationIndex);
    const wasIdle = sequence >= this.#grants.idleFrom;
    if (coding.kind !== "vector") this.#handleEcho(coding.grant, sequence, nowMs);
    if (sequence < this.next) {
      if (this.loss.handleLate(sequence, nowMs)) this.loss.judge(useful);
      return;
    }
    this.loss.judge(useful);
    this.rate.notePause(sequence, sequence === this.next, this.lastArrivalMs, this.soonestMs[sequence] ?? 0, nowMs);
    this.loss.handleOvertaken(this.next, sequence, nowMs);
    while (this.order.length <= sequence) this.order.push(generationIndex);
    if (this.order[sequence] !== generationIndex) this.#displace(sequence, generationIndex, nowMs);
    this.next = sequence + 1;
    this.lastArrivalMs = nowMs;
    this.#askedCount = 0;
    this.rate.handleArrival(sequence, wasIdle, this.roundTrip.latestMs, this.#doubtMs, nowMs);
  }

  /** Packets per ms; 0 while nothing is known. */
  perMs(sharedMs: number, nowMs: number): number {
    this.#sharedMs = sharedMs;
    const dueFromMs = this.next < this.order.length ? (this.soonestMs[this.next] ?? 0) : undefined;
    return this.rate.perMs(dueFromMs, this.#doubtMs, nowMs);
  }

  /** Packets that may be on their way because the sender's window is still opening. Call it with each plan. */
  openingPackets(nowMs: number): number {
    return this.#slowStart.packetsAllowed(this.next, this.roundTrip.leastMs, nowMs);
  }

  /** Orders one packet more. It cannot come before `soonestMs`. */
  orderMore(generationIndex: number, soonestMs = 0): void {
    for (const list of [this.soonestMs, this.#grantedBy]) while (list.length < this.order.length) list.push(0);
    this.soonestMs[this.order.length] = soonestMs;
    this.#grantedBy[this.order.length] = this.#grants.nextSequence;
    this.order.push(generationIndex);
  }

  /** The memory of this proxy for later chunks; undefined until both rate and round trip were measured. */
  toRemember(packetBytes: number): KnownPath | undefined {
    const { leastMeasuredMs: rttMs } = this.roundTrip;
    if (this.rate.measuredPerMs === 0 || rttMs === undefined) return undefined;
    const bytesPerSec = this.rate.measuredPerMs * this.loss.usefulShare * packetBytes * 1000;
    return { rttMs, bytesPerSec, loss: this.loss.share };
  }

  /** Packets are due and none has come for too long. */
  isQuiet(perMs: number, nowMs: number): boolean {
    if (this.next >= this.order.length) return false;
    return nowMs - Math.max(this.lastArrivalMs, this.soonestMs[this.next] ?? 0) > this.#quietMs(perMs);
  }

  /**
   * A quiet proxy may have sent every granted packet, and all of them may be lost. A grant of one more packet shows
   * whether it still sends.
   * Returns true when it is time to grant that packet, and counts it.
   */
  isToBeAsked(perMs: number, nowMs: number): boolean {
    if (nowMs - this.#askedMs <= this.#quietMs(perMs) * 2 ** this.#askedCount) return false;
    this.#askedMs = nowMs;
    this.#askedCount = Math.min(this.#askedCount + 1, QUIET_DOUBLINGS);
    return true;
  }

  /** The quiet proxy was asked for more and has not been heard since: all of its order may have been sent. */
  get isAsked(): boolean {
    return this.#askedCount > 0;
  }

  /** Too little was heard to say how fast the proxy is. */
  isYoung(nowMs: number): boolean {
    return this.next < YOUNG_PACKETS && nowMs - this.#heardMs < YOUNG_MS;
  }

  /** The sequence that the proxy will have come to when a grant that is sent at `atMs` reaches it. */
  sentBy(perMs: number, atMs: number): number {
    return this.#grants.reachedBy(this.next, perMs, this.roundTrip.latestMs, atMs);
  }

  /** The present order leaves as a grant. `full`: only the quota keeps it from being longer. Returns its sequence. */
  nextGrant(full: boolean, nowMs: number): number {
    this.quota = Math.max(this.quota, this.order.length);
    return this.#grants.handleSent(this.order.length, full, nowMs);
  }

  #handleEcho(echo: number, sequence: number, nowMs: number): void {
    const sample = this.#grants.handleEcho(echo, sequence, nowMs);
    if (sample) this.roundTrip.handleGrantSample(sample.rttMs, sample.wasIdle, nowMs);
  }

  /** The first data shows which of its requests reached the proxy: the last one that agrees with the packet. */
  #settleBegin(sequence: number, generationIndex: number): void {
    const begin = this.#begins.findLast((order) => order[sequence] === generationIndex) ?? [];
    for (const list of [this.#begins, this.order, this.soonestMs, this.#grantedBy]) list.length = 0;
    for (const index of begin) this.order.push(index);
    this.#grants.idleFrom = begin.length;
  }

  /**
   * Another packet came than the one ordered at this place. If the proxy did not know of that order yet, it will send
   * the ordered packet once it does, and one packet fewer of the generation that came (protocol.md §8.4). If the link
   * has fallen, all that the proxy sent before the grant reached it waits in the link's queue.
   */
  #displace(sequence: number, generationIndex: number, nowMs: number): void {
    const grantedBy = this.#grantedBy;
    const { order, soonestMs } = this;
    const grantSequence = grantedBy[sequence] ?? 0;
    if (!this.#grants.isKnown(grantSequence)) {
      const same = order.indexOf(generationIndex, sequence + 1);
      const end = same < 0 ? order.length - 1 : same;
      for (const list of [order, soonestMs, grantedBy]) moveUp(list, sequence, end);
      const afterMs = this.#grants.sentAfterEchoedMs(grantSequence);
      if (end > sequence && afterMs !== undefined)
        soonestMs[sequence + 1] = Math.max(soonestMs[sequence + 1]!, nowMs + this.#fallenTimes * afterMs);
    }
    order[sequence] = generationIndex;
  }

  /** How much the order of packets and the shared queue may delay a packet. */
  get #doubtMs(): number {
    return this.loss.reorderMs + this.#sharedMs;
  }

  #quietMs(perMs: number): number {
    const silenceMs = Math.max(QUIET_MS_MIN + this.rate.pauseMs, Math.min(QUIET_PACKETS / perMs, QUIET_MS_MAX));
    return this.loss.reorderMs + silenceMs;
  }

  /** How many times slower packets come than they were sent, if a queue fills before this link alone; otherwise 0. */
  get #fallenTimes(): number {
    const { latestMs, leastMs } = this.roundTrip;
    const times = this.#grants.sentPerMs(this.rate.measuredPerMs) / this.rate.measuredPerMs;
    return times > FALLEN_TIMES && latestMs - leastMs > OWN_QUEUE_TIMES * this.#sharedMs ? times : 0;
  }
}

/**
 * Moves the items from `from` to before `end` one place later. For arrays `copyWithin` is far slower than this loop,
 * because engines implement it item by item.
 */
function moveUp(list: number[], from: number, end: number): void {
  for (let at = Math.min(end, list.length - 1); at > from; at--) list[at] = list[at - 1]!;
}
