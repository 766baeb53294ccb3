/** One download of `tributary get`: from an address into its output, with progress and summary. */
import { stat } from "node:fs/promises";
import type { ByteRange, ResponseHead } from "@tributary/contract";
import type { DownloadRecord } from "@tributary/contract/schema";
import type { Download, GetOptions } from "../api";
import { formatOfContent, formatOfType } from "../video";
import { Check } from "./checksum";
import { Exit, STATUS } from "./exit";
import { fileFault, problemOf } from "./faults";
import type { Job } from "./jobs";
import { nameFromHeader, nameFromUrl } from "./names";
import { openTarget, type StreamOutput } from "./output";
import type { Source } from "./pace";
import { continues, findPart, PartFile, versionOf, type Resume } from "./part-file";
import { Progress } from "./progress";
import { findRanges, type KnownRanges } from "./ranges";
import { stopped } from "./signals";
import { jsonLine, say } from "./terminal";
import { fetchVideo, isNamedPlaylist, wantsVideo } from "./video";
import { summary } from "./view";

/** A playlist shows in its first bytes what it is. */
const BEGINNING_BYTES = 4096;
/** A file that changes more often while it is fetched is given up. */
const STARTS_MAX = 3;

/** Where the bytes of one download go, once the origin has answered. */
interface Sink {
  write(piece: Uint8Array): Promise<void>;
  finish(): Promise<void>;
  /** Returns a sentence for the user. */
  fail(): Promise<string | undefined>;
}

/** Fetches one address. Returns what went wrong. Throws a RequestError for an address that can never work. */
export async function fetchInto(client: Source, job: Job, options: GetOptions): Promise<Exit | undefined> {
  const { words } = job;
  if (wantsVideo(job) && isNamedPlaylist(job)) return fetchVideo(client, job, options);
  const target = job.file === undefined ? undefined : await openTarget(job.file);
  const stream = target?.kind === "stream" ? target.output : undefined;
  const path = target?.kind === "file" ? target.path : undefined;
  try {
    const known = await findRanges(client, job.url, options, words.range);
    const resume =
      path !== undefined && words.continue && !words.compressed
        ? await findPart(path, job.url, known.ranges[0])
        : undefined;
    const transfer = new Transfer(client, job, options, known, { path, stream });
    const problem = await transfer.run(resume);
    return transfer.isVideo ? await fetchVideo(client, job, options) : problem;
  } finally {
    stream?.close();
  }
}

class Transfer {
  readonly #client: Source;
  readonly #job: Job;
  readonly #options: GetOptions;
  readonly #known: KnownRanges;
  #check: Check | undefined;
  readonly #to: { path: string | undefined; stream: StreamOutput | undefined };
  #starts = 0;
  /** The answer is a playlist whose video is wanted. Nothing was written. */
  isVideo = false;

  constructor(
    client: Source,
    job: Job,
    options: GetOptions,
    known: KnownRanges,
    to: { path: string | undefined; stream: StreamOutput | undefined },
  ) {
    this.#client = client;
    this.#job = job;
    this.#options = options;
    this.#known = known;
    this.#to = to;
  }

