/**
 * What a video consists of, whatever describes it. hls.ts and dash.ts read playlists into these types, and the rest of
 * this folder uses nothing else.
 */
import type { ByteRange } from "@tributary/contract";

/** A video cannot be downloaded. The message is for a person and says what to do. */
export class VideoError extends Error {
  override readonly name = "VideoError";
}

/** AES-128 in CBC mode with padding: each piece is a whole cipher text (RFC 8216 §4.3.2.4). */
export interface PieceKey {
  url: string;
  /** 16 bytes. */
  iv: Uint8Array;
}

/** Bytes that one request brings. */
export interface Piece {
  url: string;
  range?: ByteRange;
  key?: PieceKey;
}

export interface Segment extends Piece {
  /** It grows along the track, so that a later list of a live stream shows which segments are new. */
  position: number;
  /** The position of the segment that follows without a gap. */
  nextPosition: number;
  durationSec: number;
  /** The init segment, which comes before the first segment of a stretch. */
  init?: Piece;
  /** Segments of one stretch have one init segment, and their timestamps go on. The first stretch is 0. */
  stretch: number;
  /** The origin says that it does not have this segment (EXT-X-GAP). */
  isGap: boolean;
}

export interface SegmentList {
  segments: Segment[];
  /** More segments will follow, so the list must be read again. */
  isLive: boolean;
  /** A live list that keeps all segments from the beginning. */
  isFromStart: boolean;
  /** The usual time between two readings of a live list. */
  refreshSec: number;
}

export type TrackKind = "video" | "audio" | "subtitles";

/** One version of the picture, the sound or the subtitles. */
export interface Rendition {
  kind: TrackKind;
  /** Names the rendition in messages, for example `720p` or `English`. */
  label: string;
  bandwidth: number;
  width?: number;
  height?: number;
  /** A language tag (RFC 5646). */
  language?: string;
  isDefault: boolean;
  isForced: boolean;
  /** The sound or the subtitles with which a picture goes. Undefined: any. */
  groups?: { audio?: string; subtitles?: string };
  /** The group of a sound or of subtitles. */
  group?: string;
  /** Renditions of one set are the same in several rates. Undefined: the label tells sounds apart. */
  set?: string;
  /** Reads the list of its segments. Undefined: its bytes are in the picture's segments. */
  load?: () => Promise<SegmentList>;
}

export interface Presentation {
  /** At least one. A presentation of sound alone has its sound here. */
  pictures: Rendition[];
  sounds: Rendition[];
  subtitles: Rendition[];
}
