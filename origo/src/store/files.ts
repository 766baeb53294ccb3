/**
 * Files: all records as CSV (csv.ts, UTF-8) or Parquet, and back. A file has the columns of fields.ts by the names of
 * the fields; in CSV an empty cell is none, and an empty text is `""`. What comes in is checked like what clients send.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdir, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { csvCell, withoutGuard } from "../csv";
import type { ImportResponse } from "@tributary/contract/query-schema";
import { DownloadRecord, faultOf } from "@tributary/contract/schema";
import type { Cell, Database, Row } from "./database";
import { openDuckDb } from "./duckdb";
import { faultAt } from "./faults";
import { COLUMNS } from "./fields";
import { migrate } from "./migrations";
import { recordOf, rowOf } from "./record-row";
import type { Store } from "./store";

type Format = "csv" | "parquet";

const PIECE_ROWS = 2048;

/** Cells under the names of their fields. */
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
 * Makes the file, gives it to `take` and removes it. PostgreSQL's records pass through a DuckDB file, which can write
 * Parquet. Throws DiskFull.
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
 * All of the file's records that are not yet stored, or, with a QueryFault that names the row, none of them. Throws
 * DiskFull.
 */
export async function importFile(store: Store, format: Format, file: Readable): Promise<ImportResponse> {
  await store.checkDisk();
  return inFolder(store.scratchDir, async (folder) => {
    const path = join(folder, `records.${format}`);
    await pipeline(file, (pieces: Readable) => whileThereIsRoom(store, pieces), createWriteStream(path));
    const reader = await openDuckDb(folder);
    try {
      const quoted = `'${path.replaceAll("'", "''")}'`;
      const source =
        format === "csv"
          ? `read_csv(${quoted}, header = true, all_varchar = true, delim = ',', quote = '"', escape = '"', allow_quoted_nulls = false, nullstr = '')`
          : `read_parquet(${quoted})`;
      await reader
        .run(
          `CREATE TABLE given AS SELECT ${COLUMNS.map(({ name, column, kind }) => `"${name}"::${IMPORT_TYPES[kind]} AS ${column}`).join(", ")} FROM ${source}`,
        )
        .catch((error: Error) => {
          throw faultAt("body", `is not a ${format} file that Origo exported: ${error.message.split("\n")[0] ?? ""}`);
        });
      return await addGiven(store.database.patient, reader, format);
    } finally {
      await reader.close();
    }
  });
}

/** The disk may be the database's, which does not survive one that is full. */
async function* whileThereIsRoom(store: Store, pieces: Readable): AsyncIterable<Buffer> {
  for await (const piece of pieces) {
    await store.checkDisk();
    yield piece as Buffer;
  }
}

const IMPORT_TYPES = { text: "VARCHAR", uuid: "VARCHAR", whole: "BIGINT", real: "DOUBLE", time: "DOUBLE" } as const;

/** One transaction: in the middle of a file that fails, nothing of it is stored. */
function addGiven(database: Database, reader: Database, format: Format): Promise<ImportResponse> {
  return database.transaction(async (inside) => {
    let [accepted, count] = [0, 0];
    for await (const rows of reader.stream(
      `SELECT ${COLUMNS.map(({ name, column }) => `${column} AS "${name}"`).join(", ")} FROM given`,
    )) {
      const checked = rows.map((row, index) => checkedRow(format === "csv" ? asWritten(row) : row, count + index + 1));
      count += rows.length;
      for (let at = 0; at < checked.length; at += PIECE_ROWS)
        accepted += (await inside.insertNew("downloads", COLUMNS, checked.slice(at, at + PIECE_ROWS))).size;
    }
    return { accepted, duplicate: count - accepted };
  });
}

const asWritten = (row: Row): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, cell]): [string, Cell] => [
      name,
      typeof cell === "string" ? withoutGuard(cell) : cell,
    ]),
  );

function checkedRow(row: Row, place: number): Row {
  const record = DownloadRecord.safeParse(parsedRecord(row));
  if (!record.success) throw faultAt(`row ${place}`, faultOf(record.error).message);
  return rowOf(record.data, Number(row["receivedAtMs"]));
}

/** Undefined, which the schema refuses, when the proxies are no JSON. */
function parsedRecord(row: Row): unknown {
  try {
    return recordOf(row);
  } catch {
    return undefined;
  }
}

/** Origo removes `parent` when it starts, should this process not come to it. */
async function inFolder<T>(parent: string, work: (folder: string) => Promise<T>): Promise<T> {
  await mkdir(parent, { recursive: true });
  const folder = await mkdtemp(join(parent, "file-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