  async run(resume: Resume | undefined): Promise<Exit | undefined> {
    const { checksum } = this.#job.words;
    this.#starts++;
    this.#check = checksum && new Check(checksum);
    const { download, unlink } = this.#ask(resume?.range ?? this.#known.ranges[0]);
    try {
      const head = await download.head.catch(() => undefined);
      if (resume && head && isOtherVersion(resume, head)) {
        await this.#dismiss(download);
        say("The file is another one than before: the download starts anew.\n");
        return await this.run(undefined);
      }
      if (head && (await this.#isThere(head))) {
        await this.#dismiss(download);
        if (!this.#job.words.quiet) say(`${this.#to.path} is there already, with ${head.totalBytes} bytes.\n`);
        return undefined;
      }
      const difference = head && isGood(head) ? this.#known.faultOf(head) : undefined;
      if (difference !== undefined) {
        await this.#dismiss(download);
        return new Exit(STATUS.failed, difference);
      }
      const reader = download.body.getReader();
      const beginning = await readPiece(reader);
      if (head && isGood(head) && wantsVideo(this.#job) && isPlaylist(head, beginning)) {
        this.isVideo = true;
        await this.#dismiss(download);
        return undefined;
      }
      return await this.#receive(download, head, resume, { reader, beginning });
    } finally {
      unlink();
    }
  }

  /** The first signal ends the download. */
  #ask(range: ByteRange | undefined): { download: Download; unlink(): void } {
    const download = this.#client.get(this.#job.url, { ...this.#options, ...(range ? { range } : {}) });
    const abort = (): void => download.abort("interrupted");
    stopped.addEventListener("abort", abort);
    return { download, unlink: () => stopped.removeEventListener("abort", abort) };
  }

  async #dismiss(download: Download): Promise<void> {
    download.abort("not needed");
    await download.record;
  }

  /** With --continue, a file that has its length and is newer than the origin's is whole. */
  async #isThere(head: ResponseHead): Promise<boolean> {
    const { path } = this.#to;
    if (!this.#job.words.continue || path === undefined || head.status !== 200) return false;
    const there = await stat(path).catch(() => undefined);
    const modified = Date.parse(head.headers["last-modified"] ?? "");
    return there?.size === head.totalBytes && !(modified > there.mtimeMs);
  }

  async #receive(
    download: Download,
    head: ResponseHead | undefined,
    resume: Resume | undefined,
    body: Body,
  ): Promise<Exit | undefined> {
    const { words } = this.#job;
    const offset = resume?.offset ?? 0;
    const totalBytes = head?.totalBytes ?? null;
    const progress = words.quiet
      ? undefined
      : new Progress(this.#client, offset, totalBytes === null ? null : offset + totalBytes + this.#laterBytes);
    let sink: Sink | undefined;
    const first = await this.#take(download, async () => {
      if (head && isGood(head)) sink = await this.#open(head, resume);
      await this.#pump(body, sink, progress);
    });
    const ends = [first, ...(first.problem || !sink ? [] : await this.#takeLaterRanges(sink, progress))];
    progress?.stop();
    if (this.#canStartAnew && first.problem && first.record.error?.kind === "originChanged") {
      await sink?.fail();
      say("The file changed while it was fetched: the download starts anew.\n");
      return this.run(undefined);
    }
    const { problem, note } = await this.#end(sink, ends.at(-1)!.problem);
    for (const { record } of ends) {
      if (words.json) process.stdout.write(jsonLine(record));
      else if (!words.quiet) say(summary(record));
    }
    if (note !== undefined) say(`${note}\n`);
    return problem;
  }

  /** Waits for the end of a download whose bytes `receive` takes. */
  async #take(download: Download, receive: () => Promise<void>): Promise<DownloadEnd> {
    let fault: Exit | undefined;
    try {
      await receive();
    } catch (error) {
      fault = asFault(this.#to.path ?? this.#job.file ?? "", error);
      download.abort(error);
    }
    const record = await download.record;
    return { record, problem: fault ?? problemOf(record) };
  }

  /** Bytes of the ranges after the first. */
  get #laterBytes(): number {
    return this.#known.ranges.slice(1).reduce((sum, { start, end }) => sum + end - start + 1, 0);
  }

