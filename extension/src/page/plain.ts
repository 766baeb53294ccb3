/**
 * Plain: when a `<video>` begins to load a progressive MP4, the plain-video script is brought into the page and takes
 * the video over. Until then the browser loads the file itself.
 */
import { PLAIN_NEED_EVENT, PLAIN_READY_EVENT } from "../shared/names";
import type { PlainTaker } from "../shared/plain";
import { mediaUrl } from "../shared/rules";
import type { Link } from "./link";
import { natives } from "./natives";

const FILE = /\.(?:mp4|m4v|mov)$/i;

export function watchPlainVideos(link: Link): void {
  let take: PlainTaker | undefined;
  const waiting = new Set<HTMLVideoElement>();

  document.addEventListener(PLAIN_READY_EVENT, (event) => {
    take ??= (event as CustomEvent<PlainTaker>).detail;
    for (const video of waiting) take(video, link, natives);
    waiting.clear();
  });

  document.addEventListener(
    "loadstart",
    ({ target }) => {
      if (
        link.isNative ||
        !(target instanceof HTMLVideoElement) ||
        !FILE.test(mediaUrl(target.currentSrc)?.pathname ?? "")
      )
        return;
      // With `none` the browser loads nothing before the video plays.
      if (target.preload !== "none") link.warm();
      if (take !== undefined) return take(target, link, natives);
      waiting.add(target);
      document.dispatchEvent(new CustomEvent(PLAIN_NEED_EVENT));
    },
    true,
  );
}
