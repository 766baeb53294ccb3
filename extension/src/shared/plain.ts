/**
 * Plain: what the page script and the plain-video script share. The plain-video script enters a page only when a video
 * needs it.
 */
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";
import { partsOf, type Table } from "./primordials";

/** Events that a page hears once while a file loads and begins to play. */
export const FILE_EVENTS =
  "loadstart durationchange resize loadedmetadata loadeddata canplay canplaythrough play playing";
/** Other events of a video that another load of the same file would repeat. */
export const LOAD_EVENTS = "abort emptied suspend stalled waiting ratechange timeupdate seeking seeked";
export const MEDIA_EVENTS = partsOf(`${FILE_EVENTS} ${LOAD_EVENTS} pause error`, " ");

/** The types of events that the page heard of a video since it began to load its file. */
export type Heard = Table<true>;

export interface PlainScript {
  /** Takes over a video that began to load a file. */
  take(video: HTMLVideoElement, heard: Heard, link: Link, natives: Natives): void;
  /** Whether an event belongs to a takeover, so that the page must not hear it. */
  hides(video: HTMLVideoElement, type: string): boolean;
  /** Whether a takeover since `sinceMs` is the reason why a call of `play` failed. */
  hasInterrupted(video: HTMLMediaElement, sinceMs: number): boolean;
}
