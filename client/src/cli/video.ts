/** `tributary get` of a playlist: the whole video, with progress on a terminal. The work is in ../video. */
import path from "node:path";
import { InvalidArgumentError, type Command } from "commander";
import type { GetOptions } from "../api";
import {
  downloadVideo,
  isQuality,
  VideoError,
  formatOfName,
  QUALITY_ALLOWED,
  type VideoProgressReport,
} from "../video";
import { Exit, STATUS } from "./exit";
import { fileFault } from "./faults";
import type { Job } from "./jobs";
import { seconds } from "./options";
import { isStandardOutput } from "./output";
import type { Source } from "./pace";
import { stopped, takeFirstSignal } from "./signals";
import { jsonLine, LiveLine, say } from "./terminal";
import { videoLine } from "./video-view";

const SHOW_EVERY_MS = 100;
const PLAYLIST_NAME = /\.(m3u8?|mpd)$/i;

export function addVideoOptions(command: Command): Command {
  return command
    .optionsGroup("Video (a playlist of HLS or DASH):")
    .option("--quality <which>", `${QUALITY_ALLOWED} (default: best)`, quality)
    .option("--audio <lang>", "the sound in this language; several: de,en; all: every sound")
    .option("--subtitles <lang>", "subtitles in this language; several: de,en; all: every one")
    .option(
      "--duration <seconds>",
      "so much of the video; a live stream is else recorded until it ends or Ctrl-C",
      seconds,
    )
    .option("--no-video", "fetch the playlist itself, and not its video");
}

function quality(text: string): string {
  if (!isQuality(text)) throw new InvalidArgumentError(`Allowed: ${QUALITY_ALLOWED}.`);
  return text;
}

/** Whether a playlist at the job's address means its video. A file that is called like a playlist is one. */
export function wantsVideo({ words, file, inFolder }: Job): boolean {
  if (!words.video || words.range || words.checksum) return false;
  if (file === undefined) return inFolder !== undefined;
  return !isStandardOutput(file) && (words.remoteName === true || !PLAYLIST_NAME.test(file));
}

/** Whether the address already says that it is a playlist. */
export const isNamedPlaylist = ({ url }: Job): boolean => URL.canParse(url) && formatOfName(url) !== undefined;

/** The film's name: the one that the user gave, or the playlist's with another ending. */
function outputOf({ file, inFolder, url }: Job): string {
  const name = file ?? inFolder!(path.posix.basename(new URL(url).pathname) || "video");
  return PLAYLIST_NAME.test(name) ? name.replace(PLAYLIST_NAME, ".mp4") : name;
}

export async function fetchVideo(client: Source, job: Job, get: GetOptions): Promise<Exit | undefined> {
  const { quiet, json, quality, audio, subtitles, duration, retry } = job.words;
  const output = outputOf(job);
  const finish = new AbortController();
  const view = new VideoView(client, quiet ? undefined : new LiveLine());
  let release = (): void => undefined;
  const optional = { quality, audio, subtitles, durationSec: duration, retries: retry };
  const given = Object.fromEntries(Object.entries(optional).filter(([, value]) => value !== undefined));
  try {
    const result = await downloadVideo(client, job.url, {
      ...given,
      output,
      get,
      signal: stopped,
      finish: finish.signal,
      onStart: ({ isLive, tracks, resumedSegments }) => {
        if (isLive) release = takeFirstSignal(() => finish.abort());
        if (quiet) return;
        view.say(tracks.join("; "));
        if (resumedSegments > 0) view.say(`${resumedSegments} segments are there from an earlier run.`);
      },
      onProgress: (report) => view.show(report),
      onNotice: (sentence) => view.say(sentence),
    });
    view.stop();
    if (json) process.stdout.write(jsonLine({ url: job.url, ...result }));
    else if (!quiet) for (const { path: file, bytes } of result.files) say(`${file}: ${bytes} bytes\n`);
    return undefined;
  } catch (error) {
    view.stop();
    if (stopped.aborted) say(`What is finished stays in ${output}.parts: repeat the command to go on.\n`);
    if (error instanceof Exit) return error;
    if (error instanceof VideoError) return new Exit(STATUS.failed, error.message);
    return error instanceof Error && "code" in error ? fileFault("write", output, error) : rethrow(error);
  } finally {
    release();
  }
}

function rethrow(error: unknown): never {
  throw error;
}

/** The live line on a terminal, and sentences above it. */
class VideoView {
  readonly #client: Source;
  readonly #line: LiveLine | undefined;
  #report: VideoProgressReport | undefined;
  #shownMs = 0;

  constructor(client: Source, line: LiveLine | undefined) {
    this.#client = client;
    this.#line = line;
  }

  show(report: VideoProgressReport): void {
    this.#report = report;
    if (performance.now() - this.#shownMs > SHOW_EVERY_MS) this.#draw();
  }

  say(sentence: string): void {
    this.#line?.clear();
    say(`${sentence}\n`);
  }

  stop(): void {
    if (this.#report) this.#draw();
    this.#line?.end();
  }

  #draw(): void {
    this.#shownMs = performance.now();
    this.#line?.draw((columns) => videoLine(this.#report!, this.#client.live, columns));
  }
}
