/** The jobs of each track: all at once for a whole video, and one after the other for a live stream. */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import { plainUrl } from "../request";
import type { Job } from "./job-queue";
import { VideoError, type Piece, type Rendition, type Segment, type SegmentList } from "./presentation";

/** A live stream is joined this many segments before its end (RFC 8216 §6.3.3). */
const LIVE_LEAD_SEGMENTS = 3;
/** A live stream that brings nothing for this long has ended. */
const LIVE_SILENCE_SEC = 60;
/** Rounding leaves smaller gaps between positions. */
const POSITION_GAP_MIN = 0.5;

export interface Track {
  rendition: Rendition;
  list: SegmentList;
  /** The sound in the picture's segments, if it is wanted beside others. */
  ownSound?: Rendition;
}

/** What identifies the segments of a whole video. Query strings are left out, because they often hold a fresh token. */
export function planOf(tracks: readonly Track[]): string {
  const hash = createHash("sha256");
  for (const { rendition, list } of tracks) {
    hash.update(`${rendition.kind} ${list.segments.length}\n`);
    for (const { durationSec, isGap, stretch, init, ...segment } of list.segments)
      hash.update(`${nameOf(segment)} ${durationSec} ${isGap} ${stretch} ${init && nameOf(init)}\n`);
  }
  return hash.digest("hex");
}

function nameOf({ url, range, key }: Piece): string {
  return `${plainUrl(url)} ${range?.start} ${range?.end} ${key && Buffer.from(key.iv).toString("hex")}`;
}

/** The first segments, with at least `durationSec` seconds if there are so many. */
export function cutList(list: SegmentList, durationSec: number | undefined): SegmentList {
  if (durationSec === undefined) return list;
  let sec = 0;
  const segments = list.segments.filter((segment) => {
    const isWanted = sec < durationSec;
    sec += segment.durationSec;
    return isWanted;
  });
  return { ...list, segments };
}

/** All jobs of a whole video in order of time, so that sound and picture arrive together. */
export function jobsOf(tracks: readonly Track[]): Job[] {
  const timed = tracks.flatMap(({ list }, track) => {
    const toJob = jobMaker(track);
    let startSec = 0;
    return list.segments.map((segment) => {
      const job = { startSec, job: toJob(segment) };
      startSec += segment.durationSec;
      return job;
    });
  });
  return timed.sort((a, b) => a.startSec - b.startSec).map(({ job }) => job);
}

function jobMaker(track: number): (segment: Segment) => Job {
  let index = 0;
  let stretch = -1;
  return (segment) => {
    const isFirstOfStretch = !segment.isGap && segment.stretch !== stretch;
    if (isFirstOfStretch) stretch = segment.stretch;
    return { track, index: index++, segment, isFirstOfStretch };
  };
}

export interface Following {
  durationSec: number | undefined;
  /** Ends the recording. */
  finish: AbortSignal;
  onNotice(sentence: string): void;
}

/** Yields the jobs of a live track until it ends, lasts long enough, or `finish` ends it. */
export async function* follow(track: number, { rendition, list }: Track, following: Following): AsyncGenerator<Job> {
  const { durationSec = Infinity, finish, onNotice } = following;
  const toJob = jobMaker(track);
  let current: SegmentList | undefined = liveEdge(list);
  let last: Segment | undefined;
  let sec = 0;
  let silentSec = 0;
  while (current) {
    const fresh = freshSegments(current, last);
    if (last && fresh[0] && fresh[0].position > last.nextPosition + POSITION_GAP_MIN)
      onNotice(`The stream moved on before all segments of ${rendition.label} were read.`);
    for (const segment of fresh) {
      if (sec >= durationSec || finish.aborted) return;
      sec += segment.durationSec;
      yield toJob(segment);
    }
    last = fresh.at(-1) ?? last;
    if (!current.isLive || sec >= durationSec) return;
    const waitSec = fresh.length > 0 ? current.refreshSec : current.refreshSec / 2;
    silentSec = fresh.length > 0 ? 0 : silentSec + waitSec;
    if (silentSec >= LIVE_SILENCE_SEC) return onNotice(`The stream brought nothing for ${LIVE_SILENCE_SEC} s.`);
    current = await reread(rendition, waitSec, following);
  }
}

/** The segments after `last`. Their stretches go on from its stretch. */
export function freshSegments({ segments }: SegmentList, last: Segment | undefined): Segment[] {
  if (!last) return segments;
  const known = segments.findLast(({ position }) => position <= last.position);
  const fresh = segments.filter(({ position }) => position > last.position);
  const isNext = known?.position === last.position;
  const offset = last.stretch - (isNext ? known.stretch : (fresh[0]?.stretch ?? 0) - 1);
  return fresh.map((segment) => ({ ...segment, stretch: segment.stretch + offset }));
}

/** Where a recording begins: near the end of what there is, or at the beginning if the list keeps it. */
function liveEdge(list: SegmentList): SegmentList {
  return list.isFromStart ? list : { ...list, segments: list.segments.slice(-LIVE_LEAD_SEGMENTS) };
}

async function reread(
  rendition: Rendition,
  waitSec: number,
  { finish, onNotice }: Following,
): Promise<SegmentList | undefined> {
  await sleep(1000 * waitSec, undefined, { signal: finish }).catch(() => undefined);
  if (finish.aborted) return undefined;
  try {
    return await rendition.load!();
  } catch (error) {
    if (!(error instanceof VideoError)) throw error;
    onNotice(`The stream ended: ${error.message}`);
    return undefined;
  }
}
