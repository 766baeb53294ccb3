/**
 * Plain: when a `<video>` begins to load a progressive MP4, the plain-video script is brought into the page and takes
 * the video over. Until then the browser loads the file itself.
 */
import { PLAIN_NEED_EVENT, PLAIN_READY_EVENT } from "../shared/names";
import type { PlainTaker } from "../shared/plain";
import { mediaUrl } from "../shared/rules";
import type { Link } from "./link";
import { natives } from "./natives";
import type { Permits } from "./permits";

const FILE = /\.(?:mp4|m4v|mov)$/i;

export function watchPlainVideos(link: Link, permits: Permits): void {
  let take: PlainTaker | undefined;
  const waiting = new Set<HTMLVideoElement>();

  document.addEventListener(PLAIN_READY_EVENT, (event) => {
    take ??= (event as CustomEvent<PlainTaker>).detail;
    for (const video of waiting) take(video, link, natives);
    waiting.clear();
  });

  async function prepare(video: HTMLVideoElement): Promise<void> {
    const url = video.currentSrc;
    if (!(await isPermitted(url, permits)) || video.currentSrc !== url) return;
    if (take !== undefined) return take(video, link, natives);
    waiting.add(video);
    document.dispatchEvent(new CustomEvent(PLAIN_NEED_EVENT));
  }

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
      void prepare(target);
    },
    true,
  );
}

/**
 * Whether the page may read `url`. If no request of the page has told that yet, the browser asks for one byte. It lists
 * a request (`Permits`) when the body has ended, so the body is read and not cancelled. A site that sends more than
 * that one byte has no ranges, and the browser plays its file.
 */
async function isPermitted(url: string, permits: Permits): Promise<boolean> {
  if (permits.allows(url)) return true;
  try {
    const response = await natives.fetch(url, { headers: { Range: "bytes=0-0" } });
    permits.note(url, natives.responseUrl(response), response);
    if (!(await isShort(response))) return false;
  } catch {
    // The browser says why.
  }
  return permits.allows(url);
}

/** Whether the body has one byte at most. */
async function isShort({ body }: Response): Promise<boolean> {
  const reader = body?.getReader();
  for (let bytes = 0; bytes <= 1;) {
    const piece = await reader?.read();
    if (piece?.value === undefined) return true;
    bytes += piece.value.length;
  }
  void reader?.cancel();
  return false;
}
