/** Finds and runs ffmpeg, which puts tracks into one file without a change of picture and sound. */
import { spawn } from "node:child_process";
import { accessSync, constants, statSync } from "node:fs";
import path from "node:path";

const ERROR_CHARS_MAX = 500;

/** Media alone: a segment that is a playlist in disguise cannot make ffmpeg open other files or addresses. */
const GUARD = ["-protocol_whitelist", "file", "-format_whitelist", "concat,mpegts,mov,matroska,aac,mp3,ac3,eac3,flac"];

export interface JoinedTrack {
  /** A file for each stretch. */
  files: string[];
  language?: string;
  label?: string;
  /** The sound in the picture's own segments, if it is wanted beside others. */
  ownSound?: Pick<JoinedTrack, "language" | "label">;
}

export interface Mux {
  tracks: JoinedTrack[];
  /** WebVTT files. */
  subtitles: JoinedTrack[];
  output: string;
}

type Container = { format: string; texts?: string; flags?: string[] };

const CONTAINERS: Record<string, Container> = {
  ".mp4": { format: "mp4", texts: "mov_text", flags: ["-movflags", "+faststart"] },
  ".m4v": { format: "mp4", texts: "mov_text", flags: ["-movflags", "+faststart"] },
  ".m4a": { format: "mp4", flags: ["-movflags", "+faststart"] },
  ".mov": { format: "mov", texts: "mov_text", flags: ["-movflags", "+faststart"] },
  ".mkv": { format: "matroska", texts: "srt" },
  ".mka": { format: "matroska" },
  ".webm": { format: "webm", texts: "webvtt" },
  ".ts": { format: "mpegts" },
  ".aac": { format: "adts" },
  ".mp3": { format: "mp3" },
};

/** How a file of this name is written. Any other name gets what an MP4 file gets. */
export function containerOf(name: string): Container {
  return CONTAINERS[path.extname(name).toLowerCase()] ?? CONTAINERS[".mp4"]!;
}

/** The program's path, from PATH. `ffprobe` comes with ffmpeg. */
export function findFfmpeg(searched = process.env.PATH ?? "", program = "ffmpeg"): string | undefined {
  const name = process.platform === "win32" ? `${program}.exe` : program;
  const places = searched.split(path.delimiter).filter((folder) => path.isAbsolute(folder));
  return places.map((folder) => path.join(folder, name)).find(isProgram);
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** A list for ffmpeg's concat demuxer, for a track of several stretches. */
export function concatList(files: readonly string[]): string {
  return `ffconcat version 1.0\n${files.map((file) => `file '${file.replaceAll("'", "'\\''")}'\n`).join("")}`;
}

/**
 * The arguments. Each track is one input: a file or a list for the concat demuxer. Tracks that came apart keep their
 * timestamps, so that picture and sound stay together.
 */
export function muxArguments({ tracks, subtitles, output }: Mux, listOf: (track: JoinedTrack) => string): string[] {
  const { format, texts, flags = [] } = containerOf(output);
  const isWhole = tracks.every(({ files }) => files.length === 1);
  const inputs = tracks.flatMap((track) =>
    track.files.length === 1
      ? [...GUARD, "-i", `file:${track.files[0]}`]
      : [...GUARD, "-f", "concat", "-safe", "0", "-i", `file:${listOf(track)}`],
  );
  const embedded = texts === undefined ? [] : subtitles;
  const texted = embedded.flatMap(({ files }) => ["-f", "webvtt", "-i", `file:${files[0]}`]);
  return [
    ...["-hide_banner", "-loglevel", "error", "-nostdin", "-y"],
    ...(isWhole && tracks.length > 1 ? ["-copyts"] : []),
    ...inputs,
    ...texted,
    ...tracks.flatMap((track, index) => mapOf(track, index, tracks.length)),
    ...embedded.flatMap((_text, index) => ["-map", `${tracks.length + index}:s`]),
    ...["-c", "copy"],
    ...(embedded.length > 0 ? ["-c:s", texts!] : []),
    ...soundsOf(tracks).flatMap((sound, index) => tagOf("a", index, sound)),
    ...embedded.flatMap((track, index) => tagOf("s", index, track)),
    ...["-avoid_negative_ts", "make_zero", "-map_metadata", "-1", ...flags, "-f", format, `file:${output}`],
  ];
}

/** The picture alone comes from the first track if all wanted sounds have tracks of their own. */
function mapOf({ ownSound }: JoinedTrack, index: number, count: number): string[] {
  if (index > 0) return ["-map", `${index}:a`];
  if (count === 1) return ["-map", "0:v?", "-map", "0:a?"];
  return ownSound ? ["-map", "0:v", "-map", "0:a:0"] : ["-map", "0:v"];
}

/** The sounds of the film in their order, if there are several tracks. */
function soundsOf([picture, ...sounds]: readonly JoinedTrack[]): Pick<JoinedTrack, "language" | "label">[] {
  return sounds.length > 0 && picture?.ownSound ? [picture.ownSound, ...sounds] : sounds;
}

function tagOf(kind: string, index: number, { language, label }: Pick<JoinedTrack, "language" | "label">): string[] {
  const stream = `-metadata:s:${kind}:${index}`;
  const title = label === undefined ? [] : [stream, `title=${label}`, stream, `handler_name=${label}`];
  return language === undefined ? title : [stream, `language=${longLanguage(language)}`, ...title];
}

/** MP4 has the codes of three letters (ISO 639-2), and playlists mostly those of two. */
const LONG: Record<string, string> = Object.fromEntries(
  (
    "ar ara bg bul cs ces da dan de deu el ell en eng es spa et est fa fas fi fin fr fra he heb hi hin hr hrv hu hun " +
    "id ind is isl it ita ja jpn ko kor lt lit lv lav ms msa nb nob nl nld no nor pl pol pt por ro ron ru rus sk slk " +
    "sl slv sr srp sv swe th tha tr tur uk ukr vi vie zh zho"
  )
    .match(/\w+ \w+/g)!
    .map((pair) => pair.split(" ")),
) as Record<string, string>;

function longLanguage(tag: string): string {
  const primary = tag.split("-")[0]!.toLowerCase();
  return LONG[primary] ?? primary;
}

/**
 * Resolves with undefined, or with what ffmpeg said when it failed. It never runs through a shell. `onOutput` gets what
 * it writes to standard output.
 */
export function runFfmpeg(
  program: string,
  words: string[],
  signal: AbortSignal,
  onOutput: (text: string) => void = () => undefined,
): Promise<string | undefined> {
  return new Promise((resolve) => {
    const child = spawn(program, words, { stdio: ["ignore", "pipe", "pipe"], signal });
    let said = "";
    child.stdout.on("data", (text: Buffer) => onOutput(text.toString()));
    child.stderr.on("data", (text: Buffer) => (said = `${said}${text.toString()}`.slice(-ERROR_CHARS_MAX)));
    child.once("error", (error) => resolve(error.message));
    child.once("close", (code) => resolve(code === 0 ? undefined : said.trim() || `exit status ${code}`));
  });
}
