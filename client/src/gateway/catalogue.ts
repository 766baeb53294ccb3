/**
 * Catalogue: what the gateway has learned about addresses. Playlists name segments, keys and other playlists. The
 * origin's answers tell which addresses are large media files, and how long they are. Bounded, and only in memory.
 */
import { putLast } from "../memory";

/** `segment`: a playlist names it as media. `file`: the origin answered with media. `small`: a playlist or a key. */
export type AddressKind = "segment" | "file" | "small";

/** A large media file, as the origin told it. */
export interface MediaFile {
  resourceBytes: number;
  etag: string | undefined;
}

const PLACES_MAX = 4096;
const FILES_MAX = 256;
/** Text is small. It also may be a list of addresses, which proxies must not see. */
const SMALL_PATH = /\.(?:m3u8?|mpd|key|vtt|webvtt|srt|ttml|dfxp|xml|json|html?)$/i;

interface Place {
  root: string;
  /** Addresses in the folders below count too. */
  isDeep: boolean;
}

export class Catalogue {
  /** Folder and file extension of segments. */
  readonly #segments = new Map<string, Place>();
  readonly #small = new Map<string, { root: string }>();
  readonly #files = new Map<string, MediaFile>();

  /** A playlist of `root` has a segment at `url`. */
  noteSegment(url: URL, root: URL): void {
    this.#noteSegments(keyOf(folderOf(url.pathname), url), false, root);
  }

  /** A manifest of `root` makes the addresses of segments from `template`, which has names between dollar signs. */
  noteTemplate(template: URL, root: URL): void {
    const literal = template.pathname.split("$")[0]!;
    this.#noteSegments(keyOf(folderOf(literal), template), true, root);
  }

  /** A playlist of `root` names the playlist or key at `url`. */
  noteSmall(url: URL, root: URL): void {
    putLast(this.#small, url.href, { root: this.rootOf(root) }, PLACES_MAX);
  }

  noteFile(url: URL, file: MediaFile): void {
    putLast(this.#files, url.href, file, FILES_MAX);
  }

  forgetFile(url: URL): void {
    this.#files.delete(url.href);
  }

  kindOf(url: URL): AddressKind | undefined {
    if (this.#small.has(url.href) || SMALL_PATH.test(url.pathname)) return "small";
    if (this.#placeOf(url)) return "segment";
    return this.#files.has(url.href) ? "file" : undefined;
  }

  fileOf(url: URL): MediaFile | undefined {
    return this.#files.get(url.href);
  }

  /** The address that the player opened first: the playlist that led to `url`, or `url` itself. */
  rootOf(url: URL): string {
    return this.#small.get(url.href)?.root ?? this.#placeOf(url)?.root ?? url.href;
  }

  #noteSegments(key: string, isDeep: boolean, root: URL): void {
    putLast(this.#segments, key, { root: this.rootOf(root), isDeep }, PLACES_MAX);
  }

  #placeOf(url: URL): Place | undefined {
    let folder = folderOf(url.pathname);
    const own = this.#segments.get(keyOf(folder, url));
    if (own) return own;
    while (folder !== "/" && folder !== "") {
      folder = folderOf(folder.slice(0, -1));
      const place = this.#segments.get(keyOf(folder, url));
      if (place?.isDeep) return place;
    }
    return undefined;
  }
}

function folderOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/") + 1);
}

function keyOf(folder: string, { origin, pathname }: URL): string {
  const name = pathname.slice(pathname.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return `${origin}${folder} ${dot < 0 ? "" : name.slice(dot)}`;
}
