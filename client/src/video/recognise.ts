/** Tells whether an answer is a playlist of a video, by its content, its type or its name. No I/O. */

export type PlaylistFormat = "hls" | "dash";

const TYPES: Record<string, PlaylistFormat> = {
  "application/vnd.apple.mpegurl": "hls",
  "application/x-mpegurl": "hls",
  "audio/mpegurl": "hls",
  "audio/x-mpegurl": "hls",
  "application/dash+xml": "dash",
};

const NAMES: Record<string, PlaylistFormat> = { m3u8: "hls", mpd: "dash" };

/** What the beginning of a body is. `text` may have a byte order mark. */
export function formatOfContent(text: string): PlaylistFormat | undefined {
  const start = text.replace(/^\uFEFF/, "").trimStart();
  if (/^#EXTM3U(\s|$)/.test(start)) return "hls";
  return /^(<\?xml[^>]*\?>)?(\s|<!--.*?-->|<!DOCTYPE[^>]*>)*<(\w+:)?MPD[\s>]/s.test(start) ? "dash" : undefined;
}

export function formatOfType(contentType: string | null | undefined): PlaylistFormat | undefined {
  return TYPES[(contentType ?? "").split(";")[0]!.trim().toLowerCase()];
}

export function formatOfName(url: string): PlaylistFormat | undefined {
  const extension = /\.(\w+)$/.exec(new URL(url).pathname)?.[1] ?? "";
  return NAMES[extension.toLowerCase()];
}
