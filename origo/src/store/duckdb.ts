/**
 * DuckDB: the Database in one file, for one process. Changes go one after another through one connection. Readers have
 * their own connections, so that a long query does not delay intake.
 */
import { stat } from "node:fs/promises";
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
import { checkFile, checkLength, DUCKDB_FILE, duckDbFault, keepUnread, openPrivately } from "./duckdb-file";

/**
 * A checkpoint moves the log into the file when the log has this size. Nobody can write during a checkpoint, so it must
 * be short.
 */
const CHECKPOINT_BYTES = 8_000_000;
/** The file is vacuumed when nothing was written for this time, because a vacuum takes seconds. */
const IDLE_MS = 20_000;
/** At most this many queries run at the same time. */
const READERS = 4;

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
    throw duckDbFault(error, dataDir);
  });
  try {
    const writer = await instance.connect();
    await writer.run("SET max_vacuum_tasks = 0");
    const readers = await Promise.all(Array.from({ length: READERS }, () => instance.connect()));
    const query = (sql: string): Promise<Row[]> => all(writer, sql, []);
    await checkLength(query, file);
    const loss = await keepUnread(query, walFile);
    if (loss !== undefined) warn?.(loss);
    return new DuckDb(instance, writer, readers, walFile, idleMs);
  } catch (error) {
    instance.closeSync();
    throw duckDbFault(error as Error, dataDir);
  }
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