  /** Each range follows the one before in the same output. */
  async #takeLaterRanges(sink: Sink, progress: Progress | undefined): Promise<DownloadEnd[]> {
    const ends: DownloadEnd[] = [];
    for (const range of this.#known.ranges.slice(1)) {
      const { download, unlink } = this.#ask(range);
      const end = await this.#take(download, async () => {
        const head = await download.head.catch(() => undefined);
        const difference = head && isGood(head) ? this.#known.faultOf(head) : undefined;
        if (difference !== undefined) throw new Exit(STATUS.failed, difference);
        const reader = download.body.getReader();
        const isOurs = head !== undefined && isGood(head);
        await this.#pump({ reader, beginning: await readPiece(reader) }, isOurs ? sink : undefined, progress);
      });
      unlink();
      ends.push(end);
      if (end.problem) break;
    }
    return ends;
  }

  /** What went to a stream cannot be taken back. */
  get #canStartAnew(): boolean {
    return this.#to.path !== undefined && this.#starts < STARTS_MAX && !stopped.aborted;
  }

  async #pump({ reader, beginning }: Body, sink: Sink | undefined, progress: Progress | undefined): Promise<void> {
    for (let value = beginning; value; value = await readPiece(reader)) {
      this.#check?.update(value);
      await sink?.write(value);
      progress?.add(value.length);
    }
  }

  /** Closes the sink. A file takes its name only here. */
  async #end(sink: Sink | undefined, problem: Exit | undefined): Promise<{ problem?: Exit; note?: string }> {
    if (!sink) return problem ? { problem } : {};
    if (problem) {
      const note = await sink.fail();
      return note === undefined ? { problem } : { problem, note };
    }
    try {
      await sink.finish();
      return {};
    } catch (error) {
      const note = await sink.fail();
      const failed = asFault(this.#to.path ?? this.#job.file ?? "", error);
      return note === undefined ? { problem: failed } : { problem: failed, note };
    }
  }

  async #open(head: ResponseHead, resume: Resume | undefined): Promise<Sink> {
    const { path, stream } = this.#to;
    if (stream) return this.#streamSink(stream);
    const file = path ?? (await this.#pathFromHeader(head));
    if (file === undefined)
      return { write: async () => undefined, finish: async () => this.#verify(), fail: async () => undefined };
    this.#to.path = file;
    const { ranges } = this.#known;
    const version = ranges.length > 1 ? undefined : versionOf(this.#job.url, ranges[0], head);
    const part = resume ? await PartFile.resume(file, resume) : await PartFile.create(file, version);
    if (this.#check && resume) for await (const bytes of part.bytes()) this.#check.update(bytes);
    return this.#fileSink(part, head);
  }

  #streamSink(stream: StreamOutput): Sink {
    return {
      write: (piece) => stream.write(piece),
      finish: async () => {
        await stream.finish();
        this.#verify();
      },
      fail: async () => undefined,
    };
  }

  #fileSink(part: PartFile, head: ResponseHead): Sink {
    let isWrong = false;
    return {
      write: (piece) => part.write(piece),
      finish: async () => {
        const problem = this.#check?.problem();
        isWrong = problem !== undefined;
        if (problem !== undefined) throw new Exit(STATUS.failed, problem);
        await part.finish(this.#job.words.remoteTime ? modifiedOf(head) : undefined);
      },
      fail: async () => (isWrong || this.#known.ranges.length > 1 ? void (await part.remove()) : part.keep()),
    };
  }

  #verify(): void {
    const problem = this.#check?.problem();
    if (problem !== undefined) throw new Exit(STATUS.failed, problem);
  }

  /** A server must not replace a file that it names. */
  async #pathFromHeader(head: ResponseHead): Promise<string | undefined> {
    const { inFolder, url } = this.#job;
    if (!inFolder) return undefined;
    const name = nameFromHeader(head.headers["content-disposition"]);
    const target = await openTarget(inFolder(name ?? nameFromUrl(url)));
    if (target.kind !== "file") throw new Exit(STATUS.failed, "The server names something that is not a file.");
    const isTaken = await stat(target.path).then(
      () => true,
      () => false,
    );
    if (name !== undefined && isTaken)
      throw new Exit(STATUS.failed, `The server calls the file ${target.path}, and that exists: use --output.`);
    return target.path;
  }
}

interface DownloadEnd {
  record: DownloadRecord;
  problem: Exit | undefined;
}

interface Body {
  reader: ReadableStreamDefaultReader<Uint8Array>;
  beginning: Uint8Array | undefined;
}

/** Undefined at the end. A failed download is not a failed write, and its record tells what happened. */
async function readPiece(reader: Body["reader"]): Promise<Uint8Array | undefined> {
  return (await reader.read().catch(() => undefined))?.value;
}

function isPlaylist({ headers }: ResponseHead, beginning: Uint8Array | undefined): boolean {
  const text = new TextDecoder().decode(beginning?.subarray(0, BEGINNING_BYTES));
  return formatOfType(headers["content-type"]) !== undefined || formatOfContent(text) !== undefined;
}

const isGood = ({ status }: ResponseHead): boolean => status >= 200 && status < 300;

/** An answer with bytes that do not continue the part, or that says the part is too long. */
function isOtherVersion(resume: Resume, head: ResponseHead): boolean {
  return (isGood(head) || head.status === 416) && !continues(resume, head);
}

function modifiedOf(head: ResponseHead): Date | undefined {
  const date = new Date(head.headers["last-modified"] ?? "");
  return Number.isNaN(date.getTime()) ? undefined : date;
}

function asFault(name: string, error: unknown): Exit {
  return error instanceof Exit ? error : fileFault("write", name, error);
}
