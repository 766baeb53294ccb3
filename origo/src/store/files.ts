/**
 * Files: exports all records as CSV (csv.ts, UTF-8) or Parquet, and imports them. The columns have the names of the
 * fields in fields.ts. In CSV an empty cell means no value, and `""` means an empty text. Imported records are checked
 * like the records that clients send.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { csvCell, withoutGuard } from "../csv";
import type { ImportResponse } from "@tributary/contract/query-schema";
import { faultOf } from "@tributary/contract/fault";
import { DownloadRecord, EPOCH_MS_MAX } from "@tributary/contract/schema";
import { CLOCK_AHEAD_MS_MAX, recordFault } from "../plausible";
import type { Cell, Database, Row } from "./database";
import { openDuckDb } from "./duckdb";
import { faultAt } from "./faults";
import { COLUMNS, LATER_COLUMNS } from "./fields";
import { migrate } from "./migrations";
import { recordOf, rowOf } from "./record-row";
import type { Store } from "./store";

type Format = "csv" | "parquet";

const PIECE_ROWS = 2048;

/** Selects every column under the name of its field. */
const SELECTED = COLUMNS.map(
  ({ name, column, kind }) => `${column}${kind === "uuid" ? "::VARCHAR" : ""} AS "${name}"`,
).join(", ");
const ALL = `SELECT ${SELECTED} FROM downloads ORDER BY seq`;

export function exportCsv(database: Database): Readable {
  return Readable.from(csvOf(database.patient), { objectMode: false });
}

async function* csvOf(database: Database): AsyncIterable<string> {
  yield `${COLUMNS.map(({ name }) => name).join(",")}\r\n`;
  for await (const rows of database.stream(ALL)) {
    yield rows.map((row) => `${COLUMNS.map(({ name }) => csvCell(row[name])).join(",")}\r\n`).join("");
  }
}

/**
 * Writes the file, passes it to `take` and removes it. Records of PostgreSQL are copied to a DuckDB file first, because
 * DuckDB can write Parquet. Throws DiskFull.
 */
export async function withParquet(store: Store, take: (file: Readable) => Promise<void>): Promise<void> {
  const database = store.database.patient;
  await store.checkDisk();
  await inFolder(store.scratchDir, async (folder) => {
    const file = join(folder, "records.parquet");
    const copied = database.kind === "duckdb" ? database : await copyOf(database, folder);
    try {
      await copied.all(`COPY (${ALL}) TO '${file.replaceAll("'", "''")}' (FORMAT parquet)`);
    } finally {
      if (copied !== database) await copied.close();
    }
    await take(createReadStream(file));
  });
}

async function copyOf(database: Database, folder: string): Promise<Database> {
  const copy = await openDuckDb(folder);
  await migrate(copy);
  for await (const rows of database.stream(ALL)) await copy.insertNew("downloads", COLUMNS, rows);
  return copy;
}

/**
 * Stores all records of the file that are not stored yet, except those that intake would refuse as implausible: an
 * older Origo may hold such records. If a row is no record, nothing is stored and a QueryFault names the row. Throws
 * DiskFull.
 */
export async function importFile(store: Store, format: Format, file: Readable, nowMs: number): Promise<ImportResponse> {
  await store.checkRoom();
  return inFolder(store.scratchDir, async (folder) => {
    const path = join(folder, `records.${format}`);
    await pipeline(file, (pieces: Readable) => whileThereIsRoom(store, pieces), createWriteStream(path));
    const reader = await openDuckDb(folder);
    try {
      await readGiven(reader, path, format);
      return await addGiven(store.database.patient, reader, format, nowMs);
    } finally {
      await reader.close();
    }
  });
}

/**
 * Makes the table `given` of the file. Throws a QueryFault if the file does not have all columns that the first
 * version exported.
 */
