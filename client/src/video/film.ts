/** Makes the film of finished tracks: with ffmpeg one file, and without it the tracks as they are. */
import { createReadStream } from "node:fs";
import { copyFile, mkdir, open, readFile, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { concatList, containerOf, findFfmpeg, muxArguments, runFfmpeg, type JoinedTrack } from "./ffmpeg";
import type { PartsFolder } from "./parts";
import { VideoError, type TrackKind } from "./presentation";
import { startTicks } from "./start-time";
import { joinSubtitles } from "./subtitles";
import type { Track } from "./tracks";

/** The beginning of a track that tells when it starts. */
const BEGINNING_BYTES = 1 << 20;

export interface FilmFile {
  path: string;
  kind: TrackKind;
  bytes: number;
}

interface FilmOptions {
  output: string;
  ffmpeg?: string | null;
  tracks: readonly Track[];
  parts: PartsFolder;
  signal: AbortSignal;
  notice(sentence: string): void;
}

export async function makeFilm(options: FilmOptions): Promise<FilmFile[]> {
  const { ffmpeg = findFfmpeg(), notice, output } = options;
  const joined = options.tracks.map(({ rendition, ownSound }, track) => ({
    ...rendition,
    ...(ownSound ? { ownSound } : {}),
    files: options.parts.files(track),
  }));
  const media = joined.filter(({ kind, files }) => kind !== "subtitles" && files.length > 0);
  if (media.length === 0) throw new VideoError("The video has no segments that could be fetched.");
  await mkdir(path.dirname(path.resolve(output)), { recursive: true });
  const texts = joined.filter(({ kind, files }) => kind === "subtitles" && files.length > 0);
  const subtitles = await joinTexts(texts, media[0]!.files[0]!, options.parts.folder);
  const fit = containerOf(output).texts === undefined ? [] : subtitles.filter(({ isWebVtt }) => isWebVtt);
  if (ffmpeg) {
    const problem = await mux(ffmpeg, media, fit, options);
    if (problem === undefined)
      return [await fileAt(output, media[0]!.kind), ...(await putBeside(subtitles, fit, options))];
    notice(`ffmpeg could not join the tracks, so they are as the site sent them: ${problem}`);
  } else
    notice("ffmpeg was not found in PATH, so the tracks are as the site sent them. Most players play them like that.");
  return [...(await asTheyAre(media, options)), ...(await putBeside(subtitles, [], options))];
}

interface Text extends JoinedTrack {
  isWebVtt: boolean;
}

/** One file for each track: WebVTT on the film's clock, and anything else as it came. */
async function joinTexts(texts: readonly JoinedTrack[], firstMedia: string, folder: string): Promise<Text[]> {
  const ticks = startTicks(await beginningOf(firstMedia));
  const joined: Text[] = [];
  for (const [index, track] of texts.entries()) {
    const bytes = Buffer.concat(await Promise.all(track.files.map((file) => readFile(file))));
    const text = bytes.toString();
    const isWebVtt = /^\uFEFF?WEBVTT\b/.test(text);
    const file = path.join(folder, `subtitles-${index}`);
    await writeFile(file, isWebVtt ? joinSubtitles(text, ticks) : bytes);
    joined.push({ ...track, files: [file], isWebVtt });
  }
  return joined;
}

async function beginningOf(file: string): Promise<Buffer> {
  const opened = await open(file);
  try {
    const { buffer, bytesRead } = await opened.read(Buffer.alloc(BEGINNING_BYTES), 0, BEGINNING_BYTES, 0);
    return buffer.subarray(0, bytesRead);
  } finally {
    await opened.close();
  }
}

/** Subtitles that are not in the film get files of their own. */
async function putBeside(
  subtitles: readonly Text[],
  inFilm: readonly Text[],
  { output, notice }: FilmOptions,
): Promise<FilmFile[]> {
  const made: FilmFile[] = [];
  for (const [index, track] of subtitles.entries()) {
    if (inFilm.includes(track)) continue;
    const target = besideName(output, track, index + 1, made, track.isWebVtt ? ".vtt" : ".ttml");
    await copyFile(track.files[0]!, target);
    made.push(await fileAt(target, "subtitles"));
    notice(`The subtitles ${track.label ?? ""} are in ${target}.`);
  }
  return made;
}

/** Returns what went wrong. */
async function mux(
  program: string,
  tracks: JoinedTrack[],
  subtitles: JoinedTrack[],
  options: FilmOptions,
): Promise<string | undefined> {
  const { folder } = options.parts;
  const film = path.join(folder, `film${path.extname(options.output)}`);
  const lists = new Map(
    tracks.filter(({ files }) => files.length > 1).map((track, index) => [track, path.join(folder, `list-${index}`)]),
  );
  for (const [track, file] of lists) await writeFile(file, concatList(track.files));
  const words = muxArguments({ tracks, subtitles, output: film }, (track) => lists.get(track)!);
  const problem = await runFfmpeg(program, words, options.signal);
  options.signal.throwIfAborted();
  if (problem === undefined) await rename(film, options.output);
  return problem;
}

async function asTheyAre(
  media: readonly (JoinedTrack & { kind: TrackKind })[],
  { output, notice }: FilmOptions,
): Promise<FilmFile[]> {
  const made: FilmFile[] = [];
  for (const [index, track] of media.entries()) {
    const target = index === 0 ? output : besideName(output, track, index, made);
    await joinFiles(track.files, target);
    made.push(await fileAt(target, track.kind));
    if (index > 0) notice(`The sound is in ${target}.`);
  }
  return made;
}

/** `film.mp4` and a sound in German: `film.de.mp4`. A second one in German has its number. */
function besideName(
  output: string,
  { language }: Pick<JoinedTrack, "language">,
  index: number,
  made: readonly FilmFile[],
  extension = path.extname(output),
): string {
  const base = output.slice(0, output.length - path.extname(output).length);
  const word = language?.replaceAll(/[^\w-]/g, "");
  const name = `${base}.${word}${extension}`;
  return word && made.every((file) => file.path !== name) ? name : `${base}.track${index}${extension}`;
}

/** The first file takes the others and then the place of the target. */
async function joinFiles([first, ...others]: string[], target: string): Promise<void> {
  const file = await open(first!, "a");
  try {
    for (const other of others)
      for await (const piece of createReadStream(other) as AsyncIterable<Buffer>) await file.writeFile(piece);
  } finally {
    await file.close();
  }
  await rename(first!, target);
}

async function fileAt(file: string, kind: TrackKind): Promise<FilmFile> {
  return { path: file, kind, bytes: (await stat(file)).size };
}
