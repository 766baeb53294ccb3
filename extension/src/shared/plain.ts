/** Plain: what the page script hands to the plain-video script, which is brought into a page only when a video needs it. Types only. */
import type { Link } from "../page/link";

/** A `<video>` that waits on an empty MediaSource instead of its file. */
export interface HeldVideo {
  video: HTMLVideoElement;
  /** The file's address. */
  url: string;
  source: MediaSource;
  link: Link;
  nativeFetch: typeof fetch;
  /** The hold is over: its data comes. */
  settle(): void;
  /** Gives the file back to the browser, at the same place and in the same state. */
  restore(): void;
  /** Whether the video still is on `source`. */
  isHeld(): boolean;
}

export type PlainPlayer = (held: HeldVideo) => void;
