/** Reads HLS playlists (RFC 8216) with m3u8-parser, and adds what that leaves out: every key, and gaps. No I/O. */
import { Parser, type Manifest, type PlaylistItem, type Segment as ParsedSegment } from "m3u8-parser";
import type { ByteRange } from "@tributary/contract";
import { systemOfKeyFormat } from "./protection";
import {
  VideoError,
  type Piece,
  type PieceKey,
  type Rendition,
  type SegmentList,
  type TrackKind,
} from "./presentation";

/** A key tag. A segment may have several, one for each format, and each opens it. */
interface KeyTag {
  method: string;
  format: string;
  uri: string | undefined;
  iv: Uint32Array | undefined;
}

interface Parsed {
  manifest: Manifest;
  /** The keys of each segment and of its init segment. */
  keys: { ofSegment: readonly KeyTag[]; ofInit: readonly KeyTag[] }[];
}

/** A rendition whose list of segments is in a playlist of its own. */
export interface HlsRendition extends Omit<Rendition, "load"> {
  url: string | undefined;
}

export interface Master {
  kind: "master";
  pictures: HlsRendition[];
  sounds: HlsRendition[];
  subtitles: HlsRendition[];
  /** Values that a media playlist may import (EXT-X-DEFINE). */
  definitions: Record<string, string>;
}

export interface Media extends SegmentList {
  kind: "media";
}

const SEGMENT_SEC_DEFAULT = 6;

/** `url` is the playlist's address after redirects. */
export function parseHls(text: string, url: string, definitions: Record<string, string> = {}): Master | Media {
  const parsed = parse(text, url, definitions);
  return parsed.manifest.playlists ? masterOf(parsed.manifest, url) : mediaOf(parsed, url);
}

