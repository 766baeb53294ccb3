/**
 * GrantEchoes: which of its grants one proxy is known to have. That tells how long grants take, how far the proxy has
 * come when a grant reaches it, and how fast it sends. Pure: time arrives as `nowMs`.
 * Rule: protocol.md §8.5.
 */
import { SLACK_MS } from "./round-trip";

/** An echo is the low byte of a grant's sequence, so it has this many values. */
const ECHO_VALUES = 256;
/**
 * This many grants may be unechoed at once. A grant beyond them repeats the last one's low byte. So an old echo, or the
 * 0 of a proxy without a grant, is never taken for a newer grant's.
 */
const GRANTS_OUT_MAX = 128;
/** The rate at which a proxy sends is measured over this many grants. */
const ECHOES = 6;
/** Without two echoes, a proxy is assumed to send at most this many times faster than its packets arrive. */
const SEND_RATE_MARGIN = 2;

interface SentGrant {
  grantSequence: number;
  /** Undefined when several grants have the same low byte. */
  sentMs: number | undefined;
  /** The length of the order in this grant. */
  orderEnd: number;
  /** The order would be longer if the proxy's limit allowed it. */
  full: boolean;
}

export class GrantEchoes {
  /** Grants newer than any echoed, by the low byte of their sequence. */
  readonly #sent = new Map<number, SentGrant>();
  /** When grants were sent, and the first packet that knew of each. The grant reached the proxy at that packet. */
  readonly #echoes: { grantSentMs: number; sequence: number }[] = [];
  #grantSequence = 0;
  #echoed = 0;
  /** The packet that brought the newest echo. */
  #echoedAt = -1;
  #echoedSentMs = 0;
  /** The length of the order in the newest grant that the proxy is known to have. */
  #orderEnd = Infinity;
  /** From this sequence on the proxy had nothing to do, as far as its newest known grant says. */
  idleFrom: number;

  /** `orderLength`: what the proxy was asked for before any grant. */
  constructor(orderLength: number) {
    this.idleFrom = orderLength;
  }

  /** The sequence of the grant that is sent next, unless it has to repeat a low byte. */
  get nextSequence(): number {
    return this.#grantSequence + 1;
  }

  /** True when the proxy is known to have this grant. */
  isKnown(grantSequence: number): boolean {
    return grantSequence <= this.#echoed;
  }

  /** How long after the newest echoed grant this one was sent; undefined when that is not known. */
  sentAfterEchoedMs(grantSequence: number): number | undefined {
    const sentMs = this.#sent.get(grantSequence % ECHO_VALUES)?.sentMs;
    return sentMs === undefined ? undefined : sentMs - this.#echoedSentMs;
  }

  /** A grant leaves. `full`: only the proxy's limit keeps the order from being longer. Returns the grant's sequence. */
  handleSent(orderLength: number, full: boolean, nowMs: number): number {
    const repeats = this.#sent.size === GRANTS_OUT_MAX;
    this.#grantSequence += repeats ? ECHO_VALUES : 1;
    this.#sent.set(this.#grantSequence % ECHO_VALUES, {
      grantSequence: this.#grantSequence,
      sentMs: repeats ? undefined : nowMs,
      orderEnd: orderLength,
      full,
    });
    return this.#grantSequence;
  }

  /**
   * The first packet that knows of a grant tells how long grants take now, queues included. Returns the round trip and
   * whether the proxy had sent its whole order before the grant reached it; undefined when the echo tells nothing.
   * A packet that was sent before the newest echo knows of no newer grant, so its echo is an old low byte.
   */
  handleEcho(echo: number, sequence: number, nowMs: number): { rttMs: number; wasIdle: boolean } | undefined {
    const known = sequence > this.#echoedAt ? this.#sent.get(echo) : undefined;
    if (!known) return undefined;
    this.#echoedAt = sequence;
    for (const older of this.#sent.keys()) {
      this.#sent.delete(older);
      if (older === echo) break;
    }
    this.#echoed = known.grantSequence;
    const wasIdle = sequence >= this.#orderEnd;
    this.idleFrom = known.full ? Infinity : known.orderEnd;
    this.#orderEnd = known.orderEnd;
    if (known.sentMs === undefined) return undefined;
    this.#echoedSentMs = known.sentMs;
    if (this.#echoes.push({ grantSentMs: known.sentMs, sequence }) > ECHOES) this.#echoes.shift();
    return { rttMs: nowMs - known.sentMs, wasIdle };
  }

  /** The proxy sends faster than before: only the newest echo still says where it is. */
  forgetOld(): void {
    this.#echoes.splice(0, this.#echoes.length - 1);
  }

  /** Packets per ms that the proxy sends when `perMs` arrive. */
  sentPerMs(perMs: number): number {
    const [first, last] = [this.#echoes[0], this.#echoes.at(-1)];
    const spanMs = first && last ? last.grantSentMs - first.grantSentMs : 0;
    return spanMs > 0 ? Math.max(perMs, (last!.sequence - first!.sequence) / spanMs) : SEND_RATE_MARGIN * perMs;
  }

  /** The sequence that the proxy will have come to when a grant that is sent at `atMs` reaches it. */
  reachedBy(nextSequence: number, perMs: number, rttMs: number, atMs: number): number {
    const last = this.#echoes.at(-1);
    if (!last) return nextSequence + Math.ceil(perMs * (rttMs + SLACK_MS));
    return Math.max(nextSequence, last.sequence + 1 + Math.ceil(this.sentPerMs(perMs) * (atMs - last.grantSentMs)));
  }
}
