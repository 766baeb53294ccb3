/**
 * Publications: what is published, where its objects go, and which proxies a client is sent to. The list is in memory
 * and read again after each change, here or at another Origo. Manifests are read from the store when they are needed.
 */
import {
  isPlaylist,
  Manifest,
  type PublicationRow,
  type LibraryProxy,
  type ServedReport,
} from "@tributary/contract/publication-schema";
import type { FleetProxy } from "@tributary/contract/schema";
import { parseObjectId } from "@tributary/contract/tree";
import { unchecked } from "@tributary/contract/signed";
import type { Configuration } from "./configuration";
import type { Holders } from "./holders";
import { Refusal } from "./http";
import type { Publishers } from "./publishers";
import type { Registry } from "./registry";
import { inOrder } from "./selection";
import {
  PublicationFault,
  type PublicationKey,
  type PublicationStore,
  type Revision,
  type StoredPublication,
} from "./store/publication-store";

/** Parsed manifests in memory, by the bytes of their text. */
const MANIFEST_BYTES_MAX = 64 * 1024 * 1024;
/** A revision that is pending for this long is dropped. */
const PENDING_MS_MAX = 86_400_000;
/** A release waits this long for the reports of proxies that have just taken objects. */
const REPORTS_MS_MAX = 10_000;
const REPORTS_LOOK_MS = 100;
/** Objects that are looked up in the store at once. */
const LOOKUP_OBJECTS = 1000;

export interface PublicationsOptions {
  store: PublicationStore;
  publishers: Publishers;
  holders: Holders;
  registry: Registry;
  configuration: Pick<Configuration, "value">;
  nowMs: () => number;
  rng: () => number;
  /** Tells a proxy of objects that no publication has. */
  forget: (proxyId: string, objects: string[]) => void;
  /** Something was published or unpublished here. */
  onChange: () => void;
}

/** A file as Origo serves it. */
interface File {
  type: string;
  object: string;
}

export interface Published {
  revision: number;
  /** As the publisher signed it. */
  manifest: string;
  files: ReadonlyMap<string, File>;
  /** The distinct objects that proxies hold. */
  objects: readonly string[];
  /** Counts the redirects, so that holders take turns. */
  turns: number;
  held?: { version: number; ids: string[] };
}

export class Publications {
  #all: StoredPublication[] = [];
  #byName = new Map<string, StoredPublication[]>();
  /** By key, name and revision; the one that was used longest ago comes first. */
  readonly #manifests = new Map<string, Promise<Published | undefined>>();
  readonly #sizes = new Map<string, number>();
  #manifestBytes = 0;
  #sweeping: Promise<void> = Promise.resolve();

  readonly #options: PublicationsOptions;

  constructor(options: PublicationsOptions) {
    this.#options = options;
  }

