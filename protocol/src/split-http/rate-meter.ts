/**
 * RateMeter: the rate at which bytes of one proxy arrive, over the latest stretch of arrivals. A silence counts once it
 * is longer than a round trip: bytes often arrive in lumps. Pure: time arrives as `nowMs`.
 */
/** The stretch is this long or, if that is longer, this many round trips. */
const WINDOW_MS_MIN = 60;
/** Bytes that wait behind a lost packet arrive a round trip late, all at once. */
const WINDOW_ROUND_TRIPS = 2;
const SAMPLES_MIN = 4;
/** Fewer bytes in less than a stretch say nothing. */
const KNOWN_BYTES_MIN = 8000;
/** Bytes that arrive at once count as this long, so that the rate stays finite. */
const ELAPSED_MS_MIN = 0.5;

export class RateMeter {
  readonly #samples: { atMs: number; total: number }[] = [];
  #rate = 0;

  get isKnown(): boolean {
    return this.#rate > 0;
  }

  /** `total`: all bytes that have arrived so far. */
  note(total: number, nowMs: number, rttMs: number): void {
    const samples = this.#samples;
    samples.push({ atMs: nowMs, total });
    while (
      samples.length > SAMPLES_MIN &&
      nowMs - samples[1]!.atMs >= Math.max(WINDOW_MS_MIN, WINDOW_ROUND_TRIPS * rttMs)
    )
      samples.shift();
    const first = samples[0]!;
    if (total - first.total >= KNOWN_BYTES_MIN || nowMs - first.atMs >= WINDOW_MS_MIN)
      this.#rate = (total - first.total) / Math.max(ELAPSED_MS_MIN, nowMs - first.atMs);
  }

  /** Nothing was asked for, so the time until the next bytes says nothing. */
  rest(): void {
    this.#samples.length = 0;
  }

  /** The rate of the latest stretch; 0 while too few bytes have arrived. */
  bytesPerMs(nowMs: number, rttMs: number): number {
    const [first, last] = [this.#samples[0], this.#samples.at(-1)];
    if (!first || !last || nowMs - last.atMs <= rttMs || last.total === first.total) return this.#rate;
    return Math.min(this.#rate, (last.total - first.total) / (nowMs - first.atMs));
  }
}
