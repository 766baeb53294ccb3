/**
 * Mp4: reads the index of a progressive MP4 and makes what Media Source Extensions take: an initialization segment and,
 * for any span of samples, a fragment around the file's own bytes (ISO/IEC 14496-12 §8; codec strings: RFC 6381). Pure.
 * Not here: fragmented files, encryption, several tracks of a kind, and edit lists other than a shift. `parseMovie`
 * refuses them with a reason, and the browser plays the file itself.
 */
import { Tables } from "./tables";
import {
  box,
  boxIn,
  boxOf,
  fourcc,
  full,
  int32,
  int64,
  join,
  textAt,
  uint32,
  unpack,
  u32,
  u64,
  type Box,
  type Bytes,
} from "./boxes";
import { add, apply, firstOf, memberOf, those } from "../shared/primordials";
import { bytes as part, max, min, OwnError } from "../shared/late-primordials";

export interface Track {
  id: number;
  isVideo: boolean;
  /** Time units per second. */
  timescale: number;
  codec: string;
  samples: Tables;
}

export interface Movie {
  /** `video/mp4; codecs="..."`. */
  mime: string;
  tracks: Track[];
  init: Bytes;
}

/** The reason why a file is left to the browser. */
export class Unsupported extends OwnError {}

/**
 * Parses a whole `moov` box, header included. Throws Unsupported, or RangeError if a box is cut short.
 */
export function parseMovie(bytes: Bytes): Movie {
  const moov = firstOf(unpack(bytes), () => true);
  if (moov?.type !== "moov") throw new Unsupported("no moov box");
  const inside = unpack(moov.body);
  if (boxIn(inside, "mvex") !== undefined) throw new Unsupported("fragmented");
  const tracks: Track[] = [];
  const inits: Bytes[] = [];
  const extensions: Bytes[] = [];
  let codecs = "";
  firstOf(inside, (each) => {
    const parsed = each.type === "trak" ? parseTrack(each) : undefined;
    if (parsed === undefined) return;
    const { track, init } = parsed;
    add(tracks, track);
    add(inits, init);
    add(extensions, trex(track.id));
    codecs += `${codecs && ","}${track.codec}`;
  });
  const videoCount = those(tracks, ({ isVideo }) => isVideo).length;
  if (videoCount !== 1 || tracks.length > 2) throw new Unsupported(`${videoCount} video tracks of ${tracks.length}`);
  return {
    mime: `video/mp4; codecs="${codecs}"`,
    tracks,
    init: join([
      box("ftyp", fourcc("iso5"), u32(0), fourcc("iso5"), fourcc("iso6")),
      box("moov", box("mvhd", only(inside, "mvhd").body), join(inits), boxOf("mvex", extensions)),
    ]),
  };
}

function parseTrack(trak: Box): { track: Track; init: Bytes } | undefined {
  const inTrak = unpack(trak.body);
  const mdia = unpack(only(inTrak, "mdia").body);
  const handler = textAt(only(mdia, "hdlr").body, 8);
  if (handler !== "vide" && handler !== "soun") return undefined;
  const isVideo = handler === "vide";
  const tkhd = only(inTrak, "tkhd").body;
  const id = uint32(tkhd, tkhd[0] === 1 ? 20 : 12);
  const mdhd = only(mdia, "mdhd").body;
  const timescale = uint32(mdhd, mdhd[0] === 1 ? 20 : 12);
  const minf = unpack(only(mdia, "minf").body);
  const stbl = unpack(only(minf, "stbl").body);
  const samples = new Tables(stbl, shiftOf(inTrak));
  if (timescale === 0 || samples.count === 0) throw new Unsupported("an empty track");
  const description = only(stbl, "stsd").body;
  const kept: Bytes[] = [];
  firstOf(minf, ({ type, body }) => {
    if (type !== "stbl") add(kept, box(type, body));
  });
  const empty = box(
    "stbl",
    box("stsd", description),
    full("stts", 0, u32(0)),
    full("stsc", 0, u32(0)),
    full("stsz", 0, u32(0), u32(0)),
    full("stco", 0, u32(0)),
  );
  const init = box(
    "trak",
    box("tkhd", tkhd),
    box("mdia", box("mdhd", mdhd), box("hdlr", only(mdia, "hdlr").body), box("minf", join(kept), empty)),
  );
  return { track: { id, isVideo, timescale, codec: codecOf(description), samples }, init };
}

