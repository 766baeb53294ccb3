/**
 * What a viewer saw, from the events that the page noted (watch.ts): start-up, stalls, bitrate, changes of quality.
 * Pure. Events are in order. Times are ms since the page was opened.
 */
export type PlayEvent =
  | {
      ms: number;
      what: "start" | "manifest" | "playlist" | "frame" | "waiting" | "playing" | "seeking" | "seeked" | "ended";
    }
  /** The playhead entered a segment of this level, so long. */
  | { ms: number; what: "segment"; number: number; level: number; seconds: number };

export interface Seen {
  /** From the player's start to the first frame on the screen. null: there was none. */
  startUpMs: number | null;
  /** Parts of the start-up: to the master playlist, and to the first media playlist. */
  manifestMs: number | null;
  playlistMs: number | null;
  /** From the opening of the page to the first frame, with the player's script. */
  openedMs: number | null;
  /** Stops of the picture after the first frame, except in seeks, and their total time. */
  stalls: number;
  stalledMs: number;
  /** Mean bitrate of the levels played, weighted by the time of their segments. */
  bitsPerSec: number;
  switches: number;
  /** To the last frame. */
  finished: boolean;
}

/**
 * `bitsPerSec`: of each level. `untilMs`: when the watching ended; a stall that had not ended then lasts until then.
 */
export function seenOf(events: readonly PlayEvent[], bitsPerSec: readonly number[], untilMs: number): Seen {
  const startMs = events.find(({ what }) => what === "start")?.ms ?? 0;
  const sinceStart = (what: PlayEvent["what"]): number | null => {
    const event = events.find((each) => each.what === what);
    return event ? event.ms - startMs : null;
  };
  const firstMs =
    (events.find(({ what }) => what === "frame") ?? events.find(({ what }) => what === "playing"))?.ms ?? null;
  const played = events.filter((event) => event.what === "segment");
  const seconds = played.reduce((sum, segment) => sum + segment.seconds, 0);
  return {
    startUpMs: firstMs === null ? null : firstMs - startMs,
    manifestMs: sinceStart("manifest"),
    playlistMs: sinceStart("playlist"),
    openedMs: firstMs,
    ...stallsOf(events, firstMs ?? Infinity, untilMs),
    bitsPerSec:
      seconds > 0
        ? played.reduce((sum, segment) => sum + (bitsPerSec[segment.level] ?? 0) * segment.seconds, 0) / seconds
        : 0,
    switches: played.filter(({ level }, index) => index > 0 && level !== played[index - 1]!.level).length,
    finished: events.some(({ what }) => what === "ended"),
  };
}

function stallsOf(
  events: readonly PlayEvent[],
  firstMs: number,
  untilMs: number,
): { stalls: number; stalledMs: number } {
  let [stalls, stalledMs, seeking] = [0, 0, false];
  let sinceMs: number | null = null;
  const end = (ms: number): void => {
    if (sinceMs !== null) stalledMs += ms - sinceMs;
    sinceMs = null;
  };
  for (const { ms, what } of events) {
    if (what === "seeking") seeking = true;
    if (what === "seeked") seeking = false;
    if (what === "playing") end(ms);
    if (what === "ended") {
      end(ms);
      break;
    }
    if (what === "waiting" && ms >= firstMs && !seeking && sinceMs === null) [stalls, sinceMs] = [stalls + 1, ms];
  }
  end(untilMs);
  return { stalls, stalledMs };
}
