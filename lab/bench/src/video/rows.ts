/**
 * From single plays to a row a box: quartiles, sums, and whether the machine rather than the links set the pace. Pure.
 */
import { isHostLimited } from "../kit/machine";
import { median, quartilesOf, type Quartiles } from "../kit/figures";
import type { VideoBox } from "./boxes";
import type { Play, Segments } from "./play";

export interface VideoRow {
  box: string;
  links: string;
  mode: string;
  transport: string;
  seconds: number;
  /** Plays that count: complete, with the right bytes. The others are in `failed`. */
  n: number;
  failed: number;
  startUpSec: Quartiles;
  openedSec: Quartiles;
  /**
   * Medians of the start-up's parts, in ms: to the master playlist, to the media playlist, the init segment, the first
   * segment.
   */
  parts: readonly number[];
  /** A play. */
  stalls: Quartiles;
  stallsMax: number;
  stallsTotal: number;
  playsWithoutStall: number;
  stalledSec: Quartiles;
  bitsPerSec: Quartiles;
  switches: Quartiles;
  /** Sums over all plays. */
  segments: Segments;
  normalizedGoodput: number | null;
  kills: number;
  idleShare: number;
  startIdleShare: number;
  /** Median of the plays in which it is known. */
  startWaitShare: number | null;
  lateUs: number;
  /** Of the whole play, and of what comes before its first frame. */
  hostLimited: boolean;
  startLimited: boolean;
}

export function videoRows(boxes: readonly VideoBox[], plays: readonly Play[]): VideoRow[] {
  return boxes.flatMap((box) => {
    const own = plays.filter((play) => play.box === box.id);
    return own.length > 0 ? [rowOf(box, own)] : [];
  });
}

function rowOf(box: VideoBox, all: readonly Play[]): VideoRow {
  const good = all.filter(({ ok }) => ok);
  const of = (value: (play: Play) => number): Quartiles => quartilesOf(good.map(value));
  const total = (value: (play: Play) => number): number => all.reduce((sum, play) => sum + value(play), 0);
  const idleShare = median(all.map((play) => play.idleShare));
  const startIdleShare = median(all.map((play) => play.startIdleShare));
  const lateUs = median(all.map((play) => play.lateUs));
  const waits = all.flatMap(({ startWaitShare }) => startWaitShare ?? []);
  const normalized = good.flatMap(({ normalizedGoodput }) => normalizedGoodput ?? []);
  return {
    box: box.id,
    links: box.links.id,
    mode: box.mode,
    transport: box.transport,
    seconds: median(all.map(({ seconds }) => seconds)),
    n: good.length,
    failed: all.length - good.length,
    startUpSec: of(({ startUpMs }) => (startUpMs ?? NaN) / 1000),
    openedSec: of(({ openedMs }) => (openedMs ?? NaN) / 1000),
    parts: [
      of(({ manifestMs }) => manifestMs ?? NaN),
      of(({ manifestMs, playlistMs }) => (playlistMs ?? NaN) - (manifestMs ?? NaN)),
      of(({ initMs }) => initMs ?? NaN),
      of(({ firstSegmentMs }) => firstSegmentMs ?? NaN),
    ].map((part) => part.median),
    stalls: of(({ stalls }) => stalls),
    stallsMax: Math.max(0, ...good.map(({ stalls }) => stalls)),
    stallsTotal: good.reduce((sum, { stalls }) => sum + stalls, 0),
    playsWithoutStall: good.filter(({ stalls }) => stalls === 0).length,
    stalledSec: of(({ stalledMs }) => stalledMs / 1000),
    bitsPerSec: of(({ bitsPerSec }) => bitsPerSec),
    switches: of(({ switches }) => switches),
    segments: {
      got: total(({ segments }) => segments.got),
      carried: total(({ segments }) => segments.carried),
      fellBack: total(({ segments }) => segments.fellBack),
      direct: total(({ segments }) => segments.direct),
      aborted: total(({ segments }) => segments.aborted),
      wrong: total(({ segments }) => segments.wrong),
    },
    normalizedGoodput: normalized.length > 0 ? median(normalized) : null,
    kills: total(({ kills }) => kills),
    idleShare,
    startIdleShare,
    startWaitShare: waits.length > 0 ? median(waits) : null,
    lateUs,
    hostLimited: isHostLimited(idleShare, lateUs),
    startLimited: isHostLimited(startIdleShare, lateUs),
  };
}
