/** Makes HLS and DASH in several qualities of one video, with ffmpeg: fMP4 segments that both playlists share. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { mkdir, readdir, realpath, rename, rm, stat } from "node:fs/promises";
import path from "node:path";
import { promisify } from "node:util";
import { PUBLICATION_LIMITS } from "@tributary/contract/publication-schema";
import { z } from "zod";
import { findFfmpeg, isAlive, runFfmpeg } from "../../video";
import { Exit, STATUS } from "../exit";
import { fileFault } from "../faults";
import { cacheFolder } from "../folders";
import { stopped } from "../signals";
import { LiveLine, say } from "../terminal";
import { bar, clock } from "../view";

export interface Film {
  file: string;
  /** Changes with the file. */
  id: string;
  ffmpeg: string;
  seconds: number;
  /** Of the picture's short side. */
  lines: number;
  hasSound: boolean;
}

/** One quality. */
export interface Rung {
  lines: number;
  kbitPerSec: number;
}

const STANDARD_LINES = [2160, 1440, 1080, 720, 480, 240];
const RUNGS_MAX = 4;
/** A standard quality next to the film's own is left out. */
const NEXT_RUNG = 0.85;
/** Of 1080 lines. Fewer lines need more bits for each. */
const KBIT_1080 = 5000;
const SOUND_KBIT = 128;
const PART = ".part";
const SEGMENT_SEC = 4;
/** Playlists and beginnings of tracks are files, too. */
const SEGMENTS_MAX = PUBLICATION_LIMITS.files - 100;

const Probe = z.object({
  streams: z.array(
    z.object({
      codec_type: z.string().optional(),
      width: z.number().optional(),
      height: z.number().optional(),
      disposition: z.object({ attached_pic: z.number().optional() }).optional(),
    }),
  ),
  format: z.object({ duration: z.string().optional() }),
});

/** Throws an Exit if the file is no video, or if ffmpeg is missing. */
export async function inspect(given: string): Promise<Film> {
  const [ffmpeg, ffprobe] = [findFfmpeg(), findFfmpeg(undefined, "ffprobe")];
  if (ffmpeg === undefined || ffprobe === undefined)
    throw new Exit(
      STATUS.failed,
      `--package needs ffmpeg and ffprobe in PATH. Install ffmpeg, or publish ${given} as it is: without --package.`,
    );
  const file = await realpath(given).catch((error: unknown) => {
    throw fileFault("read", given, error);
  });
  const there = await stat(file);
  if (!there.isFile()) throw new Exit(STATUS.failed, `--package takes one video file; ${given} is no file.`);
  const words = ["-v", "error", "-protocol_whitelist", "file", "-of", "json", "-show_streams", "-show_format"];
  const { stdout } = await promisify(execFile)(ffprobe, [...words, `file:${file}`], { signal: stopped }).catch(() => {
    throw new Exit(STATUS.failed, `ffmpeg does not know the format of ${given}.`);
  });
  const { streams, format } = Probe.parse(JSON.parse(stdout));
  const picture = streams.find((stream) => stream.codec_type === "video" && !stream.disposition?.attached_pic);
  const seconds = Number(format.duration);
  if (!picture?.width || !picture.height || !(seconds > 0))
    throw new Exit(STATUS.failed, `${given} has no moving picture. Publish it as it is: without --package.`);
  const sounds = streams.filter((stream) => stream.codec_type === "audio").length;
  const texts = streams.filter((stream) => stream.codec_type === "subtitle").length;
  if (sounds > 1 || texts > 0)
    say(`Of ${given} the first sound is taken. Left out: ${Math.max(0, sounds - 1)} sounds, ${texts} subtitles.\n`);
  const id = createHash("sha256")
    .update(JSON.stringify([file, there.size, there.mtimeMs]))
    .digest("hex")
    .slice(0, 16);
  const lines = Math.min(picture.width, picture.height);
  return { file, id, ffmpeg, seconds, lines, hasSound: sounds > 0 };
}

/** The film's own lines first, at most 2160, then standard ones below. */
export function rungsOf(lines: number): Rung[] {
  const first = even(Math.min(lines, STANDARD_LINES[0]!));
  const below = STANDARD_LINES.filter((each) => each < NEXT_RUNG * first);
  return [first, ...below]
    .slice(0, RUNGS_MAX)
    .map((each) => ({ lines: each, kbitPerSec: Math.max(100, Math.round(KBIT_1080 * (each / 1080) ** 1.5)) }));
}

const even = (count: number): number => Math.max(2, 2 * Math.floor(count / 2));

/** Segments of one length in all tracks, as many as a publication can have at most. */
export function segmentSeconds(seconds: number, tracks: number): number {
  return Math.max(SEGMENT_SEC, Math.ceil((seconds * tracks) / SEGMENTS_MAX));
}

