/**
 * SiteDigests: the SHA-256 digests that a PeerTube site publishes of the segments of its videos. The client asks the
 * site itself for them, once a video: its API names a JSON of digests by file and byte range. Digests of live streams
 * are not read. Rules: docs/adr/0014.
 */
import { joined } from "@tributary/contract/tree";
import { putLast } from "../memory";
import { askerOf } from "../origin-fetch";
import type { Platform } from "../platform";
import type { Request } from "../request";
import { SegmentCheck, type Segment } from "./segment-check";

type Files = ReadonlyMap<string, readonly Segment[]>;

interface Kept {
  files: Promise<Files>;
  untilMs: number;
}

/** The file of a public video. */
const ADDRESS = /^\/static\/streaming-playlists\/hls\/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\/([^/]+\.mp4)$/i;
const KEPT_MAX = 64;
const KEPT_MS = 600_000;
/** A download waits so long for the digests, and then does without. */
const WAIT_MS = 3000;
const ANSWER_BYTES_MAX = 4 * 2 ** 20;
/** The client holds a segment until its digest is known. It does not check longer ones. */
const SEGMENT_BYTES_MAX = 16 * 2 ** 20;

export class SiteDigests {
  readonly #kept = new Map<string, Kept>();
  readonly #platform: Platform;

  constructor(platform: Platform) {
    this.#platform = platform;
  }

  /** What to hold the bytes of the answer against. Undefined if the site publishes nothing about them. */
  async checkFor({ url, range, allowFallback, decode }: Request): Promise<SegmentCheck | undefined> {
    const { pathname, origin } = new URL(url);
    const [, video, file] = ADDRESS.exec(pathname) ?? [];
    // Whoever forbids the fallback does not want the site to be asked directly.
    if (!video || !file || allowFallback !== true || decode) return undefined;
    const segments = (await this.#filesOf(origin, video)).get(file) ?? [];
    return segments.length === 0 ? undefined : new SegmentCheck(segments, range, this.#platform.hash);
  }

  #filesOf(origin: string, video: string): Promise<Files> {
    const id = `${origin} ${video}`;
    const now = this.#platform.now();
    let kept = this.#kept.get(id);
    if (!kept || kept.untilMs < now)
      kept = { files: this.#ask(origin, video).catch(() => new Map()), untilMs: now + KEPT_MS };
    putLast(this.#kept, id, kept, KEPT_MAX);
    return kept.files;
  }

  async #ask(origin: string, video: string): Promise<Files> {
    const controller = new AbortController();
    const timer = setTimeout(() => controller.abort(), WAIT_MS);
    try {
      const about = await this.#json(`${origin}/api/v1/videos/${video}`, controller.signal);
      const address = addressIn(about, origin);
      return address === undefined ? new Map() : segmentsIn(await this.#json(address, controller.signal));
    } finally {
      clearTimeout(timer);
      controller.abort();
    }
  }

  async #json(url: string, signal: AbortSignal): Promise<unknown> {
    const { head, body } = await askerOf(this.#platform)({
      ...{ url, signal, range: undefined, headers: {}, decode: true, cache: "default" },
    });
    if (head.status !== 200) throw new Error(`${url} answered ${head.status}`);
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of body) {
      pieces.push(piece);
      bytes += piece.length;
      if (bytes > ANSWER_BYTES_MAX) throw new Error(`${url} is longer than ${ANSWER_BYTES_MAX} bytes`);
    }
    return JSON.parse(new TextDecoder().decode(joined(pieces)));
  }
}

/** Where the digests are. What another host says is not the site's word. */
function addressIn(about: unknown, origin: string): string | undefined {
  const { streamingPlaylists } = (about ?? {}) as { streamingPlaylists?: unknown };
  if (!Array.isArray(streamingPlaylists)) return undefined;
  return streamingPlaylists
    .map((one: { segmentsSha256Url?: unknown } | null) => one?.segmentsSha256Url)
    .filter((url) => typeof url === "string" && URL.canParse(url, origin))
    .map((url) => new URL(url as string, origin))
    .find((url) => url.origin === origin)?.href;
}

/** The segments of each file in order. Whatever is no digest of a byte range, or overlaps another, is left out. */
export function segmentsIn(json: unknown): Files {
  const files = new Map<string, Segment[]>();
  if (typeof json !== "object" || json === null) return files;
  for (const [file, ranges] of Object.entries(json)) {
    if (typeof ranges !== "object" || ranges === null) continue;
    const segments = Object.entries(ranges as object)
      .map(([range, sha256]) => segmentOf(range, sha256))
      .filter((one) => one !== undefined)
      .sort((a, b) => a.start - b.start);
    const apart: Segment[] = [];
    for (const one of segments) if (one.start > (apart.at(-1)?.end ?? -1)) apart.push(one);
    files.set(file, apart);
  }
  return files;
}

function segmentOf(range: string, sha256: unknown): Segment | undefined {
  const [, first, last] = /^(\d{1,15})-(\d{1,15})$/.exec(range) ?? [];
  const [start, end] = [Number(first), Number(last)];
  const isGood = end >= start && end - start < SEGMENT_BYTES_MAX && typeof sha256 === "string";
  return isGood && /^[0-9a-f]{64}$/i.test(sha256) ? { start, end, sha256: sha256.toLowerCase() } : undefined;
}
