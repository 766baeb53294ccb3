/** The files of a folder that are to be published, and what is left out. */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import path from "node:path";
import { isPrivateKey, pathFault, PUBLICATION_LIMITS, PublicationName } from "@tributary/contract/publication-schema";
import mime from "mime-types";
import { Exit, STATUS, UsageError } from "../exit";
import { fileFault } from "../faults";

export interface FoundFile {
  /** In the publication: parts with slashes between them. */
  path: string;
  /** On disk. */
  file: string;
  bytes: number;
  type: string;
}

export interface Found {
  files: FoundFile[];
  /** Sentences without their full stops. */
  skipped: string[];
}

const TYPE_DEFAULT = "application/octet-stream";
/** The registered type of .m4s is younger than most players. */
const TYPES: Record<string, string> = { ".m4s": "video/mp4", ".cmfv": "video/mp4", ".cmfa": "audio/mp4" };

export const typeOf = (name: string): string =>
  TYPES[path.extname(name).toLowerCase()] ?? (mime.lookup(name) || TYPE_DEFAULT);

/** A file alone, or a folder with all that is in it. Throws an Exit if a name cannot be published. */
export async function findFiles(given: string): Promise<Found> {
  const root = await realpath(given).catch((error: unknown) => {
    throw fileFault("read", given, error);
  });
  const there = await stat(root);
  const found: Found = { files: [], skipped: [] };
  if (there.isFile()) await take(path.basename(root), root, found);
  else if (there.isDirectory()) await walk(root, "", found);
  else throw new Exit(STATUS.failed, `${given} is neither a file nor a folder.`);
  const { files } = PUBLICATION_LIMITS;
  if (found.files.length === 0)
    throw new Exit(STATUS.failed, `${given} has no file to publish.${listed(found.skipped)}`);
  if (found.files.length > files)
    throw new Exit(STATUS.failed, `${given} has ${found.files.length} files; a publication has at most ${files}.`);
  return found;
}

const listed = (skipped: readonly string[]): string =>
  skipped.length === 0 ? "" : ` Left out: ${skipped.slice(0, 5).join("; ")}.`;

async function walk(folder: string, prefix: string, found: Found): Promise<void> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw fileFault("read", folder, error);
  });
  if (entries.length === 0) found.skipped.push(`${prefix || folder}: an empty folder`);
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const at = `${prefix}${entry.name}`;
    const file = path.join(folder, entry.name);
    if (entry.name.startsWith(".")) found.skipped.push(`${at}: hidden`);
    else if (entry.name.includes("\ufffd")) found.skipped.push(`${at}: its name is not UTF-8`);
    else if (entry.isSymbolicLink()) found.skipped.push(`${at}: a symbolic link`);
    else if (entry.isDirectory()) await walk(file, `${at}/`, found);
    else if (!entry.isFile()) found.skipped.push(`${at}: neither a file nor a folder`);
    else await take(at, file, found);
  }
}

/** Takes a file, unless it is a private key. */
async function take(name: string, file: string, found: Found): Promise<void> {
  const { size } = await stat(file);
  if (await isPrivateKey(size, () => textOf(file))) found.skipped.push(`${name}: a private key`);
  else found.files.push(fileAt(name, file, size));
}

async function textOf(file: string): Promise<string> {
  return readFile(file, "latin1").catch((error: unknown) => {
    throw fileFault("read", file, error);
  });
}

function fileAt(name: string, file: string, bytes: number): FoundFile {
  const fault = pathFault(name);
  if (fault !== undefined) throw new Exit(STATUS.failed, `Cannot publish ${file}: its name ${fault}.`);
  return { path: name, file, bytes, type: typeOf(name) };
}

/** The publication's name: as the user says, or made from the name of the file or folder. */
export function publicationName(wanted: string | undefined, given: string): string {
  const { name: base } = path.parse(path.resolve(given));
  const name = wanted ?? nameFrom(base);
  const parsed = PublicationName.safeParse(name);
  if (parsed.success) return parsed.data;
  const why = `${parsed.error.issues[0]!.message}, at most ${PUBLICATION_LIMITS.nameChars} characters`;
  if (wanted !== undefined) throw new UsageError(`--name ${wanted}: a name ${why}.`);
  throw new UsageError(`No name can be made from ${base}: use --name. A name ${why}.`);
}

const nameFrom = (base: string): string =>
  base
    .normalize("NFKD")
    .replace(/\p{M}/gu, "")
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .slice(0, PUBLICATION_LIMITS.nameChars)
    .replace(/^[._-]+|[._-]+$/g, "");