/** What the edit list subtracts from every time of the track, in the track's units. */
function shiftOf(trak: readonly Box[]): number {
  const edts = boxIn(trak, "edts");
  const elst = edts && boxIn(unpack(edts.body), "elst");
  if (elst === undefined) return 0;
  const data = elst.body;
  if (uint32(data, 4) !== 1) throw new Unsupported("an edit list with several edits");
  const isLong = data[0] === 1;
  const mediaTime = isLong ? int64(data, 16) : int32(data, 12);
  if (mediaTime < 0 || int32(data, isLong ? 24 : 16) !== 0x10000)
    throw new Unsupported("an edit that delays or changes the rate");
  return mediaTime;
}

/** The codec string of the only entry in a sample description box. */
function codecOf(description: Bytes): string {
  if (uint32(description, 4) !== 1) throw new Unsupported("several sample descriptions");
  const entry = firstOf(unpack(part.part(description, 8)), () => true);
  if (entry === undefined) throw new Unsupported("no sample description");
  const inside = (fixedBytes: number, type: string): Bytes =>
    only(unpack(part.part(entry.body, fixedBytes)), type).body;
  switch (entry.type) {
    case "avc1":
    case "avc3":
      return `${entry.type}.${hex(uint32(inside(78, "avcC"), 0) & 0xffffff, 6)}`;
    case "av01":
      return av1Codec(inside(78, "av1C"));
    case "mp4a":
      return mpeg4Audio(inside(28, "esds"));
    case "Opus":
      return "opus";
    case "fLaC":
      return "flac";
    default:
      throw new Unsupported(`codec ${entry.type}`);
  }
}

const digits = memberOf("Number", "toString") as (radix: number) => string;

/** In at least `length` digits. */
function hex(value: number, length = 1): string {
  let text = apply(digits, value, [16]);
  while (text.length < length) text = `0${text}`;
  return text;
}

const twoDigits = (value: number): string => (value < 10 ? `0${value}` : `${value}`);

/** AV1 codec string (AV1 in ISOBMFF, §5). */
function av1Codec(record: Uint8Array): string {
  const second = record[1] ?? 0;
  const third = record[2] ?? 0;
  const depth = (third & 0x40) === 0 ? 8 : (third & 0x20) !== 0 && second >> 5 === 2 ? 12 : 10;
  return `av01.${second >> 5}.${twoDigits(second & 31)}${third >> 7 === 1 ? "H" : "M"}.${twoDigits(depth)}`;
}

/**
 * Codec string with the object type of the decoder configuration (ISO/IEC 14496-1 §7.2.6). A descriptor is a tag, a
 * length and its content.
 */
function mpeg4Audio(esds: Uint8Array): string {
  let at = 4;
  const open = (tag: number): void => {
    if (esds[at++] !== tag) throw new Unsupported("an audio configuration of another layout");
    while ((esds[at++] ?? 0) & 0x80);
  };
  open(3);
  const flags = esds[at + 2] ?? 0;
  at += 3 + (flags & 0x80 ? 2 : 0) + (flags & 0x40 ? 1 + (esds[at + 3] ?? 0) : 0) + (flags & 0x20 ? 2 : 0);
  open(4);
  const objectType = esds[at] ?? 0;
  if (objectType !== 0x40) return `mp4a.${hex(objectType)}`;
  at += 13;
  open(5);
  const first = esds[at] ?? 0;
  const audioType = first >> 3 === 31 ? 32 + (((first & 7) << 3) | ((esds[at + 1] ?? 0) >> 5)) : first >> 3;
  return `mp4a.40.${audioType}`;
}

function trex(id: number): Bytes {
  return full("trex", 0, u32(id), u32(1), u32(0), u32(0), u32(0));
}

/** Samples `from` to `until` (exclusive) of a track. */
export interface Span {
  track: Track;
  from: number;
  until: number;
}

const SYNC_FLAGS = 0x02000000;
const OTHER_FLAGS = 0x01010000;

/** Makes a fragment of `spans`. `media` holds the file's bytes from `mediaOffset` on. */
export function fragment(sequence: number, spans: readonly Span[], media: Bytes, mediaOffset: number): Bytes {
  const present = those(spans, ({ from, until }) => until > from);
  const build = (dataAt: number): Bytes => {
    let at = dataAt;
    const trafs: Bytes[] = [];
    firstOf(present, (span) => {
      add(trafs, traf(span, at));
      at += bytesOf(span);
    });
    return box("moof", full("mfhd", 0, u32(sequence)), join(trafs));
  };
  const moof = build(part.count(build(0)) + 8);
  const data: Bytes[] = [];
  firstOf(present, (span) => addData(data, span, media, mediaOffset));
  return join([moof, boxOf("mdat", data)]);
}

