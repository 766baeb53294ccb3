/**
 * Plain-video script (MAIN world). The background brings it into a page when the first plain `<video>` begins to load.
 */
import "../shared/handed-over";
import { PLAIN_READY_EVENT, SWITCH_EVENT } from "../shared/names";
import type { PlainScript } from "../shared/plain";
import { announce } from "../shared/late-platform";
import { detailOf } from "../shared/platform";
import { keepSourceTexts } from "../page/wrap";
import { hear, media, OwnMediaSource } from "./elements";
import { dressVideos, fileOf, hasInterrupted, hides } from "./hold";
import { giveAllBack, playFile } from "./player";

const take: PlainScript["take"] = (video, heard, link, natives) => {
  if (link.isNative) return;
  const url = fileOf(video);
  if (url === undefined) return;
  const isLoading = media.preload(video) !== "none" || !media.paused(video) || media.autoplay(video);
  if (isLoading) return playFile(video, url, heard, link, natives);
  // The browser, too, loads nothing before the video plays.
  const onPlay = (): void => {
    if (!link.isNative && fileOf(video) === url) playFile(video, url, heard, link, natives);
  };
  hear(video, "play", onPlay, { once: true });
};

if (OwnMediaSource !== undefined) {
  keepSourceTexts();
  dressVideos();
  const heed = (event: Event): void => {
    if (detailOf(event as CustomEvent) === "off") giveAllBack();
  };
  // On the window, so that no request goes on when the link is dropped.
  hear(window, SWITCH_EVENT, heed, { capture: true });
  announce(PLAIN_READY_EVENT, { take, hides, hasInterrupted } satisfies PlainScript);
}
