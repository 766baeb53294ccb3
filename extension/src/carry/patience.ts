/**
 * Patience: how long a request may receive nothing before the page asks the site itself. It is half of the time that
 * the page's videos can still play from their buffers, within bounds. With empty buffers it is the minimum, without a
 * video the maximum.
 */
import { add, firstOf, readerOf } from "../shared/primordials";
import { max, min } from "../shared/late-primordials";
import { nodeCount, select } from "../shared/platform";
import { endOf, rangeCount, startOf } from "../shared/late-platform";

export const PATIENCE_MS_MIN = 3000;
export const PATIENCE_MS_MAX = 8000;

/** What a video tells. */
export interface BufferedVideo {
  /** Where each buffered stretch starts and ends. */
  buffered: readonly { startSec: number; endSec: number }[];
  currentTime: number;
  ended: boolean;
  playbackRate: number;
}

const videoOf = readerOf("HTMLMediaElement", "buffered", "currentTime", "ended", "playbackRate");

/** The videos of the document. */
export function bufferedVideos(): BufferedVideo[] {
  const videos: BufferedVideo[] = [];
  const elements = select(document, "video");
  for (let at = 0; at < nodeCount(elements); at++) {
    const video = videoOf(elements[at] as HTMLVideoElement);
    const buffered: { startSec: number; endSec: number }[] = [];
    for (let each = 0; each < rangeCount(video.buffered); each++)
      add(buffered, { startSec: startOf(video.buffered, each), endSec: endOf(video.buffered, each) });
    add(videos, { ...video, buffered });
  }
  return videos;
}

export function patienceMs(videos: readonly BufferedVideo[]): number {
  let leastSec = Infinity;
  firstOf(videos, (video) => {
    if (!video.ended) leastSec = min(leastSec, aheadSec(video) / (video.playbackRate || 1));
  });
  return min(PATIENCE_MS_MAX, max(PATIENCE_MS_MIN, 500 * leastSec));
}

/** Seconds of buffered media from the playhead up to the first gap. */
function aheadSec({ buffered, currentTime }: BufferedVideo): number {
  const at = firstOf(buffered, ({ startSec, endSec }) => startSec <= currentTime && currentTime < endSec);
  return at === undefined ? 0 : at.endSec - currentTime;
}
