/** Opens a DASH manifest, and reads it again for a live stream. */
import { parseDash, type DashManifest, type DashPart } from "./dash";
import { describeFile, loadPlaylist, shown, type Loader, type Playlist } from "./load";
import { VideoError, type Presentation, type Rendition, type Segment, type SegmentList } from "./presentation";

/** A file that the manifest does not cut into segments is fetched in pieces of this size. */
const PIECE_BYTES = 4 << 20;
/** Tracks that are read within this time have the same manifest. */
const MANIFEST_MS = 500;

export function openDash(loader: Loader, playlist: Playlist): Presentation {
  const source = new ManifestSource(loader, playlist);
  const { renditions } = source.first;
  if (renditions.length === 0) throw new VideoError(`${shown(playlist.url)} names no tracks.`);
  const ofKind = (wanted: Rendition["kind"]): Rendition[] =>
    renditions
      .filter(({ kind }) => kind === wanted)
      .map(({ parts: _parts, protection, id, ...rendition }) => ({
        ...rendition,
        load: async () => {
          if (protection !== undefined)
            throw new VideoError(`The video is encrypted with ${protection}. This program has no keys for that.`);
          return listOf(loader, await source.next(id), id, playlist.url);
        },
      }));
  const [pictures, sounds, subtitles] = [ofKind("video"), ofKind("audio"), ofKind("subtitles")];
  return pictures.length > 0 ? { pictures, sounds, subtitles } : { pictures: sounds, sounds: [], subtitles };
}

/** Gives each track the manifest that is there first, and then newer ones. */
class ManifestSource {
  readonly first: DashManifest;
  readonly #loader: Loader;
  readonly #read = new Set<string>();
  #url: string;
  #newest: Promise<DashManifest>;
  #readMs = 0;

  constructor(loader: Loader, playlist: Playlist) {
    this.#loader = loader;
    this.first = manifestOf(playlist);
    this.#url = this.first.location ?? playlist.url;
    this.#newest = Promise.resolve(this.first);
  }

  next(id: string): Promise<DashManifest> {
    if (!this.#read.has(id)) {
      this.#read.add(id);
      return Promise.resolve(this.first);
    }
    if (performance.now() - this.#readMs > MANIFEST_MS) {
      this.#readMs = performance.now();
      this.#newest = loadPlaylist(this.#loader, this.#url).then(manifestOf);
      this.#newest.then(
        ({ location }) => (this.#url = location ?? this.#url),
        () => undefined,
      );
    }
    return this.#newest;
  }
}

function manifestOf({ text, url, clockOffsetMs }: Playlist): DashManifest {
  const manifest = parseDash(text, url, Date.now() + clockOffsetMs);
  return manifest.location === undefined
    ? manifest
    : { ...manifest, location: new URL(manifest.location.trim(), url).href };
}

/** A track without an address of its own has inherited the manifest's. */
async function listOf(loader: Loader, manifest: DashManifest, id: string, ownUrl: string): Promise<SegmentList> {
  const rendition = manifest.renditions.find((each) => each.id === id);
  if (!rendition) throw new VideoError(`The manifest names no track ${JSON.stringify(id)} any longer.`);
  if (rendition.parts.some((part) => "wholeUrl" in part && part.wholeUrl === ownUrl))
    throw new VideoError(`The manifest names no address for the track ${JSON.stringify(id)}.`);
  const parts = await Promise.all(rendition.parts.map((part, stretch) => segmentsOf(loader, part, stretch)));
  const { isLive, isFromStart, refreshSec } = manifest;
  return { segments: parts.flat(), isLive, isFromStart, refreshSec };
}

/** A file without a list becomes pieces of equal length. Their seconds are a guess, for the progress. */
async function segmentsOf(loader: Loader, part: DashPart, stretch: number): Promise<Segment[]> {
  if ("segments" in part) return part.segments;
  const { wholeUrl: url, startSec, durationSec, init } = part;
  const { version, hasRanges } = await describeFile(loader, url);
  const bytes = hasRanges ? version.bytes : undefined;
  const count = bytes === undefined ? 1 : Math.max(1, Math.ceil(bytes / PIECE_BYTES));
  return Array.from({ length: count }, (_, index) => {
    const start = index * PIECE_BYTES;
    const position = startSec + (index * durationSec) / count;
    return {
      url,
      ...(bytes === undefined ? {} : { range: { start, end: Math.min(start + PIECE_BYTES, bytes) - 1 } }),
      position,
      nextPosition: position + durationSec / count,
      durationSec: durationSec / count,
      stretch,
      isGap: false,
      ...(init ? { init } : {}),
    };
  });
}
