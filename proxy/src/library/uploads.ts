/**
 * Uploads: how objects come into the library. The bytes go to a part file, and each block is hashed as it arrives. When
 * all are there and have the root of the object's name, the part and its leaves are synced and renamed into their
 * places, and the folder is synced. Only then the object is acknowledged. A part file stays for a while, so that an
 * upload that broke off can go on, also after a restart. One upload writes an object at a time.
 */
import { open, readdir, rename, rm, stat, type FileHandle } from "node:fs/promises";
import path from "node:path";
import { hexOf, LeafMaker, parseObjectId, type Tree } from "@tributary/contract/tree";
import { EgressError, egressError } from "../egress/error";
import type { Log } from "../log";
import { atPace, UPLOAD_PACE, type Pace } from "./upload-pace";
import { diskBytesOf, full, sha256, syncDirectory, treeOf, type Library, type Reserved } from "./library";

export interface UploadsOptions {
  library: Library;
  limits: () => { uploadsMax: number; addressUploads: number };
  log: Log;
  /** What an upload must bring at least. */
  pace?: Pace;
  nowMs?: () => number;
}

/** What an upload sends, and from where on. */
export interface Upload {
  id: string;
  offset: number;
  /** Ends or throws when the client is gone. */
  body: AsyncIterable<Uint8Array>;
  clientName: string;
}

/** An upload that was taken: how many bytes there are, and whether that is the whole object, acknowledged. */
export interface Taken {
  offset: number;
  isComplete: boolean;
}

interface Part {
  /** The bytes in the file. */
  offset: number;
  /** Undefined if this process has not hashed them. */
  leaves: LeafMaker | undefined;
  usedMs: number;
  /** The client that writes it now. */
  writer: string | undefined;
  /** There is room for all bytes of the object. */
  isReserved: boolean;
}

/** A part that nobody goes on with is dropped after this time. */
const PART_KEEP_MS = 24 * 3_600_000;
/** Its leaves leave the memory after this time. */
const LEAVES_KEEP_MS = 600_000;
const SWEEP_MS = 60_000;
/** The parts that nobody writes. The one that was left first goes first. */
const IDLE_PARTS_MAX = 1024;
const READ_BYTES = 1024 * 1024;
/** The disk is full, the user's quota is, or the process may write no longer file. */
const FULL_CODES = new Set(["ENOSPC", "EDQUOT", "EFBIG"]);

export class Uploads {
  /** The least recently used one first. */
  readonly #parts = new Map<string, Part>();
  #sweeping: NodeJS.Timeout | undefined;
  /** Resolves when the uploads that came before have their room. */
  #turn: Promise<unknown> = Promise.resolve();
  readonly #library: Library;
  readonly #options: UploadsOptions;
  readonly #nowMs: () => number;

  constructor(options: UploadsOptions) {
    this.#options = options;
    this.#library = options.library;
    this.#nowMs = options.nowMs ?? (() => Date.now());
    this.#library.reserved = () => this.#reserved();
  }

