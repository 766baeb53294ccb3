/**
 * What one WebRTC session is carried by: an association of SCTP, or up to four where random loss holds one back. Spreads the
 * messages over them and decides when another one is worth asking for and when one is too many. Knows no library: rtc.ts has
 * the connections. Rules: docs/transport.md §4.
 */
import { fingerprintOf, Reassembler } from "@tributary/protocol";
import type { Channel, ChannelHandlers } from "./channel";

/** One open data channel. */
export interface Association {
  /** False when it was not taken. */
  send(message: Uint8Array | string): boolean;
  /** Bytes that wait above SCTP. */
  readonly queuedBytes: number;
  /** Of SCTP, smoothed, its own queue not included; undefined as long as it is not known. */
  readonly rttMs: number | undefined;
  close(): void;
}

export interface AssociationsHooks {
  /** A word by which the client's next connection joins this session; good once. */
  invite(): string;
  nowMs?(): number;
}

export const ASSOCIATIONS_MAX = 4;
/** Data waits in its sender, where it can still change, rather than in a channel's queue. */
const QUEUE_BYTES_MAX = 16 * 1024;
/** How often it is looked at whether the associations are too few or too many, while messages go out. */
const LOOK_MS = 100;
/** What is judged is so much of the time before: a queue that overflows was long within it. */
const WINDOW_MS = 3000;
/** Their number is judged again so long after it has changed. */
const SETTLE_MS = 1000;
/** A stretch with less sent than this tells nothing of the path. */
const BUSY_MESSAGES = 8;
/** A round trip up to so much above the lowest, in part or in ms, has no queue in it that losses could come from. */
const EMPTY_SHARE = 1 / 8;
const EMPTY_MS = 6;
/** One that is further above it has a queue in it. */
const QUEUED_SHARE = 1 / 4;
const QUEUED_MS = 10;
/**
 * Losses that hold an association back: so many stretches with a loss in them, of the messages sent or, where many are sent, of
 * all stretches. A queue that overflows, be it by a start or by rivals, loses many in one stretch and then none for long; random
 * loss spreads.
 */
const LOSSY_MIN = 5;
const HELD_BACK = { ofMessages: 1 / 200, ofStretches: 1 / 2 };
/** With fewer than this another association is of no use any more. */
const KEPT = { ofMessages: 1 / 500, ofStretches: 1 / 5 };
/** So many of the last messages are known again when the client tells which of them it has. */
const REMEMBERED_MESSAGES = 1024;
/** A client that did not follow an invitation is not asked again sooner. */
const INVITED_MS = 15_000;
/** Further associations are closed after this time without a message. */
const IDLE_MS = 20_000;

/** How many messages have come, and the fingerprint of the newest. */
const REPORT = /^(\d{1,12}) (\d{1,10})$/;

interface Look {
  atMs: number;
  rttMs: number;
  sent: number;
  lost: number;
}

/** An association, what was sent over it and what the client says has come. */
class Member {
  sent = 0;
  /** Of those before the newest one that has come; messages over one association come in the order of their sending. */
  lost = 0;
  private received = 0;
  /** One more than the newest that has come. */
  private next = 0;
  /** Fingerprints of the last messages, each at its place in the order of sending, modulo the length. */
  private readonly prints = new Uint32Array(REMEMBERED_MESSAGES);
  /** At least so many bytes may be sent. */
  private roomLeft = 0;

  constructor(readonly association: Association) {}

  send(bytes: Uint8Array): boolean {
    this.prints[this.sent++ % REMEMBERED_MESSAGES] = fingerprintOf(bytes);
    this.roomLeft -= bytes.length;
    return this.association.send(bytes);
  }

  /** Messages on their way, or waiting for it. */
  get outstanding(): number {
    return this.sent - this.next;
  }

  /** The channel is asked only when it may be full: asking costs as much as sending. */
  get room(): number {
    if (this.roomLeft <= 0) this.roomLeft = QUEUE_BYTES_MAX - this.association.queuedBytes;
    return this.roomLeft;
  }

  /** Reports may be late, and may be lies: nothing comes that was not sent. */
  handleReport(received: number, newest: number): void {
    const place = this.placeOf(newest);
    if (place === undefined || received < this.received) return;
    this.next = place + 1;
    this.received = Math.min(received, this.next);
    this.lost = this.next - this.received;
  }

  /** Of the newest message with that fingerprint, of those that are not known to have come. */
  private placeOf(print: number): number | undefined {
    const oldest = Math.max(this.next, this.sent - REMEMBERED_MESSAGES);
    for (let place = this.sent - 1; place >= oldest; place--) if (this.prints[place % REMEMBERED_MESSAGES] === print) return place;
    return undefined;
  }
}

export class Associations implements Channel {
  readonly transport = "webrtc";
  private readonly members: Member[] = [];
  private readonly reassembler = new Reassembler();
  private handlers: ChannelHandlers | undefined;
  private closed = false;
  private timer: NodeJS.Timeout | undefined;
  private readonly looks: Look[] = [];
  private lowestMs = Infinity;
  /** When their number changed, and what was sent over those that are gone. */
  private changedMs: number;
  private readonly gone = { sent: 0, lost: 0 };
  private sentBefore = 0;
  private busyMs: number;
  private invitedMs = -Infinity;
  private readonly nowMs: () => number;

  constructor(private readonly hooks: AssociationsHooks) {
    this.nowMs = hooks.nowMs ?? ((): number => performance.now());
    this.busyMs = this.changedMs = this.nowMs();
  }

