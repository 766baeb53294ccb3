/**
 * Reads DASH manifests (ISO/IEC 23009-1) with mpd-parser. It adds periods whose representations have other names, the
 * systems of encrypted tracks, and the lengths of periods. No I/O.
 */
import { DOMParser } from "@xmldom/xmldom";
import { inheritAttributes, toPlaylists } from "mpd-parser";
import type { MpdAttributes, MpdElement, MpdPiece, MpdPlaylist, RepresentationInfo } from "mpd-parser";
import { labelOf } from "./hls";
import { systemOfScheme } from "./protection";
import { VideoError, type Piece, type Rendition, type Segment, type SegmentList, type TrackKind } from "./presentation";

/** A track of one period: a list of segments, or a file that is fetched as a whole. */
export type DashPart = { startSec: number } & ({ segments: Segment[] } | WholeFile);

interface WholeFile {
  wholeUrl: string;
  durationSec: number;
  /** The beginning of the file, if it lies at another address. */
  init?: Piece;
}

export interface DashRendition extends Omit<Rendition, "load"> {
  /** The same in each manifest of a live stream. */
  id: string;
  protection: string | undefined;
  parts: DashPart[];
}

export interface DashManifest extends Omit<SegmentList, "segments"> {
  renditions: DashRendition[];
  /** Where the next manifest of a live stream is. */
  location: string | undefined;
}

interface Representation extends MpdPlaylist {
  kind: TrackKind;
  id: string;
}

/** Names of attributes that this file puts on each Representation element, for the parser to hand on. */
const PERIOD = "tributary-period";
const PROTECTION = "tributary-protection";
const TRICK = "tributary-trick";
const SET = "tributary-set";

const TRICK_MODE = "http://dashif.org/guidelines/trickmode";
/** A live manifest may allow to go back for ever. This is far enough to join it. */
const LIVE_WINDOW_SEC = 60;
const REFRESH_SEC_DEFAULT = 2;
/** A quotient of decimal numbers may be a little too large, and would add a segment that does not exist. */
const ROUNDING_SEC = 0.0005;

/** `url` is the manifest's address after redirects. `nowMs` is the server's clock. */
export function parseDash(text: string, url: string, nowMs: number): DashManifest {
  const { locations, representationInfo } = readMpd(text, url, nowMs);
  const isLive = representationInfo[0]?.attributes.type === "dynamic";
  representationInfo.forEach((info) => complete(info, representationInfo));
  const known = representationInfo.flatMap((info, index) => {
    const kind = kindOf(info.attributes);
    const isFirst = representationInfo.findIndex(({ attributes }) => isSame(attributes, info.attributes)) === index;
    return kind && isFirst && info.attributes[TRICK] === undefined ? [{ info, kind }] : [];
  });
  const all = toPlaylists(known.map(({ info }) => info)).map((playlist, index) => ({
    ...playlist,
    kind: known[index]!.kind,
    id: String(playlist.attributes.id),
  }));
  const periods: Representation[][] = [];
  for (const each of all) (periods[Number(each.attributes[PERIOD])] ??= []).push(each);
  const { minimumUpdatePeriod = 0 } = representationInfo[0]?.attributes ?? {};
  return {
    renditions: (periods[0] ?? []).map((first) => renditionOf(first, Object.values(periods))),
    isLive,
    isFromStart: false,
    refreshSec: Math.max(minimumUpdatePeriod, REFRESH_SEC_DEFAULT),
    location: locations?.[0],
  };
}

function readMpd(text: string, url: string, nowMs: number): ReturnType<typeof inheritAttributes> {
  try {
    const mpd = parseXml(text);
    annotate(mpd);
    return inheritAttributes(mpd, { manifestUri: url, NOW: nowMs, clientOffset: 0 });
  } catch (error) {
    throw error instanceof VideoError ? error : new VideoError(`The manifest is not valid: ${String(error)}.`);
  }
}

/** Without a handler the XML parser would print its complaints, with text of the server, to the terminal. */
function parseXml(text: string): MpdElement {
  const fail = (message: string): never => {
    throw new VideoError(`The manifest is not valid XML: ${message.replaceAll(/\s+/g, " ")}.`);
  };
  const errorHandler = { warning: () => undefined, error: fail, fatalError: fail };
  const { documentElement } = new DOMParser({ errorHandler }).parseFromString(text.trimStart(), "application/xml");
  return documentElement as unknown as MpdElement;
}

/** Tells each Representation its period and its set, how it is encrypted, and whether it is only for winding. */
function annotate(mpd: MpdElement): void {
  const within = (element: MpdElement, name: string): MpdElement[] => Array.from(element.getElementsByTagName(name));
  within(mpd, "Period").forEach((period, index) => {
    if (period.getAttribute("xlink:href"))
      throw new VideoError("The manifest has a period at another address (xlink), and this program does not load it.");
    for (const [setIndex, set] of within(period, "AdaptationSet").entries()) {
      const isTrick = within(set, "EssentialProperty").some((each) => each.getAttribute("schemeIdUri") === TRICK_MODE);
      const protections = within(set, "ContentProtection").map((each) =>
        systemOfScheme(each.getAttribute("schemeIdUri") ?? "", each.getAttribute("value") ?? ""),
      );
      for (const representation of within(set, "Representation")) {
        representation.setAttribute(PERIOD, String(index));
        representation.setAttribute(SET, String(setIndex));
        if (isTrick) representation.setAttribute(TRICK, "yes");
        if (protections.length > 0) representation.setAttribute(PROTECTION, [...new Set(protections)].join(", "));
      }
    }
  });
}

