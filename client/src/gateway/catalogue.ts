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

/** Playlists that name one and the same playlist. */
const ROOTS_MAX = 8;
const PLACES_MAX = 4096;
const FILES_MAX = 256;
const TEMPLATES_MAX = 256;
/** Some 200 KB of text for each thousand. A film of two hours in six qualities has 20,000. */
const NAMED_MAX = 32_768;
/** Text is small. It also may be a list of addresses, which proxies must not see. */
const SMALL_PATH = /\.(?:m3u8?|mpd|key|vtt|webvtt|srt|ttml|dfxp|xml|json|html?)$/i;

interface Named {
  /** The playlists that lead there, the one that was read last first. */
  roots: readonly string[];
}

interface Place extends Named {
  /** Addresses in the folders below count too. */
  isDeep: boolean;
}

export class Catalogue {
  /** Folder and file extension of segments. */
  readonly #segments = new Map<string, Place>();
  /** The segments that playlists name one by one. Playlists of several videos may share a folder. */
  readonly #named = new Map<string, Named>();
  /** What the addresses of a template begin with. */
  readonly #templates = new Map<string, Named>();
  readonly #small = new Map<string, Named>();
  readonly #files = new Map<string, MediaFile>();

  /** A playlist of `root` has a segment at `url`. */
  noteSegment(url: URL, root: URL): void {
    this.#noteSegments(keyOf(folderOf(url.pathname), url), false, root);
    this.#note(this.#named, url.href, root, NAMED_MAX);
  }

  /** A manifest of `root` makes the addresses of segments from `template`, which has names between dollar signs. */
  noteTemplate(template: URL, root: URL): void {
    const literal = template.pathname.split("$")[0]!;
    this.#noteSegments(keyOf(folderOf(literal), template), true, root);
    this.#note(this.#templates, template.origin + literal, root, TEMPLATES_MAX);
  }

  /** A playlist of `root` names the playlist or key at `url`. */
  noteSmall(url: URL, root: URL): void {
    this.#note(this.#small, url.href, root, PLACES_MAX);
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

  /** What a player may have opened first: the playlists that led to `url`, the latest first, or `url` itself. */
  rootsOf(url: URL): readonly string[] {
    const named = this.#small.get(url.href) ?? this.#named.get(url.href);
    return (named ?? this.#templateOf(url) ?? this.#placeOf(url))?.roots ?? [url.href];
  }

  /** The template with the longest beginning that is the address's. */
  #templateOf({ origin, pathname }: URL): Named | undefined {
    const fits = [...this.#templates.keys()].filter((beginning) => (origin + pathname).startsWith(beginning));
    const longest = fits.reduce((best, each) => (each.length > best.length ? each : best), "");
    return this.#templates.get(longest);
  }

  #note(names: Map<string, Named>, key: string, root: URL, max: number): void {
    const known = names.get(key)?.roots ?? [];
    const latest = this.rootsOf(root);
    const roots = [...latest, ...known.filter((each) => !latest.includes(each))].slice(0, ROOTS_MAX);
    putLast(names, key, { roots }, max);
  }

  #noteSegments(key: string, isDeep: boolean, root: URL): void {
    putLast(this.#segments, key, { roots: this.rootsOf(root), isDeep }, PLACES_MAX);
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
