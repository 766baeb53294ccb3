/**
 * Plain-video script (MAIN world). The background brings it into a page when the first plain `<video>` begins to load.
 */
import "../shared/handed-over";
import { PLAIN_READY_EVENT, SWITCH_EVENT } from "../shared/names";
import type { PlainScript } from "../shared/plain";
import { keepSourceTexts } from "../page/wrap";
import { dressVideos, fileOf, hasInterrupted, hides } from "./hold";
import { giveAllBack, playFile } from "./player";

const take: PlainScript["take"] = (video, heard, link, natives) => {
  if (link.isNative) return;
  const url = fileOf(video);
  if (url === undefined) return;
  if (video.preload !== "none" || !video.paused || video.autoplay) return playFile(video, url, heard, link, natives);
  // The browser, too, loads nothing before the video plays.
  const onPlay = (): void => {
    if (!link.isNative && fileOf(video) === url) playFile(video, url, heard, link, natives);
  };
  video.addEventListener("play", onPlay, { once: true });
};

if (typeof MediaSource === "function") {
  keepSourceTexts();
  dressVideos();
  // On the window, so that no request goes on when the link is dropped.
  window.addEventListener(
    SWITCH_EVENT,
    (event) => {
      if ((event as CustomEvent).detail === "off") giveAllBack();
    },
    true,
  );
  const detail: PlainScript = { take, hides, hasInterrupted };
  document.dispatchEvent(new CustomEvent(PLAIN_READY_EVENT, { detail }));
}
