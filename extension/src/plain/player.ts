/**
 * Player: feeds one `<video>` from its progressive MP4, piece by piece, through the transport. The browser plays the
 * file itself until the index and the pieces at the playhead have come, so nothing starts later.
 * Like the browser, the player then reads a stretch ahead of the playhead; a seek moves the stretch. If it cannot play
 * the file, the browser keeps it or gets it back. If the page gives the video another source, it stops.
 */
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import type { Heard } from "../shared/plain";
import { add, firstOf, isA, isOneOf, newTable, OwnPromise } from "../shared/primordials";
import { bytes as part, max, OwnError } from "../shared/late-primordials";
import { drop, endOf, rangeCount, startOf } from "../shared/late-platform";
import {
  addBuffer,
  appendTo,
  endStream,
  Failure,
  HAVE_METADATA,
  hear,
  isPlayable,
  isUpdating,
  media,
  nameOf,
  removeFrom,
  setDuration,
  stateOf,
  unhear,
} from "./elements";
import { fileOf, hold, type HeldVideo } from "./hold";
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
  void drop(new PlainVideo(video, url, new Source(url, link, natives)).run(heard, natives));
}

/** By the number of the takeover. */
const leaves = newTable<() => void>();
let takeovers = 0;

/** Gives all videos back to the browser. */
export function giveAllBack(): void {
  for (const number in leaves) leaves[number]?.();
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
    const number = takeovers++;
    leaves[number] = (): void => {
      this.#held?.leave();
      this.#giveBack();
    };
    try {
      await this.#play(heard, natives);
    } finally {
      delete leaves[number];
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
    if (!isPlayable(this.#movie.mime)) throw new Unsupported(this.#movie.mime);
    const fragments = await this.#atPlayhead();
    if (fragments === undefined || this.#isOver) return;
    const held = (this.#held = hold(this.video, this.url, heard, natives, (type) => this.#hear(type)));
    await this.#open(held);
    for (let at = 0; at < fragments.length; at++) await this.#append(fragments[at]!);
    held.settle();
    await this.#feed(held);
  }

  /**
   * The fragments at the playhead of the video that the browser plays; undefined if the browser keeps the video. The
   * first piece after them is `#next`.
   */
  async #atPlayhead(): Promise<Uint8Array<ArrayBuffer>[] | undefined> {
    let from = 0;
    let fragments: Uint8Array<ArrayBuffer>[] = [];
    for (;;) {
      const { video } = this;
      if (fileOf(video) !== this.url || media.error(video) !== null || media.ended(video)) return undefined;
      if (!(media.readyState(video) >= HAVE_METADATA) || media.seeking(video)) {
        await change(video, ["loadedmetadata", "seeked", "emptied", "error"]);
        continue;
      }
      if (!(media.duration(video) < Infinity)) return undefined;
      const at = this.#pieceAt(media.currentTime(video));
      if (at < from || at > from + fragments.length) {
        from = at;
        fragments = [];
      }
      this.#next = from + fragments.length;
      const piece = this.#pieces[this.#next];
      const wantedSec = media.currentTime(video) + (media.paused(video) ? 0 : SPARE_SEC);
      if (piece === undefined || (fragments.length > 0 && piece.startSec > wantedSec)) return fragments;
      const bytes = await this.#read(piece);
      if (bytes !== null) add(fragments, fragment(this.#next + 1, piece.spans, bytes, piece.start));
    }
  }

  async #open({ source, durationSec }: HeldVideo): Promise<void> {
    if (stateOf(source) !== "open") await new OwnPromise<void>((resolve) => hearOnce(source, "sourceopen", resolve));
    this.#buffer = addBuffer(source, this.#movie.mime);
    setDuration(source, durationSec);
    await this.#append(this.#movie.init);
  }

  #hear(type: string): void {
    if (type === "seeking") this.#seek();
    if (isOneOf(["timeupdate", "play", "emptied", "ratechange"], type)) this.#wake?.();
  }

  /** Appends pieces until the page gives the video another source. */
  async #feed({ isHeld, source }: HeldVideo): Promise<void> {
    while (isHeld()) {
      const piece = this.#pieces[this.#next];
      if (piece === undefined && !this.#sought) this.#finish(source);
      if (piece === undefined || !this.#isWanted(piece)) {
        await new OwnPromise<void>((resolve) => (this.#wake = resolve));
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
      const count = part.count(bytes);
      if (count !== end - start + 1) throw new Unsupported(`${count} bytes instead of ${end - start + 1}`);
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
    const sec = media.currentTime(video);
    const isOnDemand = media.paused(video) && !media.autoplay(video) && media.preload(video) !== "auto";
    if (piece.startSec <= sec + GAP_SEC) return true;
    return !isOnDemand && piece.startSec < sec + AHEAD_SEC * max(1, media.playbackRate(video));
  }

  /** Continues after what is buffered at the playhead, or with the piece at the playhead. */
  #seek(): void {
    const { video } = this;
    const sec = media.currentTime(video);
    let index = this.#pieceAt(sec);
    const buffered = media.buffered(video);
    for (let at = 0; at < rangeCount(buffered); at++) {
      const endSec = endOf(buffered, at);
      if (startOf(buffered, at) <= sec + GAP_SEC && sec < endSec) index = this.#pieceAt(endSec + GAP_SEC);
    }
    if (index === this.#next && this.#reading !== null) return;
    this.#next = index;
    this.#sought = true;
    this.#reading?.abort();
    this.#wake?.();
  }

  /** The last piece that starts by `sec`. */
  #pieceAt(sec: number): number {
    let index = this.#pieces.length - 1;
    while (index > 0 && this.#pieces[index]!.startSec > sec) index--;
    return max(0, index);
  }

  #finish(source: MediaSource): void {
    if (stateOf(source) === "open" && !isUpdating(this.#buffer)) endStream(source);
  }

  async #append(bytes: Uint8Array<ArrayBuffer>): Promise<void> {
    try {
      appendTo(this.#buffer, bytes);
    } catch (error) {
      if (!isA(Failure, error) || nameOf(error) !== "QuotaExceededError") throw error;
      await this.#remove(0, media.currentTime(this.video) - 2);
      appendTo(this.#buffer, bytes);
    }
    await this.#updated();
  }

  /** Removes what lies far behind the playhead. */
  async #forget(): Promise<void> {
    const sec = media.currentTime(this.video);
    const buffered = media.buffered(this.video);
    if (rangeCount(buffered) > 0 && startOf(buffered, 0) < sec - 2 * BEHIND_SEC)
      await this.#remove(0, sec - BEHIND_SEC);
  }

  async #remove(from: number, to: number): Promise<void> {
    if (to <= from) throw new OwnError("no room for the next piece");
    removeFrom(this.#buffer, from, to);
    await this.#updated();
  }

  #updated(): Promise<void> {
    const buffer = this.#buffer;
    return new OwnPromise((resolve, reject) => {
      const fail = (): void => reject(new OwnError("the browser does not take the data"));
      hearOnce(buffer, "error", fail);
      hearOnce(buffer, "updateend", () => {
        unhear(buffer, "error", fail);
        resolve();
      });
    });
  }
}

function hearOnce(to: EventTarget, type: string, listener: () => void): void {
  hear(to, type, listener, { once: true });
}

function change(video: HTMLVideoElement, types: readonly string[]): Promise<void> {
  return new OwnPromise((resolve) => {
    const heard = (): void => {
      firstOf(types, (type) => unhear(video, type, heard));
      resolve();
    };
    firstOf(types, (type) => hear(video, type, heard));
  });
}
