/**
 * Downloads a whole video: reads its playlists, fetches the segments of the chosen tracks through the proxies, several
 * at once, and makes one file. It has no terminal: progress and sentences go to the caller.
 */
import { setMaxListeners } from "node:events";
import path from "node:path";
import type { GetOptions } from "../api";
import type { ProxyClient } from "../client";
import { fetchOrigin } from "../origin-node";
import { choose, type Choice, type Wishes } from "./choose";
import { PieceFetcher } from "./fetch-piece";
import { JobQueue, type Job } from "./job-queue";
import { describeFile, headersOfOrigin, Keys, StatusError, type Loader } from "./load";
import { makeFilm, type FilmFile } from "./film";
import { openVideo } from "./open";
import { claim } from "./claim";
import { PartsFolder } from "./parts";
import { VideoError, type Presentation, type Segment } from "./presentation";
import { VideoProgress, type VideoProgressReport } from "./progress";
import { cutList, follow, jobsOf, planOf, type Track } from "./tracks";
import { isOther, type Version } from "./version";

const RETRIES_DEFAULT = 3;
const SEGMENTS_AT_ONCE_DEFAULT = 6;
/** On fast links it is what they bring in a second. */
const BYTES_AT_ONCE_MIN = 5e6;

export interface VideoOptions extends Wishes {
  /** The film. Its name says which container it gets. */
  output: string;
  /** Seconds of the video. Default: all; a live stream is recorded until it ends. */
  durationSec?: number;
  /** Options of each segment's download, such as the mode. */
  get?: GetOptions;
  segmentsAtOnce?: number;
  /** How often a failed request is repeated. */
  retries?: number;
  /** Loads playlists and keys, directly. */
  fetch?: typeof fetch;
  /** ffmpeg's path. Default: the one in PATH; null: none. */
  ffmpeg?: string | null;
  /** Stops at once. What is finished stays for a later run. */
  signal?: AbortSignal;
  /** Ends the recording of a live stream, and makes the film of what is there. A whole video does not heed it. */
  finish?: AbortSignal;
  onStart?(about: { isLive: boolean; tracks: string[]; resumedSegments: number }): void;
  onProgress?(report: VideoProgressReport): void;
  /** A sentence for the user. */
  onNotice?(sentence: string): void;
}

export interface VideoResult {
  files: FilmFile[];
  segments: number;
  /** Segments that the origin does not have. */
  gaps: number;
  bytes: number;
  durationSec: number;
}

interface Context {
  options: VideoOptions;
  client: Pick<ProxyClient, "get">;
  controller: AbortController;
  loader: Loader;
  notice(sentence: string): void;
}

/** Throws a VideoError with a sentence if there can be no film, and the signal's reason if that stops it. */
export async function downloadVideo(
  client: Pick<ProxyClient, "get">,
  url: string,
  options: VideoOptions,
): Promise<VideoResult> {
  const controller = new AbortController();
  // Each download and each pause listens, and how many there are is bounded elsewhere.
  setMaxListeners(0, controller.signal);
  const stop = (): void => controller.abort(options.signal?.reason);
  if (options.signal?.aborted) stop();
  options.signal?.addEventListener("abort", stop);
  const loader: Loader = {
    fetch: options.fetch ?? fetchOrigin,
    headersFor: headersOfOrigin(url, options.get?.headers),
    retries: options.retries ?? RETRIES_DEFAULT,
    signal: controller.signal,
  };
  const notice = (sentence: string): void => options.onNotice?.(sentence);
  try {
    return await run({ options, client, controller, loader, notice }, url);
  } finally {
    options.signal?.removeEventListener("abort", stop);
    controller.abort();
  }
}

async function run(context: Context, url: string): Promise<VideoResult> {
  const { options, loader } = context;
  const tracks = await chooseTracks(context, await openVideo(loader, url));
  const isLive = tracks.some(({ list }) => list.isLive);
  const plan = isLive ? `live ${Date.now()}` : planOf(tracks);
  const folder = `${path.resolve(options.output)}.parts`;
  const release = await claim(folder);
  try {
    return await fetchAndJoin(context, tracks, isLive, await openParts(context, tracks, folder, plan));
  } finally {
    await release();
  }
}

