/** Tells whether an answer is a playlist of a video, by its content, its type or its name. No I/O. */

export type PlaylistFormat = "hls" | "dash";

/** Servers write these in many ways, for example `application/x-mpegURL` and `video/vnd.mpeg.dash.mpd`. */
const TYPES: readonly [RegExp, PlaylistFormat][] = [
  [/\/(?:[\w.]+\.|x-)?mpegurl$/, "hls"],
  [/\/(?:[\w.]+\.|x-)?dash(?:\+xml|\.mpd)$/, "dash"],
];

const NAMES: Record<string, PlaylistFormat> = { m3u8: "hls", mpd: "dash" };

/** What may come before the first element of XML. Each text matches in one way only, so a long one costs no time. */
const PROLOG = /^(?:\s|<\?[^>]*>|<!--(?:[^-]|-(?!->))*-->|<!DOCTYPE[^>]*>)*/;

/** What the beginning of a body is. `text` may have a byte order mark. */
export function formatOfContent(text: string): PlaylistFormat | undefined {
  const start = text.replace(/^\uFEFF?\s*/, "");
  if (/^#EXTM3U(?:\s|$)/.test(start)) return "hls";
  return /^<(?:\w+:)?MPD[\s>]/.test(start.replace(PROLOG, "")) ? "dash" : undefined;
}

export function formatOfType(contentType: string | null | undefined): PlaylistFormat | undefined {
  const type = (contentType ?? "").split(";")[0]!.trim().toLowerCase();
  return TYPES.find(([pattern]) => pattern.test(type))?.[1];
}

export function formatOfName(url: string): PlaylistFormat | undefined {
  const extension = /\.(\w+)$/.exec(new URL(url).pathname)?.[1] ?? "";
  return NAMES[extension.toLowerCase()];
}