function parse(text: string, url: string, definitions: Record<string, string>): Parsed {
  const parser = new Parser({ uri: url, mainDefinitions: definitions });
  const keys: Parsed["keys"] = [];
  let ofSegment: readonly KeyTag[] = [];
  let ofInit: readonly KeyTag[] = [];
  parser.addParser({ expression: /^#EXT-X-GAP\b/, customType: "gap", segment: true });
  parser.on("error", ({ message }) => {
    throw new VideoError(`The playlist is not valid: ${message}.`);
  });
  parser.parseStream.on("data", (entry) => {
    const { type, tagType, attributes } = entry as { type: string; tagType?: string; attributes?: KeyAttributes };
    if (type === "uri") keys.push({ ofSegment, ofInit });
    else if (tagType === "map") ofInit = ofSegment;
    else if (tagType === "key" && attributes) ofSegment = withKey(ofSegment, attributes);
  });
  try {
    parser.push(text);
    parser.end();
  } catch (error) {
    throw error instanceof VideoError ? error : new VideoError(`The playlist is not valid: ${String(error)}.`);
  }
  return { manifest: parser.manifest, keys };
}

interface KeyAttributes {
  METHOD?: string;
  KEYFORMAT?: string;
  URI?: string;
  IV?: Uint32Array;
}

/** A tag replaces the one of the same format, and `NONE` ends all (RFC 8216 §4.3.2.4). */
function withKey(tags: readonly KeyTag[], { METHOD, KEYFORMAT, URI, IV }: KeyAttributes): readonly KeyTag[] {
  const tag: KeyTag = { method: METHOD ?? "AES-128", format: KEYFORMAT ?? "identity", uri: URI, iv: IV };
  return tag.method === "NONE" ? [] : [...tags.filter(({ format }) => format !== tag.format), tag];
}

function masterOf(manifest: Manifest, url: string): Master {
  const groups = (type: string, kind: TrackKind): HlsRendition[] =>
    Object.entries(manifest.mediaGroups?.[type] ?? {}).flatMap(([group, items]) =>
      Object.entries(items).map(([name, item]) => ({
        kind,
        group,
        label: name,
        bandwidth: 0,
        ...(item.language === undefined ? {} : { language: item.language }),
        isDefault: item.default,
        isForced: item.forced === true,
        url: item.uri === undefined ? undefined : addressOf(item.uri, url),
      })),
    );
  return {
    kind: "master",
    pictures: (manifest.playlists ?? []).map((item) => pictureOf(item, url)),
    sounds: groups("AUDIO", "audio"),
    subtitles: groups("SUBTITLES", "subtitles"),
    definitions: (manifest.definitions ?? {}) as Record<string, string>,
  };
}

function pictureOf({ uri, attributes = {} }: PlaylistItem, url: string): HlsRendition {
  const { RESOLUTION, BANDWIDTH = 0, AUDIO, SUBTITLES } = attributes;
  return {
    kind: "video",
    label: labelOf(RESOLUTION?.width, RESOLUTION?.height, Number(BANDWIDTH)),
    bandwidth: Number(BANDWIDTH),
    ...(RESOLUTION ? { width: RESOLUTION.width, height: RESOLUTION.height } : {}),
    isDefault: false,
    isForced: false,
    groups: {
      ...(AUDIO === undefined ? {} : { audio: AUDIO }),
      ...(SUBTITLES === undefined ? {} : { subtitles: SUBTITLES }),
    },
    url: addressOf(uri, url),
  };
}

/** For example `1280x720, 2000 kbit/s`. */
export function labelOf(width: number | undefined, height: number | undefined, bandwidth: number): string {
  const size = width === undefined || height === undefined ? [] : [`${width}x${height}`];
  return [...size, `${Math.round(bandwidth / 1000)} kbit/s`].join(", ");
}

function mediaOf({ manifest, keys }: Parsed, url: string): Media {
  const first = manifest.mediaSequence ?? 0;
  let stretch = -1;
  let initName: string | undefined;
  const segments = manifest.segments.map((parsed, index) => {
    const position = first + index;
    const { ofSegment = [], ofInit = [] } = keys[index] ?? {};
    const init = initOf(parsed, ofInit, url);
    const name = init && `${init.url} ${init.range?.start} ${init.range?.end}`;
    if (stretch < 0 || parsed.discontinuity === true || name !== initName) stretch++;
    initName = name;
    const isGap = (parsed as { custom?: { gap?: unknown } }).custom?.gap !== undefined;
    return {
      ...pieceOf(parsed.uri, parsed.byterange, isGap ? undefined : keyOf(ofSegment, position, url), url),
      position,
      nextPosition: position + 1,
      durationSec: parsed.duration,
      stretch,
      isGap,
      ...(init ? { init } : {}),
    };
  });
  return {
    kind: "media",
    segments,
    isLive: manifest.endList !== true,
    isFromStart: manifest.playlistType !== undefined,
    refreshSec: manifest.targetDuration ?? SEGMENT_SEC_DEFAULT,
  };
}

function initOf({ map }: ParsedSegment, keys: readonly KeyTag[], url: string): Piece | undefined {
  return map && pieceOf(map.uri, map.byterange, keyOf(keys, undefined, url), url);
}

function pieceOf(
  uri: string,
  bytes: { length: number; offset: number } | undefined,
  key: PieceKey | undefined,
  url: string,
): Piece {
  const start = bytes?.offset || 0;
  const range: ByteRange | undefined = bytes && { start, end: start + bytes.length - 1 };
  return { url: addressOf(uri, url), ...(range ? { range } : {}), ...(key ? { key } : {}) };
}

/** The key among `tags` that this program can use. Throws if there are keys and none of them is such a key. */
function keyOf(tags: readonly KeyTag[], position: number | undefined, url: string): PieceKey | undefined {
  if (tags.length === 0) return undefined;
  const tag = tags.find(({ method, format }) => method === "AES-128" && format === "identity");
  if (!tag) {
    const systems = [...new Set(tags.map(({ method, format }) => systemOfKeyFormat(method, format)))];
    throw new VideoError(`The video is encrypted with ${systems.join(", ")}. This program has no keys for that.`);
  }
  if (tag.uri === undefined) throw new VideoError("The playlist is not valid: a key of AES-128 has no address.");
  return { url: addressOf(tag.uri, url, true), iv: tag.iv ? ivOf(tag.iv) : ivOfPosition(position ?? 0) };
}

function ivOf(words: Uint32Array): Uint8Array {
  const iv = Buffer.alloc(16);
  words.forEach((word, index) => iv.writeUInt32BE(word, 4 * index));
  return iv;
}

/** Without IV in the playlist it is the segment's sequence number (RFC 8216 §5.2). */
function ivOfPosition(position: number): Uint8Array {
  const iv = Buffer.alloc(16);
  iv.writeBigUInt64BE(BigInt(position), 8);
  return iv;
}

/** A playlist may name addresses of the web. A key may be in the playlist itself. */
function addressOf(uri: string, base: string, mayBeData = false): string {
  if (!URL.canParse(uri, base)) throw new VideoError(`The playlist names an address that is not valid: ${uri}.`);
  const { href, protocol } = new URL(uri, base);
  if (/^https?:$/.test(protocol) || (mayBeData && protocol === "data:")) return href;
  throw new VideoError(`The playlist names an address that is not allowed: got ${protocol}, allowed: http, https.`);
}