async function fetchAndJoin(
  context: Context,
  tracks: Track[],
  isLive: boolean,
  parts: PartsFolder,
): Promise<VideoResult> {
  const { options, controller } = context;
  const progress = new VideoProgress(tracks, isLive, (track) => parts.joinedCount(track), parts.joinedBytes);
  options.onStart?.({
    isLive,
    tracks: tracks.map(({ rendition: { kind, label } }) => (label.startsWith(kind) ? label : `${kind} ${label}`)),
    resumedSegments: progress.report().segmentsDone,
  });
  const report = (): void => options.onProgress?.(progress.report());
  await fetchSegments(context, { tracks, isLive, parts, progress, missing: 0, report });
  controller.signal.throwIfAborted();
  progress.phase = "joining";
  report();
  const files = await makeFilm({ ...options, tracks, parts, notice: context.notice, signal: controller.signal });
  await parts.remove();
  progress.phase = "joined";
  report();
  const { segmentsDone, gaps, doneSec, bytes } = progress.report();
  return { files, segments: segmentsDone, gaps, durationSec: doneSec, bytes };
}

/** Goes on with an earlier run, unless the last segments that it joined have changed since. */
async function openParts(
  { loader, notice }: Context,
  tracks: Track[],
  folder: string,
  plan: string,
): Promise<PartsFolder> {
  const parts = await PartsFolder.open(folder, plan, tracks.length);
  const changed = await Promise.all(
    tracks.map(async ({ list }, track) => {
      const last = parts.lastOf(track);
      const url = last && list.segments[last.index]?.url;
      // If it cannot be asked for, the segments that are left will tell why.
      const now = url === undefined ? undefined : await describeFile(loader, url).catch(() => undefined);
      return last !== undefined && now !== undefined && isOther(last.version, now.version);
    }),
  );
  if (!changed.includes(true)) return parts;
  notice("The video has changed since the earlier run, so all of it is fetched.");
  return PartsFolder.begin(folder, plan, tracks.length);
}

/** If the origin does not have the playlist of the picture that suits best, the next one is taken, as players do. */
async function chooseTracks(context: Context, presentation: Presentation): Promise<Track[]> {
  const { options, notice } = context;
  const choice = choose(presentation, options);
  try {
    return await loadTracks(choice, options.durationSec);
  } catch (error) {
    const pictures = presentation.pictures.filter((picture) => picture !== choice.picture);
    const isAbsent = error instanceof VideoError && error.cause instanceof StatusError && choice.picture.load;
    if (!isAbsent || pictures.length === 0) throw error;
    notice(`${error.message} Another quality is taken.`);
    return chooseTracks(context, { ...presentation, pictures });
  }
}

async function loadTracks(choice: Choice, durationSec: number | undefined): Promise<Track[]> {
  const apart = [choice.picture, ...choice.sounds, ...choice.subtitles].filter(({ load }) => load !== undefined);
  const ownSound = choice.sounds.find(({ load }) => load === undefined);
  const lists = await Promise.all(apart.map(({ load }) => load!()));
  const tracks: Track[] = apart.map((rendition, index) => ({
    rendition,
    list: lists[index]!,
    ...(rendition === choice.picture && ownSound ? { ownSound } : {}),
  }));
  const empty = tracks.find(({ list }) => list.segments.length === 0 && !list.isLive);
  if (empty) throw new VideoError(`The playlist of ${empty.rendition.label} names no segments.`);
  return tracks.map((track) => ({ ...track, list: track.list.isLive ? track.list : cutList(track.list, durationSec) }));
}

interface Fetching {
  tracks: readonly Track[];
  isLive: boolean;
  parts: PartsFolder;
  progress: VideoProgress;
  /** Segments that the origin does not have although its playlist names them. */
  missing: number;
  report(): void;
}

