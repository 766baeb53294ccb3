/**
 * Flow: whether fewer packets arrive from all proxies together than before. Pure: time arrives as `nowMs`.
 * Rule: protocol.md §8.7.
 */

/** A rate is measured over this time: longer than the pauses of a busy processor, shorter than a viewer notices. */
const WINDOW_MS = 100;
/** Less than this part of the highest rate so far is a fall. */
const FALLEN_SHARE = 0.8;

export class Flow {
  /** Packets that have arrived from all proxies. */
  packets = 0;
  readonly #marks: { atMs: number; packets: number }[] = [];
  #mostPerMs = 0;

  /** Call it often: each call is a sample. */
  hasFallen(nowMs: number): boolean {
    const marks = this.#marks;
    marks.push({ atMs: nowMs, packets: this.packets });
    while (marks[1] && nowMs - marks[1].atMs >= WINDOW_MS) marks.shift();
    const [first] = marks;
    if (!first || nowMs - first.atMs < WINDOW_MS) return false;
    const perMs = (this.packets - first.packets) / (nowMs - first.atMs);
    this.#mostPerMs = Math.max(this.#mostPerMs, perMs);
    return perMs < FALLEN_SHARE * this.#mostPerMs;
  }
}
