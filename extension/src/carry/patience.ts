/**
 * Patience: how long a request may be silent before the page asks for itself: half of what the page's videos still have
 * to show, within bounds. Nothing in store, as at the start, makes for little patience; no video in sight for the
 * longest.
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

/** Seconds of media from the playhead on without a gap. */
function aheadSec({ buffered, currentTime }: BufferedVideo): number {
  for (let at = 0; at < buffered.length; at++) {
    if (buffered.start(at) <= currentTime && currentTime < buffered.end(at)) return buffered.end(at) - currentTime;
  }
  return 0;
}
