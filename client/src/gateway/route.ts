/** Decides whether proxies may bring the answer to a player's request, and with which range. Pure. */
import type { IncomingHttpHeaders } from "node:http";
import { parseContentRange, parseRange, resolveRange, type ByteRange, type CacheMode } from "@tributary/contract";
import type { Catalogue } from "./catalogue";
import { identifyingHeader, isMedia } from "./headers";

/** Why a request goes to the origin, for the page. */
export type Route =
  | { way: "proxies"; range: ByteRange | undefined; cache: CacheMode; isFromStart: boolean }
  /** `mayChange`: if the origin answers with media, proxies may bring the bytes. */
  | { way: "direct"; reason: string; mayChange: boolean };

/** Smaller answers come as fast from the origin, and keys and texts are small. */
export const FILE_BYTES_MIN = 256 << 10;
const FILE_TYPE = /^(?:application|binary)\/(?:octet-stream|mp4|ogg|x-matroska|vnd\.apple\.mpegurl\.segment)/i;

export function routeOf(method: string, url: URL, headers: IncomingHttpHeaders, catalogue: Catalogue): Route {
  const direct = (reason: string, mayChange = false): Route => ({ way: "direct", reason, mayChange });
  if (method !== "GET") return direct(`a ${method} request`);
  const name = identifyingHeader(headers);
  if (name !== undefined) return direct(`the header ${name} is for the site alone`);
  const kind = catalogue.kindOf(url);
  if (kind === "small") return direct("playlist, key or text");
  const cache = cacheModeOf(headers);
  const range = parseRange(headers.range);
  if (headers.range !== undefined && !range) return direct("several ranges");
  const isOpen = range !== undefined && !("end" in range);
  const isFromStart = isOpen && "start" in range && range.start === 0;
  if (kind === "segment" && (!range || isFromStart)) return { way: "proxies", range: undefined, cache, isFromStart };
  if (range && "end" in range) {
    const closed = { start: range.start, end: range.end! };
    return kind === undefined ? direct("first request", true) : { way: "proxies", range: closed, cache, isFromStart };
  }
  const resourceBytes = catalogue.resourceBytesOf(url);
  if (resourceBytes === undefined) return direct("first request", true);
  if (!range) return { way: "proxies", range: undefined, cache, isFromStart };
  const resolvedRange = resolveRange(range, resourceBytes);
  return resolvedRange ? { way: "proxies", range: resolvedRange, cache, isFromStart } : direct("range beyond the end");
}

function cacheModeOf(headers: IncomingHttpHeaders): CacheMode {
  const told = `${headers["cache-control"] ?? ""},${headers.pragma ?? ""}`.toLowerCase();
  if (/\bno-store\b/.test(told)) return "no-store";
  return /\bno-cache\b|\bmax-age=0\b/.test(told) ? "no-cache" : "default";
}

/** What proxies would have to bring of an answer of the origin: a range, or the whole if it is undefined. */
export interface Carriable {
  range: ByteRange | undefined;
  resourceBytes: number;
}

/** Undefined if the proxies may not bring the answer, or need not. */
export function carriableOf(status: number, headers: Headers): Carriable | undefined {
  const type = headers.get("content-type");
  const isPersonal = headers.has("set-cookie") || /\b(?:private|no-store)\b/i.test(headers.get("cache-control") ?? "");
  if (isPersonal || headers.has("content-encoding") || !(isMedia(type) || FILE_TYPE.test(type ?? ""))) return undefined;
  const length = headers.get("content-length");
  const bytes = length !== null && /^\d{1,15}$/.test(length) ? Number(length) : 0;
  if (bytes < FILE_BYTES_MIN) return undefined;
  if (status === 200) return { range: undefined, resourceBytes: bytes };
  const part = status === 206 ? parseContentRange(headers.get("content-range")) : undefined;
  if (!part || part.resourceBytes === null) return undefined;
  return { range: { start: part.start, end: part.end }, resourceBytes: part.resourceBytes };
}