  /** Reads what is stored. If a revision is gone, proxies are told of the objects that nothing needs any more. */
  async refresh(): Promise<void> {
    const before = new Set(this.#all.map(nameOfRevision));
    this.#all = await this.#options.store.all();
    this.#byName = new Map();
    for (const publication of this.#all) {
      const name = nameOf(publication);
      this.#byName.set(name, [...(this.#byName.get(name) ?? []), publication]);
      before.delete(nameOfRevision(publication));
    }
    for (const gone of before) this.#drop(gone);
    if (before.size > 0) this.#sweeping = this.#sweeping.then(() => this.#sweep()).catch(() => undefined);
  }

  /** Drops what was pending for too long. */
  async dropPending(): Promise<void> {
    const dropped = await this.#options.store.dropPending(this.#options.nowMs() - PENDING_MS_MAX);
    if (dropped > 0) await this.#changed();
  }

  list(): readonly StoredPublication[] {
    return this.#all;
  }

  /** Stores a pending revision, and chooses its proxies. Throws a Refusal. */
  async begin(manifest: Manifest, text: string): Promise<LibraryProxy[]> {
    const { store, publishers, configuration, nowMs } = this.#options;
    const { key, name, revision, files } = manifest;
    const objects = objectsOf(manifest);
    const bytes = sumOf(objects.map(({ id }) => id));
    const proxies = this.#choose(
      objects.filter((object) => !object.isPlaylist).map(({ id }) => id),
      new Set(this.#find(manifest)?.proxies),
    );
    const limits = {
      publications: configuration.value("origo.publicationsPerPublisher"),
      bytes: publishers.quotaOf(key),
      files: configuration.value("origo.publisherFiles"),
      playlistBytes: configuration.value("origo.publisherPlaylistBytes"),
    };
    const ids = proxies.map(({ id }) => id);
    const row = { key, name, revision, manifest: text, files: files.length, bytes, objects, proxies: ids };
    await store.begin({ ...row, atMs: nowMs() }, limits).catch(refuse);
    await this.#changed();
    return proxies;
  }

  /** The proxies that are to hold a revision's objects. Throws a Refusal if one of the objects is none of its own. */
  async grantees(revision: Revision, objects: readonly string[]): Promise<string[]> {
    const publication = await this.#known(revision);
    const published = await this.#read(revision);
    if (published === undefined) throw unknownRevision(revision);
    const own = new Set(published.objects);
    const other = objects.find((object) => !own.has(object));
    if (other !== undefined) {
      const message = `objects: ${other} is no object of ${revision.name} that a proxy takes`;
      throw new Refusal(400, { kind: "badField", field: "objects", message });
    }
    return publication.proxies;
  }

  /** Releases a revision if a live proxy holds each of its objects. Throws a Refusal. */
  async release(revision: Revision): Promise<void> {
    const { store, nowMs } = this.#options;
    await this.#known(revision);
    const published = await this.#read(revision);
    if (published === undefined) throw unknownRevision(revision);
    const playlists = await store.missingPlaylists(revision);
    if (playlists.length > 0) throw objectsMissing(playlists, "Origo does not have");
    for (let waitedMs = 0; ; waitedMs += REPORTS_LOOK_MS) {
      const missing = this.#missing(published.objects);
      if (missing.length === 0) break;
      if (waitedMs >= REPORTS_MS_MAX) throw objectsMissing(missing, "no live proxy holds");
      await new Promise((resolve) => setTimeout(resolve, REPORTS_LOOK_MS));
    }
    if (!(await store.release(revision, nowMs()))) throw unknownRevision(revision);
    await this.#changed();
  }

  /** Throws a Refusal if there is no such publication. */
  async unpublish(publication: PublicationKey): Promise<void> {
    if (!(await this.#options.store.unpublish(publication))) throw unknownName(publication);
    await this.#changed();
  }

  /** The released revision. */
  released(publication: PublicationKey): Promise<Published | undefined> {
    const row = this.#byName.get(nameOf(publication))?.find(({ state }) => state === "released");
    return row === undefined ? Promise.resolve(undefined) : this.#read(row);
  }

  /** The manifest of a revision, as its publisher signed it. */
  async manifestOf(revision: Revision): Promise<string | undefined> {
    return (await this.#read(revision))?.manifest;
  }

  /** The ids of the live proxies that hold all objects of a publication. */
  holdersOf(published: Published): string[] {
    const { holders, registry, nowMs } = this.#options;
    if (published.held?.version !== holders.version) {
      const counts = holders.count(published.objects);
      const ids = [...counts].filter(([, count]) => count === published.objects.length).map(([id]) => id);
      published.held = { version: holders.version, ids };
    }
    return registry.usable(published.held.ids, nowMs());
  }

  /** A live proxy that holds the object, another one from call to call. */
  holderOf(published: Published, object: string): FleetProxy | undefined {
    const { holders, registry, nowMs } = this.#options;
    const ids = registry.usable(holders.of(object), nowMs()).sort();
    const id = ids[published.turns++ % ids.length];
    return id === undefined ? undefined : registry.find(id, nowMs());
  }

  /** As its publisher and the dashboard see it. */
  async describe(publication: StoredPublication, base: string): Promise<PublicationRow> {
    const { key, name, revision, state, files, bytes, atMs } = publication;
    const [published, servedBytes] = await Promise.all([
      this.#read(publication),
      this.#options.store.servedBytes(publication),
    ]);
    const { registry, nowMs } = this.#options;
    const holders = published === undefined ? [] : this.holdersOf(published);
    return {
      key,
      name,
      revision,
      state,
      files,
      bytes,
      servedBytes,
      holders: holders
        .map((id) => ({ id, name: registry.find(id, nowMs())?.name ?? id }))
        .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0)),
      missingObjects: published === undefined ? 0 : this.#missing(published.objects).length,
      atMs,
      address: addressOf(base, publication),
      embed: addressOf(base, publication),
    };
  }

  /** Of the objects that a proxy has, those that it may evict. */
  unwantedAmong(objects: readonly string[]): Promise<string[]> {
    return this.#options.store.unwantedAmong(objects);
  }

  countServed(proxyId: string, report: ServedReport): Promise<void> {
    return this.#options.store.countServed(proxyId, report);
  }

  #find({ key, name, revision }: Revision): StoredPublication | undefined {
    return this.#byName.get(nameOf({ key, name }))?.find((each) => each.revision === revision);
  }

  /** It may have begun at another Origo a moment ago. Throws a Refusal if there is no such revision. */
  async #known(revision: Revision): Promise<StoredPublication> {
    if (this.#find(revision) === undefined) await this.refresh();
    const found = this.#find(revision);
    if (found === undefined) throw unknownRevision(revision);
    return found;
  }

  async #changed(): Promise<void> {
    await this.refresh();
    this.#options.onChange();
  }