async function fetchSegments(context: Context, fetching: Fetching): Promise<void> {
  const { options, controller, loader, client } = context;
  const bytesAtOnce = (): number => Math.max(BYTES_AT_ONCE_MIN, fetching.progress.bytesPerSec);
  const queue = new JobQueue(
    fetching.tracks.map(({ rendition }) => rendition.bandwidth / 8),
    bytesAtOnce,
  );
  const fetcher = new PieceFetcher({
    client,
    get: options.get ?? {},
    keys: new Keys(loader),
    headersFor: loader.headersFor,
    retries: loader.retries,
    signal: controller.signal,
    onBytes: (count) => {
      fetching.progress.addBytes(count);
      fetching.report();
    },
  });
  const fail = (error: unknown): void => {
    controller.abort(error);
    queue.stop();
  };
  const stop = (): void => queue.stop();
  controller.signal.addEventListener("abort", stop);
  const workers = Array.from({ length: options.segmentsAtOnce ?? SEGMENTS_AT_ONCE_DEFAULT }, async () => {
    const work = async (job: Job): Promise<void> => {
      const version = await finishJob(context, fetching, fetcher, job);
      if (version?.bytes !== undefined) queue.noteSize(job, version.bytes);
    };
    while (await queue.takeOne(work));
  });
  await Promise.all([...workers.map((worker) => worker.catch(fail)), fill(context, fetching, queue).catch(fail)]);
  controller.signal.throwIfAborted();
}

/** Puts all jobs into the queue: those of a live stream when they appear. */
async function fill({ options, controller, notice }: Context, fetching: Fetching, queue: JobQueue): Promise<void> {
  const { tracks, isLive, parts, progress } = fetching;
  if (isLive) {
    const finish = AbortSignal.any([controller.signal, ...(options.finish ? [options.finish] : [])]);
    const following = { durationSec: options.durationSec, finish, onNotice: notice };
    const followTrack = async (track: Track, index: number): Promise<void> => {
      for await (const job of follow(index, track, following)) {
        progress.addSegment(job.segment.durationSec);
        queue.push(job);
      }
    };
    await Promise.all(tracks.map(followTrack));
  } else queue.push(...jobsOf(tracks).filter(({ track, index }) => index >= parts.joinedCount(track)));
  queue.end();
}

/** The origin does not have the segment itself. An init segment that is missing spoils all that follow. */
function isMissingPiece({ cause }: VideoError, { url }: Segment): boolean {
  return cause instanceof StatusError && cause.url === url && [404, 410].includes(cause.status);
}

/** If the origin lacks more than a tenth of a track, something else is wrong. */
const missingMax = (segments: number): number => Math.max(1, Math.floor(segments / 10));

async function finishJob(
  { notice }: Context,
  fetching: Fetching,
  fetcher: PieceFetcher,
  { track, index, segment, isFirstOfStretch }: Job,
): Promise<Version | undefined> {
  const { tracks, isLive, parts, progress, report } = fetching;
  const { list, rendition } = tracks[track]!;
  const count = isLive ? "" : ` of ${list.segments.length}`;
  const name = `Segment ${index + 1}${count} of ${rendition.kind}`;
  let file: string | undefined;
  let version: Version | undefined;
  if (segment.isGap) notice(`${name} is missing: the origin says that it does not have it.`);
  else {
    file = parts.segmentFile(track, index);
    try {
      version = await fetcher.toFile(segment, isFirstOfStretch ? segment.init : undefined, file, name);
    } catch (error) {
      if (!(error instanceof VideoError)) throw error;
      const isMissing = isMissingPiece(error, segment) && ++fetching.missing <= missingMax(list.segments.length);
      if (!isLive && !isMissing)
        throw new VideoError(`${error.message} What is finished stays in ${parts.folder}: repeat the command.`);
      notice(`${error.message} The film lacks ${segment.durationSec.toFixed(1)} s there.`);
      if (!isMissing || !isFirstOfStretch || !segment.init) file = undefined;
    }
  }
  await parts.finish(track, index, { stretch: segment.stretch, file, version });
  progress.finishSegment(segment.durationSec, version === undefined);
  report();
  return version;
}
