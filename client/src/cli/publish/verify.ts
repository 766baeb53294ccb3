/** Fetches each object of a publication from every proxy that holds it, and compares with what was signed. */
import { randomUUID } from "node:crypto";
import { CLIENT_HEADER, CONNECTIONS_MAX } from "@tributary/contract";
import {
  isPlaylist,
  Manifest,
  PublicationName,
  PublisherKey,
  type PublicationResponse,
  type PublishedFile,
} from "@tributary/contract/publication-schema";
import { open as openSigned } from "@tributary/contract/signed";
import { LeafMaker, objectId, parseObjectId } from "@tributary/contract/tree";
import { messageOf } from "../../errors";
import { Exit, STATUS } from "../exit";
import { Progress } from "../progress";
import { stopped } from "../signals";
import { rootOf, sha256 } from "./digest";
import { HttpFault, open, withRetries } from "./http";
import { OrigoLink } from "./origo";
import { escaped } from "./playlists";

const PARALLEL = 2;
const RETRIES = 3;
/** A new token, for another client, opens the proxies again. */
const TOKEN_KINDS = ["budgetSpent", "tokenExpired", "tokenMissing", "tokenRefused"];

export interface Named {
  origo: string;
  key: string;
  name: string;
}

/** `ORIGO/v/KEY/NAME/...`. Undefined: it is no address. */
export function parseAddress(text: string): Named | undefined {
  if (!/^https?:\/\//i.test(text)) return undefined;
  const [, origo, key, name] = /^(.*?)\/v\/([^/]+)\/([^/?#]+)/.exec(text) ?? [];
  if (origo !== undefined && PublisherKey.safeParse(key).success && PublicationName.safeParse(name).success)
    return { origo, key: key!, name: name! };
  throw new Exit(STATUS.usage, `${text} is no address of a publication: ORIGO/v/KEY/NAME/...`);
}

/** What one place has of the publication's objects. */
export interface Checked {
  /** Of a proxy, or `Origo` for the playlists. */
  holder: string;
  url: string;
  objects: number;
  bytes: number;
  /** Paths of files. */
  missing: string[];
  wrong: string[];
  /** Why the place could not be asked to the end. */
  error?: string;
}

export interface Verified extends Named {
  revision: number;
  files: number;
  holders: Checked[];
}

export const isFaulty = ({ missing, wrong, error }: Checked): boolean =>
  missing.length + wrong.length > 0 || error !== undefined;

export async function verify({ origo: url, key, name }: Named, isQuiet: boolean): Promise<Verified> {
  const origo = new OrigoLink(url);
  const answer = await ask(origo, key, name);
  const manifest = await openSigned(answer.manifest, key, Manifest).catch((error: unknown) => {
    throw new Exit(STATUS.failed, `Origo's manifest of ${name} is false: ${messageOf(error)}.`);
  });
  if (manifest.name !== name)
    throw new Exit(STATUS.failed, `Origo's manifest of ${name} is false: it is of ${manifest.name}.`);
  const files = [...new Map(manifest.files.map((file) => [file.object, file])).values()];
  const playlists = manifest.files.filter(({ path }) => isPlaylist(path));
  const objects = files.filter(({ path }) => !isPlaylist(path));
  const holders = answer.proxies.slice(0, answer.holders);
  const places = [
    ...holders.map(
      (proxy) => new ProxyPlace(proxy.name, proxy.url, objects, answer.token, () => ask(origo, key, name)),
    ),
    ...(playlists.length > 0 ? [new OrigoPlace(origo.url, `${origo.url}/v/${key}/${name}`, playlists)] : []),
  ];
  const totalBytes = places.reduce((total, place) => total + place.totalBytes, 0);
  const progress = isQuiet ? undefined : new Progress({ live: { proxies: [], directBytes: 0 } }, 0, totalBytes);
  const checked = await Promise.all(places.map((place) => place.check((bytes) => progress?.add(bytes)))).finally(() =>
    progress?.stop(),
  );
  stopped.throwIfAborted();
  return { origo: origo.url, key, name, revision: manifest.revision, files: manifest.files.length, holders: checked };
}

const ask = (origo: OrigoLink, key: string, name: string): Promise<PublicationResponse> =>
  origo.publication(key, name, `?count=${CONNECTIONS_MAX}&client=${randomUUID()}`);

const bytesOf = (file: PublishedFile): number => parseObjectId(file.object)!.bytes;

abstract class Place {
  readonly totalBytes: number;
  readonly #files: readonly PublishedFile[];
  readonly #checked: Checked;

  constructor(holder: string, url: string, files: readonly PublishedFile[]) {
    this.#files = files;
    this.totalBytes = files.reduce((total, file) => total + bytesOf(file), 0);
    this.#checked = { holder, url, objects: 0, bytes: 0, missing: [], wrong: [] };
  }

  /** The body, from its beginning. */
  abstract read(file: PublishedFile): Promise<AsyncIterable<Uint8Array>>;

  async check(onBytes: (bytes: number) => void): Promise<Checked> {
    const queue = [...this.#files];
    const work = async (): Promise<void> => {
      for (let file = queue.shift(); file; file = queue.shift()) await this.#checkFile(file, onBytes);
    };
    await Promise.all(Array.from({ length: PARALLEL }, work)).catch((error: unknown) => {
      queue.length = 0;
      this.#checked.error = messageOf(error);
    });
    return this.#checked;
  }

  async #checkFile(file: PublishedFile, onBytes: (bytes: number) => void): Promise<void> {
    try {
      const isTrue = await withRetries(RETRIES, () => this.#isTrue(file, onBytes));
      if (!isTrue) return void this.#checked.wrong.push(file.path);
      this.#checked.objects++;
      this.#checked.bytes += bytesOf(file);
    } catch (error) {
      if (!(error instanceof HttpFault) || error.isTransient || error.status === 401) throw error;
      const { missing, wrong } = this.#checked;
      (error.status === 404 ? missing : error.kind === "objectDamaged" ? wrong : missing).push(file.path);
    }
  }

  async #isTrue(file: PublishedFile, onBytes: (bytes: number) => void): Promise<boolean> {
    const limit = bytesOf(file);
    const leaves = new LeafMaker(sha256);
    let isOver = false;
    const before = (): number => leaves.bytes;
    try {
      for await (const piece of await this.read(file)) {
        isOver = leaves.bytes + piece.length > limit;
        if (isOver) break;
        leaves.update(piece);
        onBytes(piece.length);
      }
    } catch (error) {
      onBytes(-before());
      stopped.throwIfAborted();
      throw error instanceof HttpFault ? error : new HttpFault(`broke off: ${messageOf(error)}`, "", 0);
    }
    return !isOver && objectId({ root: rootOf(leaves), bytes: leaves.bytes }) === file.object;
  }
}

class ProxyPlace extends Place {
  readonly #url: string;
  readonly #renew: () => Promise<PublicationResponse>;
  #token: string | undefined;

  constructor(
    name: string,
    url: string,
    files: readonly PublishedFile[],
    token: string | undefined,
    renew: () => Promise<PublicationResponse>,
  ) {
    super(name, url, files);
    this.#url = url.replace(/\/+$/, "");
    this.#token = token;
    this.#renew = renew;
  }

  override async read(file: PublishedFile): Promise<AsyncIterable<Uint8Array>> {
    try {
      return await this.#get(file);
    } catch (error) {
      if (!(error instanceof HttpFault) || !TOKEN_KINDS.includes(error.kind)) throw error;
      this.#token = (await this.#renew()).token;
      return this.#get(file);
    }
  }

  async #get({ object }: PublishedFile): Promise<AsyncIterable<Uint8Array>> {
    const query = this.#token === undefined ? "" : `?token=${encodeURIComponent(this.#token)}`;
    const headers = { [CLIENT_HEADER]: "verify", "cache-control": "no-cache" };
    return (await open(`${this.#url}/v1/objects/${object}${query}`, { headers })).body;
  }
}

class OrigoPlace extends Place {
  readonly #address: string;

  constructor(url: string, address: string, files: readonly PublishedFile[]) {
    super("Origo", url, files);
    this.#address = address;
  }

  override async read({ path }: PublishedFile): Promise<AsyncIterable<Uint8Array>> {
    return (await open(`${this.#address}/${escaped(path)}`)).body;
  }
}
