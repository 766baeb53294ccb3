/**
 * Files: all records as CSV (RFC 4180, UTF-8) or Parquet, and back. A file has the columns of fields.ts by the names of the fields; in
 * CSV an empty cell is none, and an empty text is `""`. What comes in is checked like what clients send.
 */
import { createReadStream, createWriteStream } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import type { ImportResponse } from "../query-schema";
import { DownloadRecord, faultOf } from "../schema";
import type { Cell, Database, Row } from "./database";
import { openDuckDb } from "./duckdb";
import { faultAt } from "./faults";
import { COLUMNS } from "./fields";
import { migrate } from "./migrations";
import { recordOf, rowOf } from "./record-row";

const PIECE_ROWS = 2048;

/** Cells under the names of their fields. */
const SELECTED = COLUMNS.map(({ name, column, kind }) => `${column}${kind === "uuid" ? "::VARCHAR" : ""} AS "${name}"`).join(", ");
const ALL = `SELECT ${SELECTED} FROM downloads ORDER BY seq`;

export function exportCsv(database: Database): Readable {
  return Readable.from(csvOf(database), { objectMode: false });
}

async function* csvOf(database: Database): AsyncIterable<string> {
  yield `${COLUMNS.map(({ name }) => name).join(",")}\r\n`;
  for await (const rows of database.stream(ALL)) {
    yield rows.map((row) => `${COLUMNS.map(({ name }) => csvCell(row[name] ?? null)).join(",")}\r\n`).join("");
  }
}

function csvCell(cell: Cell): string {
  if (cell === null) return "";
  const text = String(cell);
  return text === "" || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Makes the file, gives it to `take` and removes it. PostgreSQL's records pass through a DuckDB file, which can write Parquet. */
export async function withParquet(database: Database, take: (file: Readable) => Promise<void>): Promise<void> {
  await inFolder(async (folder) => {
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

/** All of the file's records that are not yet stored, or, with a QueryFault that names the row, none of them. */
export async function importFile(database: Database, format: "csv" | "parquet", file: Readable): Promise<ImportResponse> {
  return inFolder(async (folder) => {
    const path = join(folder, `records.${format}`);
    await pipeline(file, createWriteStream(path));
    const reader = await openDuckDb(folder);
    try {
      const quoted = `'${path.replaceAll("'", "''")}'`;
      const source = format === "csv" ? `read_csv(${quoted}, header = true, all_varchar = true, delim = ',', quote = '"', escape = '"', allow_quoted_nulls = false, nullstr = '')` : `read_parquet(${quoted})`;
      await reader.run(`CREATE TABLE given AS SELECT ${COLUMNS.map(({ name, column, kind }) => `"${name}"::${IMPORT_TYPES[kind]} AS ${column}`).join(", ")} FROM ${source}`).catch((error: Error) => {
        throw faultAt("body", `is not a ${format} file that Origo exported: ${error.message.split("\n")[0] ?? ""}`);
      });
      return await store(database, reader);
    } finally {
      await reader.close();
    }
  });
}

const IMPORT_TYPES = { text: "VARCHAR", uuid: "VARCHAR", whole: "BIGINT", real: "DOUBLE", time: "DOUBLE" } as const;

/** One transaction: in the middle of a file that fails, nothing of it is stored. */
function store(database: Database, reader: Database): Promise<ImportResponse> {
  return database.transaction(async (inside) => {
    let [accepted, count] = [0, 0];
    for await (const rows of reader.stream(`SELECT ${COLUMNS.map(({ name, column }) => `${column} AS "${name}"`).join(", ")} FROM given`)) {
      const checked = rows.map((row, index) => checkedRow(row, count + index + 1));
      count += rows.length;
      for (let at = 0; at < checked.length; at += PIECE_ROWS) accepted += (await inside.insertNew("downloads", COLUMNS, checked.slice(at, at + PIECE_ROWS))).size;
    }
    return { accepted, duplicate: count - accepted };
  });
}

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

async function inFolder<T>(work: (folder: string) => Promise<T>): Promise<T> {
  const folder = await mkdtemp(join(tmpdir(), "origo-file-"));
  try {
    return await work(folder);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
