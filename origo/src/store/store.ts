/**
 * Store: keeps records of downloads, reports of errors and traces in DuckDB or PostgreSQL, each id once. When `add*`
 * resolves, the data is on disk and survives kill -9. When it rejects, none of it is stored. "Newest" means the order
 * of arrival: it has no ties, and new records do not move the pages of a reader. Data arrives here already checked by
 * the schemas. Other queries are in charts.ts, difference.ts and downloads-query.ts.
 */
import { rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { gunzip, gzip } from "node:zlib";
import { promisify } from "node:util";
import type { Trace } from "@tributary/contract/query-schema";
import type { DownloadRecord, ErrorReport, IntakeResponse } from "@tributary/contract/schema";
import { defaultsOf, ORIGO_SETTINGS, type OrigoSettings } from "@tributary/contract/settings";
import type { Column, Database, Row } from "./database";
import { openDuckDb } from "./duckdb";
import { duckDbFault } from "./duckdb-file";
import { COLUMNS, ERROR_COLUMNS } from "./fields";
import { Intake } from "./intake";
import { migrate } from "./migrations";
import { openPostgres } from "./postgres";
import { postgresFault } from "./postgres-fault";
import { recordOf, rowOf } from "./record-row";

/** One page, newest first. `next` is the `before` of the following page, or null on the last page. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

type Table = "downloads" | "errors";
const COLUMNS_OF: Record<Table, readonly Column[]> = { downloads: COLUMNS, errors: ERROR_COLUMNS };

/** The free space of the disk and the size of the database are read again after this time. */
const ROOM_MS = 250;

/** Nothing was stored, because the disk has less free space than the reserve, or because the database is too large. */
export class DiskFull extends Error {
  constructor(
    readonly kind: "diskFull" | "storageFull",
    readonly got: number,
    readonly limit: number,
  ) {
    super(
      kind === "diskFull"
        ? `the disk has ${got} bytes free, less than the reserve of ${limit} bytes: nothing is stored until it has more`
        : `the database has ${got} bytes, more than origo.storageBytesMax allows (${limit} bytes): ` +
            "nothing is stored until records are deleted or an admin raises the limit",
    );
  }
}

export class Store {
  /** May be changed at any time. */
  readonly settings: OrigoSettings = defaultsOf(ORIGO_SETTINGS);
  readonly #intake: Record<Table, Intake>;
  readonly #freeBytes = remembered(async () => {
    if (this.#folder === undefined) return Infinity;
    const { bavail, bsize } = await statfs(this.#folder);
    return bavail * bsize;
  });
  readonly #storageBytes = remembered(() => this.storageBytes());

  readonly #folder: string | undefined;

  /**
   * `folder` is where the database file is, if it is on this machine. `scratchDir` is for files that are exported or
   * imported; it need not exist. `explain` adds to an error of the database what to do, and leaves others as they are.
   */
  private constructor(
    readonly database: Database,
    folder: string | undefined,
    readonly scratchDir: string,
    readonly explain: (error: Error) => Error,
  ) {
    this.#folder = folder;

    this.#intake = {
      downloads: new Intake(database, "downloads", COLUMNS, this.settings),
      errors: new Intake(database, "errors", ERROR_COLUMNS, this.settings),
    };
  }

  /**
   * Opens or creates the tables in DATA_DIR/origo.duckdb, or in the database at `databaseUrl`. Nothing else may use
   * DATA_DIR. Throws when the database cannot be opened, or when a newer Origo wrote it. `warn` hears what of the file
   * was lost before.
   */
  static async open(dataDir: string, databaseUrl?: string, warn?: (message: string) => void): Promise<Store> {
    const database =
      databaseUrl === undefined ? await openDuckDb(dataDir, warn && { warn }) : await openPostgres(databaseUrl);
    const explain = (error: Error): Error =>
      databaseUrl === undefined ? duckDbFault(error, dataDir) : postgresFault(error, databaseUrl);
    try {
      await migrate(database.patient);
      const scratchDir = join(dataDir, "scratch");
      // Files that a killed process left.
      await rm(scratchDir, { recursive: true, force: true });
      return new Store(database, databaseUrl === undefined ? dataDir : undefined, scratchDir, explain);
    } catch (error) {
      await database.close();
      throw explain(error as Error);
    }
  }

  /**
   * Stores the records with new ids, all or none of them. Throws DiskFull, or IntakeFull when too many wait already.
   */
  async addRecords(records: readonly DownloadRecord[], nowMs: number): Promise<IntakeResponse> {
    await this.checkRoom();
    return this.#intake.downloads.add(records.map((record) => rowOf(record, nowMs)));
  }

  /**
   * Stores the reports with new ids, all or none of them. Throws DiskFull, or IntakeFull when too many wait already.
   */
  async addErrors(errors: readonly ErrorReport[], nowMs: number): Promise<IntakeResponse> {
    await this.checkRoom();
    return this.#intake.errors.add(errors.map((error) => ({ ...rowOfError(error), receivedAtMs: nowMs })));
  }

  /** Stores the traces with new ids, all or none of them. Throws DiskFull. */
  async addTraces(traces: readonly Trace[], nowMs: number): Promise<IntakeResponse> {
    await this.checkRoom();
    const packed = await Promise.all(traces.map((trace) => promisify(gzip)(JSON.stringify(trace))));
    return this.database.transaction(async (inside) => {
      let accepted = 0;
      for (const [index, { id }] of traces.entries()) {
        if ((await inside.all("SELECT 1 AS one FROM traces WHERE id = $1::UUID", [id])).length > 0) continue;
        await inside.run("INSERT INTO traces VALUES ($1::UUID, $2::DOUBLE PRECISION, $3)", [
          id,
          nowMs,
          packed[index] ?? new Uint8Array(),
        ]);
        accepted++;
      }
      return { accepted, duplicate: traces.length - accepted };
    });
  }

  /** Undefined when `before` is not the id of a stored record. */
  async records(limit: number, before?: string): Promise<Page<DownloadRecord> | undefined> {
    const page = await this.#page("downloads", limit, before);
    return page && { items: page.items.map(recordOf), next: page.next };
  }

  /** Undefined when `before` is not the id of a stored report. */
  async errors(limit: number, before?: string): Promise<Page<ErrorReport> | undefined> {
    const page = await this.#page("errors", limit, before);
    return page && { items: page.items.map(errorOf), next: page.next };
  }

  async record(id: string): Promise<DownloadRecord | undefined> {
    const [row] = await this.database.all(`SELECT ${selected(COLUMNS)} FROM downloads WHERE id = $1::UUID`, [id]);
    return row && recordOf(row);
  }

  async trace(id: string): Promise<Trace | undefined> {
    const [row] = await this.database.all("SELECT packed FROM traces WHERE id = $1::UUID", [id]);
    return row && (JSON.parse(String(await promisify(gunzip)(row["packed"] as Uint8Array))) as Trace);
  }

  /** Deletes everything received before `thenMs`. Resolves to the number of deleted records. */
  async deleteBefore(thenMs: number): Promise<number> {
    return this.database.patient.transaction(async (inside) => {
      for (const table of ["errors", "traces"])
        await inside.run(`DELETE FROM ${table} WHERE received_at_ms < $1`, [thenMs]);
      return inside.run("DELETE FROM downloads WHERE received_at_ms < $1", [thenMs]);
    });
  }

  /** The latest time that a client's clock gave to a stored record or report; undefined if there is none. */
  async newestClientMs(): Promise<number | undefined> {
    const [row] = await this.database.all(
      `SELECT greatest((SELECT max(started_at_ms) FROM downloads), (SELECT max(at_ms) FROM errors)) AS newest`,
    );
    const newest = row?.["newest"] ?? null;
    return newest === null ? undefined : Number(newest);
  }

  /** Throws DiskFull when no records may be added. */
  async checkRoom(): Promise<void> {
    await this.checkDisk();
    const limit = this.settings.storageBytesMax;
    if (limit === 0) return;
    const bytes = await this.#storageBytes();
    if (bytes > limit) throw new DiskFull("storageFull", bytes, limit);
  }

  /** Throws DiskFull when the disk has no room for a file. */
  async checkDisk(): Promise<void> {
    const limit = this.settings.diskReserveBytes;
    const bytes = await this.#freeBytes();
    if (bytes < limit) throw new DiskFull("diskFull", bytes, limit);
  }

  /** The size of what the database holds. Space in its file that is free again does not count. */
  storageBytes(): Promise<number> {
    return this.database.storageBytes();
  }

  /** Rejects when the database does not answer. */
  async check(): Promise<void> {
    await this.database.all("SELECT 1 AS one");
  }

  /** Waits for running writes, then closes the database. */
  async close(): Promise<void> {
    await Promise.all([this.#intake.downloads.idle(), this.#intake.errors.idle()]);
    await this.database.close();
  }

  async #page(table: Table, limit: number, before?: string): Promise<Page<Row> | undefined> {
    let bound: number | undefined;
    if (before !== undefined) {
      const [found] = await this.database.all(`SELECT seq FROM ${table} WHERE id = $1::UUID`, [before]);
      if (found === undefined) return undefined;
      bound = Number(found["seq"]);
    }
    const where = bound === undefined ? "" : "WHERE seq < $2";
    const sql = `SELECT ${selected(COLUMNS_OF[table])} FROM ${table} ${where} ORDER BY seq DESC LIMIT $1`;
    const rows = await this.database.all(sql, bound === undefined ? [limit + 1] : [limit + 1, bound]);
    const items = rows.slice(0, limit);
    return { items, next: rows.length > limit ? String(items[items.length - 1]?.["id"]) : null };
  }
}

/** Reads a value at most once in ROOM_MS. */
function remembered(read: () => Promise<number>): () => Promise<number> {
  let [value, untilMs] = [Promise.resolve(0), -Infinity];
  return () => {
    if (performance.now() >= untilMs) [value, untilMs] = [read(), performance.now() + ROOM_MS];
    return value;
  };
}

/** Selects columns under the names of their fields, and UUIDs as text. */
const selected = (columns: readonly Column[]): string =>
  columns.map(({ name, column, kind }) => `${column}${kind === "uuid" ? "::VARCHAR" : ""} AS "${name}"`).join(", ");

function rowOfError({ id, clientId, atMs, source, kind, message, url, ledTo }: ErrorReport): Row {
  return { id, clientId: clientId ?? null, atMs, source, kind, message, url: url ?? null, ledTo: ledTo ?? null };
}

function errorOf({ id, clientId, atMs, source, kind, message, url, ledTo }: Row): ErrorReport {
  return {
    id,
    ...(clientId === null ? {} : { clientId }),
    atMs,
    source,
    kind,
    message,
    ...(url === null ? {} : { url }),
    ...(ledTo === null ? {} : { ledTo }),
  } as ErrorReport;
}
