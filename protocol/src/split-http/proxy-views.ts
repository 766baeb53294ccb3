/**
 * ProxyViews: what is known of the proxies of one `split-http` download: how fast each one sends, how soon it answers,
 * whether it has fallen quiet, and what it still owes. It keeps estimates and decides nothing. Pure: time arrives as
 * `nowMs`.
 */
import type { Ask, Pieces } from "./pieces";
import { RateMeter } from "./rate-meter";

/** The plan is made again at least this often. Estimates allow for it. */
export const TICK_MS = 5;
/** This many answers of a proxy are received at once if a single one, with its TCP window, cannot fill the link. */
export const LANES = 4;
/** A single answer cannot fill the link once it is slower than several were, by this factor. */
const LANES_GAIN = 0.75;
/** Bytes on their way or behind a lost packet are at most what came in this many round trips. */
const HELD_ROUND_TRIPS = 2;
/** Assumed before any proxy has answered. */
const ANSWER_MS_ASSUMED = 300;
const BYTES_PER_MS_ASSUMED = 1000;
/** A quiet or failed proxy counts as this slow: it must not be 0, because times are bytes over rates. */
const BYTES_PER_MS_QUIET = 1e-3;
/** A proxy that owes something is quiet after a silence of this many answer times and this time. */
const QUIET_ANSWERS = 2;
const QUIET_MS = 50;
/** An answer is silent when it is late, or came no further, for this part of the answer time. */
const SILENT_ANSWERS = 0.25;

export interface ProxyView {
  failed: boolean;
  failures: number;
  bytes: number;
  /** The shortest time from asking to the first byte; Infinity before the first answer. */
  answerMs: number;
  heardMs: number;
  quiet: boolean;
  readonly meter: RateMeter;
  /** The bytes that the proxy would still have to send at `unsentMs`, if it sent at its rate. */
  unsentBytes: number;
  unsentMs: number;
  /** How many answers to receive at once: 1 or LANES. */
  laneCount: number;
  peakBytesPerMs: number;
}

/** The state of all proxies at one moment. Arrays are by proxy. */
export interface Look {
  /** Bytes that the proxy was asked for and that are still wanted. */
  owedBytes: number[];
  /** The part of `owedBytes` that the proxy has yet to send. */
  backlogBytes: number[];
  /** `backlogBytes` and what may be on its way. `owedBytes` is more when bytes wait behind a lost packet. */
  debtBytes: number[];
  /** Answers that are being received. */
  laneCounts: number[];
  /** Answers that will not be complete a round trip from now. */
  busyCounts: number[];
  bytesPerMs: number[];
}

export class ProxyViews {
  readonly all: ProxyView[];

  constructor(proxyCount: number, nowMs: number) {
    this.all = Array.from({ length: proxyCount }, () => newView(nowMs));
  }

  /** The first byte of an answer comes this long after it is asked for. */
  answerMs(proxyIndex: number): number {
    const own = this.all[proxyIndex]!.answerMs;
    if (own < Infinity) return own;
    const known = this.all.map(({ answerMs }) => answerMs).filter((ms) => ms < Infinity);
    return known.length > 0 ? Math.max(...known) : ANSWER_MS_ASSUMED;
  }

  /** Bytes of an ask go to this proxy. `isFirst`: nothing else was asked of it. */
  handleAsked(proxyIndex: number, bytes: number, isFirst: boolean, nowMs: number): void {
    const view = this.all[proxyIndex]!;
    if (isFirst) {
      view.meter.rest();
      view.unsentBytes = 0;
      view.unsentMs = nowMs + (view.answerMs < Infinity ? view.answerMs : 0);
    }
    if (bytes < Infinity) view.unsentBytes += bytes;
  }

  /** Something of an answer came. */
  handleHeard(ask: Ask, nowMs: number): void {
    const view = this.all[ask.proxyIndex]!;
    if (ask.heardMs === ask.askedMs) view.answerMs = Math.min(view.answerMs, nowMs - ask.askedMs);
    ask.heardMs = view.heardMs = nowMs;
    view.quiet = false;
  }

  handleBytes(proxyIndex: number, bytes: number, nowMs: number): void {
    const view = this.all[proxyIndex]!;
    view.bytes += bytes;
    view.meter.note(view.bytes, nowMs, this.answerMs(proxyIndex));
  }

  /** The reader took no bytes for a while, so the silence until `nowMs` says nothing. */
  forgetSilence(nowMs: number): void {
    for (const view of this.all) {
      view.heardMs = nowMs;
      view.meter.rest();
    }
  }

