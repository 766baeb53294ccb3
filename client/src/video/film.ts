/** Makes the film of finished tracks: with ffmpeg one file, and without it the tracks as they are. */
import { createReadStream } from "node:fs";
import { mkdir, open, rename, stat, writeFile } from "node:fs/promises";
import path from "node:path";
import { concatList, findFfmpeg, muxArguments, runFfmpeg, type JoinedTrack } from "./ffmpeg";
import type { PartsFolder } from "./parts";
import { VideoError, type TrackKind } from "./presentation";
import type { Track } from "./tracks";

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
  const joined = options.tracks.map(({ rendition }, track) => ({ ...rendition, files: options.parts.files(track) }));
  const media = joined.filter(({ kind, files }) => kind !== "subtitles" && files.length > 0);
  if (media.length === 0) throw new VideoError("The video has no segments that could be fetched.");
  await mkdir(path.dirname(path.resolve(output)), { recursive: true });
  if (ffmpeg) {
    const problem = await mux(ffmpeg, media, options);
    if (problem === undefined) return [await fileAt(output, media[0]!.kind)];
    notice(`ffmpeg could not join the tracks, so they are as the site sent them: ${problem}`);
  } else
    notice("ffmpeg was not found in PATH, so the tracks are as the site sent them. Most players play them like that.");
  return asTheyAre(media, options);
}

/** Returns what went wrong. */
async function mux(program: string, tracks: JoinedTrack[], options: FilmOptions): Promise<string | undefined> {
  const { folder } = options.parts;
  const film = path.join(folder, `film${path.extname(options.output)}`);
  const lists = new Map(
    tracks.filter(({ files }) => files.length > 1).map((track, index) => [track, path.join(folder, `list-${index}`)]),
  );
  for (const [track, file] of lists) await writeFile(file, concatList(track.files));
  const words = muxArguments({ tracks, subtitles: [], output: film }, (track) => lists.get(track)!);
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
    const target = index === 0 ? output : besideName(output, track, index);
    await joinFiles(track.files, target);
    made.push(await fileAt(target, track.kind));
    if (index > 0) notice(`The sound is in ${target}.`);
  }
  return made;
}

/** `film.mp4` and a sound in German: `film.de.mp4`. */
function besideName(output: string, { language }: JoinedTrack, index: number): string {
  const extension = path.extname(output);
  const word = language?.replaceAll(/[^\w-]/g, "") || `sound${index}`;
  return `${output.slice(0, output.length - extension.length)}.${word}${extension}`;
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
