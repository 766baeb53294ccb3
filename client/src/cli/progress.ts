/** The live line on a terminal: how much is there, how fast, through whom, and for how long. */
import { LiveLine } from "./terminal";
import { progressLine, type Sources } from "./view";

const EVERY_MS = 100;
/** The rate, and so the remaining time, is that of the last seconds. */
const WINDOW_MS = 5000;

export class Progress {
  readonly #client: { readonly live: Sources };
  readonly #totalBytes: number | null;
  #bytes: number;
  #samples: { ms: number; bytes: number }[];
  readonly #line = new LiveLine();
  readonly #timer: ReturnType<typeof setInterval> | undefined;

  /** `offset` bytes are there from an earlier run. */
  constructor(client: { readonly live: Sources }, offset: number, totalBytes: number | null) {
    this.#client = client;
    this.#bytes = offset;
    this.#samples = [{ ms: performance.now(), bytes: offset }];
    this.#totalBytes = totalBytes;
    if (this.#line.isShown) this.#timer = setInterval(() => this.#show(), EVERY_MS);
  }

  add(bytes: number): void {
    this.#bytes += bytes;
  }

  stop(): void {
    if (this.#timer === undefined) return;
    clearInterval(this.#timer);
    this.#show();
    this.#line.end();
  }

  #show(): void {
    const nowMs = performance.now();
    this.#samples.push({ ms: nowMs, bytes: this.#bytes });
    this.#samples = this.#samples.filter(({ ms }) => nowMs - ms <= WINDOW_MS);
    const first = this.#samples[0]!;
    const bytesPerSec = nowMs > first.ms ? ((this.#bytes - first.bytes) * 1000) / (nowMs - first.ms) : 0;
    const progress = {
      deliveredBytes: this.#bytes,
      totalBytes: this.#totalBytes,
      bytesPerSec,
      live: this.#client.live,
    };
    this.#line.draw((columns) => progressLine(progress, columns));
  }
}