export function ladderArguments({ file, seconds, hasSound }: Film, rungs: readonly Rung[], folder: string): string[] {
  const segment = segmentSeconds(seconds, rungs.length + 1);
  const split = `[0:v:0]split=${rungs.length}${rungs.map((_, index) => `[s${index}]`).join("")}`;
  const scaled = rungs.map(({ lines }, index) => {
    const size = `w='if(gte(iw,ih),-2,${lines})':h='if(gte(iw,ih),${lines},-2)'`;
    return `[s${index}]scale=${size},format=yuv420p[v${index}]`;
  });
  const pictures = rungs.flatMap(({ kbitPerSec: kbit }, index) => [
    ...["-map", `[v${index}]`, `-b:v:${index}`, `${kbit}k`],
    ...[`-maxrate:v:${index}`, `${Math.round(1.5 * kbit)}k`, `-bufsize:v:${index}`, `${2 * kbit}k`],
  ]);
  const sound = hasSound ? ["-map", "0:a:0", "-c:a", "aac", "-b:a", `${SOUND_KBIT}k`, "-ac", "2"] : [];
  return [
    ...["-hide_banner", "-loglevel", "error", "-nostdin", "-y", "-nostats", "-progress", "pipe:1"],
    ...["-protocol_whitelist", "file", "-i", `file:${file}`],
    ...["-filter_complex", [split, ...scaled].join(";")],
    ...[...pictures, "-c:v", "libx264", "-preset", "veryfast", "-sc_threshold", "0"],
    ...["-force_key_frames", `expr:gte(t,n_forced*${segment})`, ...sound],
    ...["-map_metadata", "-1", "-f", "dash", "-seg_duration", String(segment), "-dash_segment_type", "mp4"],
    ...["-adaptation_sets", `id=0,streams=v${hasSound ? " id=1,streams=a" : ""}`],
    ...["-init_seg_name", "init-$RepresentationID$.mp4"],
    ...["-media_seg_name", "$RepresentationID$-$Number%05d$.m4s"],
    ...["-hls_playlist", "1", "-hls_master_name", "master.m3u8"],
    path.join(folder, "manifest.mpd"),
  ];
}

/**
 * Returns the folder. It stays until its publication is released, so that an interrupted upload can go on. It is this
 * process's own: another one that packages the same film has another.
 */
export async function makeLadder(film: Film, isQuiet: boolean): Promise<string> {
  const folder = path.join(cacheFolder(), `ladder-${film.id}-${process.pid}`);
  if (await takeOver(film, folder)) return folder;
  const part = folder + PART;
  const rungs = rungsOf(film.lines);
  if (!isQuiet) say(`Packaging in ${rungs.map(({ lines }) => `${lines}p`).join(", ")} with ffmpeg.\n`);
  try {
    await mkdir(part, { recursive: true, mode: 0o700 });
    const said = await encode(film, rungs, part, isQuiet);
    stopped.throwIfAborted();
    if (said !== undefined) throw new Exit(STATUS.failed, `ffmpeg failed: ${said}`);
    await rename(part, folder);
    return folder;
  } catch (error) {
    await rm(part, { recursive: true, force: true }).catch(() => undefined);
    throw fileFault("write", part, error);
  }
}

/** Takes over the ladder that a run has left which is over, and removes what such runs have not finished. */
async function takeOver(film: Film, folder: string): Promise<boolean> {
  const names = await readdir(cacheFolder()).catch(() => []);
  let isTaken = false;
  for (const name of names) {
    const [, id, pid, part] = /^ladder-([0-9a-f]+)-(\d+)(\.part)?$/.exec(name) ?? [];
    if (id !== film.id || (Number(pid) !== process.pid && isAlive(Number(pid)))) continue;
    const left = path.join(cacheFolder(), name);
    if (part !== undefined || isTaken) await rm(left, { recursive: true, force: true });
    // Of two runs one gets it.
    else
      isTaken = await rename(left, folder).then(
        () => true,
        () => false,
      );
  }
  return isTaken;
}

async function encode(
  film: Film,
  rungs: readonly Rung[],
  folder: string,
  isQuiet: boolean,
): Promise<string | undefined> {
  const line = new LiveLine();
  const show = (text: string): void => {
    const micros = /^out_time_us=(\d+)$/m.exec(text)?.[1];
    const speed = /^speed= *([\d.]+x)$/m.exec(text)?.[1] ?? "";
    if (micros === undefined || isQuiet) return;
    const isEnd = /^progress=end$/m.test(text);
    const done = isEnd ? film.seconds : Math.min(film.seconds, Number(micros) / 1e6);
    const left = speed === "" ? "" : `  ${clock((film.seconds - done) / Math.max(0.001, parseFloat(speed)))} left`;
    line.draw((columns) =>
      `${bar(done, film.seconds)} ${clock(done)} of ${clock(film.seconds)}  ${speed}${left}`.slice(0, columns),
    );
  };
  try {
    return await runFfmpeg(film.ffmpeg, ladderArguments(film, rungs, folder), stopped, show);
  } finally {
    line.end();
  }
}
