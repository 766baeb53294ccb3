/**
 * One direction of an emulated access link: a token bucket that several flows share, a piece each in turn. The uplink
 * runs in the sending process and the downlink in the receiving one, so no rights and no network namespaces are needed.
 */

export interface LinkFlow {
  /** Moves one piece and returns its bytes, or returns 0 if there is nothing to move. */
  take(): number;
}

/** A link that was idle sends at most this much of its rate at once. */
const IDLE_BURST_MS = 20;
/** A busy link whose timer came late has been sending meanwhile. It catches up with at most this much of its rate. */
const LATE_BURST_MS = 1000;

export class SharedLink {
  readonly #bytesPerSec: number;
  readonly #now: () => number;
  readonly #flows: LinkFlow[] = [];
  #turn = 0;
  #tokens = 0;
  #atMs: number;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isPumping = false;
  #isClosed = false;

  constructor(bytesPerSec: number, now: () => number = () => performance.now()) {
    this.#bytesPerSec = bytesPerSec;
    this.#now = now;
    this.#atMs = now();
  }

  add(flow: LinkFlow): void {
    this.#flows.push(flow);
  }

  remove(flow: LinkFlow): void {
    const at = this.#flows.indexOf(flow);
    if (at < 0) return;
    this.#flows.splice(at, 1);
    if (at < this.#turn) this.#turn--;
  }

  /** Takes the bytes of a message that does not wait for its turn. */
  charge(bytes: number): void {
    this.#tokens -= bytes;
  }

  /** A flow may have something to move. */
  wake(): void {
    if (this.#timer === undefined) this.#move(IDLE_BURST_MS);
  }

  close(): void {
    this.#isClosed = true;
    clearTimeout(this.#timer);
  }

  #move(burstMs: number): void {
    if (this.#isPumping || this.#isClosed) return;
    this.#isPumping = true;
    this.#refill(burstMs);
    while (this.#tokens > 0) {
      const bytes = this.#takeNext();
      if (bytes === 0) break;
      this.#tokens -= bytes;
    }
    this.#isPumping = false;
    if (this.#tokens <= 0) this.#wait();
  }

  #takeNext(): number {
    for (let tries = this.#flows.length; tries > 0; tries--) {
      if (this.#turn >= this.#flows.length) this.#turn = 0;
      const bytes = this.#flows[this.#turn++]?.take() ?? 0;
      if (bytes > 0) return bytes;
    }
    return 0;
  }

  #refill(burstMs: number): void {
    const nowMs = this.#now();
    const most = (this.#bytesPerSec * burstMs) / 1000;
    this.#tokens = Math.min(most, this.#tokens + ((nowMs - this.#atMs) * this.#bytesPerSec) / 1000);
    this.#atMs = nowMs;
  }

  #wait(): void {
    this.#timer = setTimeout(
      () => {
        this.#timer = undefined;
        this.#move(LATE_BURST_MS);
      },
      1 - (this.#tokens * 1000) / this.#bytesPerSec,
    );
  }
}