/** Sets what the parser needs and a manifest may leave out. */
function complete({ attributes, segmentInfo }: RepresentationInfo, all: readonly RepresentationInfo[]): void {
  const { type, periodStart, sourceDuration } = attributes;
  const info = segmentInfo.template ?? segmentInfo.list;
  if (type === "dynamic") attributes.timeShiftBufferDepth ??= LIVE_WINDOW_SEC;
  else {
    const later = all.map((each) => each.attributes.periodStart).filter((start) => start > periodStart);
    const end = later.length > 0 ? Math.min(...later) : sourceDuration;
    attributes.periodDuration = Math.max(0, (attributes.periodDuration ?? end - periodStart) - ROUNDING_SEC);
    // The end of a timeline that repeats to its end is in the media's own time.
    const offsetSec = (info?.presentationTimeOffset ?? 0) / (info?.timescale ?? 1);
    attributes.sourceDuration = attributes.periodDuration + offsetSec;
  }
  if (info?.endNumber !== undefined) info.endNumber = Number(info.endNumber) - (info.startNumber ?? 1) + 1;
}

/** A representation appears again for each further BaseURL. */
function isSame(a: MpdAttributes, b: MpdAttributes): boolean {
  return a[PERIOD] === b[PERIOD] && a.id === b.id;
}

function kindOf({ contentType = "", mimeType = "", codecs = "" }: MpdAttributes): TrackKind | undefined {
  const type = `${contentType} ${mimeType}`;
  if (/\bvideo\b/.test(type)) return "video";
  if (/\baudio\b/.test(type)) return "audio";
  return /\btext\b|ttml/.test(type) || /^(wvtt|stpp)/.test(codecs) ? "subtitles" : undefined;
}

function renditionOf(first: Representation, periods: readonly Representation[][]): DashRendition {
  const { kind, id, attributes } = first;
  const { bandwidth = 0, width, height, lang, label, role } = attributes;
  const parts = periods.map((period) => likest(first, period)).filter((each) => each !== undefined);
  const protections = parts.flatMap(({ attributes }) => (attributes[PROTECTION] as string | undefined) ?? []);
  return {
    kind,
    id,
    label: kind === "video" ? labelOf(width, height, bandwidth) : (label ?? lang ?? id),
    bandwidth,
    ...(width === undefined || height === undefined ? {} : { width, height }),
    ...(lang === undefined ? {} : { language: lang }),
    set: String(attributes[SET]),
    isDefault: role?.value === "main",
    isForced: role?.value === "forced-subtitle",
    protection: protections[0],
    parts: parts.map(partOf),
  };
}

/** The representation of another period that goes on with `first`: of the same name, or else of the nearest size. */
function likest(first: Representation, period: readonly Representation[]): Representation | undefined {
  const alike = period.filter(
    ({ kind, attributes }) => kind === first.kind && attributes.lang === first.attributes.lang,
  );
  const same = alike.find(({ id }) => id === first.id);
  const distance = ({ attributes: { height = 0, bandwidth = 0 } }: Representation): number =>
    Math.abs(height - (first.attributes.height ?? 0)) * 1e6 + Math.abs(bandwidth - (first.attributes.bandwidth ?? 0));
  return same ?? [...alike].sort((a, b) => distance(a) - distance(b))[0];
}

function partOf({ attributes, segments, sidx }: Representation, stretch: number): DashPart {
  const startSec = attributes.periodStart;
  const { baseUrl } = attributes;
  const isWhole = segments?.length === 1 && segments[0]!.resolvedUri === baseUrl;
  if (sidx !== undefined || segments === undefined || isWhole) {
    const map = segments?.[0]?.map;
    const init = map?.resolvedUri !== undefined && map.resolvedUri !== baseUrl ? { init: pieceOf(map) } : {};
    return { startSec, wholeUrl: webAddress(baseUrl), durationSec: attributes.periodDuration ?? 0, ...init };
  }
  return {
    startSec,
    segments: segments.map((segment) => {
      const init = segment.map && (segment.map.uri || segment.map.byterange) ? pieceOf(segment.map) : undefined;
      return {
        ...pieceOf(segment),
        position: segment.presentationTime,
        nextPosition: segment.presentationTime + segment.duration,
        durationSec: segment.duration,
        stretch,
        isGap: false,
        ...(init ? { init } : {}),
      };
    }),
  };
}

function pieceOf({ resolvedUri, byterange }: MpdPiece): Piece {
  const url = webAddress(resolvedUri);
  if (!byterange) return { url };
  const start = Number(byterange.offset);
  return { url, range: { start, end: start + Number(byterange.length) - 1 } };
}

function webAddress(url: string): string {
  if (/^https?:\/\//i.test(url) && URL.canParse(url)) return url;
  const got = url.slice(0, 100);
  throw new VideoError(`The manifest names an address that is not allowed: got ${got}, allowed: http, https.`);
}
