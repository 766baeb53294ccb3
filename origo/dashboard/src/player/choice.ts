/** Choice: which file of a publication its page plays. Pure. */

export interface PlayableFile {
  path: string;
  type: string;
}

/** Names that a playlist of playlists usually has. */
const MASTER = /^(?:master|main|index|playlist|manifest|stream)\.(?:m3u8|mpd)$/i;

/** The best file to begin with; undefined if no browser plays any of them. */
export function choose<T extends PlayableFile>(files: readonly T[]): T | undefined {
  return [...files].filter((file) => rank(file) < Infinity).sort((a, b) => rank(a) - rank(b))[0];
}

export const isHls = ({ path }: PlayableFile): boolean => /\.m3u8$/i.test(path);
export const isDash = ({ path }: PlayableFile): boolean => /\.mpd$/i.test(path);

/** HLS before whole files before DASH, and the fewest folders first. */
function rank({ path, type }: PlayableFile): number {
  const name = path.slice(path.lastIndexOf("/") + 1);
  const depth = path.split("/").length;
  const isMaster = MASTER.test(name) ? 0 : 0.5;
  if (isHls({ path, type })) return depth + isMaster;
  if (isDash({ path, type })) return 3000 + depth + isMaster;
  if (/\.(?:m4s|ts|cmfv|cmfa)$/i.test(path) || /(?:^|\/)init[^/]*$/i.test(path)) return Infinity;
  if (type.startsWith("video/")) return 1000 + depth;
  return type.startsWith("audio/") ? 2000 + depth : Infinity;
}
