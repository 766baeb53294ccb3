/** Counts what is done of a video, and estimates the time left. */
import type { Track } from "./tracks";

export interface VideoProgressReport {
  phase: "fetching" | "joining" | "joined";
  isLive: boolean;
  segmentsDone: number;
  /** What is known so far, for a live stream. */
  segmentCount: number;
  gaps: number;
  /** Bytes that arrived, with those of an earlier run. */
  bytes: number;
  freshBytes: number;
  /** Seconds of the longest track that are done. */
  doneSec: number;
  elapsedMs: number;
  /** Undefined for a live stream and before the first segment. */
  leftMs?: number;
}

export class VideoProgress {
  phase: VideoProgressReport["phase"] = "fetching";
  readonly #startedMs = performance.now();
  readonly #isLive: boolean;
  readonly #trackCount: number;
  /** Seconds of all tracks together. */
  #totalSec = 0;
  #doneSec = 0;
  readonly #resumedSec: number;
  #segmentCount = 0;
  #segmentsDone = 0;
  #gaps = 0;
  #freshBytes = 0;
  readonly #resumedBytes: number;

  constructor(tracks: readonly Track[], isLive: boolean, joinedCount: (track: number) => number, joinedBytes: number) {
    this.#isLive = isLive;
    this.#trackCount = tracks.length;
    this.#resumedBytes = joinedBytes;
    for (const [track, { list }] of isLive ? [] : tracks.entries())
      for (const [index, { durationSec, isGap }] of list.segments.entries()) {
        this.addSegment(durationSec);
        if (index < joinedCount(track)) this.finishSegment(durationSec, isGap);
      }
    this.#resumedSec = this.#doneSec;
  }

  addSegment(durationSec: number): void {
    this.#segmentCount++;
    this.#totalSec += durationSec;
  }

  addBytes(count: number): void {
    this.#freshBytes += count;
  }

  finishSegment(durationSec: number, isGap: boolean): void {
    this.#segmentsDone++;
    this.#doneSec += durationSec;
    if (isGap) this.#gaps++;
  }

  /** On average since the beginning. */
  get bytesPerSec(): number {
    return (1000 * this.#freshBytes) / Math.max(1, performance.now() - this.#startedMs);
  }

  report(): VideoProgressReport {
    const elapsedMs = performance.now() - this.#startedMs;
    const freshSec = this.#doneSec - this.#resumedSec;
    // Sums of seconds in another order may differ a little.
    const leftSec = this.#segmentsDone === this.#segmentCount ? 0 : this.#totalSec - this.#doneSec;
    const leftMs = freshSec > 0 ? (elapsedMs * leftSec) / freshSec : undefined;
    return {
      phase: this.phase,
      isLive: this.#isLive,
      segmentsDone: this.#segmentsDone,
      segmentCount: this.#segmentCount,
      gaps: this.#gaps,
      bytes: this.#resumedBytes + this.#freshBytes,
      freshBytes: this.#freshBytes,
      doneSec: this.#doneSec / this.#trackCount,
      elapsedMs,
      ...(leftMs === undefined || this.#isLive ? {} : { leftMs }),
    };
  }
}