function bytesOf({ track, from, until }: Span): number {
  let sum = 0;
  for (let index = from; index < until; index++) sum += track.samples.at(index).bytes;
  return sum;
}

function traf({ track, from, until }: Span, dataAt: number): Bytes {
  const entries: Bytes[] = [];
  for (let index = from; index < until; index++) {
    const sample = track.samples.at(index);
    add(entries, u32(sample.duration));
    add(entries, u32(sample.bytes));
    add(entries, u32(sample.isSync ? SYNC_FLAGS : OTHER_FLAGS));
    add(entries, u32(track.isVideo ? sample.offsetTime : 0));
  }
  const first = track.samples.at(from);
  const startTime = first.decodeTime + (track.isVideo ? 0 : first.offsetTime);
  return box(
    "traf",
    full("tfhd", 0x020000, u32(track.id)),
    full("tfdt", 0x01000000, u64(startTime)),
    full("trun", 0x01000f01, u32(until - from), u32(dataAt), join(entries)),
  );
}

/** Adds the bytes of the samples. Samples that are neighbours in the file stay in one piece. */
function addData(pieces: Bytes[], { track, from, until }: Span, media: Bytes, mediaOffset: number): void {
  const addPiece = (): void => add(pieces, part.part(media, start - mediaOffset, end - start));
  let start = 0;
  let end = 0;
  for (let index = from; index < until; index++) {
    const { position, bytes } = track.samples.at(index);
    if (position !== end) {
      if (end > start) addPiece();
      start = position;
    }
    end = position + bytes;
  }
  addPiece();
}

function only(boxes: readonly Box[], type: string): Box {
  const found = boxIn(boxes, type);
  if (found === undefined) throw new Unsupported(`no ${type} box`);
  return found;
}

/**
 * The samples that a player gets together: at least a second of video that begins at a sync sample, and its sound.
 */
export interface Piece {
  /** The time at which its first picture is shown. */
  startSec: number;
  spans: Span[];
  /** Offsets in the file; `end` is inclusive. */
  start: number;
  end: number;
}

const PIECE_SEC_MIN = 1;
const PIECE_BYTES_MAX = 24 * 1024 * 1024;
/** The most bytes within a piece that belong to none of its samples. */
const STRANGE_BYTES_MAX = 1024 * 1024;

/** Cuts the movie into pieces. Throws Unsupported if samples of one time lie far apart in the file. */
export function piecesOf({ tracks }: Movie): Piece[] {
  const video = firstOf(tracks, ({ isVideo }) => isVideo);
  const audio = firstOf(tracks, ({ isVideo }) => !isVideo);
  if (video === undefined) return [];
  const pieces: Piece[] = [];
  let audioFrom = audio?.samples.firstShown ?? 0;
  for (let from = 0; from < video.samples.count;) {
    const until = nextCut(video, from);
    const endSec = until < video.samples.count ? video.samples.at(until).decodeTime / video.timescale : Infinity;
    const spans: Span[] = [{ track: video, from, until }];
    if (audio !== undefined) {
      const audioUntil = endSec === Infinity ? audio.samples.count : audio.samples.firstFrom(endSec * audio.timescale);
      add(spans, { track: audio, from: audioFrom, until: max(audioFrom, audioUntil) });
      audioFrom = max(audioFrom, audioUntil);
    }
    const { decodeTime, offsetTime } = video.samples.at(from);
    add(pieces, pieceOf(spans, (decodeTime + offsetTime) / video.timescale));
    from = until;
  }
  return pieces;
}

function nextCut({ samples, timescale }: Track, from: number): number {
  const endTime = samples.at(from).decodeTime + PIECE_SEC_MIN * timescale;
  let index = from + 1;
  while (index < samples.count && !(samples.at(index).isSync && samples.at(index).decodeTime >= endTime)) index++;
  return index;
}

function pieceOf(spans: Span[], startSec: number): Piece {
  let start = Infinity;
  let end = 0;
  let own = 0;
  firstOf(spans, ({ track, from, until }) => {
    for (let index = from; index < until; index++) {
      const { position, bytes } = track.samples.at(index);
      start = min(start, position);
      end = max(end, position + bytes);
      own += bytes;
    }
  });
  if (end - start > PIECE_BYTES_MAX) throw new Unsupported(`a piece of ${end - start} bytes`);
  if (end - start - own > STRANGE_BYTES_MAX) throw new Unsupported("picture and sound far apart in the file");
  return { startSec, spans, start, end: end - 1 };
}
