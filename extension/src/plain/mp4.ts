/**
 * Mp4: reads the index of a progressive MP4 and makes what Media Source Extensions take: an initialization segment and,
 * for any span of samples, a fragment around the file's own bytes (ISO/IEC 14496-12 §8; codec strings: RFC 6381). Pure.
 * Not here: fragmented files, encryption, several tracks of a kind, and edit lists other than a shift. `parseMovie`
 * refuses them with a reason, and the browser plays the file itself.
 */
import { Tables } from "./tables";
import { box, fourcc, full, unpack, u32, u64, view, type Box } from "./boxes";

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
  init: Uint8Array<ArrayBuffer>;
}

/** The reason why a file is left to the browser. */
export class Unsupported extends Error {}

/**
 * Parses a whole `moov` box, header included. Throws Unsupported, or RangeError if a box is cut short.
 */
export function parseMovie(bytes: Uint8Array<ArrayBuffer>): Movie {
  const [moov] = unpack(bytes);
  if (moov?.type !== "moov") throw new Unsupported("no moov box");
  const inside = unpack(moov.body);
  if (inside.some(({ type }) => type === "mvex")) throw new Unsupported("fragmented");
  const parsed = inside.filter(({ type }) => type === "trak").flatMap((trak) => parseTrack(trak) ?? []);
  const tracks = parsed.map(({ track }) => track);
  const videoCount = tracks.filter(({ isVideo }) => isVideo).length;
  if (videoCount !== 1 || tracks.length > 2) throw new Unsupported(`${videoCount} video tracks of ${tracks.length}`);
  return {
    mime: `video/mp4; codecs="${tracks.map(({ codec }) => codec).join(",")}"`,
    tracks,
    init: join([
      box("ftyp", fourcc("iso5"), u32(0), fourcc("iso5"), fourcc("iso6")),
      box(
        "moov",
        box("mvhd", only(inside, "mvhd").body),
        ...parsed.map(({ init }) => init),
        box("mvex", ...tracks.map(({ id }) => trex(id))),
      ),
    ]),
  };
}

function parseTrack(trak: Box): { track: Track; init: Uint8Array<ArrayBuffer> } | undefined {
  const inTrak = unpack(trak.body);
  const mdia = unpack(only(inTrak, "mdia").body);
  const handler = textAt(only(mdia, "hdlr").body, 8);
  if (handler !== "vide" && handler !== "soun") return undefined;
  const isVideo = handler === "vide";
  const tkhd = view(only(inTrak, "tkhd").body);
  const id = tkhd.getUint32(tkhd.getUint8(0) === 1 ? 20 : 12);
  const mdhd = view(only(mdia, "mdhd").body);
  const timescale = mdhd.getUint32(mdhd.getUint8(0) === 1 ? 20 : 12);
  const minf = unpack(only(mdia, "minf").body);
  const stbl = unpack(only(minf, "stbl").body);
  const samples = new Tables(stbl, shiftOf(inTrak));
  if (timescale === 0 || samples.count === 0) throw new Unsupported("an empty track");
  const description = only(stbl, "stsd").body;
  const kept = minf.filter(({ type }) => type !== "stbl").map(({ type, body }) => box(type, body));
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
    box("tkhd", only(inTrak, "tkhd").body),
    box(
      "mdia",
      box("mdhd", only(mdia, "mdhd").body),
      box("hdlr", only(mdia, "hdlr").body),
      box("minf", ...kept, empty),
    ),
  );
  return { track: { id, isVideo, timescale, codec: codecOf(description), samples }, init };
}

/** What the edit list subtracts from every time of the track, in the track's units. */
function shiftOf(trak: readonly Box[]): number {
  const edts = trak.find(({ type }) => type === "edts");
  const elst = edts && unpack(edts.body).find(({ type }) => type === "elst");
  if (elst === undefined) return 0;
  const data = view(elst.body);
  if (data.getUint32(4) !== 1) throw new Unsupported("an edit list with several edits");
  const isLong = data.getUint8(0) === 1;
  const mediaTime = isLong ? Number(data.getBigInt64(16)) : data.getInt32(12);
  if (mediaTime < 0 || data.getInt32(isLong ? 24 : 16) !== 0x10000)
    throw new Unsupported("an edit that delays or changes the rate");
  return mediaTime;
}

