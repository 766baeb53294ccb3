/**
 * DuckDB: the Database in one file, for one process. Changes go one after another through one connection. Readers have
 * their own connections, so that a long query does not delay intake.
 */
import { chmod, copyFile, mkdir, open, readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import {
  BIGINT,
  BLOB,
  BOOLEAN,
  DOUBLE,
  DuckDBBlobValue,
  DuckDBInstance,
  VARCHAR,
  type DuckDBAppender,
  type DuckDBConnection,
  type DuckDBType,
  type DuckDBValue,
} from "@duckdb/node-api";
import type { Cell, Column, Database, Queries, Row } from "./database";

export const DUCKDB_FILE = "origo.duckdb";
/**
 * A checkpoint moves the log into the file when the log has this size. Nobody can write during a checkpoint, so it must
 * be short.
 */
const CHECKPOINT_BYTES = 8_000_000;
/** The file is vacuumed when nothing was written for this time, because a vacuum takes seconds. */
const IDLE_MS = 20_000;
/** At most this many queries run at the same time. */
const READERS = 4;
/** The mode bit of folders such as /tmp. */
const STICKY = 0o1000;

export interface OpenOptions {
  /** The file is vacuumed this long after the last write. */
  idleMs?: number;
  /** Hears what of the database was lost before. */
  warn?: (message: string) => void;
}

/**
 * Opens or creates DATA_DIR/origo.duckdb. Throws when another process has the file open, or when it is not a DuckDB
 * file.
 */
export async function openDuckDb(dataDir: string, { idleMs = IDLE_MS, warn }: OpenOptions = {}): Promise<Database> {
  await openPrivately(dataDir);
  const file = join(dataDir, DUCKDB_FILE);
  const walFile = `${file}.wal`;
  await checkFile(file);
  // An extension would come from the network.
  const options = { checkpoint_threshold: "1TB", autoinstall_known_extensions: "false" };
  const instance = await DuckDBInstance.create(file, options).catch((error: Error) => {
    const remedy = error.message.includes(walFile)
      ? `${walFile} is damaged: put a backup in the place of both files, or move that one away and lose what is in it`
      : "put a backup in its place if it is damaged";
    throw new Error(`${file} cannot be opened: ${remedy}: ${error.message}`);
  });
  try {
    const writer = await instance.connect();
    await writer.run("SET max_vacuum_tasks = 0");
    const readers = await Promise.all(Array.from({ length: READERS }, () => instance.connect()));
    const loss = await keepUnread(writer, walFile);
    if (loss !== undefined) warn?.(loss);
    return new DuckDb(instance, writer, readers, walFile, idleMs);
  } catch (error) {
    instance.closeSync();
    throw error;
  }
}

/**
 * Makes the folder, and lets nobody but its owner read the folder and the database in it, also if it is there already.
 */
async function openPrivately(dataDir: string): Promise<void> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 }).catch((error: Error) => {
    throw new Error(`the folder of DATA_DIR cannot be made: ${error.message}`);
  });
  const { mode } = await stat(dataDir);
  if ((mode & STICKY) !== 0)
    throw new Error(`${dataDir} is a folder that others share: give Origo a folder of its own in DATA_DIR`);
  await chmod(dataDir, 0o700).catch((error: Error) => {
    throw new Error(`the folder of DATA_DIR must be one that Origo owns and may change: ${error.message}`);
  });
  for (const name of await readdir(dataDir)) {
    if (!name.startsWith(DUCKDB_FILE)) continue;
    const path = join(dataDir, name);
    const kind = await stat(path).catch((error: NodeJS.ErrnoException) => {
      throw new Error(`${path} cannot be read (${error.code ?? error.message}): does a link lead nowhere?`);
    });
    if (kind.isDirectory() && name === `${DUCKDB_FILE}.wal`)
      throw new Error(`${path} is no file, so it is no log of a database: move it away`);
    await chmod(path, kind.isDirectory() ? 0o700 : 0o600);
  }
}

/** Where a DuckDB file has its mark, after a checksum. */
const MARK = { offset: 8, text: "DUCK" };