  /** A quiet proxy that owes nothing cannot break its silence, so it is not quiet when no other proxy is left. */
  noteQuiet(pieces: Pieces, nowMs: number): void {
    this.all.forEach((view, proxyIndex) => {
      const limitMs = QUIET_ANSWERS * this.answerMs(proxyIndex) + QUIET_MS;
      const owes = ({ askedMs }: Ask) => nowMs - Math.max(view.heardMs, askedMs) > limitMs;
      if (pieces.asksOf(proxyIndex).some(owes)) view.quiet = true;
    });
    if (!this.all.every(({ failed, quiet }) => failed || quiet)) return;
    this.all.forEach((view, proxyIndex) => {
      if (pieces.asksOf(proxyIndex).length === 0) view.quiet = false;
    });
  }

  isSilent(ask: Ask, nowMs: number): boolean {
    const answerMs = this.answerMs(ask.proxyIndex);
    return nowMs - ask.heardMs > answerMs * (ask.answered ? SILENT_ANSWERS : 1 + SILENT_ANSWERS) + TICK_MS;
  }

  /** The opening asks for several pieces at once, which shows what a single answer must come close to. */
  noteRates(bytesPerMs: readonly number[]): void {
    this.all.forEach((view, proxyIndex) => {
      if (!view.meter.isKnown) return;
      view.peakBytesPerMs = Math.max(view.peakBytesPerMs, bytesPerMs[proxyIndex]!);
      if (bytesPerMs[proxyIndex]! < LANES_GAIN * view.peakBytesPerMs) view.laneCount = LANES;
    });
  }

  look(pieces: Pieces, nowMs: number): Look {
    const owedBytes = this.all.map(() => 0);
    const laneCounts = this.all.map(() => 0);
    const busyCounts = this.all.map(() => 0);
    const bytesPerMs = this.#rates(nowMs);
    for (const ask of pieces.asks.values()) {
      const { proxyIndex } = ask;
      const wanted = pieces.wantedOf(ask);
      owedBytes[proxyIndex]! += wanted;
      laneCounts[proxyIndex]!++;
      const laneMs = (wanted * this.all[proxyIndex]!.laneCount) / bytesPerMs[proxyIndex]!;
      if (laneMs > this.answerMs(proxyIndex) + TICK_MS) busyCounts[proxyIndex]!++;
    }
    const backlogBytes = this.all.map((_, proxyIndex) =>
      this.#backlog(proxyIndex, owedBytes[proxyIndex]!, bytesPerMs[proxyIndex]!, nowMs),
    );
    const debtBytes = owedBytes.map((bytes, proxyIndex) => {
      if (this.all[proxyIndex]!.quiet) return bytes;
      return Math.min(bytes, backlogBytes[proxyIndex]! + bytesPerMs[proxyIndex]! * this.answerMs(proxyIndex));
    });
    return { owedBytes, backlogBytes, debtBytes, laneCounts, busyCounts, bytesPerMs };
  }

  /** Moves the estimate of what the proxy has not sent to now. */
  #backlog(proxyIndex: number, owedBytes: number, bytesPerMs: number, nowMs: number): number {
    const view = this.all[proxyIndex]!;
    view.unsentBytes = Math.max(0, view.unsentBytes - Math.max(0, nowMs - view.unsentMs) * bytesPerMs);
    view.unsentMs = Math.max(nowMs, view.unsentMs);
    const heldBytes = HELD_ROUND_TRIPS * bytesPerMs * this.answerMs(proxyIndex);
    view.unsentBytes = Math.max(view.unsentBytes, owedBytes - heldBytes);
    return Math.min(owedBytes, view.unsentBytes);
  }

  /** Bytes per ms of each proxy. A proxy that sent nothing yet counts as the mean of the others. */
  #rates(nowMs: number): number[] {
    const measured = this.all.map(({ meter }, proxyIndex) =>
      meter.isKnown ? meter.bytesPerMs(nowMs, this.answerMs(proxyIndex)) : 0,
    );
    const known = measured.filter((rate) => rate > 0);
    const mean = known.length > 0 ? sumOf(known) / known.length : BYTES_PER_MS_ASSUMED;
    return measured.map((rate, proxyIndex) => {
      const { failed, quiet } = this.all[proxyIndex]!;
      return failed || quiet ? BYTES_PER_MS_QUIET : rate || mean;
    });
  }
}

function newView(nowMs: number): ProxyView {
  return {
    failed: false,
    failures: 0,
    bytes: 0,
    answerMs: Infinity,
    heardMs: nowMs,
    quiet: false,
    meter: new RateMeter(),
    unsentBytes: 0,
    unsentMs: nowMs,
    laneCount: 1,
    peakBytesPerMs: 0,
  };
}

export function sumOf(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0);
}