/** The codec string of the only entry in a sample description box. */
function codecOf(description: Uint8Array<ArrayBuffer>): string {
  if (view(description).getUint32(4) !== 1) throw new Unsupported("several sample descriptions");
  const [entry] = unpack(description.subarray(8));
  if (entry === undefined) throw new Unsupported("no sample description");
  const inside = (fixedBytes: number, type: string): Uint8Array<ArrayBuffer> =>
    only(unpack(entry.body.subarray(fixedBytes)), type).body;
  switch (entry.type) {
    case "avc1":
    case "avc3":
      return `${entry.type}.${hex(inside(78, "avcC").subarray(1, 4))}`;
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

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** AV1 codec string (AV1 in ISOBMFF, §5). */
function av1Codec(record: Uint8Array): string {
  const [, second = 0, third = 0] = record;
  const depth = (third & 0x40) === 0 ? 8 : (third & 0x20) !== 0 && second >> 5 === 2 ? 12 : 10;
  const level = String(second & 31).padStart(2, "0");
  return `av01.${second >> 5}.${level}${third >> 7 === 1 ? "H" : "M"}.${String(depth).padStart(2, "0")}`;
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
  if (objectType !== 0x40) return `mp4a.${objectType.toString(16)}`;
  at += 13;
  open(5);
  const first = esds[at] ?? 0;
  const audioType = first >> 3 === 31 ? 32 + (((first & 7) << 3) | ((esds[at + 1] ?? 0) >> 5)) : first >> 3;
  return `mp4a.40.${audioType}`;
}

function trex(id: number): Uint8Array<ArrayBuffer> {
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
export function fragment(
  sequence: number,
  spans: readonly Span[],
  media: Uint8Array<ArrayBuffer>,
  mediaOffset: number,
): Uint8Array<ArrayBuffer> {
  const present = spans.filter(({ from, until }) => until > from);
  const build = (dataAt: number): Uint8Array<ArrayBuffer> => {
    let at = dataAt;
    const trafs = present.map((span) => {
      const made = traf(span, at);
      at += bytesOf(span);
      return made;
    });
    return box("moof", full("mfhd", 0, u32(sequence)), ...trafs);
  };
  const moof = build(build(0).length + 8);
  return join([moof, box("mdat", ...present.flatMap((span) => dataOf(span, media, mediaOffset)))]);
}

function bytesOf({ track, from, until }: Span): number {
  let sum = 0;
  for (let index = from; index < until; index++) sum += track.samples.at(index).bytes;
  return sum;
}

function traf({ track, from, until }: Span, dataAt: number): Uint8Array<ArrayBuffer> {
  const entries: Uint8Array<ArrayBuffer>[] = [];
  for (let index = from; index < until; index++) {
    const sample = track.samples.at(index);
    entries.push(
      u32(sample.duration),
      u32(sample.bytes),
      u32(sample.isSync ? SYNC_FLAGS : OTHER_FLAGS),
      u32(track.isVideo ? sample.offsetTime : 0),
    );
  }
  const first = track.samples.at(from);
  const startTime = first.decodeTime + (track.isVideo ? 0 : first.offsetTime);
  return box(
    "traf",
    full("tfhd", 0x020000, u32(track.id)),
    full("tfdt", 0x01000000, u64(startTime)),
    full("trun", 0x01000f01, u32(until - from), u32(dataAt), ...entries),
  );
}

/** The bytes of the samples. Samples that are neighbours in the file stay in one piece. */
function dataOf(
  { track, from, until }: Span,
  media: Uint8Array<ArrayBuffer>,
  mediaOffset: number,
): Uint8Array<ArrayBuffer>[] {
  const pieces: Uint8Array<ArrayBuffer>[] = [];
  let [start, end] = [0, 0];
  for (let index = from; index < until; index++) {
    const { position, bytes } = track.samples.at(index);
    if (position !== end) {
      if (end > start) pieces.push(media.subarray(start - mediaOffset, end - mediaOffset));
      start = position;
    }
    end = position + bytes;
  }
  pieces.push(media.subarray(start - mediaOffset, end - mediaOffset));
  return pieces;
}

function only(boxes: readonly Box[], type: string): Box {
  const found = boxes.find((each) => each.type === type);
  if (found === undefined) throw new Unsupported(`no ${type} box`);
  return found;
}

function textAt(bytes: Uint8Array, at: number): string {
  return String.fromCharCode(...bytes.subarray(at, at + 4));
}

function join(parts: readonly Uint8Array<ArrayBuffer>[]): Uint8Array<ArrayBuffer> {
  const joined = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
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
  const video = tracks.find(({ isVideo }) => isVideo);
  const audio = tracks.find(({ isVideo }) => !isVideo);
  if (video === undefined) return [];
  const pieces: Piece[] = [];
  let audioFrom = audio?.samples.firstShown ?? 0;
  for (let from = 0; from < video.samples.count;) {
    const until = nextCut(video, from);
    const endSec = until < video.samples.count ? video.samples.at(until).decodeTime / video.timescale : Infinity;
    const spans: Span[] = [{ track: video, from, until }];
    if (audio !== undefined) {
      const audioUntil = endSec === Infinity ? audio.samples.count : audio.samples.firstFrom(endSec * audio.timescale);
      spans.push({ track: audio, from: audioFrom, until: Math.max(audioFrom, audioUntil) });
      audioFrom = Math.max(audioFrom, audioUntil);
    }
    const { decodeTime, offsetTime } = video.samples.at(from);
    pieces.push(pieceOf(spans, (decodeTime + offsetTime) / video.timescale));
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
  let [start, end, own] = [Infinity, 0, 0];
  for (const { track, from, until } of spans) {
    for (let index = from; index < until; index++) {
      const { position, bytes } = track.samples.at(index);
      start = Math.min(start, position);
      end = Math.max(end, position + bytes);
      own += bytes;
    }
  }
  if (end - start > PIECE_BYTES_MAX) throw new Unsupported(`a piece of ${end - start} bytes`);
  if (end - start - own > STRANGE_BYTES_MAX) throw new Unsupported("picture and sound far apart in the file");
  return { startSec, spans, start, end: end - 1 };
}