/** Throws if the file exists and cannot be a database of DuckDB. DuckDB's own errors do not say what to do. */
async function checkFile(file: string): Promise<void> {
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
async function keepUnread(connection: DuckDBConnection, walFile: string): Promise<string | undefined> {
  const bytes = (await stat(walFile).catch(() => undefined))?.size ?? 0;
  if (bytes === 0) return undefined;
  const [told] = await all(connection, "SELECT wal_size AS read FROM pragma_database_size()", []);
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

class DuckDb implements Database {
  readonly kind = "duckdb";
  readonly patient: Database = this;
  #writing: Promise<unknown> = Promise.resolve();
  #closed: Promise<void> | undefined;
  /** Runs when there was a checkpoint since the last vacuum. */
  #idle: NodeJS.Timeout | undefined;
  readonly #reading: { connection: DuckDBConnection; last: Promise<unknown>; waiting: number }[];

  readonly #instance: DuckDBInstance;
  readonly #writer: DuckDBConnection;
  readonly #walFile: string;
  readonly #idleMs: number;

  constructor(
    instance: DuckDBInstance,
    writer: DuckDBConnection,
    readers: readonly DuckDBConnection[],
    walFile: string,
    idleMs: number,
  ) {
    this.#instance = instance;
    this.#writer = writer;
    this.#walFile = walFile;
    this.#idleMs = idleMs;

    this.#reading = readers.map((connection) => ({ connection, last: Promise.resolve(), waiting: 0 }));
  }

  run(sql: string, values: readonly Cell[] = []): Promise<number> {
    return this.#inTurn(() => run(this.#writer, sql, values));
  }

  all(sql: string, values: readonly Cell[] = []): Promise<Row[]> {
    return this.#asReader((connection) => all(connection, sql, values));
  }

  insertNew(table: string, columns: readonly Column[], rows: readonly Row[]): Promise<Set<string>> {
    return this.transaction((inside) => inside.insertNew(table, columns, rows));
  }

  transaction<T>(work: (inside: Queries) => Promise<T>): Promise<T> {
    return this.#inTurn(async () => {
      await this.#writer.run("BEGIN TRANSACTION");
      try {
        const result = await work({
          run: (sql, values = []) => run(this.#writer, sql, values),
          all: (sql, values = []) => all(this.#writer, sql, values),
          insertNew: (table, columns, rows) => insertNew(this.#writer, table, columns, rows),
        });
        await this.#writer.run("COMMIT");
        return result;
      } catch (error) {
        await this.#writer.run("ROLLBACK").catch(() => undefined);
        throw error;
      }
    });
  }

  exclusive<T>(work: (inside: Queries) => Promise<T>): Promise<T> {
    return this.transaction(work);
  }

  /** Uses its own connection, which stays open until the last piece was read. */
  async *stream(sql: string, values: readonly Cell[] = []): AsyncIterable<Row[]> {
    const connection = await this.#instance.connect();
    try {
      await connection.run("BEGIN TRANSACTION");
      const result = await connection.stream(sql, values.map(valueOf), values.map(typeOf));
      for await (const rows of result.yieldRowObjectJs()) yield rows.map(rowOf);
    } finally {
      connection.closeSync();
    }
  }

  async storageBytes(): Promise<number> {
    const [row] = await this.all("SELECT used_blocks * block_size AS bytes FROM pragma_database_size()");
    const log = await stat(this.#walFile).catch(() => undefined);
    return Number(row?.["bytes"]) + (log?.size ?? 0);
  }

  close(): Promise<void> {
    return (this.#closed ??= (async () => {
      await Promise.all([this.#writing, ...this.#reading.map((reader) => reader.last)]);
      clearTimeout(this.#idle);
      for (const { connection } of this.#reading) connection.closeSync();
      this.#writer.closeSync();
      this.#instance.closeSync();
    })());
  }

  #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#writing.then(work);
    this.#writing = turn.catch(() => undefined).then(() => this.#checkpoint());
    return turn;
  }

  /** When a checkpoint fails, for example because the disk is full, the data stays in the log until the next one. */
  async #checkpoint(): Promise<void> {
    this.#idle?.refresh();
    const log = await stat(this.#walFile).catch(() => undefined);
    if (log === undefined || log.size < CHECKPOINT_BYTES) return;
    await this.#writer.run("CHECKPOINT").catch(() => undefined);
    this.#idle ??= setTimeout(() => {
      this.#idle = undefined;
      void this.#inTurn(() => this.#vacuum()).catch(() => undefined);
    }, this.#idleMs).unref();
  }

  async #vacuum(): Promise<void> {
    await this.#writer.run("SET max_vacuum_tasks = 100");
    await this.#writer.run("CHECKPOINT").finally(() => this.#writer.run("SET max_vacuum_tasks = 0"));
  }

  #asReader<T>(work: (connection: DuckDBConnection) => Promise<T>): Promise<T> {
    const reader = this.#reading.reduce((best, other) => (other.waiting < best.waiting ? other : best));
    reader.waiting++;
    const turn = reader.last.then(() => inSnapshot(reader.connection, work)).finally(() => reader.waiting--);
    reader.last = turn.catch(() => undefined);
    return turn;
  }
}

/**
 * DuckDB plans a statement by what the tables hold at that time, including the width in which it sorts strings and
 * numbers. Rows that others commit between planning and running would come out wrong. A transaction makes both see the
 * same state.
 */
async function inSnapshot<T>(
  connection: DuckDBConnection,
  work: (connection: DuckDBConnection) => Promise<T>,
): Promise<T> {
  await connection.run("BEGIN TRANSACTION");
  try {
    return await work(connection);
  } finally {
    await connection.run("ROLLBACK");
  }
}

async function run(connection: DuckDBConnection, sql: string, values: readonly Cell[]): Promise<number> {
  return (await connection.run(sql, values.map(valueOf), values.map(typeOf))).rowsChanged;
}

async function all(connection: DuckDBConnection, sql: string, values: readonly Cell[]): Promise<Row[]> {
  const result = await connection.runAndReadAll(sql, values.map(valueOf), values.map(typeOf));
  return result.getRowObjectsJS().map(rowOf);
}

/**
 * An appender takes a third of the time of an INSERT with JSON. An index over the ids would cost more than the query.
 */
async function insertNew(
  connection: DuckDBConnection,
  table: string,
  columns: readonly Column[],
  rows: readonly Row[],
): Promise<Set<string>> {
  const fresh = new Map<string, Row>();
  for (const row of rows) if (!fresh.has(String(row["id"]))) fresh.set(String(row["id"]), row);
  const known = await all(
    connection,
    `SELECT id::VARCHAR AS id FROM ${table} WHERE id IN (SELECT unnest(from_json($1, '["UUID"]')))`,
    [JSON.stringify([...fresh.keys()])],
  );
  for (const { id } of known) fresh.delete(String(id));
  if (fresh.size === 0) return new Set();
  const [numbers] = await all(connection, `SELECT max(nextval('${table}_seq')) AS last FROM range(${fresh.size})`, []);
  const first = Number(numbers?.["last"]) - fresh.size + 1;
  const kinds = ["whole", ...columns.map(({ kind }) => kind)];
  const names = ["seq", ...columns.map(({ name }) => name)];
  const appender = await connection.createAppender(table);
  try {
    [...fresh.values()].forEach((row, index) =>
      appendRow(
        appender,
        kinds,
        names.map((name) => (name === "seq" ? first + index : row[name]) ?? null),
      ),
    );
  } finally {
    appender.closeSync();
  }
  return new Set(fresh.keys());
}

function appendRow(appender: DuckDBAppender, kinds: readonly string[], cells: readonly Cell[]): void {
  cells.forEach((cell, index) => {
    if (cell === null) appender.appendNull();
    else if (typeof cell === "string") appender.appendVarchar(cell);
    else if (kinds[index] === "whole") appendWhole(appender, cell as number);
    else appender.appendDouble(cell as number);
  });
  appender.endRow();
}

/** Most values fit 32 bits and need no BigInt. */
function appendWhole(appender: DuckDBAppender, value: number): void {
  if ((value | 0) === value) appender.appendInteger(value);
  else appender.appendBigInt(BigInt(value));
}

/** Whole numbers are passed as integers, so that a query by `seq` can skip blocks of the table. */
function typeOf(cell: Cell): DuckDBType {
  if (typeof cell === "number") return Number.isSafeInteger(cell) ? BIGINT : DOUBLE;
  if (typeof cell === "boolean") return BOOLEAN;
  return cell instanceof Uint8Array ? BLOB : VARCHAR;
}

function valueOf(cell: Cell): DuckDBValue {
  if (cell instanceof Uint8Array) return new DuckDBBlobValue(cell);
  return Number.isSafeInteger(cell) ? BigInt(cell as number) : cell;
}

function rowOf(row: Record<string, unknown>): Row {
  const cells: Row = {};
  for (const name of Object.keys(row)) {
    const cell = row[name];
    cells[name] = typeof cell === "bigint" ? Number(cell) : (cell as Cell);
  }
  return cells;
}
