/**
 * Plain: the type that the page script and the plain-video script share. The plain-video script enters a page only when
 * a video needs it.
 */
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";

/** Takes over a video that began to load a file. */
export type PlainTaker = (video: HTMLVideoElement, link: Link, natives: Natives) => void;