  /** Finds the parts that an earlier process has left. The library must be open. */
  async open(): Promise<void> {
    const found: [string, Part][] = [];
    for (const id of await readdir(this.#library.partsDir)) {
      const name = parseObjectId(id);
      const file = await stat(this.#fileOf(id));
      const isPart = name !== undefined && !this.#library.has(id) && file.isFile() && file.size <= name.bytes;
      // Whoever sees all bytes here would not know that the object is not in its place.
      const offset = isPart ? Math.max(0, Math.min(file.size, name.bytes - 1)) : 0;
      if (offset === 0) await this.#remove(id);
      else found.push([id, newPart(offset, file.mtimeMs)]);
    }
    found.sort(([, a], [, b]) => a.usedMs - b.usedMs);
    for (const [id, part] of found) this.#parts.set(id, part);
    await this.#sweep();
    this.#sweeping = setInterval(() => void this.#sweep(), SWEEP_MS);
    this.#sweeping.unref();
  }

  close(): void {
    clearInterval(this.#sweeping);
  }

  /** How many bytes of the object are here. */
  offsetOf(id: string): number {
    return this.#library.has(id) ? parseObjectId(id)!.bytes : (this.#parts.get(id)?.offset ?? 0);
  }

  /** Takes what the client sends. Throws an `EgressError` that says why it cannot. */
  async take(upload: Upload): Promise<Taken> {
    const { id, offset, clientName } = upload;
    if (this.#library.has(id)) {
      this.#library.pin([id], true);
      return { offset: parseObjectId(id)!.bytes, isComplete: true };
    }
    this.#checkCounts(clientName);
    const part = this.#partFor(id);
    if (offset !== part.offset) throw wrongOffset(offset, part.offset);
    part.writer = clientName;
    try {
      await this.#reserve(id, part);
      const isComplete = await this.#write(upload, part);
      return { offset: part.offset, isComplete };
    } catch (error) {
      const { code = "" } = error as NodeJS.ErrnoException;
      if (!FULL_CODES.has(code)) throw error;
      await this.#drop(id, part);
      this.#options.log("libraryFull", { object: id, reason: code });
      throw new EgressError(full(parseObjectId(id)!.bytes, this.#library.freeBytes));
    } finally {
      // Bytes may be in the file that were not hashed.
      if (part.leaves?.bytes !== part.offset) part.leaves = undefined;
      part.usedMs = this.#nowMs();
      part.writer = undefined;
      part.isReserved = false;
    }
  }

  #checkCounts(clientName: string): void {
    const { uploadsMax, addressUploads } = this.#options.limits();
    const writers = [...this.#parts.values()].flatMap(({ writer }) => (writer === undefined ? [] : [writer]));
    const own = writers.filter((writer) => writer === clientName).length;
    if (own >= addressUploads) throw busy("from this address", own + 1, addressUploads);
    if (writers.length >= uploadsMax) throw busy("at once", writers.length + 1, uploadsMax);
  }

  #partFor(id: string): Part {
    const part = this.#parts.get(id) ?? newPart(0, this.#nowMs());
    if (part.writer !== undefined)
      throw egressError("proxyBusy", `Another upload sends the object ${id} now. Try again in a moment.`);
    this.#parts.delete(id);
    this.#parts.set(id, part);
    return part;
  }

  /** Reserves room for the rest of the object. One upload after the other, so that one does not count on another's. */
  async #reserve(id: string, part: Part): Promise<void> {
    const bytes = diskBytesOf(parseObjectId(id)!.bytes);
    const turn = this.#turn.then(async () => {
      const limit = await this.#library.makeRoom(bytes - part.offset, () => this.#giveUpOldest());
      part.isReserved = limit === undefined;
      return limit;
    });
    this.#turn = turn.catch(() => undefined);
    const limit = await turn;
    if (limit === undefined) return;
    if (part.offset === 0) await this.#drop(id, part);
    throw new EgressError(full(bytes, limit + part.offset));
  }

  /** Drops the part that nobody has written for the longest time. */
  async #giveUpOldest(): Promise<void> {
    const oldest = [...this.#parts].find(([, { writer }]) => writer === undefined);
    if (oldest) await this.#drop(...oldest);
  }

  /** Whether the object is complete now, and in its place. */
  async #write(upload: Upload, part: Part): Promise<boolean> {
    const { id, body } = upload;
    const { bytes } = parseObjectId(id)!;
    const file = await open(this.#fileOf(id), part.offset === 0 ? "w+" : "r+");
    try {
      const leaves = (part.leaves ??= await hashedPart(file, part.offset));
      for await (const piece of atPace(body, this.#options.pace ?? UPLOAD_PACE)) {
        if (part.offset + piece.length > bytes) {
          await this.#drop(id, part);
          throw tooLong(part.offset + piece.length, bytes);
        }
        await this.#append(file, part, piece);
        leaves.update(piece);
      }
      if (part.offset < bytes) return false;
      await this.#finish(id, part, file, await treeOf(leaves.finish().slice()));
      return true;
    } finally {
      await file.close();
    }
  }

  async #append(file: FileHandle, part: Part, piece: Uint8Array): Promise<void> {
    for (let at = 0; at < piece.length;) {
      const { bytesWritten } = await file.write(piece, at, piece.length - at, part.offset);
      at += bytesWritten;
      part.offset += bytesWritten;
    }
  }

  async #finish(id: string, part: Part, file: FileHandle, tree: Tree): Promise<void> {
    const root = hexOf(tree.root);
    if (root !== parseObjectId(id)!.root) {
      await this.#drop(id, part);
      throw egressError("rootMismatch", `The bytes do not have the root in the object's name: got ${root}, ${id}.`);
    }
    const place = await this.#library.placeFor(id);
    await file.sync();
    await writeSynced(place.leaves, tree.leaves);
    await rename(this.#fileOf(id), place.data);
    await syncDirectory(place.directory);
    this.#parts.delete(id);
    this.#library.add(id, tree);
  }

  #reserved(): Reserved {
    const reserved = { ownBytes: 0, comingBytes: 0, idleBytes: 0 };
    for (const [id, { offset, writer, isReserved }] of this.#parts) {
      const bytes = isReserved ? diskBytesOf(parseObjectId(id)!.bytes) : offset;
      reserved.ownBytes += bytes;
      reserved.comingBytes += bytes - offset;
      if (writer === undefined) reserved.idleBytes += offset;
    }
    return reserved;
  }

