/**
 * DuckDbFile: the folder and the file of the database, before it is used: whether Origo may use them, what is damaged,
 * and what to do about it.
 */
import { chmod, copyFile, mkdir, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Row } from "./database";

export const DUCKDB_FILE = "origo.duckdb";
/** The mode bit of folders such as /tmp. */
const STICKY = 0o1000;

type Query = (sql: string) => Promise<Row[]>;

/**
 * Makes the folder, and lets nobody but its owner read the folder and the database in it, also if it is there already.
 */
export async function openPrivately(dataDir: string): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    const remedy = "give the path of a folder that Origo may make, or make it";
    throw new Error(`the folder of DATA_DIR, ${dataDir}, cannot be made: ${remedy} (${error.message})`);
  });
  const { mode } = await stat(dataDir);
  if ((mode & STICKY) !== 0)
    throw new Error(`${dataDir} is a folder that others share: give Origo a folder of its own in DATA_DIR`);
  await chmod(dataDir, 0o700).catch((error: Error) => {
    throw new Error(`the folder of DATA_DIR, ${dataDir}, must be one that Origo owns and may change: ${error.message}`);
  });
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(DUCKDB_FILE)) continue;
    const path = join(dataDir, name);
    const kind = await stat(path).catch((error: NodeJS.ErrnoException) => {
      throw new Error(`${path} cannot be read (${error.code ?? error.message}): does a link lead nowhere?`);
    });
    if (kind.isDirectory() && name === `${DUCKDB_FILE}.wal`)
      throw new Error(`${path} is no file, so it is no log of a database: move it away`);
    await chmod(path, kind.isDirectory() ? 0o700 : 0o600).catch((error: Error) => {
      throw new Error(`${path} must be a file that Origo owns and may change: ${error.message}`);
    });
  }
}

/** Where a DuckDB file has its mark, after a checksum. */
const MARK = { offset: 8, text: "DUCK" };

/** Throws if the file exists and cannot be a database of DuckDB. DuckDB's own errors do not say what to do. */
export async function checkFile(file: string): Promise<void> {
  const handle = await open(file).catch((error: NodeJS.ErrnoException) =>
    error.code === "ENOENT" ? undefined : Promise.reject(error),
  );
  if (handle === undefined) return;
  const remedy = "put a backup in its place, or move it away to begin with an empty one";
  try {
    const kind = await handle.stat();
    if (!kind.isFile()) throw new Error(`${file} is no file, so it is no database: ${remedy}`);
    if (kind.size === 0) throw new Error(`${file} has 0 bytes, so it is no database: ${remedy}`);
    const { buffer } = await handle.read(Buffer.alloc(MARK.text.length), 0, MARK.text.length, MARK.offset);
    if (buffer.toString("latin1") !== MARK.text)
      throw new Error(`${file} is no database of Origo, but another file: ${remedy}`);
  } finally {
    await handle.close();
  }
}

const UNITS = ["bytes", "KiB", "MiB", "GiB"];

/**
 * DuckDB passes over the rest of its log without a word from the first entry on that is incomplete, and the next write
 * replaces that rest. So the log is copied first. Returns what to tell; undefined if nothing was passed over, or less
 * than a tenth of the unit in which DuckDB tells the length.
 */
export async function keepUnread(query: Query, walFile: string): Promise<string | undefined> {
  const bytes = (await stat(walFile).catch(() => undefined))?.size ?? 0;
  if (bytes === 0) return undefined;
  const [told] = await query("SELECT wal_size AS read FROM pragma_database_size()");
  const [, number, unit] = /^([\d.]+) (\w+)$/.exec(String(told?.["read"])) ?? [];
  const power = UNITS.indexOf(unit ?? "");
  if (power < 0 || bytes < (Number(number) + 0.1) * 1024 ** power) return undefined;
  const copy = `${walFile}.damaged`;
  await copyFile(walFile, copy);
  return (
    `${walFile} is damaged: of its ${bytes} bytes about ${number} ${unit} could be read. The changes in the rest are ` +
    `lost, which are the last ones before Origo ended. A copy is in ${copy}`
  );
}

/** What DuckDB says of a file that it cannot use, and what to do. Any other error is no fault of the file. */
const REMEDIES: readonly (readonly [RegExp, string])[] = [
  [/set lock on file/, "another process uses it: stop that one, or give this Origo another folder in DATA_DIR"],
  [/No space left|Disk quota/, "the disk is full: free some space"],
  [/Read-only file system|Permission denied|Operation not permitted|read-only/, "Origo must be able to write it"],
  [/encrypted database/, "it is encrypted, so Origo did not make it: give another folder in DATA_DIR"],
  [/^(IO|Serialization|INTERNAL|FATAL) Error/, "put a backup in its place if it is damaged"],
];

/** The version of a file, and the oldest one that DuckDB reads. */
const VERSIONS = /version number (\d+), but we can only read versions between (\d+)/;

function remedyOf(message: string): string | undefined {
  const [, made, oldest] = VERSIONS.exec(message) ?? [];
  if (made === undefined) return REMEDIES.find(([pattern]) => pattern.test(message))?.[1];
  return Number(made) < Number(oldest)
    ? "an older version made it that this Origo cannot read: give another folder in DATA_DIR"
    : "a newer version made it: use a newer Origo, or another folder in DATA_DIR";
}

/** The error, with the name of the file and the remedy, if it is of the file in `dataDir`. */
export function duckDbFault(error: Error, dataDir: string): Error {
  // The lines after the first one are advice for users of DuckDB.
  const message = error.message.split("\n", 1)[0]!;
  const file = join(dataDir, DUCKDB_FILE);
  const walFile = `${file}.wal`;
  const remedy = remedyOf(message);
  if (remedy === undefined || !/^\w+ Error: /.test(message)) return error;
  if (message.includes(walFile) && remedy.includes("backup")) {
    const choice = "put a backup in the place of both files, or move that one away and lose what is in it";
    return new Error(`${file} cannot be used: ${walFile} is damaged: ${choice}: ${message}`);
  }
  return new Error(`${file} cannot be used: ${remedy}: ${message}`);
}

/** Where the blocks of a DuckDB file begin. */
const BLOCKS_AT = 12_288;

/**
 * DuckDB reads a block when a query needs it, so a file that ends early would fail at any time. A full disk can leave a
 * file without its last free blocks, so a short file with free blocks may be whole: its tables are read. Throws if
 * something is missing.
 */
export async function checkLength(query: Query, file: string): Promise<void> {
  const [told] = await query("SELECT total_blocks * block_size AS bytes, free_blocks FROM pragma_database_size()");
  const [expected, { size }] = [BLOCKS_AT + Number(told?.["bytes"]), await stat(file)];
  if (size >= expected) return;
  const remedy = "put a backup in its place, or move it away to begin with an empty one";
  const fault = (detail: string) =>
    new Error(`${file} ends early, at ${size} bytes of ${expected}: ${remedy}${detail}`);
  if (Number(told?.["free_blocks"]) === 0) throw fault("");
  for (const { table_name: name } of await query("SELECT table_name FROM duckdb_tables()")) {
    await query(`SELECT max(hash(t)) FROM "${String(name)}" t`).catch((error: Error) => {
      throw fault(`: ${error.message}`);
    });
  }
}
