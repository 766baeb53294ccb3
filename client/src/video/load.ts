/**
 * Loads playlists and keys. They come directly from the origin and never through proxies: a key is a secret, and a
 * playlist's address often tells who watches.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { messageOf } from "../errors";
import { headersForOthers } from "../origin";
import { plainUrl } from "../request";
import { VideoError } from "./presentation";
import { versionOf, type Version } from "./version";

const PLAYLIST_BYTES_MAX = 64 << 20;
const ANSWER_MS_MAX = 60_000;
const KEY_BYTES = 16;

/** The answer has an error's status. */
export class StatusError extends Error {
  override readonly name = "StatusError";
  constructor(
    readonly status: number,
    readonly url: string,
  ) {
    super(`the origin answered ${status}`);
  }
}

export interface Loader {
  fetch: typeof fetch;
  /** The user's headers for requests to an address. */
  headersFor(url: string): Record<string, string>;
  /** How often a failed request is repeated. */
  retries: number;
  signal: AbortSignal;
}

export interface Playlist {
  text: string;
  /** The address after redirects. Relative addresses begin there. */
  url: string;
  contentType: string;
  /** The server's clock minus ours, from the Date header. */
  clockOffsetMs: number;
}

export async function loadPlaylist(loader: Loader, url: string): Promise<Playlist> {
  return load(loader, url, "playlist", async (response) => ({
    text: new TextDecoder().decode(await bytesOf(response, PLAYLIST_BYTES_MAX)),
    url: response.url || url,
    contentType: response.headers.get("content-type") ?? "",
    clockOffsetMs: clockOffsetMs(response),
  }));
}

/** What a file's server tells of it now, and whether it gives ranges. */
export function describeFile(loader: Loader, url: string): Promise<{ version: Version; hasRanges: boolean }> {
  const read = async (response: Response): Promise<{ version: Version; hasRanges: boolean }> => {
    await response.body?.cancel();
    const { status } = response;
    const headers = Object.fromEntries(response.headers);
    const length = headers["content-length"];
    const totalBytes = length === undefined || "content-encoding" in headers ? null : Number(length);
    return { version: versionOf({ status, headers, totalBytes }), hasRanges: status === 206 };
  };
  return load(loader, url, "file", read, { range: "bytes=0-0" });
}

/** Keeps each key, because many segments have the same one. */
export class Keys {
  readonly #known = new Map<string, Promise<Uint8Array>>();
  readonly #loader: Loader;

  constructor(loader: Loader) {
    this.#loader = loader;
  }

  get(url: string): Promise<Uint8Array> {
    const known = this.#known.get(url);
    if (known) return known;
    const key = load(this.#loader, url, "key", async (response) => {
      const bytes = await bytesOf(response, KEY_BYTES);
      if (bytes.length !== KEY_BYTES)
        throw new VideoError(`The key ${shown(url)} has ${bytes.length} bytes, and AES-128 needs ${KEY_BYTES}.`);
      return bytes;
    });
    this.#known.set(url, key);
    key.catch(() => this.#known.delete(url));
    return key;
  }
}

/** Waits longer after each failure: 0.5 s, 1 s, 2 s, and at most 10 s. */
function pauseMs(failures: number): number {
  return Math.min(500 * 2 ** (failures - 1), 10_000);
}

/** Headers of the user go to the video's own origin. A playlist may name other servers. */
export function headersOfOrigin(
  videoUrl: string,
  headers: Readonly<Record<string, string>> = {},
): Loader["headersFor"] {
  const { origin } = new URL(videoUrl);
  return (url) => (new URL(url).origin === origin ? { ...headers } : headersForOthers(headers));
}

/** An address for messages, without what may be secret in it. */
export function shown(url: string): string {
  return url.startsWith("data:") ? "data:" : plainUrl(url);
}

async function load<T>(
  loader: Loader,
  url: string,
  what: string,
  read: (response: Response) => Promise<T>,
  headers: Record<string, string> = {},
): Promise<T> {
  return repeatedly(loader, `The ${what} ${shown(url)}`, async () => {
    const response = await loader.fetch(url, {
      headers: { ...loader.headersFor(url), ...headers },
      signal: AbortSignal.any([loader.signal, AbortSignal.timeout(ANSWER_MS_MAX)]),
    });
    if (response.ok) return read(response);
    await response.body?.cancel();
    throw new StatusError(response.status, url);
  });
}

/** The next attempt would find the disk as it is. */
function isDiskFault(error: unknown): boolean {
  const codes = ["ENOSPC", "EDQUOT", "EROFS", "EFBIG", "EACCES", "EIO", "ENOENT"];
  const { code = "", syscall } = error as NodeJS.ErrnoException;
  return syscall !== undefined && codes.includes(code);
}

/** Repeats a failed attempt `retries` times. A VideoError and a fault of the disk are final. `name` is for messages. */
export async function repeatedly<T>(
  { retries, signal }: Pick<Loader, "retries" | "signal">,
  name: string,
  attempt: () => Promise<T>,
): Promise<T> {
  for (let failures = 1; ; failures++) {
    signal.throwIfAborted();
    try {
      return await attempt();
    } catch (error) {
      signal.throwIfAborted();
      if (error instanceof VideoError || isDiskFault(error)) throw error;
      if (failures > retries) throw new VideoError(`${name} failed: ${messageOf(error)}.`, { cause: error });
    }
    await sleep(pauseMs(failures), undefined, { signal });
  }
}

async function bytesOf(response: Response, bytesMax: number): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let count = 0;
  for await (const piece of response.body ?? []) {
    count += piece.length;
    if (count > bytesMax)
      throw new VideoError(`The answer of ${shown(response.url)} is too large: allowed are ${bytesMax} bytes.`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

function clockOffsetMs(response: Response): number {
  const date = Date.parse(response.headers.get("date") ?? "");
  return Number.isNaN(date) ? 0 : date - Date.now();
}
