/**
 * Shaper: whose turn it is to send, and when. All that a proxy sends to clients, over WebRTC and over HTTP, goes
 * through one: one token bucket for the whole proxy, turns of about equal size in rotation, and the event loop free
 * between batches. Counts payload bytes; what lower layers add is not in the rate.
 */
import { Pacer } from "@tributary/protocol";

export interface Feeder {
  /**
   * Sends about `budgetBytes` and returns what it sent. 0 = nothing can be sent now: the feeder is left out until it
   * calls `Shaper.wake` again.
   */
  feed(budgetBytes: number, nowMs: number): number;
}

/** Four data frames: small enough to mix feeders well, large enough to be cheap. */
const TURN_BYTES = 4 * 1156;
const TURN_BYTES_UNLIMITED = 64 * 1024;
const BURST_BYTES_MIN = 16 * 1024;
/** A timer can be this late without costing rate. */
const BURST_MS = 10;
const BATCH_MS = 4;
/**
 * Sleeps no shorter than this: each waking costs more than it takes to make the packets of a millisecond. Less than the
 * burst.
 */
const SLEEP_MS_MIN = 4;

export class Shaper {
  sentBytes = 0;
  #pacer: Pacer;
  #turnBytes: number;
  /** In order of their turns. */
  readonly #ready = new Set<Feeder>();
  #scheduled = false;
  #timer: NodeJS.Timeout | undefined;

  readonly #nowMs: () => number;

  /** `bytesPerSec` 0 = unlimited. */
  constructor(bytesPerSec: number, nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs;

    this.#pacer = pacerOf(bytesPerSec, nowMs());
    this.#turnBytes = turnBytesOf(bytesPerSec);
  }

  get bytesPerSec(): number {
    return this.#pacer.bytesPerSec;
  }

  /** Holds from now on; 0 = unlimited. What was owed at the old rate is forgotten. */
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
    this.#ready.add(feeder);
    this.#schedule();
  }

  remove(feeder: Feeder): void {
    this.#ready.delete(feeder);
  }

  /** For what was sent out of turn (short answers): it is owed to the bucket. */
  debit(bytes: number): void {
    this.sentBytes += bytes;
    this.#pacer.take(bytes, this.#nowMs());
  }

  #schedule(): void {
    if (this.#scheduled || this.#timer) return;
    this.#scheduled = true;
    setImmediate(() => this.#run());
  }

  #run(): void {
    this.#scheduled = false;
    const endMs = this.#nowMs() + BATCH_MS;
    for (const feeder of this.#ready) {
      const nowMs = this.#nowMs();
      if (nowMs >= endMs) break;
      if (!this.#pacer.canSend(this.#turnBytes, nowMs)) {
        this.#sleep(this.#pacer.nextMs(this.#turnBytes, nowMs) - nowMs);
        return;
      }
      this.#ready.delete(feeder);
      const sent = feeder.feed(this.#turnBytes, nowMs);
      if (sent === 0) continue;
      this.debit(sent);
      this.#ready.add(feeder);
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
