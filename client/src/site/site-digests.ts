/**
 * SiteDigests: the SHA-256 digests that a PeerTube site publishes of the segments of its videos. The client asks the
 * site itself for them: its API names a JSON of digests by file and byte range, or by file alone for live streams,
 * whose JSON grows. The site is the host of the file, or the page's if the file is in PeerTube's object storage on
 * another host. Rules: docs/adr/0014.
 */
import { sha256 } from "@noble/hashes/sha2";
import { hexOf, joined } from "@tributary/contract/tree";
import { putLast } from "../memory";
import { askerOf } from "../origin-fetch";
import type { Platform } from "../platform";
import type { Request } from "../request";
import { SEGMENT_BYTES_MAX, SegmentCheck, type Segment } from "./segment-check";

type Files = ReadonlyMap<string, readonly Segment[]>;
type MayAsk = (url: string) => Promise<boolean>;

/** What is known of one video. */
interface Kept {
  /** The origin of the files. */
  readonly storage: string;
  /** Undefined before the first answer. */
  files: Files | undefined;
  /** Where the digests are. */
  address: string | undefined;
  /** The question that runs. */
  asking: Promise<void> | undefined;
  askedMs: number;
  untilMs: number;
}

/** The file of a public video. */
const ADDRESS =
  /^\/static\/streaming-playlists\/hls\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/([^/]+\.(?:mp4|m4s|ts))$/i;
/** A file in object storage: the bucket's owner chooses what comes before. */
const STORED = /\/hls\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/([^/]+\.(?:mp4|m4s|ts))$/i;
const KEPT_MAX = 64;
/** Of all videos together, about 20 MB. */
const SEGMENTS_KEPT_MAX = 100_000;
const KEPT_MS = 600_000;
/** A download waits so long for the digests, and then does without. */
const WAIT_MS = 3000;
/** The digests of a live stream are asked for at most so often. */
const LIVE_AGAIN_MS = 1000;
/** After such a question failed, or the answer was too long, this long nobody asks. */
const LIVE_PAUSE_MS = 60_000;
const ANSWER_BYTES_MAX = 4 * 2 ** 20;
/** Each segment of a live stream costs one answer. Longer ones would load the site more than the proxies relieve it. */
const LIVE_ANSWER_BYTES_MAX = 64 * 2 ** 10;

