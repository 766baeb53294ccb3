/**
 * What the client knows of one proxy and the way to it: what was ordered of it, what came, and from that its rate,
 * round trip, loss and reordering. Estimates only; what to order is the planner's. Pure: time arrives as `nowMs`.
 * Specification: docs/spec/protocol.md §8.6.
 */
import type { KnownPath } from "./known";
import type { DataFrame } from "./types";

/**
 * Rates are measured over this many samples of arrival or, where that is longer, so many round trips: over less than
 * the time that a grant takes to be felt, grants and rates would swing each other up. Samples are this far apart.
 */
const RATE_SAMPLES = 32;
const RATE_ROUNDS = 3;
const RATE_STEP_MS = 0.2;
/** With fewer samples than this the rate measured before holds. */
const RATE_SAMPLES_MIN = 3;
/** A proxy of which fewer packets have come, and for a shorter time, is left alone: its rate is a guess. */
const YOUNG_PACKETS = 8;
const YOUNG_MS = 10;
/**
 * The rate has changed when one of so many latest stretches is so many deviations off; a hiccup of this length is none.
 */
const CHANGE_SAMPLES = 16;
const CHANGE_SIGMAS = 4;
const HICCUP_MS = 5;
/**
 * In slow start a sender brings up to twice as many packets in each round trip as in the one before; from here on it is
 * held to.
 */
const OPENING_GROWTH = 1.75;
/** A grant takes effect this much later than the round trip says. */
export const SLACK_MS = 3;
/** Grants reach this far beyond the round trip: room for a late or lost grant, and bounds the queue on the way. */
export const AHEAD_MS = 40;
/** A way is held to be longer once grants have taken longer than they reach ahead for this many round trips. */
const LONGER_ROUNDS = 0.5;
const RTT_MS_UNKNOWN = 100;
/** A proxy whose round trip is known may answer so much later before nothing is expected of it. */
const EXPECTED_MS_LATE = 20;
/** A proxy with packets due that sends none for this long, or for so many packets' time, has fallen quiet. */
const QUIET_MS_MIN = 20;
const QUIET_PACKETS = 6;
/** The rate falls with the silence itself: after this long it is no excuse. */
const QUIET_MS_MAX = 500;
/**
 * A late packet was held up by a pause where so many later the proxy is not much further behind: by that time over the
 * lateness.
 */
const PAUSE_SEEN_PACKETS = 3;
const PAUSE_BEHIND = 1.5;
/** A rate below this part of the one before the pause was taken for a fall. */
const PAUSE_FALL = 0.5;
/**
 * A pause is expected again for about so many packets; longer ones count as this, or a proxy could have itself waited
 * for.
 */
const PAUSE_PACKETS = 256;
const PAUSE_MS_MAX = 100;
/** The time between two askings of a quiet proxy doubles so often. */
const QUIET_DOUBLINGS = 2;
/** Loss is measured over about this many packets. */
const LOSS_PACKETS = 256;
/** Before its packets tell how useful a proxy is, so many are supposed to have been; below this share it is useless. */
const USEFUL_PACKETS_SUPPOSED = 8;
const USEFUL_SHARE_MIN = 0.25;
/** A loss that is remembered counts as much as this many packets. */
const LOSS_PACKETS_KNOWN = 16;
/**
 * An echo is the low byte of a grant's sequence: so many values may be out unechoed. A grant beyond them repeats the
 * last one's low byte, so that no echo, an old one or the 0 of a proxy without a grant, is ever taken for a newer
 * grant's.
 */
const GRANTS_OUT = 128;
const GRANT_BYTES = 256;
/** A link has fallen where packets come so many times slower than they were sent; in slow start it is up to twice. */
const FALLEN_TIMES = 3;
/** The rate at which a proxy sends is measured over so many grants. */
const ECHOES = 6;

/** What is known of a proxy before it has answered. */
export interface Remembered {
  rttMs: number;
  /** Packets per ms; 0: not known. */
  perMs: number;
  /** Undefined: not known. */
  loss: number | undefined;
}

interface Arrival {
  atMs: number;
  sequence: number;
}