  async #sweep(): Promise<void> {
    const nowMs = this.#nowMs();
    const idle = [...this.#parts].filter(([, { writer }]) => writer === undefined);
    const surplus = idle.length - IDLE_PARTS_MAX;
    for (const [index, [id, part]] of idle.entries()) {
      if (part.writer !== undefined) continue;
      if (index < surplus || nowMs - part.usedMs >= PART_KEEP_MS) await this.#drop(id, part);
      else if (nowMs - part.usedMs >= LEAVES_KEEP_MS) part.leaves = undefined;
    }
  }

  /** Until the file is gone the part counts as being written, so that nobody begins it anew. */
  async #drop(id: string, part: Part): Promise<void> {
    part.writer ??= "";
    await this.#remove(id);
    if (this.#parts.get(id) === part) this.#parts.delete(id);
  }

  async #remove(id: string): Promise<void> {
    await rm(this.#fileOf(id), { recursive: true, force: true });
  }

  #fileOf(id: string): string {
    return path.join(this.#library.partsDir, id);
  }
}

const newPart = (offset: number, usedMs: number): Part => ({
  offset,
  leaves: undefined,
  usedMs,
  writer: undefined,
  isReserved: false,
});

/** The leaves of the first bytes of a part file. */
async function hashedPart(file: FileHandle, bytes: number): Promise<LeafMaker> {
  const leaves = new LeafMaker(sha256);
  const buffer = Buffer.allocUnsafeSlow(Math.min(READ_BYTES, bytes));
  while (leaves.bytes < bytes) {
    const { bytesRead } = await file.read(buffer, 0, Math.min(buffer.length, bytes - leaves.bytes), leaves.bytes);
    if (bytesRead === 0) throw new Error(`a part file has ${leaves.bytes} bytes and should have ${bytes}`);
    leaves.update(buffer.subarray(0, bytesRead));
  }
  return leaves;
}

async function writeSynced(file: string, bytes: Uint8Array): Promise<void> {
  const handle = await open(file, "w");
  try {
    await handle.writeFile(bytes);
    await handle.sync();
  } finally {
    await handle.close();
  }
}

function wrongOffset(got: number, limit: number): EgressError {
  return egressError("offsetWrong", `The upload must go on at byte ${limit}; got Upload-Offset ${got}.`, {
    got,
    limit,
  });
}

function tooLong(got: number, limit: number): EgressError {
  return egressError("requestTooLarge", `The object's name says ${limit} bytes; got ${got}.`, { got, limit });
}

function busy(where: string, got: number, limit: number): EgressError {
  const message = `Too many uploads ${where}: got ${got}, limit ${limit}. Try again in a moment.`;
  return egressError("proxyBusy", message, { got, limit });
}
