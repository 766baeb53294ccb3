/**
 * A file that is being downloaded. The bytes go to `NAME.part`, and NAME is replaced when they are all there. Beside it
 * `NAME.part.json` keeps what tells versions apart, so that a later run can go on.
 */
import { createHash } from "node:crypto";
import { open, readFile, rename, rm, stat, utimes, writeFile, type FileHandle } from "node:fs/promises";
import { parseContentRange, strongValidator, type ByteRange, type ResponseHead } from "@tributary/contract";
import { codeOf } from "./faults";
import { Exit, STATUS } from "./exit";
import { partPathOf } from "./names";

/** What NAME.part holds the beginning of. */
export interface PartVersion {
  /** A digest of the address without its query. */
  place: string;
  /** A digest of the whole address. */
  address: string;
  /** The range that was asked for. null is the whole. */
  range: ByteRange | null;
  validator: string;
  totalBytes: number;
}

/** Where to go on. */
export interface Resume {
  offset: number;
  /** What to ask for. */
  range: ByteRange;
  version: PartVersion;
}

const digest = (text: string): string => createHash("sha256").update(text).digest("hex");
const metaPathOf = (file: string): string => `${partPathOf(file)}.json`;

/** Undefined if nothing in the answer tells versions apart. */
export function versionOf(url: string, range: ByteRange | undefined, head: ResponseHead): PartVersion | undefined {
  const validator = strongValidator(head);
  if (validator === undefined || head.totalBytes === null || head.totalBytes === 0) return undefined;
  const { origin, pathname } = new URL(url);
  const { totalBytes } = head;
  return { place: digest(origin + pathname), address: digest(url), range: range ?? null, validator, totalBytes };
}

/** What an earlier run left of this address, if the run can go on. */
export async function findPart(file: string, url: string, range: ByteRange | undefined): Promise<Resume | undefined> {
  const version = await readVersion(file);
  const size = await stat(partPathOf(file)).then(
    (stats) => stats.size,
    () => 0,
  );
  if (!version || size === 0 || JSON.stringify(version.range) !== JSON.stringify(range ?? null)) return undefined;
  const { origin, pathname } = new URL(url);
  if (version.place !== digest(origin + pathname)) return undefined;
  // At least one byte is asked for, because its answer shows whether the file is still the same.
  const offset = Math.min(size, version.totalBytes - 1);
  const start = range?.start ?? 0;
  return { offset, range: { start: start + offset, end: start + version.totalBytes - 1 }, version };
}

async function readVersion(file: string): Promise<PartVersion | undefined> {
  try {
    const version = JSON.parse(await readFile(metaPathOf(file), "utf8")) as PartVersion;
    return Number.isSafeInteger(version.totalBytes) && version.totalBytes > 0 ? version : undefined;
  } catch {
    return undefined;
  }
}

/** Whether the answer to `resume.range` continues the bytes of the part file. */
export function continues({ range, version }: Resume, head: ResponseHead): boolean {
  const told = parseContentRange(head.headers["content-range"]);
  return head.status === 206 && told?.start === range.start && strongValidator(head) === version.validator;
}

export class PartFile {
  /** Bytes of the file so far. */
  #position: number;
  readonly #path: string;
  readonly #partPath: string;
  readonly #handle: FileHandle;
  readonly #inode: number;
  readonly #isResumable: boolean;

  private constructor(path: string, handle: FileHandle, inode: number, position: number, isResumable: boolean) {
    this.#path = path;
    this.#partPath = partPathOf(path);
    this.#handle = handle;
    this.#inode = inode;
    this.#position = position;
    this.#isResumable = isResumable;
  }

  /** Begins a new part file. It takes the place of an older one, and another process that writes that one fails. */
  static async create(path: string, version: PartVersion | undefined): Promise<PartFile> {
    await discardPart(path);
    const handle = await open(partPathOf(path), "wx+");
    try {
      const there = await stat(path).catch(() => undefined);
      if (there) await handle.chmod(there.mode & 0o7777).catch(() => undefined);
      if (version) await writeFile(metaPathOf(path), JSON.stringify(version));
      return new PartFile(path, handle, (await handle.stat()).ino, 0, version !== undefined);
    } catch (error) {
      await handle.close();
      await discardPart(path);
      throw error;
    }
  }

  static async resume(path: string, { offset }: Resume): Promise<PartFile> {
    const handle = await open(partPathOf(path), "r+");
    await handle.truncate(offset);
    return new PartFile(path, handle, (await handle.stat()).ino, offset, true);
  }

  /** Reads the bytes that are there. */
  async *bytes(): AsyncGenerator<Uint8Array> {
    const buffer = Buffer.alloc(1 << 20);
    for (let at = 0; at < this.#position;) {
      const { bytesRead } = await this.#handle.read(buffer, 0, Math.min(buffer.length, this.#position - at), at);
      if (bytesRead === 0) throw new Exit(STATUS.failed, `${this.#partPath} became shorter.`);
      yield buffer.subarray(0, bytesRead);
      at += bytesRead;
    }
  }

  async write(piece: Uint8Array): Promise<void> {
    for (let done = 0; done < piece.length;) {
      const { bytesWritten } = await this.#handle.write(piece, done, piece.length - done, this.#position);
      done += bytesWritten;
      this.#position += bytesWritten;
    }
  }

  /** Puts the file in its place. */
  async finish(modified: Date | undefined): Promise<void> {
    await this.#handle.close();
    if (modified) await utimes(this.#partPath, new Date(), modified);
    const there = await stat(this.#partPath).catch(() => undefined);
    if (there?.ino !== this.#inode)
      throw new Exit(STATUS.failed, `${this.#partPath} was replaced: another process downloads to the same name.`);
    await rename(this.#partPath, this.#path);
    await rm(metaPathOf(this.#path), { force: true });
  }

  /** Keeps the bytes that are there, and says whether a later run can go on. */
  async keep(): Promise<string | undefined> {
    await this.#handle.close().catch(() => undefined);
    const there = await stat(this.#partPath).catch(() => undefined);
    if (there?.ino !== this.#inode) return undefined;
    if (this.#position === 0) return void (await discardPart(this.#path));
    const next = this.#isResumable
      ? "The same command with --continue goes on."
      : "Nothing in the answer tells versions of the file apart, so a later run starts anew.";
    return `${this.#position} bytes are kept in ${this.#partPath}. ${next}`;
  }

  async remove(): Promise<void> {
    await this.#handle.close().catch(() => undefined);
    await discardPart(this.#path);
  }
}

async function discardPart(path: string): Promise<void> {
  await rm(metaPathOf(path), { force: true });
  await rm(partPathOf(path), { force: true }).catch((error: unknown) => {
    if (codeOf(error) !== "ERR_FS_EISDIR") throw error;
    throw Object.assign(new Error(), { code: "EISDIR" });
  });
}