export class Path {
  /** Generation of each packet by sequence, as ordered, or as come; its length is the quota. */
  readonly order: number[];
  /** When each of them can come at the soonest: it was ordered a round trip before. 0: with the first share. */
  readonly soonestMs: number[] = [];
  /** The grant that ordered each of them. */
  readonly #grantedBy: number[] = [];
  /** The newest grant that the proxy is known to have, and the first packet that said so. */
  #echoed = 0;
  #echoedAt = -1;
  #echoedSentMs = 0;
  /** One more than the highest sequence received. */
  next = 0;
  /** Sequences passed over and not given up yet, with when that was seen. */
  readonly gaps = new Map<number, number>();
  received = 0;
  lost = 0;
  /** Packets that are no repeats, and of them those in vain although something was missing. */
  #judged = 0;
  #useless = 0;
  gone = false;
  /** The first frame has come. */
  heard = false;
  /** The order may be this long. */
  limit = 0;
  /** The longest that the order has been in a request or grant: no packet with a sequence beyond it was asked for. */
  quota: number;
  /** The latest round trip: a grant's from its sending to the first packet that knows of it, the request's before. */
  rttMs = RTT_MS_UNKNOWN;
  /** When it was last heard, or asked again after it had fallen quiet. */
  lastArrivalMs: number;
  /** What it was asked to begin with, each time, until its first data shows which it is. */
  readonly #begins: number[][];
  /** When it was asked first; undefined as long as it was not. */
  #begunMs: number | undefined;
  #leastSeenMs = Infinity;
  /**
   * While round trips are longer than grants reach ahead: the first and the last whose grant found it without work, and
   * the least of those.
   */
  #longer: { sinceMs: number; untilMs: number; leastMs: number } | undefined;
  /** As last measured; before, as remembered, or 0. */
  #perMsMeasured = 0;
  /** The queue that all paths share: what all round trips have grown by. */
  #sharedMs = 0;
  #heardMs = 0;
  /** When it was last asked for more although it was quiet, and how often since it was heard. */
  #askedMs = -Infinity;
  #askedCount = 0;
  readonly #arrivals: Arrival[] = [];
  /** Moments of the last round trip: how far it had come, and how many packets the round trip before had brought. */
  readonly #marks: { atMs: number; next: number; packets: number }[] = [];
  /**
   * When grants were sent, and the first packet that knew of each: where the proxy had come to when a grant reached it.
   */
  readonly #echoes: { grantSentMs: number; sequence: number }[] = [];
  /**
   * When each grant was sent that is newer than any echoed, and how long the order was; by the low byte of its
   * sequence. The time is not known where several have that byte.
   */
  readonly #grants = new Map<
    number,
    { grantSequence: number; sentMs: number | undefined; end: number; full: boolean }
  >();
  /** From this sequence on the proxy had nothing to do, by the newest grant that it is known to have. */
  #idleFrom: number;
  /** How long the order was in that grant: the proxy had nothing to do when a later one brought a packet beyond. */
  #grantedEnd = Infinity;
  /** How long packets were seen to come after later ones. */
  #reorderMs = 1;
  #grantSequence = 0;
  /**
   * The longest pause lately after which packets came on as before: of a busy processor, the proxy's or this one's, or
   * of the way, as over radio. Neither rate nor proxy has changed then.
   */
  pauseMs = 0;
  /** The rate before the last arrival, and a packet that came late by it. */
  #steadyPerMs = 0;
  #late: { sequence: number; dueMs: number; lateMs: number; perMs: number } | undefined;

  readonly #remembered: Remembered | undefined;

  /** `begin`: the order that it is to begin with, asked for at `askedMs` if it was asked already. */
  constructor(begin: number[], nowMs: number, askedMs?: number, remembered?: Remembered) {
    this.#remembered = remembered;

    this.order = begin.slice();
    this.#begins = [begin];
    this.#idleFrom = this.quota = begin.length;
    this.lastArrivalMs = nowMs;
    this.#begunMs = askedMs;
    if (remembered === undefined) return;
    this.rttMs = remembered.rttMs;
    this.#perMsMeasured = remembered.perMs;
    if (remembered.loss === undefined) return;
    this.lost = remembered.loss * LOSS_PACKETS_KNOWN;
    this.received = LOSS_PACKETS_KNOWN - this.lost;
  }

  /** It is asked once more, or a new sender is; it begins as it was asked first, or as now. */
  handleAsked(begin: number[], nowMs: number): void {
    if (this.heard) return;
    this.#begins.push(begin);
    this.quota = Math.max(this.quota, begin.length);
    this.#begunMs ??= nowMs;
  }