export class SiteDigests {
  readonly #kept = new Map<string, Kept>();
  /** Origins that had digests of some video. */
  readonly #publishing = new Map<string, true>();
  readonly #platform: Platform;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** What to hold the bytes of the answer against. Undefined if nothing is known and nobody shall wait for the site. */
  checkFor(request: Request): SegmentCheck | undefined {
    const { range, allowFallback, decode, mayAskSite, purpose } = request;
    const { site, storage, video, file } = placeOf(request);
    const isPatient = allowFallback === true;
    // Whoever forbids the fallback does not want the site to be asked directly, unless told so.
    if (!video || !file || decode || (!isPatient && !mayAskSite)) return undefined;
    const kept = this.#keptOf(site, storage, video);
    this.#askFor(kept, `${site}/api/v1/videos/${video}`, file, mayAskSite);
    // A comparison holds the bytes against the site's own.
    if (purpose === "comparison") return undefined;
    const segments = kept.files?.get(file);
    const isWaiting = kept.asking !== undefined && !segments && (isPatient || this.#publishing.has(site));
    if (!isWaiting && !segments?.length) return undefined;
    const check = new SegmentCheck(range, this.#platform.hash);
    if (segments) check.learn(segments);
    else void kept.asking?.then(() => check.learn(kept.files?.get(file) ?? []));
    return check;
  }

  /**
   * Whether the digest of this segment is true: the site names it still, and its own bytes have it. A video whose
   * digests are wrong is not checked for a while. Undefined if the site does not answer.
   */
  async isTrue(request: Request, segment: Segment, signal: AbortSignal): Promise<boolean | undefined> {
    const { url, mayAskSite = always } = request;
    const { site, storage, video = "", file = "" } = placeOf(request);
    const kept = this.#keptOf(site, storage, video);
    try {
      kept.files = await this.#read(kept.address ?? "", mayAskSite, signal);
      if (!kept.files.get(file)?.some(({ start, sha256 }) => start === segment.start && sha256 === segment.sha256))
        return false;
      const { start, end } = segment;
      const range = end === Infinity ? undefined : { start, end };
      const bytes = await this.#bytesOf(url, range, mayAskSite, signal, SEGMENT_BYTES_MAX);
      const isRight = hexOf((this.#platform.hash ?? sha256)(bytes)) === segment.sha256;
      if (!isRight) kept.files = new Map();
      return isRight;
    } catch {
      return undefined;
    }
  }

  #keptOf(site: string, storage: string, video: string): Kept {
    const id = `${site} ${storage} ${video}`;
    const now = this.#platform.now();
    const known = this.#kept.get(id);
    const kept: Kept =
      known && now <= known.untilMs
        ? known
        : {
            storage,
            files: undefined,
            address: undefined,
            asking: undefined,
            askedMs: -Infinity,
            untilMs: now + KEPT_MS,
          };
    putLast(this.#kept, id, kept, KEPT_MAX);
    return kept;
  }

  /** Asks once a video, and again for a file that a live stream has added. */
  #askFor(kept: Kept, api: string, file: string, mayAsk: MayAsk = always): void {
    const now = this.#platform.now();
    const isNewOfLive = isLive(kept.files) && !kept.files?.has(file) && now - kept.askedMs >= LIVE_AGAIN_MS;
    if (kept.asking || (kept.files && !isNewOfLive)) return;
    kept.askedMs = now;
    kept.asking = this.#ask(kept, api, mayAsk).finally(() => (kept.asking = undefined));
  }

  /** Never rejects. */
  async #ask(kept: Kept, api: string, mayAsk: MayAsk): Promise<void> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), WAIT_MS);
    const { signal } = controller;
    const { origin } = new URL(api);
    const late = new Promise<never>((_, reject) =>
      signal.addEventListener("abort", () => reject(signal.reason as Error)),
    );
    const read = async (): Promise<Files> => {
      kept.address ??= addressIn(parsed(await this.#bytesOf(api, undefined, mayAsk, signal)), origin, kept.storage);
      if (kept.address === undefined) return new Map();
      return this.#read(kept.address, mayAsk, signal, kept.files && LIVE_ANSWER_BYTES_MAX);
    };
    try {
      kept.files = await Promise.race([read(), late]);
      if (countOf(kept.files) > 0) putLast(this.#publishing, origin, true, KEPT_MAX);
    } catch {
      if (kept.files) kept.askedMs += LIVE_PAUSE_MS;
      kept.files ??= new Map();
    } finally {
      clearTimeout(timer);
      late.catch(() => undefined);
      controller.abort();
    }
    this.#forgetOldest(kept);
  }

  #forgetOldest(newest: Kept): void {
    let count = [...this.#kept.values()].reduce((sum, { files }) => sum + countOf(files), 0);
    for (const [id, kept] of this.#kept) {
      if (count <= SEGMENTS_KEPT_MAX) return;
      if (kept === newest) continue;
      this.#kept.delete(id);
      count -= countOf(kept.files);
    }
  }

  async #read(address: string, mayAsk: MayAsk, signal: AbortSignal, bytesMax = ANSWER_BYTES_MAX): Promise<Files> {
    return segmentsIn(parsed(await this.#bytesOf(address, undefined, mayAsk, signal, bytesMax)));
  }

  /** Never follows a redirect: what another address says is not the site's word. */
  async #bytesOf(
    url: string,
    range: { start: number; end: number } | undefined,
    mayAsk: MayAsk,
    signal: AbortSignal,
    bytesMax = ANSWER_BYTES_MAX,
  ): Promise<Uint8Array> {
    if (!(await mayAsk(url))) throw new Error(`${url} must not be asked`);
    const { head, body } = await askerOf(this.#platform)({
      ...{ url, signal, range, headers: {}, decode: range === undefined, redirect: "error", cache: "no-cache" },
    });
    if (head.status !== (range ? 206 : 200)) throw new Error(`${url} answered ${head.status}`);
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of body) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > bytesMax) throw new Error(`${url} is longer than ${bytesMax} bytes`);
    }
    return joined(pieces);
  }
}

const always: MayAsk = () => Promise.resolve(true);
const parsed = (bytes: Uint8Array): unknown => JSON.parse(new TextDecoder().decode(bytes));
const countOf = (files: Files | undefined): number =>
  [...(files?.values() ?? [])].reduce((sum, { length }) => sum + length, 0);
const isLive = (files: Files | undefined): boolean =>
  [...(files?.values() ?? [])].some((segments) => segments.at(-1)?.end === Infinity);

/** The origins of the site and of the file. */
interface Place {
  site: string;
  storage: string;
  video: string | undefined;
  file: string | undefined;
}

function placeOf({ url, pageOrigin }: Pick<Request, "url" | "pageOrigin">): Place {
  const { pathname, origin: storage } = new URL(url);
  const isStored = pageOrigin !== undefined && pageOrigin !== storage && !ADDRESS.test(pathname);
  const [, video, file] = (isStored ? STORED : ADDRESS).exec(pathname) ?? [];
  return { site: isStored ? pageOrigin : storage, storage, video, file };
}

/** Where the digests are: at the site, or beside the file. What a third host says is not the site's word. */
function addressIn(about: unknown, site: string, storage: string): string | undefined {
  const { streamingPlaylists } = (about ?? {}) as { streamingPlaylists?: unknown };
  if (!Array.isArray(streamingPlaylists)) return undefined;
  return streamingPlaylists
    .map((one: { segmentsSha256Url?: unknown } | null) => one?.segmentsSha256Url)
    .filter((url) => typeof url === "string" && URL.canParse(url, site))
    .map((url) => new URL(url as string, site))
    .find(({ origin }) => origin === site || origin === storage)?.href;
}

/** The segments of each file in order. Whatever is no digest, or overlaps another, is left out. */
export function segmentsIn(json: unknown): Files {
  const files = new Map<string, Segment[]>();
  if (typeof json !== "object" || json === null) return files;
  for (const [file, ranges] of Object.entries(json)) {
    const whole = segmentOf(0, Infinity, ranges);
    if (whole) files.set(file, [whole]);
    if (typeof ranges !== "object" || ranges === null) continue;
    const segments = Object.entries(ranges as object)
      .map(([range, sha256]) => rangedSegment(range, sha256))
      .filter((one) => one !== undefined)
      .sort((a, b) => a.start - b.start);
    const apart: Segment[] = [];
    for (const one of segments) if (one.start > (apart.at(-1)?.end ?? -1)) apart.push(one);
    files.set(file, apart);
  }
  return files;
}

function rangedSegment(range: string, sha256: unknown): Segment | undefined {
  const [, first, last] = /^(\d{1,15})-(\d{1,15})$/.exec(range) ?? [];
  const [start, end] = [Number(first), Number(last)];
  return end >= start && end - start < SEGMENT_BYTES_MAX ? segmentOf(start, end, sha256) : undefined;
}

function segmentOf(start: number, end: number, sha256: unknown): Segment | undefined {
  const isGood = typeof sha256 === "string" && /^[0-9a-f]{64}$/i.test(sha256);
  return isGood ? { start, end, sha256: sha256.toLowerCase() } : undefined;
}