  get count(): number {
    return this.members.length;
  }

  /** One more. The first one opens the session. False: there are enough, or the session is over. */
  add(association: Association, openSession: (channel: Channel) => ChannelHandlers): boolean {
    if (this.closed || this.members.length >= ASSOCIATIONS_MAX) return false;
    this.members.push(new Member(association));
    this.invitedMs = -Infinity;
    this.changedMs = this.nowMs();
    this.handlers ??= openSession(this);
    this.handlers.handleWritable();
    return true;
  }

  /** One is gone; the session with the last. */
  remove(association: Association, reason: string): void {
    if (!this.forget(this.members.find((member) => member.association === association))) return;
    if (this.members.length > 0 || this.closed) return;
    this.end();
    this.handlers?.handleClosed(reason);
  }

  /** Binary messages are the session's; a text is the client's report of what has come over that association. */
  handleMessage(association: Association, message: Uint8Array | string): void {
    if (typeof message !== "string") return this.handleBytes(message);
    const [, received, newest] = REPORT.exec(message) ?? [];
    if (received === undefined) return;
    this.members.find((member) => member.association === association)?.handleReport(Number(received), Number(newest));
  }

  /** Longer ones come in pieces. */
  private handleBytes(bytes: Uint8Array): void {
    const message = this.reassembler.accept(bytes);
    if (message) this.handlers?.handleMessage(message);
  }

  handleWritable(): void {
    this.handlers?.handleWritable();
  }

  /** Over the association with the fewest messages on their way, of those that have room. */
  send(bytes: Uint8Array): boolean {
    let best: Member | undefined;
    for (const member of this.members) {
      if (member.room > 0 && (!best || member.outstanding < best.outstanding)) best = member;
    }
    this.timer ??= this.closed ? undefined : setInterval(() => this.look(), LOOK_MS);
    return (best ?? this.members[0])?.send(bytes) ?? false;
  }

  get room(): number {
    return this.members.reduce((most, member) => Math.max(most, member.room), -Infinity);
  }

  /** The library tells the round trip alone. */
  signals(): undefined {
    return undefined;
  }

  close(): void {
    if (this.closed) return;
    this.end();
    for (const { association } of [...this.members]) association.close();
  }

  private end(): void {
    this.closed = true;
    clearInterval(this.timer);
  }

  private look(): void {
    const nowMs = this.nowMs();
    const rttMs = this.members[0]?.association.rttMs;
    const sent = this.members.reduce((sum, member) => sum + member.sent, this.gone.sent);
    const isBusy = sent >= this.sentBefore + BUSY_MESSAGES;
    if (sent !== this.sentBefore) this.busyMs = nowMs;
    this.sentBefore = sent;
    if (nowMs - this.busyMs > IDLE_MS) return this.rest();
    if (!isBusy || rttMs === undefined) return;
    this.lowestMs = Math.min(this.lowestMs, rttMs);
    this.looks.push({ atMs: nowMs, rttMs, sent, lost: this.members.reduce((sum, { lost }) => sum + lost, this.gone.lost) });
    while (this.looks[0]!.atMs < nowMs - WINDOW_MS) this.looks.shift();
    if (nowMs - Math.max(this.changedMs, this.looks[0]!.atMs) >= SETTLE_MS) this.judge(nowMs);
  }

  /**
   * Losses while the round trip stays near its lowest are the path's own: another association carries more. A round trip that
   * stays above it is a queue, ours or one that others share: one association less, as where losses have gone.
   */
  private judge(nowMs: number): void {
    const since = this.looks.filter(({ atMs }) => atMs >= this.changedMs);
    const [first, last] = [since[0]!, since.at(-1)!];
    const above = (share: number, ms: number) => ({ rttMs }: Look) => rttMs > this.lowestMs + Math.max(ms, share * this.lowestMs);
    const lossy = since.filter(({ lost }, index) => lost > (since[index - 1]?.lost ?? lost)).length;
    const enough = ({ ofMessages, ofStretches }: typeof KEPT): number => Math.min(ofMessages * (last.sent - first.sent), ofStretches * since.length);
    const isLossless = last.atMs - first.atMs > WINDOW_MS - 2 * LOOK_MS && lossy < enough(KEPT);
    if (this.members.length > 1 && (isLossless || since.every(above(QUEUED_SHARE, QUEUED_MS)))) return this.dropLast();
    const isHeldBack = lossy >= LOSSY_MIN && lossy > enough(HELD_BACK) && !this.looks.some(above(EMPTY_SHARE, EMPTY_MS));
    if (!isHeldBack || nowMs - this.invitedMs < INVITED_MS) return;
    this.invitedMs = nowMs;
    this.invite();
  }

  /** Asks the client for another association, unless there are enough. */
  invite(): void {
    if (this.members.length < ASSOCIATIONS_MAX) this.members[0]?.association.send(`join ${this.hooks.invite()}`);
  }

  private dropLast(): void {
    const last = this.members.at(-1);
    this.forget(last);
    last?.association.close();
  }

  private forget(member: Member | undefined): boolean {
    const index = member ? this.members.indexOf(member) : -1;
    if (index < 0) return false;
    const { sent, lost } = this.members.splice(index, 1)[0]!;
    this.gone.sent += sent;
    this.gone.lost += lost;
    this.changedMs = this.nowMs();
    return true;
  }

  /** Nothing has been sent for long: one association is enough to begin with. */
  private rest(): void {
    clearInterval(this.timer);
    this.timer = undefined;
    while (this.members.length > 1) this.dropLast();
  }
}
