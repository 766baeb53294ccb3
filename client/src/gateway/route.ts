/** Decides whether proxies may bring the answer to a player's request, and with which range. Pure. */
import type { IncomingHttpHeaders } from "node:http";
import {
  parseContentRange,
  parseRange,
  resolveRange,
  strongValidator,
  type ByteRange,
  type CacheMode,
} from "@tributary/contract";
import type { Catalogue, MediaFile } from "./catalogue";
import { identifyingHeader, isMedia } from "./headers";

/** Why a request goes to the origin, for the page. */
export type Route =
  | { way: "proxies"; range: ByteRange | undefined; cache: CacheMode; isFromStart: boolean; etag: string | undefined }
  /** `mayChange`: if the origin answers with media, proxies may bring the bytes. */
  | { way: "direct"; reason: string; mayChange: boolean };

/** Smaller answers come as fast from the origin, and keys and texts are small. */
export const FILE_BYTES_MIN = 512 << 10;
/** Proxies answer within the time that a slow line needs for this. */
const LEAD_BYTES = 256 << 10;
const FILE_TYPE = /^(?:application|binary)\/(?:octet-stream|mp4|ogg|x-matroska)/i;

export function routeOf(method: string, url: URL, headers: IncomingHttpHeaders, catalogue: Catalogue): Route {
  const direct = (reason: string, mayChange = false): Route => ({ way: "direct", reason, mayChange });
  if (method !== "GET") return direct(`a ${method} request`);
  const file = catalogue.fileOf(url);
  const etag = conditionOf(headers, file);
  const name = identifyingHeader(headers, etag !== undefined);
  if (name !== undefined) return direct(`the header ${name} is for the site alone`);
  const kind = catalogue.kindOf(url);
  if (kind === "small") return direct("playlist, key or text");
  const range = parseRange(headers.range);
  if (headers.range !== undefined && !range) return direct("several ranges");
  const isFromStart = range !== undefined && "start" in range && range.start === 0 && range.end === undefined;
  const proxies = (asked: ByteRange | undefined): Route => {
    return { way: "proxies", range: asked, cache: cacheModeOf(headers), isFromStart, etag };
  };
  if (kind === undefined) return direct("first request", true);
  if (!range || (kind === "segment" && isFromStart)) return proxies(undefined);
  if ("start" in range && range.end !== undefined) return proxies({ start: range.start, end: range.end });
  if (!file) return direct("first request", true);
  const closed = resolveRange(range, file.resourceBytes);
  return closed ? proxies(closed) : direct("range beyond the end");
}

/**
 * The entity tag on which the request depends, if it is the file's: a player that seeks asks for the same version
 * (RFC 9110 §13.1). The proxies' answer must have it then. Any other condition is for the origin.
 */
function conditionOf(headers: IncomingHttpHeaders, file: MediaFile | undefined): string | undefined {
  const conditions = [headers["if-match"], headers["if-range"]].filter((each) => each !== undefined);
  const isFile = conditions.length > 0 && conditions.every((each) => each === file?.etag);
  return isFile && /^"[^"]*"$/.test(file?.etag ?? "") ? file?.etag : undefined;
}

function cacheModeOf(headers: IncomingHttpHeaders): CacheMode {
  const told = `${headers["cache-control"] ?? ""},${headers.pragma ?? ""}`.toLowerCase();
  if (/\bno-store\b/.test(told)) return "no-store";
  return /\bno-cache\b|\bmax-age=0\b/.test(told) ? "no-cache" : "default";
}

/** What proxies can bring of an answer of the origin. */
export interface Carriable {
  /** What to ask the proxies for. Undefined: the whole. */
  asked: ByteRange | undefined;
  /** The origin's own bytes before that, so that the player need not wait for the proxies. */
  leadBytes: number;
  file: MediaFile;
}

/** Undefined if the proxies may not bring the answer, or need not. */
export function carriableOf(status: number, headers: Headers): Carriable | undefined {
  const type = headers.get("content-type");
  const isPersonal = headers.has("set-cookie") || /\b(?:private|no-store)\b/i.test(headers.get("cache-control") ?? "");
  if (isPersonal || headers.has("content-encoding") || !(isMedia(type) || FILE_TYPE.test(type ?? ""))) return undefined;
  const length = headers.get("content-length");
  const bytes = length !== null && /^\d{1,15}$/.test(length) ? Number(length) : 0;
  if (bytes < FILE_BYTES_MIN) return undefined;
  const part = status === 206 ? parseContentRange(headers.get("content-range")) : { start: 0, resourceBytes: bytes };
  if (!part || part.resourceBytes === null || (status !== 200 && status !== 206)) return undefined;
  const etag = headers.get("etag") ?? undefined;
  const file = { resourceBytes: part.resourceBytes, etag };
  // Two answers may be joined only if something tells versions apart (RFC 9110 §8.8).
  const mayJoin = strongValidator({ headers: Object.fromEntries(headers) }) !== undefined;
  const hasRanges = status === 206 || /\bbytes\b/i.test(headers.get("accept-ranges") ?? "");
  const leadBytes = mayJoin && hasRanges ? LEAD_BYTES : 0;
  const range = { start: part.start + leadBytes, end: part.start + bytes - 1 };
  return { asked: status === 200 && leadBytes === 0 ? undefined : range, leadBytes, file };
}