  /**
   * When the first packet of a proxy that has not answered yet will come, by what is known of it; undefined where
   * nothing is, or where it is long overdue.
   */
  expectedMs(nowMs: number): number | undefined {
    if (this.heard || !this.#remembered || this.#begunMs === undefined) return undefined;
    const atMs = this.#begunMs + this.#remembered.rttMs + SLACK_MS;
    return nowMs < atMs + EXPECTED_MS_LATE ? Math.max(atMs, nowMs) : undefined;
  }

  /** The sender at the other end is a new one. */
  restart(nowMs: number): void {
    this.#begunMs = undefined;
    this.#begins.length = 0;
    this.order.length = 0;
    this.soonestMs.length = 0;
    this.#grantedBy.length = 0;
    for (const list of [this.gaps, this.#grants]) list.clear();
    for (const list of [this.#arrivals, this.#marks, this.#echoes]) list.length = 0;
    Object.assign(this, {
      next: 0,
      gone: false,
      heard: false,
      grantSequence: 0,
      echoed: 0,
      echoedAt: -1,
      idleFrom: 0,
      quota: 0,
      grantedEnd: Infinity,
      longer: undefined,
      late: undefined,
      lastArrivalMs: nowMs,
    });
  }

  handleRoundTrip(rttMs: number): void {
    this.rttMs = rttMs;
    this.#leastSeenMs = Math.min(this.#leastSeenMs, rttMs);
  }

  /**
   * Less comes than before, from all proxies together. Where grants find this one without work, as they take longer
   * than they reach ahead, the way has become longer: its least round trip is that of now.
   */
  handleLess(): void {
    const longer = this.#longer;
    if (!longer || longer.untilMs - longer.sinceMs < LONGER_ROUNDS * longer.leastMs) return;
    this.#leastSeenMs = longer.leastMs;
    this.#longer = undefined;
    this.#arrivals.length = 0;
  }

  /** The least round trip seen; what is supposed as long as none was. */
  get leastRttMs(): number {
    return Math.min(this.#leastSeenMs, this.rttMs);
  }

  /** How long it takes from now on for a grant to be felt: where nothing is on its way, no queue is either. */
  get delayMs(): number {
    return this.next < this.order.length ? this.rttMs : this.leastRttMs;
  }

  /** The first frame came: data follows it closely, so that the rate can be measured from here on. */
  handleHeard(nowMs: number): void {
    if (this.heard) return;
    this.heard = true;
    this.#heardMs = nowMs;
    this.lastArrivalMs = nowMs;
    this.#arrivals.push({ atMs: nowMs, sequence: -1 });
  }

  /** `useful`: it was innovative, or its generation needed nothing more. */
  handleData({ sequence, generationIndex, coding }: DataFrame, useful: boolean, nowMs: number): void {
    this.received++;
    this.handleHeard(nowMs);
    if (this.#begins.length > 0) this.#settleBegin(sequence, generationIndex);
    const stalled = sequence >= this.#idleFrom;
    if (coding.kind !== "vector") this.#noteEcho(coding.grant, sequence, nowMs);
    if (sequence < this.next) {
      const missedMs = this.gaps.get(sequence);
      if (missedMs === undefined) return;
      this.#reorderMs = Math.max(this.#reorderMs, 1.5 * (nowMs - missedMs));
      this.gaps.delete(sequence);
      this.#judge(useful);
      return;
    }
    this.#judge(useful);
    this.#notePause(sequence, nowMs);
    for (let missed = this.next; missed < sequence; missed++) this.gaps.set(missed, nowMs);
    while (this.order.length <= sequence) this.order.push(generationIndex);
    if (this.order[sequence] !== generationIndex) this.#displace(sequence, generationIndex, nowMs);
    this.next = sequence + 1;
    this.lastArrivalMs = nowMs;
    this.#askedCount = 0;
    this.#noteArrival(sequence, stalled, nowMs);
    this.#steadyPerMs = this.#perMsMeasured;
  }

  /** Gives up gaps that are older than any reordering seen. */
  settleGaps(nowMs: number): void {
    for (const [sequence, missedMs] of this.gaps) {
      if (nowMs - missedMs <= this.#reorderMs) continue;
      this.gaps.delete(sequence);
      this.lost++;
    }
    if (this.lost + this.received <= LOSS_PACKETS) return;
    this.lost /= 2;
    this.received /= 2;
    this.#judged /= 2;
    this.#useless /= 2;
  }

  /**
   * A packet came that another was ordered instead of. Where the proxy did not know of that yet, it will send the other
   * as soon as it does, and one less of what came: §8.4. Before a link that has fallen all waits that the proxy sent
   * before the grant that ordered the other reached it.
   */
  #displace(sequence: number, generationIndex: number, nowMs: number): void {
    const grantedBy = this.#grantedBy;
    const { order, soonestMs } = this;
    const grantSequence = grantedBy[sequence] ?? 0;
    if (grantSequence > this.#echoed) {
      const same = order.indexOf(generationIndex, sequence + 1);
      const end = same < 0 ? order.length - 1 : same;
      for (const list of [order, soonestMs, grantedBy]) moveUp(list, sequence, end);
      const sentMs = this.#grants.get(grantSequence % GRANT_BYTES)?.sentMs;
      if (end > sequence && sentMs !== undefined)
        soonestMs[sequence + 1] = Math.max(
          soonestMs[sequence + 1]!,
          nowMs + this.#fallen * (sentMs - this.#echoedSentMs),
        );
    }
    order[sequence] = generationIndex;
  }

  #notePause(sequence: number, nowMs: number): void {
    const late = this.#late;
    const perMs = this.#steadyPerMs;
    this.pauseMs *= 1 - 1 / PAUSE_PACKETS;
    if (late && sequence >= late.sequence + PAUSE_SEEN_PACKETS) {
      const behindMs = nowMs - late.dueMs - (sequence - late.sequence) / late.perMs;
      if (behindMs < PAUSE_BEHIND * late.lateMs) this.#handlePause(late.lateMs, late.perMs);
      this.#late = undefined;
    }
    const dueMs = Math.max(this.lastArrivalMs + 1 / perMs, this.soonestMs[sequence] ?? 0);
    const lateMs = nowMs - dueMs;
    if (perMs > 0 && sequence === this.next && lateMs > Math.max(HICCUP_MS, this.#late?.lateMs ?? 0))
      this.#late = { sequence, dueMs, lateMs, perMs };
  }

  /** What was taken for a fall meanwhile was none. */
  #handlePause(lateMs: number, perMs: number): void {
    this.pauseMs = Math.max(this.pauseMs, Math.min(lateMs, PAUSE_MS_MAX));
    if (this.#perMsMeasured > PAUSE_FALL * perMs) return;
    this.#arrivals.length = 0;
    this.#perMsMeasured = perMs;
  }

  #judge(useful: boolean): void {
    this.#judged++;
    if (!useful) this.#useless++;
  }

  /**
   * The share of its packets that are of use where something is missing, above 0: nearly 1 unless the proxy is
   * malicious.
   */
  get usefulShare(): number {
    return 1 - this.#useless / (this.#judged + USEFUL_PACKETS_SUPPOSED);
  }

  /** Nothing is to be expected of it. */
  get isUseless(): boolean {
    return this.usefulShare < USEFUL_SHARE_MIN;
  }

  /** Packets per ms; 0 while nothing is known. */
  perMs(sharedMs: number, nowMs: number): number {
    this.#sharedMs = sharedMs;
    const last = this.#arrivals.at(-1);
    if (!last || (this.#arrivals.length < RATE_SAMPLES_MIN && this.#perMsMeasured > 0)) return this.#perMsMeasured;
    const dueSinceMs = this.next < this.order.length ? nowMs - Math.max(last.atMs, this.soonestMs[this.next] ?? 0) : 0;
    return this.#measure(last.atMs + Math.max(0, dueSinceMs));
  }

  /**
   * Packets that may be under way because the sender's window is still opening: twice those of the last round trip, as
   * long as that brought far more than the one before. 0: it is not. To be asked with each plan, which marks the
   * moment.
   */
  openingPackets(nowMs: number): number {
    const marks = this.#marks;
    const { leastRttMs } = this;
    while (marks[1] && nowMs - marks[1].atMs >= leastRttMs) marks.shift();
    const [first] = marks;
    const packets = this.next - (first?.next ?? 0);
    const before = first && nowMs - first.atMs >= leastRttMs ? first.packets : 0;
    marks.push({ atMs: nowMs, next: this.next, packets });
    return packets > OPENING_GROWTH * before ? 2 * packets : 0;
  }

  /** For how long its rate was seen as it is. */
  seenMs(nowMs: number): number {
    return nowMs - (this.#arrivals[0]?.atMs ?? nowMs);
  }

  /** One packet more, which can come at `soonestMs` at the soonest. */
  orderMore(generationIndex: number, soonestMs = 0): void {
    for (const list of [this.soonestMs, this.#grantedBy]) while (list.length < this.order.length) list.push(0);
    this.soonestMs[this.order.length] = soonestMs;
    this.#grantedBy[this.order.length] = this.#grantSequence + 1;
    this.order.push(generationIndex);
  }

  /** Undefined as long as neither rate nor round trip was measured. */
  toRemember(packetBytes: number): KnownPath | undefined {
    if (this.#perMsMeasured === 0 || this.#leastSeenMs === Infinity) return undefined;
    return {
      rttMs: this.#leastSeenMs,
      bytesPerSec: this.#perMsMeasured * this.usefulShare * packetBytes * 1000,
      loss: this.lost / (this.lost + this.received),
    };
  }

  /** Packets are due and none has come for too long. */
  isQuiet(perMs: number, nowMs: number): boolean {
    if (this.next >= this.order.length) return false;
    return nowMs - Math.max(this.lastArrivalMs, this.soonestMs[this.next] ?? 0) > this.#quietMs(perMs);
  }

  /**
   * All that a quiet proxy was granted may be sent and lost, so that it has nothing to be heard by: now and then it is
   * to be granted a packet beyond that.
   */
  isToBeAsked(perMs: number, nowMs: number): boolean {
    if (nowMs - this.#askedMs <= this.#quietMs(perMs) * 2 ** this.#askedCount) return false;
    this.#askedMs = nowMs;
    this.#askedCount = Math.min(this.#askedCount + 1, QUIET_DOUBLINGS);
    return true;
  }

  /** It was asked for more while it was quiet, and has not been heard since: all of its order may have been sent. */
  get isAsked(): boolean {
    return this.#askedCount > 0;
  }

  #quietMs(perMs: number): number {
    return this.#reorderMs + Math.max(QUIET_MS_MIN + this.pauseMs, Math.min(QUIET_PACKETS / perMs, QUIET_MS_MAX));
  }

  /** Too little has been heard to say how fast it is. */
  isYoung(nowMs: number): boolean {
    return this.next < YOUNG_PACKETS && nowMs - this.#heardMs < YOUNG_MS;
  }

  /** How far the proxy will have come when a grant that is sent at `atMs` reaches it. */
  sentBy(perMs: number, atMs: number): number {
    const last = this.#echoes.at(-1);
    if (!last) return this.next + Math.ceil(perMs * (this.rttMs + SLACK_MS));
    return Math.max(this.next, last.sequence + 1 + Math.ceil(this.#sendPerMs(perMs) * (atMs - last.grantSentMs)));
  }

  /**
   * How many times slower packets come than they were sent, where a queue fills before this link alone; 0 where none
   * does.
   */
  get #fallen(): number {
    const times = this.#sendPerMs(this.#perMsMeasured) / this.#perMsMeasured;
    return times > FALLEN_TIMES && this.rttMs - this.leastRttMs > 2 * this.#sharedMs ? times : 0;
  }

  /** Packets per ms that the proxy sends, of which `perMs` arrive. */
  #sendPerMs(perMs: number): number {
    const [first, last] = [this.#echoes[0], this.#echoes.at(-1)];
    const spanMs = first && last ? last.grantSentMs - first.grantSentMs : 0;
    return spanMs > 0 ? Math.max(perMs, (last!.sequence - first!.sequence) / spanMs) : 2 * perMs;
  }

  /** A grant of the order as it is now leaves; `full` where only the quota keeps it from being longer. */
  nextGrant(full: boolean, nowMs: number): number {
    this.quota = Math.max(this.quota, this.order.length);
    const repeats = this.#grants.size === GRANTS_OUT;
    this.#grantSequence += repeats ? GRANT_BYTES : 1;
    this.#grants.set(this.#grantSequence % GRANT_BYTES, {
      grantSequence: this.#grantSequence,
      sentMs: repeats ? undefined : nowMs,
      end: this.order.length,
      full,
    });
    return this.#grantSequence;
  }

  /** The first data shows which of its requests reached the proxy: the last one that agrees. */
  #settleBegin(sequence: number, generationIndex: number): void {
    const begin = this.#begins.findLast((order) => order[sequence] === generationIndex) ?? [];
    this.#begins.length = 0;
    this.order.length = 0;
    for (const index of begin) this.order.push(index);
    this.#idleFrom = begin.length;
  }

  /** `stalled`: the proxy had come to the end of its order and waited. */
  #noteArrival(sequence: number, stalled: boolean, nowMs: number): void {
    const arrivals = this.#arrivals;
    if (stalled) arrivals.length = 0;
    const last = arrivals.at(-1);
    if (last && last.sequence >= 0 && nowMs - last.atMs < RATE_STEP_MS) last.sequence = sequence;
    else arrivals.push({ atMs: nowMs, sequence });
    const { length } = arrivals;
    while (arrivals.length > RATE_SAMPLES && nowMs - arrivals[1]!.atMs > RATE_ROUNDS * this.rttMs) arrivals.shift();
    if (length >= RATE_SAMPLES_MIN) this.#perMsMeasured = this.#measure(nowMs);
  }

  /**
   * The mean over the samples kept. Where the latest ones are far from that, the older ones count no longer; a proxy
   * sends at another rate as soon as more comes, but on as before when less does, until it notices.
   */
  #measure(nowMs: number): number {
    const arrivals = this.#arrivals;
    const last = arrivals.at(-1)!;
    const mean = rateSince(arrivals[0]!, last, nowMs);
    const doubtMs = this.#reorderMs + this.#sharedMs + Math.max(HICCUP_MS, this.pauseMs);
    for (let back = 1; back <= CHANGE_SAMPLES && back < arrivals.length; back++) {
      const from = arrivals.at(-back)!;
      const packets = last.sequence - from.sequence;
      const spread = CHANGE_SIGMAS * Math.sqrt(packets + 1);
      const spanMs = nowMs - from.atMs;
      if (packets + spread >= mean * (spanMs - doubtMs) && packets - spread <= mean * (spanMs + doubtMs)) continue;
      arrivals.splice(0, arrivals.length - back);
      this.#perMsMeasured = rateSince(from, last, nowMs);
      if (this.#perMsMeasured > mean) this.#echoes.splice(0, this.#echoes.length - 1);
      return this.#perMsMeasured;
    }
    return mean;
  }

  /**
   * The first packet that knows of a grant tells how long grants take now, queues included. One sent before it knows of
   * no newer grant: what it echoes is an older one of the same low byte, or the 0 of a proxy that had none.
   */
  #noteEcho(grant: number, sequence: number, nowMs: number): void {
    const known = sequence > this.#echoedAt ? this.#grants.get(grant) : undefined;
    if (!known) return;
    this.#echoedAt = sequence;
    for (const older of this.#grants.keys()) {
      this.#grants.delete(older);
      if (older === grant) break;
    }
    this.#echoed = known.grantSequence;
    const idle = sequence >= this.#grantedEnd;
    this.#idleFrom = known.full ? Infinity : known.end;
    this.#grantedEnd = known.end;
    if (known.sentMs === undefined) return;
    this.#echoedSentMs = known.sentMs;
    if (this.#echoes.push({ grantSentMs: known.sentMs, sequence }) > ECHOES) this.#echoes.shift();
    const rttMs = nowMs - known.sentMs;
    this.handleRoundTrip(rttMs);
    if (rttMs <= this.#leastSeenMs + SLACK_MS + AHEAD_MS) this.#longer = undefined;
    else if (idle)
      this.#longer = {
        sinceMs: this.#longer?.sinceMs ?? nowMs,
        untilMs: nowMs,
        leastMs: Math.min(this.#longer?.leastMs ?? Infinity, rttMs),
      };
  }
}

/**
 * What is from `from` to before `end` comes one place later. Engines do it an item at a time in `copyWithin`, and far
 * slower.
 */
function moveUp(list: number[], from: number, end: number): void {
  for (let at = Math.min(end, list.length - 1); at > from; at--) list[at] = list[at - 1]!;
}

/** Packets per ms from one arrival to a later one, or to now where another is overdue. */
function rateSince(first: Arrival, last: Arrival, nowMs: number): number {
  const packets = last.sequence - first.sequence;
  if (packets === 0) return 1 / Math.max(nowMs - first.atMs, 1);
  const spanMs = Math.max(last.atMs - first.atMs, RATE_STEP_MS);
  const overdueMs = nowMs - last.atMs - (2 * spanMs) / packets;
  return packets / (spanMs + Math.max(0, overdueMs));
}
