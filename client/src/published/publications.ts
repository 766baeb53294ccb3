/**
 * Publications: the signed manifests of what was published at the client's own Origo, and the proxies that hold it.
 * An address under ORIGO/v/KEY/NAME/ names a file of one. A manifest counts only if KEY signed it, and a lower revision
 * than one that was seen never counts. Rules: docs/spec/publications.md §7.
 */
import { isPlaylist, Manifest, PublicationName, PublisherKey } from "@tributary/contract/publication-schema";
import { open } from "@tributary/contract/signed";
import { parseObjectId, type ObjectName } from "@tributary/contract/tree";
import { Directory } from "../directory";
import type { ActiveDownload, ModeResult } from "../active-download";
import { DownloadError, faultOf, messageOf } from "../errors";
import { putLast } from "../memory";
import type { Platform } from "../platform";
import type { Settings } from "../settings";
import { ObjectRequest } from "./object-request";
import { playlist } from "./playlist";
import type { SeenRevisions } from "./revisions";

/** So many publications are kept. */
const KEPT_MAX = 64;
/** A manifest is asked for again after this time. */
const MANIFEST_AGE_MS = 60_000;

export interface PublishedAddress {
  key: string;
  name: string;
  path: string;
}

/** A file of a publication, and the directory of its holders. */
export interface PublishedObject {
  object: ObjectName;
  type: string;
  isPlaylist: boolean;
  holders: Directory;
}

/** The manifest has no such file. */
const NOT_FOUND = { status: 404, headers: { "access-control-allow-origin": "*" }, totalBytes: 0 };

interface Kept {
  holders: Directory;
  manifest: Manifest | undefined;
}

export class Publications {
  readonly #kept = new Map<string, Kept>();

  readonly #origoUrl: string;
  readonly #platform: Platform;
  readonly #settings: Settings;
  readonly #clientId: string;
  readonly #seen: SeenRevisions;

  constructor(origoUrl: string, platform: Platform, settings: Settings, clientId: string, seen: SeenRevisions) {
    this.#origoUrl = origoUrl;
    this.#platform = platform;
    this.#settings = settings;
    this.#clientId = clientId;
    this.#seen = seen;
  }

  /** Undefined if the address is not one of a published file at this Origo. */
  addressOf(url: string): PublishedAddress | undefined {
    return publishedAddress(this.#origoUrl, url);
  }

  /** The file with this address; undefined if the publication has none. Rejects if no manifest can be believed. */
  async find({ key, name, path }: PublishedAddress): Promise<PublishedObject | undefined> {
    const { holders, manifest } = await this.#open(key, name, isPlaylist(path));
    const file = manifest.files.find((one) => one.path === path);
    const object = file && parseObjectId(file.object);
    return object && { object, type: file.type, isPlaylist: isPlaylist(path), holders };
  }

  /** `isNow`: a manifest that may be old is asked for again first, because Origo answers as its newest one says. */
  async #open(key: string, name: string, isNow: boolean): Promise<Kept & { manifest: Manifest }> {
    const id = `${key}/${name}`;
    const kept = this.#kept.get(id) ?? this.#make(key, name);
    putLast(this.#kept, id, kept, KEPT_MAX);
    const isGood = kept.manifest !== undefined && !(isNow && kept.holders.isOld);
    const problem = isGood ? undefined : await kept.holders.refresh();
    const { holders, manifest } = kept;
    if (manifest) return { holders, manifest };
    throw problem ? DownloadError.of(problem) : new DownloadError("manifestWrong", `${id} has no manifest`);
  }

  /**
   * Tells the download what it wants. Returns its holders, or the result if there is nothing to ask of them: Origo
   * answers playlists, and the manifest itself tells what does not exist.
   */
  async prepare(download: ActiveDownload, address: PublishedAddress): Promise<Directory | ModeResult> {
    try {
      const file = await this.find(address);
      if (!file) {
        download.setHead(NOT_FOUND, 0);
        return { kind: "complete" };
      }
      download.publisher = { key: address.key, name: address.name };
      const object = new ObjectRequest(file.object, file.type, download.request.range);
      download.wantObject(object);
      if (file.isPlaylist && !object.isDone) return await playlist(download);
      if (!object.isDone) return file.holders;
      download.setHead(object.head, 0);
      return { kind: "complete" };
    } catch (error) {
      return { kind: "failed", rejection: faultOf(error) };
    }
  }

  /** The token that opens this holder; undefined if it holds nothing that is kept here. */
  tokenFor(proxyId: string): string | undefined {
    return [...this.#kept.values()].find(({ holders }) => holders.list.some(({ id }) => id === proxyId))?.holders.token;
  }

  #make(key: string, name: string): Kept {
    const id = `${key}/${name}`;
    const take = async (answer: unknown): Promise<number> => {
      const { manifest: text, holders } = answer as { manifest?: unknown; holders?: unknown };
      const manifest = await open(String(text), key, Manifest).catch((error: unknown) => {
        throw new DownloadError("manifestWrong", `The manifest of ${name} cannot be believed: ${messageOf(error)}.`);
      });
      const seen = await this.#seen.highest(id);
      const fault = manifestFault(manifest, { key, name }, seen, this.#seen.file);
      if (fault !== undefined) throw new DownloadError("manifestWrong", fault);
      kept.manifest = manifest;
      await this.#seen.note(id, manifest.revision);
      return Number(holders);
    };
    const settings = this.#settings;
    const kept: Kept = {
      manifest: undefined,
      holders: new Directory(this.#origoUrl, this.#platform, settings, undefined, this.#clientId, {
        path: `/v1/publications/${key}/${name}`,
        ageMs: MANIFEST_AGE_MS,
        take,
      }),
    };
    return kept;
  }
}

function manifestFault(
  { key, name, revision }: Manifest,
  wanted: { key: string; name: string },
  seen: number,
  file: string | undefined,
): string | undefined {
  if (key !== wanted.key || name !== wanted.name)
    return `The manifest is of another publication: got ${key}/${name}, expected ${wanted.key}/${wanted.name}.`;
  if (revision >= seen) return undefined;
  const remedy = file === undefined ? "" : ` If its publisher has begun anew, remove ${file}.`;
  return `The manifest of ${name} is an old one: got revision ${revision}, seen ${seen}.${remedy}`;
}

/** The parts of the address of a published file at this Origo; undefined if it is none. */
export function publishedAddress(origoUrl: string, url: string): PublishedAddress | undefined {
  const prefix = `${origoUrl}/v/`;
  const { origin, pathname } = new URL(url);
  const href = origin + pathname;
  if (!href.startsWith(new URL(prefix).href)) return undefined;
  const [key = "", name = "", ...parts] = href.slice(new URL(prefix).href.length).split("/");
  const path = decoded(parts.join("/"));
  const isGood = PublisherKey.safeParse(key).success && PublicationName.safeParse(name).success;
  return isGood && path ? { key, name, path } : undefined;
}

function decoded(path: string): string | undefined {
  try {
    return decodeURIComponent(path);
  } catch {
    return undefined;
  }
}
