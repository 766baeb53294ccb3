/** Publishes a file or a folder: finds, hashes, signs, sends to each proxy, and releases. */
import { readFile, rm } from "node:fs/promises";
import os from "node:os";
import { performance } from "node:perf_hooks";
import {
  isPlaylist,
  Manifest,
  PUBLICATION_LIMITS,
  type LibraryProxy,
  type PendingPublication,
  type PublicationRow,
  type Release,
} from "@tributary/contract/publication-schema";
import { messageOf } from "../../errors";
import { Exit, STATUS } from "../exit";
import { Progress } from "../progress";
import { stopped } from "../signals";
import { say } from "../terminal";
import { formatBytes } from "../view";
import { checkUnchanged, digest, type Source } from "./digest";
import { findFiles, publicationName, type Found } from "./files";
import { HttpFault, wait } from "./http";
import { loadOrMakeKey, type OwnKey } from "./key";
import { inspect, makeLadder } from "./ladder";
import { explained, OrigoLink } from "./origo";
import { escaped, mainFile, outside, type Playlist } from "./playlists";
import { Grants, upload } from "./upload";

export interface PublishWords {
  origo: string;
  /** A file. */
  key: string;
  name?: string;
  package?: true;
  code?: string;
  quiet?: true;
}

export interface Published {
  name: string;
  revision: number;
  files: number;
  bytes: number;
  /** The file that a player opens. */
  play: string;
  /** A page for an iframe. */
  embed: string;
  /** Names of the proxies that hold all. */
  holders: string[];
}

const WARNINGS_MAX = 10;
/** Proxies tell Origo of new objects a moment later. */
const RELEASE_WAIT_MS = 15_000;
const RELEASE_EVERY_MS = 250;

export async function publish(given: string, words: PublishWords): Promise<Published> {
  const name = publicationName(words.name, given);
  const film = words.package ? await inspect(given) : undefined;
  const plain = film ? undefined : await findFiles(given);
  const key = await loadOrMakeKey(words.key);
  const origo = new OrigoLink(words.origo, key);
  const rows = await listOrEnrol(origo, words);
  const ladder = film && (await makeLadder(film, words.quiet === true));
  const published = await publishFiles(origo, key, name, plain ?? (await findFiles(ladder!)), rows, words);
  if (ladder !== undefined) await rm(ladder, { recursive: true, force: true });
  return published;
}

async function publishFiles(
  origo: OrigoLink,
  key: OwnKey,
  name: string,
  found: Found,
  rows: readonly PublicationRow[],
  words: PublishWords,
): Promise<Published> {
  sayUnlessQuiet(words, skippedText(found));
  const sources = await digestAll(found, words);
  const playlists = await readPlaylists(sources);
  warn(playlists, sources);
  const { manifest, pending } = await announce(origo, key, name, sources, rows);
  for (const { source, body } of playlists) await origo.putPlaylist(source.object, body);
  const delivery = new Delivery(origo, sources, words.quiet === true);
  await delivery.send(pending);
  // Origo names other proxies for those that are gone.
  if (delivery.hasFailed) await delivery.send(await origo.announce(manifest));
  const holders = delivery.judge();
  const { address, embed } = await release(origo, pending);
  return {
    name,
    revision: pending.revision,
    files: sources.length,
    bytes: sum(sources),
    play: `${address}${escaped(
      mainFile(
        sources,
        playlists.map(({ source, text }) => ({ path: source.path, text })),
      ),
    )}`,
    embed,
    holders,
  };
}

const sum = (files: readonly { bytes: number }[]): number => files.reduce((total, { bytes }) => total + bytes, 0);

function sayUnlessQuiet({ quiet }: Pick<PublishWords, "quiet">, text: string): void {
  if (!quiet && text !== "") say(text);
}

function skippedText({ skipped }: Found): string {
  const more = skipped.length > WARNINGS_MAX ? `  and ${skipped.length - WARNINGS_MAX} more\n` : "";
  const lines = skipped.slice(0, WARNINGS_MAX).map((each) => `  ${each}\n`);
  return skipped.length === 0 ? "" : `Left out:\n${lines.join("")}${more}`;
}

