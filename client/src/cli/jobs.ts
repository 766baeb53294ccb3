/** The words of `get`, and the downloads that they ask for. No I/O. */
import path from "node:path";
import type { Checksum } from "./checksum";
import { UsageError } from "./exit";
import { freePath, nameFromUrl } from "./names";
import type { ProxyWords } from "./options";
import { isStandardOutput } from "./output";
import type { RequestWords } from "./requests";

interface VideoWords {
  quality?: string;
  audio?: string;
  subtitles?: string;
  duration?: number;
  /** False: `--no-video`. */
  video: boolean;
}

export interface GetWords extends ProxyWords, RequestWords, VideoWords {
  output?: string[];
  remoteName?: true;
  remoteHeaderName?: true;
  outputDir?: string;
  inputFile?: string[];
  continue?: true;
  remoteTime?: true;
  checksum?: Checksum;
  quiet?: true;
  json?: true;
}

export interface Job {
  url: string;
  words: GetWords;
  /** Undefined: the bytes go nowhere. */
  file?: string | undefined;
  /** The server names the file. Gives its path. */
  inFolder?(name: string): string;
}

/** What to fetch, and where to put it. Throws a UsageError for words that contradict each other. */
export function jobsOf(urls: readonly string[], words: GetWords): Job[] {
  const { output = [], json, checksum } = words;
  const isNamed = words.remoteName || words.remoteHeaderName || words.inputFile !== undefined;
  if (urls.length === 0) throw new UsageError("get takes at least one URL: got none.");
  if (output.includes("")) throw new UsageError("--output is empty: name a file, or - for standard output.");
  if (output.length > 0 && isNamed)
    throw new UsageError("--output names the file: leave out --remote-name, --remote-header-name and --input-file.");
  if (output.length > 0 && output.length !== urls.length)
    throw new UsageError(`--output comes once for each URL: got ${output.length} for ${urls.length} URLs.`);
  if (json && output.includes("-")) throw new UsageError("--json and --output - both need standard output.");
  if (words.continue && words.remoteHeaderName)
    throw new UsageError("--continue must know the name before: use --output or --remote-name.");
  if (words.continue && (words.range?.length ?? 0) > 1)
    throw new UsageError("--continue goes on with one range: --range has several.");
  if (checksum && urls.length > 1) throw new UsageError(`--checksum takes one URL: got ${urls.length}.`);
  if (output.length === 0 && !isNamed && !json && process.stdout.isTTY)
    throw new UsageError("Standard output is a terminal: name a file with --output or --remote-name.");
  const folder = words.outputDir ?? "";
  const taken = new Set<string>();
  const inFolder = (name: string): string => {
    const file = freePath(path.join(folder, name), (candidate) => taken.has(candidate));
    taken.add(file);
    return file;
  };
  return urls.map((url, index) => {
    const name = output[index];
    if (name !== undefined) return { url, words, file: isStandardOutput(name) ? name : path.join(folder, name) };
    if (!isNamed) return { url, words, file: json ? undefined : "-" };
    if (words.remoteHeaderName) return { url, words, inFolder };
    return { url, words, file: inFolder(nameFromUrl(url)) };
  });
}
