/** What the playlists of a publication lead to: addresses that are not in it, and the file to play first. No I/O. */
import { isPlaylist } from "@tributary/contract/publication-schema";

export interface Playlist {
  /** In the publication. */
  path: string;
  text: string;
}

const HLS_ATTRIBUTE = /\bURI="([^"]*)"/g;
const DASH_ADDRESS = /<BaseURL[^>]*>([^<]*)<|\b(?:media|initialization|index|sourceURL|xlink:href)="([^"]*)"/g;

/** The addresses that lead out of the publication or to files that it lacks. */
export function outside(playlist: Playlist, has: (path: string) => boolean): string[] {
  const isDash = /\.mpd$/i.test(playlist.path);
  const addresses = isDash ? dashAddresses(playlist.text) : hlsAddresses(playlist.text);
  return [...new Set(addresses)].filter((address) => {
    if (/^data:/i.test(address)) return false;
    const target = targetOf(playlist.path, address);
    return target === undefined || (!isDash && !has(target));
  });
}

const hlsAddresses = (text: string): string[] =>
  text.split(/\r?\n/).flatMap((line) => {
    if (line.startsWith("#")) return [...line.matchAll(HLS_ATTRIBUTE)].map(([, address]) => address!);
    return line.trim() === "" ? [] : [line.trim()];
  });

const dashAddresses = (text: string): string[] =>
  [...text.matchAll(DASH_ADDRESS)].map(([, base, attribute]) => (base ?? attribute!).trim().replaceAll("&amp;", "&"));

/** The path in the publication. Undefined: the address leads elsewhere. */
function targetOf(from: string, address: string): string | undefined {
  if (/^([a-z][a-z0-9+.-]*:|\/)/i.test(address)) return undefined;
  const parts = from.split("/").slice(0, -1);
  for (const part of address.replace(/[?#].*$/s, "").split("/")) {
    if (part === ".." && parts.pop() === undefined) return undefined;
    if (part !== ".." && part !== ".") parts.push(decoded(part));
  }
  return parts.join("/");
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** The file that a player opens: a playlist of playlists, else another playlist, else media, else the first file. */
export function mainFile(files: readonly { path: string; type: string }[], playlists: readonly Playlist[]): string {
  const texts = new Map(playlists.map(({ path, text }) => [path, text]));
  const rank = ({ path, type }: { path: string; type: string }): number => {
    if (texts.get(path)?.includes("#EXT-X-STREAM-INF")) return 0;
    if (isPlaylist(path)) return /\.mpd$/i.test(path) ? 1 : 2;
    if (type.startsWith("video/")) return 3;
    return type.startsWith("audio/") ? 4 : 5;
  };
  const depth = (path: string): number => path.split("/").length;
  const sorted = [...files].sort((one, other) => rank(one) - rank(other) || depth(one.path) - depth(other.path));
  return sorted[0]!.path;
}

/** For an address. */
export const escaped = (path: string): string => path.split("/").map(encodeURIComponent).join("/");
