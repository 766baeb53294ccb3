/**
 * Rewrites HLS playlists (RFC 8216, and tags of its successor) for the gateway, line by line, so unknown tags stay.
 * It also tells what each address is. No I/O.
 */
import { mirrorAt, resolved, rewritten } from "./addresses";

/** Where a playlist came from, and who wants to know what it names. */
export interface Playlist {
  /** Its address at the origin. */
  base: URL;
  /** The gateway's own address, without a slash at the end. */
  gateway: string;
  onSegment(url: URL): void;
  /** The address of a playlist or a key. */
  onSmall(url: URL): void;
}

/** Attributes whose value is an address, e.g. URI, SERVER-URI and X-ASSET-LIST. */
const ADDRESSES = /([:,]\s*(?:[A-Z0-9-]*UR[IL]|X-ASSET-LIST)=")([^"]*)(")/g;
const ATTRIBUTE = /([A-Z0-9-]+)="([^"]*)"/g;
const VARIABLE = /\{\$([\w-]+)\}/g;
/** Tags that name media: the others name playlists, keys and data. */
const SEGMENT_TAG = /^#EXT-X-(?:MAP|PART|PRELOAD-HINT):/;

export function rewriteHls(text: string, playlist: Playlist): string {
  const variables = new Map<string, string>();
  /** A list of stations has no tags of HLS, and its entries may be anything. */
  const isList = !/^#EXT-X-/m.test(text);
  const mirror = mirrorAt(playlist.base, playlist.gateway);
  let namesPlaylist = false;
  const expanded = (reference: string): string =>
    reference.replace(VARIABLE, (whole, name: string) => variables.get(name) ?? whole);
  const rewrite = (reference: string, note: ((url: URL) => void) | undefined): string => {
    const plain = expanded(reference);
    if (plain.includes("{$")) return reference;
    const url = resolved(plain, playlist.base);
    if (url) note?.(url);
    return rewritten(plain, mirror, url);
  };
  return text.replace(/[^\r\n]+/g, (line) => {
    if (line.startsWith("#EXT-X-DEFINE:")) define(line, playlist.base, variables);
    if (line.startsWith("#EXT-X-STREAM-INF:")) namesPlaylist = true;
    if (line.startsWith("#EXT-X-")) {
      const note = SEGMENT_TAG.test(line) ? playlist.onSegment : playlist.onSmall;
      return line.replace(ADDRESSES, (_whole, before, value, after) => `${before}${rewrite(value, note)}${after}`);
    }
    if (line.startsWith("#") || line.trim() === "" || line.startsWith("\uFEFF#")) return line;
    const note = isList ? undefined : namesPlaylist ? playlist.onSmall : playlist.onSegment;
    namesPlaylist = false;
    return rewrite(line.trim(), note);
  });
}

/** Reads a variable's value. A variable of another playlist (IMPORT) stays unknown. */
function define(line: string, base: URL, variables: Map<string, string>): void {
  const attributes = new Map([...line.matchAll(ATTRIBUTE)].map(([, name, value]) => [name!, value!]));
  const [name, query] = [attributes.get("NAME"), attributes.get("QUERYPARAM")];
  if (name !== undefined) variables.set(name, attributes.get("VALUE") ?? "");
  const value = query === undefined ? null : base.searchParams.get(query);
  if (query !== undefined && value !== null) variables.set(query, value);
}
