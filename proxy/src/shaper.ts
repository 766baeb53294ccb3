/**
 * Shaper: decides who may send, and when. Everything that a proxy sends to clients goes through one shaper. It has one
 * token bucket for the whole proxy, gives turns of about equal size in rotation, and leaves the event loop free between
 * batches. Clients take turns, and each client's feeders share its turns: so nobody gets more by asking more often. It
 * counts payload bytes; the rate does not include the headers of lower layers.
 */
import { Pacer } from "@tributary/protocol";

export interface Feeder {
  /** Who gets what it sends, by `clientOf`. */
  readonly clientName: string;
  /**
   * Sends about `budgetBytes` and returns the bytes that it sent. After a 0 the feeder gets no turns until it calls
   * `Shaper.wake`.
   */
  feed(budgetBytes: number, nowMs: number): number;
}

/** Four data frames: small enough to mix feeders well, large enough to be cheap. */
const TURN_BYTES = 4 * 1156;
const TURN_BYTES_UNLIMITED = 64 * 1024;
const BURST_BYTES_MIN = 16 * 1024;
/** A timer may be this late without a loss of rate. */
const BURST_MS = 10;
const BATCH_MS = 4;
/** The shortest sleep. A wake-up costs more than the packets of one millisecond. It must be shorter than the burst. */
const SLEEP_MS_MIN = 4;

export class Shaper {
  sentBytes = 0;
  #pacer: Pacer;
  #turnBytes: number;
  /** The feeders that may have something to send, by client. Clients and feeders are in the order of their turns. */
  readonly #ready = new Map<string, Set<Feeder>>();
  #scheduled = false;
  #timer: NodeJS.Timeout | undefined;

  readonly #nowMs: () => number;

  /** A `bytesPerSec` of 0 means no limit. */
  constructor(bytesPerSec: number, nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;

    this.#pacer = pacerOf(bytesPerSec, nowMs());
    this.#turnBytes = turnBytesOf(bytesPerSec);
  }

  get bytesPerSec(): number {
    return this.#pacer.bytesPerSec;
  }

  /** Sets the rate from now on; 0 means no limit. Debt at the old rate is forgotten. */
  setRate(bytesPerSec: number): void {
    if (bytesPerSec === this.#pacer.bytesPerSec) return;
    this.#pacer = pacerOf(bytesPerSec, this.#nowMs());
    this.#turnBytes = turnBytesOf(bytesPerSec);
    clearTimeout(this.#timer);
    this.#timer = undefined;
    if (this.#ready.size > 0) this.#schedule();
  }

  /** The feeder may have something to send. */
  wake(feeder: Feeder): void {
    this.#add(feeder);
    this.#schedule();
  }

  remove(feeder: Feeder): void {
    const own = this.#ready.get(feeder.clientName);
    if (own?.delete(feeder) && own.size === 0) this.#ready.delete(feeder.clientName);
  }

  /** Takes bytes from the bucket that were sent without a turn, as short answers are. */
  debit(bytes: number): void {
    this.sentBytes += bytes;
    this.#pacer.take(bytes, this.#nowMs());
  }

  #add(feeder: Feeder): void {
    const own = this.#ready.get(feeder.clientName);
    if (own) own.add(feeder);
    else this.#ready.set(feeder.clientName, new Set([feeder]));
  }

  /** Takes the feeder whose turn it is. Its client then comes last. */
  #next(): Feeder | undefined {
    const [first] = this.#ready;
    if (!first) return undefined;
    const [clientName, own] = first;
    const [feeder] = own;
    own.delete(feeder!);
    this.#ready.delete(clientName);
    if (own.size > 0) this.#ready.set(clientName, own);
    return feeder;
  }

  #schedule(): void {
    if (this.#scheduled || this.#timer) return;
    this.#scheduled = true;
    setImmediate(() => this.#run());
  }

  #run(): void {
    this.#scheduled = false;
    const endMs = this.#nowMs() + BATCH_MS;
    while (this.#ready.size > 0) {
      const nowMs = this.#nowMs();
      if (nowMs >= endMs) break;
      if (!this.#pacer.canSend(this.#turnBytes, nowMs)) {
        this.#sleep(this.#pacer.nextMs(this.#turnBytes, nowMs) - nowMs);
        return;
      }
      const feeder = this.#next()!;
      const sent = feeder.feed(this.#turnBytes, nowMs);
      if (sent === 0) continue;
      this.debit(sent);
      this.#add(feeder);
    }
    if (this.#ready.size > 0) this.#schedule();
  }

  #sleep(ms: number): void {
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#run();
      },
      Math.max(SLEEP_MS_MIN, Math.ceil(ms)),
    );
  }
}

function pacerOf(bytesPerSec: number, nowMs: number): Pacer {
  return new Pacer(bytesPerSec, Math.max(BURST_BYTES_MIN, (bytesPerSec * BURST_MS) / 1000), nowMs);
}

function turnBytesOf(bytesPerSec: number): number {
  return bytesPerSec === 0 ? TURN_BYTES_UNLIMITED : TURN_BYTES;
}
