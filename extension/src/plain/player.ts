/**
 * Player: feeds one `<video>` from its progressive MP4, piece by piece, through the transport. The browser plays the
 * file itself until the index and the pieces at the playhead have come, so nothing starts later.
 * Like the browser, the player then reads a stretch ahead of the playhead; a seek moves the stretch. If it cannot play
 * the file, the browser keeps it or gets it back. If the page gives the video another source, it stops.
 */
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import type { Heard } from "../shared/plain";
import { bufferedOf, fileOf, hold, type HeldVideo } from "./hold";
import { Unsupported, fragment, parseMovie, piecesOf, type Movie, type Piece } from "./mp4";
import { Source, type Reading } from "./source";

/** How much is loaded ahead of the playhead while the video plays, and kept behind it. */
const AHEAD_SEC = 20;
const BEHIND_SEC = 30;
/** Two pieces that are no further apart count as adjacent. */
const GAP_SEC = 0.2;
/** A playing video is taken over with so much ahead of its playhead. */
const SPARE_SEC = 1;

/** Takes `video` over once that can be done at once. Otherwise the browser keeps it. */
export function playFile(video: HTMLVideoElement, url: string, heard: Heard, link: Link, natives: Natives): void {
  void new PlainVideo(video, url, new Source(url, link, natives)).run(heard, natives).catch(() => undefined);
}

/** Functions and not objects, because a page can replace what a Set does, and a video's source has the link. */
const leaves = new Set<() => void>();

/** Gives all videos back to the browser. */
export function giveAllBack(): void {
  for (const leave of leaves) leave();
}

class PlainVideo {
  #held: HeldVideo | undefined;
  #movie!: Movie;
  #pieces: Piece[] = [];
  #buffer!: SourceBuffer;
  #next = 0;
  #reading: Reading | null = null;
  #wake: (() => void) | null = null;
  #sought = false;
  #isOver = false;

  constructor(
    readonly video: HTMLVideoElement,
    readonly url: string,
    readonly source: Source,
  ) {}

  async run(heard: Heard, natives: Natives): Promise<void> {
    const leave = (): void => {
      this.#held?.leave();
      this.#giveBack();
    };
    leaves.add(leave);
    try {
      await this.#play(heard, natives);
    } finally {
      leaves.delete(leave);
      this.#giveBack();
    }
  }

