/** Whether fewer packets come in all than came before. Pure: time arrives as `nowMs`. */

/** A rate is of this long. */
const WINDOW_MS = 100;
const FALLEN_SHARE = 0.8;

export class Flow {
  /** That have come, from all proxies. */
  packets = 0;
  readonly #marks: { atMs: number; packets: number }[] = [];
  #mostPerMs = 0;

  /** Less than four fifths of the highest rate so far. To be asked often: each call is a sample. */
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
