/** Publishes a file or a folder: finds, hashes, signs, sends to each proxy, and releases. */
import { readFile } from "node:fs/promises";
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
import type { OwnKey } from "./key";
import { OrigoLink } from "./origo";
import { escaped, mainFile, outside, type Playlist } from "./playlists";
import { Grants, upload } from "./upload";

export interface PublishWords {
  origo: string;
  name?: string;
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

export async function publish(path: string, words: PublishWords, key: OwnKey): Promise<Published> {
  const name = publicationName(words.name, path);
  const found = await findFiles(path);
  sayUnlessQuiet(words, skippedText(found));
  const origo = new OrigoLink(words.origo, key);
  const rows = await listOrEnrol(origo, words);
  const sources = await digestAll(found, words);
  const playlists = await readPlaylists(sources);
  warn(playlists, sources);
  const { files, pending } = await announce(origo, key, name, sources, rows);
  for (const { source, body } of playlists) await origo.putPlaylist(source.object, body);
  const holders = await uploadAll(origo, pending, sources, words);
  const { address, embed } = await release(origo, pending);
  return {
    name,
    revision: pending.revision,
    files: files.length,
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
): Promise<{ files: Manifest["files"]; pending: PendingPublication }> {
  const files = sources.map(({ path, type, object }) => ({ path, type, object }));
  const announceAs = async (revision: number): Promise<PendingPublication> => {
    const manifest = { kind: "manifest" as const, key: key.publicKey, name, revision, files };
    const bytes = Buffer.byteLength(JSON.stringify(manifest));
    if (bytes > PUBLICATION_LIMITS.manifestBytes * 0.7)
      throw new Exit(STATUS.failed, `There are too many long names: publish fewer files under one name.`);
    const parsed = Manifest.safeParse(manifest);
    if (!parsed.success) throw new Exit(STATUS.failed, `Cannot publish: ${parsed.error.issues[0]!.message}.`);
    return origo.announce(parsed.data);
  };
  const own = rows.filter((row) => row.name === name);
  const pending = own.find(({ state }) => state === "pending");
  const next = Math.max(0, ...own.map(({ revision }) => revision)) + 1;
  if (!pending) return { files, pending: await announceAs(next) };
  try {
    return { files, pending: await announceAs(pending.revision) };
  } catch (error) {
    if (!(error instanceof HttpFault) || error.kind !== "revisionOld") throw error;
    return { files, pending: await announceAs(next) };
  }
}

/** Returns the names of the proxies that hold all. A proxy that fails does not stop the others. */
async function uploadAll(
  origo: OrigoLink,
  { name, revision, proxies }: PendingPublication,
  all: readonly Source[],
  words: PublishWords,
): Promise<string[]> {
  const sources = [...new Map(all.filter(({ path }) => !isPlaylist(path)).map((each) => [each.object, each])).values()];
  if (sources.length === 0) return proxies.map((proxy) => proxy.name);
  if (proxies.length === 0)
    throw new Exit(STATUS.failed, "Origo has no proxy with a library. Its operator can start one with --library DIR.");
  const objects = sources.map(({ object }) => object);
  const grants = new Grants(objects, (batch) => origo.grants(name, revision, batch));
  const live = proxies.map((proxy) => ({ proxy, name: proxy.name, bytes: 0 }));
  sayUnlessQuiet(words, `Sending to ${listOf(proxies.map((proxy) => proxy.name))}.\n`);
  const progress = words.quiet
    ? undefined
    : new Progress({ live: { proxies: live, directBytes: 0 } }, 0, proxies.length * sum(sources));
  const ends = await Promise.all(
    live.map(async (target) => {
      const onBytes = (bytes: number): void => {
        target.bytes += bytes;
        progress?.add(bytes);
      };
      const fault = await upload({ proxy: target.proxy, sources, grants, onBytes }).catch((error: unknown) => error);
      return { proxy: target.proxy, fault };
    }),
  ).finally(() => progress?.stop());
  stopped.throwIfAborted();
  return judged(ends);
}

function judged(ends: readonly { proxy: LibraryProxy; fault: unknown }[]): string[] {
  const failed = ends.filter(({ fault }) => fault !== undefined);
  const own = failed.find(({ fault }) => fault instanceof Exit);
  if (own) throw own.fault;
  const texts = failed.map(({ proxy, fault }) => `  ${proxy.name}: ${messageOf(fault)}\n`);
  if (failed.length === ends.length)
    throw new Exit(
      STATUS.failed,
      `No proxy took everything, so nothing new is published:\n${texts.join("")}Run the same command again to go on.`,
    );
  if (failed.length > 0)
    say(`Warning: not every proxy took everything. Run the same command again later to go on:\n${texts.join("")}`);
  return ends.filter(({ fault }) => fault === undefined).map(({ proxy }) => proxy.name);
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
      if (!isEarly || performance.now() > deadlineMs) throw error;
      await wait(RELEASE_EVERY_MS);
    }
  }
}