  #giveBack(): void {
    this.#isOver = true;
    this.#reading?.abort();
    this.#held?.restore();
    this.#wake?.();
  }

  async #play(heard: Heard, natives: Natives): Promise<void> {
    this.#movie = parseMovie(await this.source.index());
    this.#pieces = piecesOf(this.#movie);
    if (!MediaSource.isTypeSupported(this.#movie.mime)) throw new Unsupported(this.#movie.mime);
    const fragments = await this.#atPlayhead();
    if (fragments === undefined || this.#isOver) return;
    const held = (this.#held = hold(this.video, this.url, heard, natives, (type) => this.#hear(type)));
    await this.#open(held);
    for (const each of fragments) await this.#append(each);
    held.settle();
    await this.#feed(held);
  }

  /**
   * The fragments at the playhead of the video that the browser plays; undefined if the browser keeps the video. The
   * first piece after them is `#next`.
   */
  async #atPlayhead(): Promise<Uint8Array<ArrayBuffer>[] | undefined> {
    let [from, fragments]: [number, Uint8Array<ArrayBuffer>[]] = [0, []];
    for (;;) {
      const { video } = this;
      if (fileOf(video) !== this.url || video.error !== null || video.ended) return undefined;
      if (!(video.readyState >= video.HAVE_METADATA) || video.seeking) {
        await change(video, ["loadedmetadata", "seeked", "emptied", "error"]);
        continue;
      }
      if (!Number.isFinite(video.duration)) return undefined;
      const at = this.#pieceAt(video.currentTime);
      if (at < from || at > from + fragments.length) [from, fragments] = [at, []];
      this.#next = from + fragments.length;
      const piece = this.#pieces[this.#next];
      const wantedSec = video.currentTime + (video.paused ? 0 : SPARE_SEC);
      if (piece === undefined || (fragments.length > 0 && piece.startSec > wantedSec)) return fragments;
      const bytes = await this.#read(piece);
      if (bytes !== null) fragments.push(fragment(this.#next + 1, piece.spans, bytes, piece.start));
    }
  }

  async #open({ source }: HeldVideo): Promise<void> {
    if (source.readyState !== "open")
      await new Promise((resolve) => source.addEventListener("sourceopen", resolve, { once: true }));
    this.#buffer = source.addSourceBuffer(this.#movie.mime);
    source.duration = this.video.duration;
    await this.#append(this.#movie.init);
  }

  #hear(type: string): void {
    if (type === "seeking") this.#seek();
    if (["timeupdate", "play", "emptied", "ratechange"].includes(type)) this.#wake?.();
  }

  /** Appends pieces until the page gives the video another source. */
  async #feed({ isHeld, source }: HeldVideo): Promise<void> {
    while (isHeld()) {
      const piece = this.#pieces[this.#next];
      if (piece === undefined && !this.#sought) this.#finish(source);
      if (piece === undefined || !this.#isWanted(piece)) {
        await new Promise<void>((resolve) => (this.#wake = resolve));
        continue;
      }
      this.#sought = false;
      const index = this.#next++;
      const bytes = await this.#read(piece);
      if (bytes === null || !isHeld()) continue;
      await this.#append(fragment(index + 1, piece.spans, bytes, piece.start));
      await this.#forget();
    }
  }

  /** The bytes of a piece; null if a seek came in between. */
  async #read({ start, end }: Piece): Promise<Uint8Array<ArrayBuffer> | null> {
    this.#reading = this.source.read({ start, end });
    try {
      const bytes = await this.#reading.bytes;
      if (this.#sought) return null;
      if (bytes.length !== end - start + 1)
        throw new Unsupported(`${bytes.length} bytes instead of ${end - start + 1}`);
      return bytes;
    } catch (error) {
      if (this.#sought) return null;
      throw error;
    } finally {
      this.#reading = null;
    }
  }

  #isWanted(piece: Piece): boolean {
    const { video } = this;
    const isFirst = piece.startSec <= video.currentTime + GAP_SEC;
    const isOnDemand = video.paused && !video.autoplay && video.preload !== "auto";
    return isFirst || (!isOnDemand && piece.startSec < video.currentTime + AHEAD_SEC * Math.max(1, video.playbackRate));
  }

  /** Continues after what is buffered at the playhead, or with the piece at the playhead. */
  #seek(): void {
    const { video } = this;
    const time = video.currentTime;
    let index = this.#pieceAt(time);
    const buffered = bufferedOf(video);
    for (let at = 0; at < buffered.length; at++) {
      if (buffered.start(at) <= time + GAP_SEC && time < buffered.end(at))
        index = this.#pieceAt(buffered.end(at) + GAP_SEC);
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

  #finish(source: MediaSource): void {
    if (source.readyState === "open" && !this.#buffer.updating) source.endOfStream();
  }

  async #append(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      this.#buffer.appendBuffer(bytes);
    } catch (error) {
      if (!(error instanceof DOMException) || error.name !== "QuotaExceededError") throw error;
      const { currentTime } = this.video;
      await this.#remove(0, currentTime - 2);
      this.#buffer.appendBuffer(bytes);
    }
    await this.#updated();
  }

  /** Removes what lies far behind the playhead. */
  async #forget(): Promise<void> {
    const { video } = this;
    const buffered = bufferedOf(video);
    if (buffered.length > 0 && buffered.start(0) < video.currentTime - 2 * BEHIND_SEC)
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

function change(video: HTMLVideoElement, types: readonly string[]): Promise<void> {
  return new Promise((resolve) => {
    const heard = (): void => {
      for (const type of types) video.removeEventListener(type, heard);
      resolve();
    };
    for (const type of types) video.addEventListener(type, heard);
  });
}
