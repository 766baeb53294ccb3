/**
 * Patience: how long a request may receive nothing before the page asks the site itself. It is half of the time that
 * the page's videos can still play from their buffers, within bounds. With empty buffers it is the minimum, without a
 * video the maximum.
 */
export const PATIENCE_MS_MIN = 3000;
export const PATIENCE_MS_MAX = 8000;

export type BufferedVideo = Pick<HTMLMediaElement, "buffered" | "currentTime" | "ended" | "playbackRate">;

export function patienceMs(videos: Iterable<BufferedVideo>): number {
  let leastSec = Infinity;
  for (const video of videos)
    if (!video.ended) leastSec = Math.min(leastSec, aheadSec(video) / (video.playbackRate || 1));
  return Math.min(PATIENCE_MS_MAX, Math.max(PATIENCE_MS_MIN, 500 * leastSec));
}

/** Seconds of buffered media from the playhead up to the first gap. */
function aheadSec({ buffered, currentTime }: BufferedVideo): number {
  for (let at = 0; at < buffered.length; at++) {
    if (buffered.start(at) <= currentTime && currentTime < buffered.end(at)) return buffered.end(at) - currentTime;
  }
  return 0;
}
