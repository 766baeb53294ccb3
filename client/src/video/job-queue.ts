/**
 * Segments that wait for a free worker, in order. A live stream adds more while workers wait. Large segments fill the
 * links alone: if many of them are under way at once, each proxy answers late, and the client asks again for packets
 * that were not lost. So the queue counts their bytes.
 */
import type { Segment } from "./presentation";

export interface Job {
  track: number;
  /** Counts the segments of the track from 0. */
  index: number;
  segment: Segment;
  /** The first segment of a stretch brings the init segment. */
  isFirstOfStretch: boolean;
}

export class JobQueue {
  readonly #jobs: Job[] = [];
  /** Bytes of the segments that workers have, as they were guessed. */
  #openBytes = 0;
  #waiting: (() => void)[] = [];
  #isEnded = false;
  /** Of each track. */
  readonly #bytesPerSec: number[];
  readonly #bytesAtOnce: () => number;

  /**
   * `bytesPerSec`: what the playlist says of each track; 0 if it says nothing. `bytesAtOnce`: so much may be under way,
   * or one segment.
   */
  constructor(bytesPerSec: readonly number[], bytesAtOnce: () => number) {
    this.#bytesPerSec = [...bytesPerSec];
    this.#bytesAtOnce = bytesAtOnce;
  }

  push(...jobs: Job[]): void {
    this.#jobs.push(...jobs);
    this.#wake();
  }

  /** No more jobs will come. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** Nobody gets the jobs that wait. */
  stop(): void {
    this.#jobs.length = 0;
    this.end();
  }

  /** The size of a segment's file is known. The next one will have a similar rate. */
  noteSize({ track, segment: { durationSec } }: Job, bytes: number): void {
    if (durationSec > 0) this.#bytesPerSec[track] = bytes / durationSec;
  }

  /** Takes the next segment to `work` when it may begin. False when there are no more. */
  async takeOne(work: (job: Job) => Promise<void>): Promise<boolean> {
    while (this.#mustWait()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    const job = this.#jobs.shift();
    if (!job) return false;
    const bytes = this.#guessBytes(job);
    this.#openBytes += bytes;
    try {
      await work(job);
    } finally {
      this.#openBytes -= bytes;
      this.#wake();
    }
    return true;
  }

  #mustWait(): boolean {
    const [first] = this.#jobs;
    if (!first) return !this.#isEnded;
    return this.#openBytes > 0 && this.#openBytes + this.#guessBytes(first) > this.#bytesAtOnce();
  }

  #guessBytes({ track, segment: { range, durationSec } }: Job): number {
    return range ? range.end - range.start + 1 : durationSec * this.#bytesPerSec[track]!;
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
