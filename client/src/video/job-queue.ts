/** Segments that wait for a free worker, in order. A live stream adds more while workers wait. */
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
  #waiting: (() => void)[] = [];
  #isEnded = false;

  push(...jobs: Job[]): void {
    this.#jobs.push(...jobs);
    this.#wake();
  }

  /** No more jobs will come. */
  end(): void {
    this.#isEnded = true;
    this.#wake();
  }

  /** Undefined when there are no more. */
  async next(): Promise<Job | undefined> {
    while (this.#jobs.length === 0 && !this.#isEnded) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    return this.#jobs.shift();
  }

  #wake(): void {
    for (const wake of this.#waiting.splice(0)) wake();
  }
}