  /** Live proxies with a library and room for what they lack; the ones that have more of it first. */
  #choose(objects: readonly string[], before: ReadonlySet<string>): LibraryProxy[] {
    const { registry, holders, configuration, nowMs, rng } = this.#options;
    const libraries = registry.fleet(nowMs()).filter(({ state, status }) => state === "live" && status?.library);
    const held = new Map<string, number>();
    for (const object of objects)
      for (const id of holders.of(object)) held.set(id, (held.get(id) ?? 0) + bytesOf(object));
    const needed = sumOf(objects);
    const lacks = ({ id, status }: FleetProxy): number =>
      needed - (held.get(id) ?? 0) - (status?.library?.freeBytes ?? 0);
    const roomy = libraries.filter((proxy) => lacks(proxy) <= 0 || before.has(proxy.id));
    if (roomy.length === 0 && objects.length > 0) throw noRoom(libraries, needed);
    const ordered = inOrder(roomy, { select: "operators", nearKm: 0 }, rng);
    const rank = ({ id }: FleetProxy): number => (before.has(id) ? Infinity : (held.get(id) ?? 0));
    return ordered
      .map((proxy, index) => ({ proxy, index }))
      .sort((a, b) => compare(rank(b.proxy), rank(a.proxy)) || a.index - b.index)
      .slice(0, configuration.value("origo.copies"))
      .map(({ proxy: { id, name, url, status } }) => ({ id, name, url, freeBytes: status?.library?.freeBytes ?? 0 }));
  }

  /** The objects that no live proxy holds. */
  #missing(objects: readonly string[]): string[] {
    const { holders, registry, nowMs } = this.#options;
    return objects.filter((object) => registry.usable(holders.of(object), nowMs()).length === 0);
  }

  async #read(revision: Revision): Promise<Published | undefined> {
    const name = nameOfRevision(revision);
    const known = this.#manifests.get(name);
    this.#manifests.delete(name);
    const reading = known ?? this.#parse(revision);
    this.#manifests.set(name, reading);
    const published = await reading.catch((error: Error) => {
      this.#drop(name);
      throw error;
    });
    if (published === undefined) this.#drop(name);
    else if (!this.#sizes.has(name) && this.#manifests.has(name)) {
      this.#sizes.set(name, published.manifest.length);
      this.#manifestBytes += published.manifest.length;
      for (const oldest of this.#manifests.keys()) {
        if (this.#manifestBytes <= MANIFEST_BYTES_MAX || oldest === name) break;
        this.#drop(oldest);
      }
    }
    return published;
  }

  async #parse(revision: Revision): Promise<Published | undefined> {
    const text = await this.#options.store.manifest(revision);
    if (text === undefined) return undefined;
    const manifest = Manifest.parse(unchecked(text));
    const files = new Map(manifest.files.map(({ path, type, object }) => [path, { type, object }]));
    const objects = objectsOf(manifest).filter((object) => !object.isPlaylist);
    return { revision: manifest.revision, manifest: text, files, objects: objects.map(({ id }) => id), turns: 0 };
  }

  #drop(name: string): void {
    this.#manifests.delete(name);
    this.#manifestBytes -= this.#sizes.get(name) ?? 0;
    this.#sizes.delete(name);
  }

  /** Tells the proxies that are connected here of the objects that no publication has. */
  async #sweep(): Promise<void> {
    const { registry, holders, store, forget } = this.#options;
    for (const id of registry.connectedIds()) {
      const objects = [...holders.objectsOf(id)];
      for (let at = 0; at < objects.length; at += LOOKUP_OBJECTS) {
        const unwanted = await store.unwantedAmong(objects.slice(at, at + LOOKUP_OBJECTS));
        if (unwanted.length > 0) forget(id, unwanted);
      }
    }
  }
}