async function readGiven(reader: Database, path: string, format: Format): Promise<void> {
  const source = sourceOf(path, format);
  const refused = (error: Error): never => {
    const reason = (error.message.split("\n")[0] ?? "").replaceAll(path, `records.${format}`);
    throw faultAt("body", `is not a ${format} file that Origo exported: ${reason}`);
  };
  const found = await reader.all(`DESCRIBE SELECT * FROM ${source}`).catch(refused);
  const names = new Set(found.map((row) => row["column_name"]));
  const lacking = COLUMNS.map(({ name }) => name).filter((name) => !names.has(name) && !LATER_COLUMNS.has(name));
  if (lacking.length > 0) {
    const has = `it lacks ${lacking.length} of ${COLUMNS.length} columns, the first is ${lacking[0]}`;
    throw faultAt("body", `is not a ${format} file that this version of Origo exported: ${has}`);
  }
  const columns = COLUMNS.map(
    ({ name, column, kind }) => `${names.has(name) ? `"${name}"` : "NULL"}::${IMPORT_TYPES[kind]} AS ${column}`,
  );
  await reader.run(`CREATE TABLE given AS SELECT ${columns.join(", ")} FROM ${source}`).catch(refused);
}

/** DuckDB's function that reads the file. */
function sourceOf(path: string, format: Format): string {
  const quoted = `'${path.replaceAll("'", "''")}'`;
  if (format === "parquet") return `read_parquet(${quoted})`;
  const csv = `delim = ',', quote = '"', escape = '"', allow_quoted_nulls = false, nullstr = ''`;
  return `read_csv(${quoted}, header = true, all_varchar = true, ${csv})`;
}

/** The file may be on the disk of the database, which does not survive a full disk. */
async function* whileThereIsRoom(store: Store, pieces: Readable): AsyncIterable<Buffer> {
  for await (const piece of pieces) {
    await store.checkRoom();
    yield piece as Buffer;
  }
}

const IMPORT_TYPES = { text: "VARCHAR", uuid: "VARCHAR", whole: "BIGINT", real: "DOUBLE", time: "DOUBLE" } as const;

/** Runs in one transaction: if the file is wrong somewhere, nothing of it is stored. */
function addGiven(database: Database, reader: Database, format: Format, nowMs: number): Promise<ImportResponse> {
  return database.transaction(async (inside) => {
    let [accepted, count] = [0, 0];
    const left: string[] = [];
    for await (const rows of reader.stream(
      `SELECT ${COLUMNS.map(({ name, column }) => `${column} AS "${name}"`).join(", ")} FROM given`,
    )) {
      const checked: Row[] = [];
      for (const [index, row] of rows.entries()) {
        const { kept, fault } = checkedRow(format === "csv" ? asWritten(row) : row, count + index + 1, nowMs);
        if (fault === undefined) checked.push(kept);
        else left.push(fault);
      }
      count += rows.length;
      for (let at = 0; at < checked.length; at += PIECE_ROWS)
        accepted += (await inside.insertNew("downloads", COLUMNS, checked.slice(at, at + PIECE_ROWS))).size;
    }
    const leftOut = left[0] === undefined ? {} : { leftOut: { records: left.length, first: left[0] } };
    return { accepted, duplicate: count - left.length - accepted, ...leftOut };
  });
}

const asWritten = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, cell]): [string, Cell] => [
      name,
      typeof cell === "string" ? withoutGuard(cell) : cell,
    ]),
  );

/** `fault` says why the record is left out. Throws a QueryFault if the row is no record. */
function checkedRow(row: Row, place: number, nowMs: number): { kept: Row; fault: string | undefined } {
  const given = parsedRecord(row);
  const record = DownloadRecord.safeParse(given);
  if (!record.success) throw faultAt(`row ${place}`, faultOf(record.error, given).message);
  const receivedAtMs = row["receivedAtMs"];
  if (typeof receivedAtMs !== "number" || !(receivedAtMs >= 0 && receivedAtMs <= EPOCH_MS_MAX))
    throw faultAt(`row ${place}`, `receivedAtMs: must be ms since 1970, got ${String(receivedAtMs)}`);
  // An Origo whose clock was ahead wrote such a time. The record would outlive its retention.
  const storedAtMs = receivedAtMs > nowMs + CLOCK_AHEAD_MS_MAX ? nowMs : receivedAtMs;
  const fault = recordFault(record.data, nowMs);
  return { kept: rowOf(record.data, storedAtMs), fault: fault && `row ${place}: ${fault.field}: ${fault.message}` };
}

/** Undefined when the proxies are not JSON. The schema refuses undefined. */
function parsedRecord(row: Row): unknown {
  try {
    return recordOf(row);
  } catch {
    return undefined;
  }
}

/** Runs `work` in a new folder and removes the folder. Origo removes `parent` at its start, in case of a crash. */
async function inFolder<T>(parent: string, work: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, "file-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
