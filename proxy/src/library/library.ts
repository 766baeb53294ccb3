/**
 * Library: the objects that a proxy keeps on disk. An object is a file that is named by its id, beside it a file with
 * its leaves. Both are there before the object counts as there. Nothing of an object is handed on before it was checked
 * against the root in its name. A damaged object is taken out. Objects that a publication has are pinned. Others go
 * when room is needed, the least recently used first. How objects come in: uploads.ts.
 */
import { hash } from "node:crypto";
import { mkdir, open, readdir, readFile, rm, stat, statfs, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { setImmediate } from "node:timers/promises";
import type { ByteRange, Rejection } from "@tributary/contract";
import { PUBLICATION_LIMITS, type ServedObject } from "@tributary/contract/publication-schema";
import type { LibraryStatus } from "@tributary/contract/schema";
import {
  BLOCK_BYTES,
  blockCountOf,
  DIGEST_BYTES,
  digestAt,
  hexOf,
  joined,
  parseObjectId,
  pieceRootsOf,
  Tree,
  type Hash,
} from "@tributary/contract/tree";
import { SEGMENT_BYTES } from "../chunk-body";
import { EgressError, egressError } from "../egress/error";
import type { Log } from "../log";
import { KeptTrees } from "./kept-trees";
import { lockFolder } from "./lock";

export const sha256: Hash = (bytes) => hash("sha256", bytes, "buffer");

export interface LibraryOptions {
  dir: string;
  /** The most bytes on disk. */
  bytesMax: () => number;
  log: Log;
}

type Pieces = AsyncGenerator<Uint8Array, void, void>;

export interface ObjectReading {
  body: AsyncIterable<Uint8Array>;
  /** Ends the reading, also before it has begun. */
  cancel: () => void;
}

/** What was added to the library or taken out of it. */
export type LibraryListener = (change: "added" | "removed", id: string) => void;

/** What uploads take of the library. */
export interface Reserved {
  /** With all bytes of the objects that are on their way. */
  ownBytes: number;
  /** Those of them that are not on the disk yet. */
  comingBytes: number;
  /** Those of them that nobody goes on with at the moment. */
  idleBytes: number;
}

interface StoredObject {
  readonly diskBytes: number;
  /** A publication has it, as far as this proxy knows. */
  isPinned: boolean;
}

/** Whole blocks, and a segment of a chunk's body, which takes it over without a copy. */
const READ_BYTES = SEGMENT_BYTES;
/** File systems give files whole pages. */
const PAGE_BYTES = 4096;
const SCANS_AT_ONCE = 64;
/** The free space of the disk is looked up again after this time. */
const FREE_SPACE_MS = 1000;

const pagesOf = (bytes: number): number => Math.ceil(bytes / PAGE_BYTES) * PAGE_BYTES;

/** The event loop is free again after so many pieces, which take about 5 ms. */
const PIECES_PER_TURN = 64;

/** The tree over these leaves. */
export async function treeOf(leaves: Uint8Array): Promise<Tree> {
  const pieceRoots: Uint8Array[] = [];
  for (const root of pieceRootsOf(leaves, sha256))
    if (pieceRoots.push(root) % PIECES_PER_TURN === 0) await setImmediate();
  return new Tree(leaves, sha256, joined(pieceRoots));
}

/** What an object of so many bytes takes on disk, with its leaves. */
export const diskBytesOf = (bytes: number): number => pagesOf(bytes) + pagesOf(blockCountOf(bytes) * DIGEST_BYTES);

export class Library {
  readonly partsDir: string;
  /** The least recently used one first. */
  readonly #objects = new Map<string, StoredObject>();
  readonly #trees = new KeptTrees();
  readonly #objectsDir: string;
  readonly #counts = { servedBytes: 0, takenBytes: 0, damagedObjects: 0 };
  /** The bytes of each object that were sent and not yet taken by `takeServed`. */
  readonly #served = new Map<string, number>();
  #objectsBytes = 0;
  #bytes = 0;
  #unlock: () => void = () => undefined;
  #diskFree = { bytes: 0, atMs: -Infinity };
  reserved: () => Reserved = () => ({ ownBytes: 0, comingBytes: 0, idleBytes: 0 });
  /** The trees that are being read. */
  readonly #reading = new Map<string, Promise<Tree>>();
  /** The objects whose files are being removed. */
  readonly #removing = new Map<string, Promise<void>>();
  onChange: LibraryListener = () => undefined;

  readonly #options: LibraryOptions;

  constructor(options: LibraryOptions) {
    this.#options = options;
    this.#objectsDir = path.join(options.dir, "objects");
    this.partsDir = path.join(options.dir, "parts");
  }

  /** Finds the objects on disk. Takes out what cannot be whole. Rejects when the folder cannot be used or is in use. */
  async open(): Promise<void> {
    await mkdir(this.#objectsDir, { recursive: true });
    await mkdir(this.partsDir, { recursive: true });
    await this.#lock();
    await syncDirectory(this.#options.dir);
    const names = new Set(await readdir(this.#objectsDir));
    const found: { id: string; usedMs: number }[] = [];
    await eachOf([...names], SCANS_AT_ONCE, async (name) => {
      const id = name.endsWith(LEAVES) ? name.slice(0, -LEAVES.length) : name;
      const usedMs = await this.#usedMsOf(id);
      if (usedMs === undefined) await rm(path.join(this.#objectsDir, name), { recursive: true, force: true });
      if (name !== id) return;
      if (usedMs !== undefined) found.push({ id, usedMs });
      else if (parseObjectId(id)) this.#countDamaged(id, "its files are not whole");
    });
    found.sort((a, b) => a.usedMs - b.usedMs);
    for (const { id } of found) this.#enter(id);
    await this.#findFreeSpace();
  }

  close(): void {
    this.#unlock();
  }

  /** Some file systems have no sockets, and then the operator must keep other proxies off. */
  async #lock(): Promise<void> {
    try {
      this.#unlock = await lockFolder(this.#options.dir);
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException;
      if (code === undefined) throw error;
      this.#options.log("libraryNotLocked", { reason: message });
    }
  }

  /** Undefined if the object's files are not both there with the right lengths. */
  async #usedMsOf(id: string): Promise<number | undefined> {
    const name = parseObjectId(id);
    if (!name) return undefined;
    const [data, leaves] = await Promise.all([sizeOf(this.#fileOf(id)), sizeOf(this.#leavesFileOf(id))]);
    const isWhole = data?.size === name.bytes && leaves?.size === blockCountOf(name.bytes) * DIGEST_BYTES;
    return isWhole ? data.mtimeMs : undefined;
  }

  get ids(): string[] {
    return [...this.#objects.keys()];
  }

  has(id: string): boolean {
    return this.#objects.has(id);
  }

  status(): LibraryStatus {
    void this.#findFreeSpace();
    return { objects: this.#objects.size, bytes: this.#bytes, freeBytes: this.freeBytes, ...this.#counts };
  }

  /** Bytes of an object were sent. Those of an object that is gone are not kept apart, so the list is bounded. */
  countSent(id: string, bytes: number): void {
    this.#counts.servedBytes += bytes;
    if (bytes > 0 && this.#objects.has(id)) this.#served.set(id, (this.#served.get(id) ?? 0) + bytes);
  }

  /** Hands over the counts of at most so many objects, which begin at 0 again. */
  takeServed(objectsMax: number): ServedObject[] {
    const taken = [...this.#served].slice(0, objectsMax);
    for (const [object] of taken) this.#served.delete(object);
    return taken.map(([object, bytes]) => ({
      object,
      bytes: Math.min(bytes, PUBLICATION_LIMITS.servedBytesPerObject),
    }));
  }

  /** What new objects may take, if all that may be evicted is. */
  get freeBytes(): number {
    return Math.max(0, this.#room() + sumOf(this.#evictable()) + this.reserved().idleBytes);
  }

  /** The least recently used one first. */
  #evictable(): [string, StoredObject][] {
    return [...this.#objects].filter(([, { isPinned }]) => !isPinned);
  }

  /** Negative if the uploads need more than there is. */
  #room(): number {
    const { ownBytes, comingBytes } = this.reserved();
    return Math.min(this.#options.bytesMax() - this.#objectsBytes - ownBytes, this.#diskFree.bytes - comingBytes);
  }

  /** The object's tree. Throws an `EgressError` if the object is not there or damaged. */
  async treeOf(id: string): Promise<Tree> {
    const object = this.#objects.get(id);
    if (!object) throw missing(id);
    this.#objects.delete(id);
    this.#objects.set(id, object);
    const known = this.#trees.get(id) ?? this.#reading.get(id);
    if (known) return known;
    const reading = this.#readTree(id).finally(() => this.#reading.delete(id));
    this.#reading.set(id, reading);
    return reading;
  }

  async #readTree(id: string): Promise<Tree> {
    const name = parseObjectId(id)!;
    const leaves = await this.#onDisk(id, () => readFile(this.#leavesFileOf(id)));
    const isWhole = leaves.length === blockCountOf(name.bytes) * DIGEST_BYTES;
    const tree = isWhole ? await treeOf(leaves) : undefined;
    if (!tree || hexOf(tree.root) !== name.root) throw await this.#damaged(id, "its leaves do not have its root");
    this.#trees.add(id, tree);
    return tree;
  }

  /** The object's bytes in pieces. The first one was read and checked when this resolves. */
  async read(id: string, tree: Tree, { start, end }: ByteRange): Promise<ObjectReading> {
    const pieces = this.#pieces(id, tree, start, end + 1);
    const first = await pieces.next();
    return { body: resumed(first, pieces), cancel: () => void pieces.return() };
  }

  async *#pieces(id: string, tree: Tree, start: number, end: number): Pieces {
    const { bytes } = parseObjectId(id)!;
    const file = await this.#onDisk(id, () => open(this.#fileOf(id)));
    try {
      for (let at = start - (start % BLOCK_BYTES); at < end; at += READ_BYTES) {
        const lastBlockEnd = Math.min(bytes, Math.ceil(end / BLOCK_BYTES) * BLOCK_BYTES);
        const piece = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, lastBlockEnd - at));
        const got = await this.#onDisk(id, () => readWhole(file, piece, at));
        if (got < piece.length) throw await this.#damaged(id, `it has ${at + got} of its bytes`);
        const wrong = wrongBlockOf(piece, tree, at / BLOCK_BYTES);
        if (wrong !== undefined) throw await this.#damaged(id, `block ${wrong} is not what its leaf says`);
        yield piece.subarray(Math.max(0, start - at), end - at);
      }
    } finally {
      await file.close();
    }
  }

  /** Does something with the object's files. If the disk cannot give them, the object is damaged. */
  async #onDisk<T>(id: string, read: () => Promise<T>): Promise<T> {
    try {
      return await read();
    } catch (error) {
      if (!this.#objects.has(id)) throw missing(id);
      const { code = "" } = error as NodeJS.ErrnoException;
      if (!DAMAGE_CODES.has(code)) throw error;
      throw await this.#damaged(id, code);
    }
  }

  async #damaged(id: string, reason: string): Promise<EgressError> {
    if (this.#objects.has(id)) {
      this.#countDamaged(id, reason);
      await this.remove(id);
    }
    return egressError("objectDamaged", `The object ${id} was damaged on this proxy's disk, which has taken it out.`);
  }

  #countDamaged(object: string, reason: string): void {
    this.#counts.damagedObjects++;
    this.#options.log("objectDamaged", { object, reason });
  }

  /** The object has come into its place. */
  add(id: string, tree: Tree): void {
    this.#enter(id);
    this.#trees.add(id, tree);
    this.#counts.takenBytes += parseObjectId(id)!.bytes;
    this.onChange("added", id);
  }

  #enter(id: string): void {
    const { bytes } = parseObjectId(id)!;
    const diskBytes = diskBytesOf(bytes);
    this.#objects.set(id, { diskBytes, isPinned: true });
    this.#objectsBytes += diskBytes;
    this.#bytes += bytes;
  }

  /** `isPinned`: whether a publication has the objects. */
  pin(ids: readonly string[], isPinned: boolean): void {
    for (const id of ids) {
      const object = this.#objects.get(id);
      if (object) object.isPinned = isPinned;
    }
  }

  /** The object is out of the library at once. Who reads it already may read on. */
  async remove(id: string): Promise<void> {
    const object = this.#objects.get(id);
    if (!object) return;
    this.#objects.delete(id);
    this.#served.delete(id);
    this.#trees.delete(id);
    this.#objectsBytes -= object.diskBytes;
    this.#bytes -= parseObjectId(id)!.bytes;
    this.onChange("removed", id);
    const removed = this.#removeFiles(id).finally(() => this.#removing.delete(id));
    this.#removing.set(id, removed);
    await removed;
  }

  /** The object goes first, because leaves without an object mean nothing at the next start. */
  async #removeFiles(id: string): Promise<void> {
    await rm(this.#fileOf(id), { force: true });
    await rm(this.#leavesFileOf(id), { force: true });
  }

  /**
   * Evicts objects until so many bytes have room, then gives up parts. If there cannot be room, returns how much there
   * could be, and evicts nothing. Must not be called again before it has resolved.
   */
  async makeRoom(bytes: number, giveUpPart: () => Promise<void>): Promise<number | undefined> {
    await this.#findFreeSpace(0);
    if (bytes > this.freeBytes) return this.freeBytes;
    const evictable = this.#evictable();
    while (bytes > this.#room() && (evictable.length > 0 || this.reserved().idleBytes > 0)) {
      const next = evictable.shift();
      await (next ? this.remove(next[0]) : giveUpPart());
      await this.#findFreeSpace(0);
    }
    return bytes > this.#room() ? Math.max(0, this.#room()) : undefined;
  }

  async #findFreeSpace(ageMsMax = FREE_SPACE_MS): Promise<void> {
    if (performance.now() - this.#diskFree.atMs < ageMsMax) return;
    this.#diskFree.atMs = performance.now();
    const found = await statfs(this.#options.dir).catch(() => undefined);
    if (found) this.#diskFree.bytes = found.bavail * found.bsize;
  }

  /** Where the files of a new object go, when nothing of an older one is there. */
  async placeFor(id: string): Promise<{ directory: string; data: string; leaves: string }> {
    await this.#removing.get(id);
    return { directory: this.#objectsDir, data: this.#fileOf(id), leaves: this.#leavesFileOf(id) };
  }

  #fileOf(id: string): string {
    return path.join(this.#objectsDir, id);
  }

  #leavesFileOf(id: string): string {
    return this.#fileOf(id) + LEAVES;
  }
}

const LEAVES = ".leaves";
/** The file is gone, cut or unreadable. */
const DAMAGE_CODES = new Set(["ENOENT", "EIO", "EUCLEAN", "EBADMSG"]);

const sumOf = (objects: readonly [string, StoredObject][]): number =>
  objects.reduce((sum, [, { diskBytes }]) => sum + diskBytes, 0);

export const missing = (id: string): EgressError =>
  egressError("objectMissing", `This proxy does not have the object ${id}.`);

export function full(got: number, limit: number): Rejection {
  const message = `The proxy's library has no room for this object: got ${got} bytes, limit ${limit}.`;
  return { kind: "libraryFull", message, got, limit };
}

async function* resumed(first: IteratorResult<Uint8Array, void>, others: Pieces): Pieces {
  try {
    if (!first.done) yield first.value;
    yield* others;
  } finally {
    await others.return();
  }
}

/** The first block that is not what the tree says. `piece` begins with the block `first`. */
function wrongBlockOf(piece: Uint8Array, { leaves }: Tree, first: number): number | undefined {
  for (let at = 0; at < piece.length; at += BLOCK_BYTES) {
    const index = first + at / BLOCK_BYTES;
    const leaf = digestAt(leaves, index);
    if (!leaf || Buffer.compare(leaf, sha256(piece.subarray(at, at + BLOCK_BYTES))) !== 0) return index;
  }
  return undefined;
}

/** Returns how many bytes there were. */
async function readWhole(file: FileHandle, into: Uint8Array, position: number): Promise<number> {
  let at = 0;
  while (at < into.length) {
    const { bytesRead } = await file.read(into, at, into.length - at, position + at);
    if (bytesRead === 0) break;
    at += bytesRead;
  }
  return at;
}

export async function syncDirectory(directory: string): Promise<void> {
  const handle = await open(directory);
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

const sizeOf = (file: string) => stat(file).catch(() => undefined);

/** Calls `visit` for each item, for so many at once. */
async function eachOf<T>(items: readonly T[], atOnce: number, visit: (item: T) => Promise<void>): Promise<void> {
  const rest = items.values();
  const worker = async (): Promise<void> => {
    for (const item of rest) await visit(item);
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
}