/** The key's publications. With a code, an unknown key is enrolled first. */
async function listOrEnrol(origo: OrigoLink, words: PublishWords): Promise<PublicationRow[]> {
  try {
    return await origo.list();
  } catch (error) {
    if (!(error instanceof HttpFault) || error.kind !== "keyUnknown" || words.code === undefined) throw error;
  }
  const { label, quotaBytes } = await origo.enrol(words.code, labelOfUser());
  sayUnlessQuiet(words, `Origo knows your key as ${label}. You may publish ${formatBytes(quotaBytes)}.\n`);
  return [];
}

function labelOfUser(): string {
  const { username } = os.userInfo();
  return `${username}@${os.hostname()}`.slice(0, 64);
}

async function digestAll({ files }: Found, words: PublishWords): Promise<Source[]> {
  const progress = words.quiet ? undefined : new Progress({ live: { proxies: [], directBytes: 0 } }, 0, sum(files));
  sayUnlessQuiet(words, `Reading ${counted(files.length, "file")}, ${formatBytes(sum(files))}.\n`);
  try {
    const sources: Source[] = [];
    for (const file of files) sources.push(await digest(file, (bytes) => progress?.add(bytes)));
    return sources;
  } finally {
    progress?.stop();
  }
}

const counted = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? "" : "s"}`;

async function readPlaylists(sources: readonly Source[]): Promise<{ source: Source; text: string; body: Buffer }[]> {
  const { playlistBytes } = PUBLICATION_LIMITS;
  const read = [];
  for (const source of sources.filter(({ path }) => isPlaylist(path))) {
    const { path, bytes, file } = source;
    if (bytes > playlistBytes)
      throw new Exit(STATUS.failed, `${path} has ${bytes} bytes; a playlist has at most ${playlistBytes}.`);
    const body = await readFile(file);
    await checkUnchanged(source);
    read.push({ source, text: body.toString(), body });
  }
  return read;
}

function warn(playlists: readonly { source: Source; text: string }[], sources: readonly Source[]): void {
  const paths = new Set(sources.map(({ path }) => path));
  const faults = playlists.flatMap(({ source: { path }, text }) =>
    outside({ path, text } satisfies Playlist, (target) => paths.has(target)).map((address) => `${path}: ${address}`),
  );
  if (faults.length === 0) return;
  const more = faults.length > WARNINGS_MAX ? `  and ${faults.length - WARNINGS_MAX} more\n` : "";
  const lines = faults.slice(0, WARNINGS_MAX).map((each) => `  ${each}\n`);
  say(`Warning: playlists lead to what is not published here, and nobody vouches for it:\n${lines.join("")}${more}`);
}

/** A run that was interrupted has announced this revision before, and Origo knows its bytes again. */
async function announce(
  origo: OrigoLink,
  key: OwnKey,
  name: string,
  sources: readonly Source[],
  rows: readonly PublicationRow[],
): Promise<{ manifest: Manifest; pending: PendingPublication }> {
  const files = sources.map(({ path, type, object }) => ({ path, type, object }));
  const announceAs = async (revision: number): Promise<{ manifest: Manifest; pending: PendingPublication }> => {
    const draft = { kind: "manifest", key: key.publicKey, name, revision, files };
    const parsed = Manifest.safeParse(draft);
    if (!parsed.success) throw new Exit(STATUS.failed, `Cannot publish: ${parsed.error.issues[0]!.message}.`);
    return { manifest: parsed.data, pending: await origo.announce(parsed.data) };
  };
  const own = rows.filter((row) => row.name === name);
  const pending = own.find(({ state }) => state === "pending");
  const next = Math.max(0, ...own.map(({ revision }) => revision)) + 1;
  if (!pending) return announceAs(next);
  try {
    return await announceAs(pending.revision);
  } catch (error) {
    if (!(error instanceof HttpFault) || error.kind !== "revisionOld") throw error;
    return announceAs(next);
  }
}

/** Sends the objects to the proxies of a pending publication. A proxy that fails does not stop the others. */
class Delivery {
  readonly #origo: OrigoLink;
  readonly #sources: readonly Source[];
  readonly #isQuiet: boolean;
  /** By the proxy's id. */
  readonly #ends = new Map<string, { proxy: LibraryProxy; fault?: unknown }>();

  constructor(origo: OrigoLink, sources: readonly Source[], isQuiet: boolean) {
    this.#origo = origo;
    const objects = sources.filter(({ path }) => !isPlaylist(path)).map((each) => [each.object, each] as const);
    this.#sources = [...new Map(objects).values()];
    this.#isQuiet = isQuiet;
  }

  get hasFailed(): boolean {
    return [...this.#ends.values()].some(({ fault }) => fault !== undefined);
  }

  /** Returns whether there was a proxy that had not been tried. */
  async send(pending: PendingPublication): Promise<boolean> {
    const { name, revision, proxies } = pending;
    const fresh = proxies.filter(({ id }) => !this.#ends.has(id));
    if (this.#sources.length === 0 || fresh.length === 0) return false;
    if (!this.#isQuiet) say(`Sending to ${listOf(fresh.map((proxy) => proxy.name))}.\n`);
    const objects = this.#sources.map(({ object }) => object);
    const grants = new Grants(objects, (batch) =>
      this.#origo.grants(name, revision, batch).catch((error: unknown) => {
        throw superseded(error, name);
      }),
    );
    const live = fresh.map((proxy) => ({ proxy, name: proxy.name, bytes: 0 }));
    const progress = this.#isQuiet
      ? undefined
      : new Progress({ live: { proxies: live, directBytes: 0 } }, 0, fresh.length * sum(this.#sources));
    const sendTo = async (target: (typeof live)[number]): Promise<void> => {
      const { proxy } = target;
      const onBytes = (bytes: number): void => {
        target.bytes += bytes;
        progress?.add(bytes);
      };
      const fault = await upload({ proxy, sources: this.#sources, grants, onBytes }).catch((error: unknown) => error);
      this.#ends.set(proxy.id, { proxy, ...(fault === undefined ? {} : { fault }) });
    };
    await Promise.all(live.map(sendTo)).finally(() => progress?.stop());
    stopped.throwIfAborted();
    return true;
  }

  /** Returns the names of the proxies that hold all. Throws if none does. */
  judge(): string[] {
    const ends = [...this.#ends.values()];
    const failed = ends.filter(({ fault }) => fault !== undefined);
    const own = failed.find(({ fault }) => fault instanceof Exit);
    if (own) throw own.fault;
    const texts = failed.map(({ proxy, fault }) => `  ${proxy.name}: ${messageOf(fault)}\n`).join("");
    if (failed.length > 0 && failed.length === ends.length)
      throw new Exit(
        STATUS.failed,
        `No proxy took everything, so nothing new is published:\n${texts}Run the same command again to go on.`,
      );
    if (failed.length > 0)
      say(`Warning: not every proxy took everything. Run the same command again later to go on:\n${texts}`);
    return ends.filter(({ fault }) => fault === undefined).map(({ proxy }) => proxy.name);
  }
}

/** Origo drops a pending revision when a newer one comes. */
function superseded(error: unknown, name: string): unknown {
  if (!(error instanceof HttpFault) || error.kind !== "notFound") return explained(error);
  return new Exit(
    STATUS.failed,
    `Another command published or withdrew ${name} with the same key meanwhile. ` +
      "This one has published nothing: run it again if what it has is newer.",
  );
}

const listOf = (names: readonly string[]): string =>
  names.length < 2 ? names.join("") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;

async function release(origo: OrigoLink, { name, revision }: PendingPublication): Promise<Release> {
  const deadlineMs = performance.now() + RELEASE_WAIT_MS;
  while (true) {
    try {
      return await origo.release(name, revision);
    } catch (error) {
      const isEarly = error instanceof HttpFault && error.kind === "objectsMissing";
      if (!isEarly || performance.now() > deadlineMs) throw superseded(error, name);
      await wait(RELEASE_EVERY_MS);
    }
  }
}
