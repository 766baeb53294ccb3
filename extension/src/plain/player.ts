/**
 * Player: feeds one held `<video>` from its progressive MP4, piece by piece, through the transport. Like the browser,
 * it reads the index first and then a stretch ahead of the playhead; a seek moves the stretch. If it cannot play the
 * file, `restore` gives the file back to the browser. If the page gives the video another source, it stops.
 */
import type { HeldVideo } from "./hold";
import { Unsupported, fragment, parseMovie, piecesOf, type Movie, type Piece } from "./mp4";
import { Source, type Reading } from "./source";

/** How much is loaded ahead of the playhead while the video plays, and kept behind it. */
const AHEAD_SEC = 20;
const BEHIND_SEC = 30;
/** Two pieces that are no further apart count as adjacent. */
const GAP_SEC = 0.2;

export function playHeld(held: HeldVideo): void {
  void new PlainVideo(held)
    .run()
    .catch(() => undefined)
    .then(() => held.restore());
}

class PlainVideo {
  readonly #held: HeldVideo;
  readonly #source: Source;
  #movie!: Movie;
  #pieces: Piece[] = [];
  #buffer!: SourceBuffer;
  #next = 0;
  #reading: Reading | null = null;
  #wake: (() => void) | null = null;
  #sought = false;

  constructor(held: HeldVideo) {
    this.#held = held;
    this.#source = new Source(held.url, held.link, held.natives);
  }

  async run(): Promise<void> {
    const { video, source } = this.#held;
    const opened =
      source.readyState === "open"
        ? undefined
        : new Promise((resolve) => source.addEventListener("sourceopen", resolve, { once: true }));
    this.#movie = parseMovie(await this.#source.index());
    this.#pieces = piecesOf(this.#movie);
    if (!MediaSource.isTypeSupported(this.#movie.mime)) throw new Unsupported(this.#movie.mime);
    await opened;
    this.#buffer = source.addSourceBuffer(this.#movie.mime);
    source.duration = this.#movie.durationSec;
    await this.#append(this.#movie.init);
    this.#held.settle();
    const wake = (): void => this.#wake?.();
    const seek = (): void => this.#seek();
    for (const type of ["timeupdate", "play", "emptied", "ratechange"]) video.addEventListener(type, wake);
    video.addEventListener("seeking", seek);
    try {
      await this.#feed();
    } finally {
      for (const type of ["timeupdate", "play", "emptied", "ratechange"]) video.removeEventListener(type, wake);
      video.removeEventListener("seeking", seek);
      this.#reading?.abort();
    }
  }

  /** Appends pieces until the page gives the video another source. */
  async #feed(): Promise<void> {
    while (this.#held.isHeld()) {
      const piece = this.#pieces[this.#next];
      if (piece === undefined && !this.#sought) this.#finish();
      if (piece === undefined || !this.#isWanted(piece)) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      this.#sought = false;
      const index = this.#next++;
      const bytes = await this.#read(piece);
      if (bytes === null || !this.#held.isHeld()) continue;
      await this.#append(fragment(index + 1, piece.spans, bytes, piece.start));
      await this.#forget();
    }
  }

  /** The bytes of a piece; null if a seek came in between. */
  async #read({ start, end }: Piece): Promise<Uint8Array<ArrayBuffer> | null> {
    this.#reading = this.#source.read({ start, end });
    try {
      const bytes = await this.#reading.bytes;
      if (this.#sought) return null;
      if (bytes.length !== end - start + 1)
        throw new Unsupported(`${bytes.length} bytes instead of ${end - start + 1}`);
      return bytes;
    } catch (error) {
      if (this.#sought || !this.#held.isHeld()) return null;
      throw error;
    } finally {
      this.#reading = null;
    }
  }

  #isWanted(piece: Piece): boolean {
    const { video } = this.#held;
    const isFirst = piece.startSec <= video.currentTime + GAP_SEC;
    const isOnDemand = video.paused && !video.autoplay && video.preload !== "auto";
    return isFirst || (!isOnDemand && piece.startSec < video.currentTime + AHEAD_SEC * Math.max(1, video.playbackRate));
  }

  /** Continues after what is buffered at the playhead, or with the piece at the playhead. */
  #seek(): void {
    const { video } = this.#held;
    const time = video.currentTime;
    let index = this.#pieceAt(time);
    for (let at = 0; at < video.buffered.length; at++) {
      if (video.buffered.start(at) <= time + GAP_SEC && time < video.buffered.end(at))
        index = this.#pieceAt(video.buffered.end(at) + GAP_SEC);
    }
    if (index === this.#next && this.#reading !== null) return;
    this.#next = index;
    this.#sought = true;
    this.#reading?.abort();
    this.#wake?.();
  }

  #pieceAt(time: number): number {
    return Math.max(
      0,
      this.#pieces.findLastIndex(({ startSec }) => startSec <= time),
    );
  }

  #finish(): void {
    const { source } = this.#held;
    if (source.readyState === "open" && !this.#buffer.updating) source.endOfStream();
  }

  async #append(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      this.#buffer.appendBuffer(bytes);
    } catch (error) {
      if (!(error instanceof DOMException) || error.name !== "QuotaExceededError") throw error;
      const { currentTime } = this.#held.video;
      await this.#remove(0, currentTime - 2);
      this.#buffer.appendBuffer(bytes);
    }
    await this.#updated();
  }

  /** Removes what lies far behind the playhead. */
  async #forget(): Promise<void> {
    const { video } = this.#held;
    if (video.buffered.length > 0 && video.buffered.start(0) < video.currentTime - 2 * BEHIND_SEC)
      await this.#remove(0, video.currentTime - BEHIND_SEC);
  }

  async #remove(from: number, to: number): Promise<void> {
    if (to <= from) throw new Error("no room for the next piece");
    this.#buffer.remove(from, to);
    await this.#updated();
  }

  #updated(): Promise<void> {
    const buffer = this.#buffer;
    return new Promise((resolve, reject) => {
      const fail = (): void => reject(new Error("the browser does not take the data"));
      buffer.addEventListener("error", fail, { once: true });
      buffer.addEventListener(
        "updateend",
        () => {
          buffer.removeEventListener("error", fail);
          resolve();
        },
        { once: true },
      );
    });
  }
}