export const addressOf = (base: string, { key, name }: PublicationKey): string => `${base}/v/${key}/${name}/`;

const nameOf = ({ key, name }: PublicationKey): string => `${key}/${name}`;
const nameOfRevision = ({ key, name, revision }: Revision): string => `${key}/${name}/${revision}`;
const bytesOf = (object: string): number => parseObjectId(object)?.bytes ?? 0;
const sumOf = (objects: readonly string[]): number =>
  [...new Set(objects)].reduce((sum, object) => sum + bytesOf(object), 0);
const compare = (a: number, b: number): number => (a < b ? -1 : a > b ? 1 : 0);

/** The distinct objects. One that is a playlist and something else is there twice. */
function objectsOf({ files }: Manifest): { id: string; isPlaylist: boolean }[] {
  const objects = new Map(
    files.map(({ path, object }) => [`${object} ${isPlaylist(path)}`, { id: object, isPlaylist: isPlaylist(path) }]),
  );
  return [...objects.values()];
}

function refuse(error: Error): never {
  if (!(error instanceof PublicationFault)) throw error;
  const { kind, message, got, limit } = error;
  throw new Refusal(409, {
    kind,
    message,
    ...(got === undefined ? {} : { got }),
    ...(limit === undefined ? {} : { limit }),
  });
}

const unknownRevision = ({ name, revision }: Revision): Refusal =>
  new Refusal(404, { kind: "notFound", message: `this publisher has no revision ${revision} of ${name}` });

const unknownName = ({ key, name }: PublicationKey): Refusal =>
  new Refusal(404, { kind: "notFound", message: `the publisher ${key} has published nothing as ${name}` });

function objectsMissing(objects: readonly string[], who: string): Refusal {
  const more = objects.length > 1 ? ` and ${objects.length - 1} more` : "";
  const message = `${who} the object ${objects[0]}${more}: upload what is missing and release again`;
  return new Refusal(409, { kind: "objectsMissing", message, got: objects.length, limit: 0 });
}

function noRoom(libraries: readonly FleetProxy[], needed: number): Refusal {
  const free = libraries.map(({ status }) => status?.library?.freeBytes ?? 0);
  const message =
    libraries.length === 0
      ? "no live proxy has a library: start proxies with --library"
      : `no proxy has room for ${needed} bytes: the most that one has free is ${Math.max(...free)}`;
  return new Refusal(503, { kind: "noRoom", message, got: needed }, { "Retry-After": "30" });
}
