/**
 * Plain: what the page script and the plain-video script, which is brought into a page only when a video needs it, have
 * in common. Types only.
 */
import type { Link } from "../page/link";
import type { Natives } from "../page/natives";

/** Takes over a video that has begun to load a file. */
export type PlainTaker = (video: HTMLVideoElement, link: Link, natives: Natives) => void;
