/**
 * Plain-video script (MAIN world). The background brings it into a page when the first plain `<video>` begins to load.
 */
import { PLAIN_READY_EVENT } from "../shared/names";
import type { PlainTaker } from "../shared/plain";
import { dressVideos, hold } from "./hold";
import { playHeld } from "./player";

let isDressed = false;

const take: PlainTaker = (video, link, natives) => {
  if (link.isNative) return;
  if (video.preload === "none" && video.paused && !video.autoplay) return takeAtPlay(video, link, natives);
  const held = hold(video, link, natives, isDressed);
  if (held !== undefined) playHeld(held);
};

/** Takes the video when it plays. The browser, too, loads nothing before that. */
const takeAtPlay: PlainTaker = (video, link, natives) => {
  const url = video.currentSrc;
  const onPlay = (): void => {
    if (video.currentSrc === url) take(video, link, natives);
  };
  video.addEventListener("play", onPlay, { once: true });
};

if (typeof MediaSource === "function") {
  dressVideos();
  document.dispatchEvent(new CustomEvent(PLAIN_READY_EVENT, { detail: take }));
  isDressed = true;
}
