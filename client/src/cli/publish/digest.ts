/** The hash tree of a file, in one pass, and whether the file has stayed the same since. */
import { createHash } from "node:crypto";
import { open, stat, type FileHandle } from "node:fs/promises";
import { hexOf, LeafMaker, objectId, Tree, type Hash } from "@tributary/contract/tree";
import { Exit, STATUS } from "../exit";
import { fileFault } from "../faults";
import { stopped } from "../signals";
import type { FoundFile } from "./files";

const READ_BYTES = 1024 * 1024;

export const sha256: Hash = (bytes) => createHash("sha256").update(bytes).digest();

/** A file and the object that it is. */
export interface Source extends FoundFile {
  object: string;
  /** Differs when the file has changed. */
  version: string;
}

export async function digest(found: FoundFile, onBytes: (bytes: number) => void): Promise<Source> {
  let handle: FileHandle | undefined;
  try {
    handle = await open(found.file);
    const before = versionOf(await handle.stat());
    const leaves = new LeafMaker(sha256);
    const buffer = Buffer.allocUnsafe(READ_BYTES);
    for (let count = -1; count !== 0;) {
      stopped.throwIfAborted();
      count = (await handle.read(buffer, 0, READ_BYTES)).bytesRead;
      leaves.update(buffer.subarray(0, count));
      onBytes(count);
    }
    const after = await handle.stat();
    if (versionOf(after) !== before || after.size !== leaves.bytes) throw changed(found.path);
    const object = objectId({ root: rootOf(leaves), bytes: leaves.bytes });
    return { ...found, bytes: leaves.bytes, object, version: before };
  } catch (error) {
    throw fileFault("read", found.file, error);
  } finally {
    await handle?.close();
  }
}

export const rootOf = (leaves: LeafMaker): string => hexOf(new Tree(leaves.finish(), sha256).root);

/** Throws if the file is another one than the digest's. */
export async function checkUnchanged({ path, file, version }: Source): Promise<void> {
  const there = await stat(file).catch(() => undefined);
  if (there === undefined || versionOf(there) !== version) throw changed(path);
}

const changed = (path: string): Exit =>
  new Exit(STATUS.failed, `${path} changed while it was published. Run the command again when the file is finished.`);

const versionOf = ({ size, mtimeMs, ino }: { size: number; mtimeMs: number; ino: number }): string =>
  `${size} ${mtimeMs} ${ino}`;
