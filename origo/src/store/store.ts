/**
 * Store: download records, error reports and traces, each counted once by its id, in DuckDB or PostgreSQL.
 * When `add*` resolves, what was given is on disk (and survives kill -9); when it rejects, nothing of it is.
 * "Newest" is the order of arrival, which unlike clients' clocks has no ties and does not move under a reader's pages.
 * Not here: checking what is stored (it comes from schema.ts, parsed), and questions beyond pages of records
 * (queries.ts).
 */
import { rm, statfs } from "node:fs/promises";
import { join } from "node:path";
import { gunzip, gzip } from "node:zlib";
import { promisify } from "node:util";
import type { Trace } from "@tributary/contract/query-schema";
import type { DownloadRecord, ErrorReport, IntakeResponse } from "@tributary/contract/schema";
import type { Column, Database, Row } from "./database";
import { openDuckDb } from "./duckdb";
import { COLUMNS, ERROR_COLUMNS } from "./fields";
import { Intake } from "./intake";
import { migrate } from "./migrations";
import { openPostgres } from "./postgres";
import { recordOf, rowOf } from "./record-row";
import { TUNING_DEFAULT, type Tuning } from "./tuning";

/** One page, newest first; `next` is the id to pass as `before` for the following page, null on the last. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

type Table = "downloads" | "errors";
const COLUMNS_OF: Record<Table, readonly Column[]> = { downloads: COLUMNS, errors: ERROR_COLUMNS };

/** How long it is believed how much of the disk is free. */
const FREE_MS = 250;

/** Less of the disk is free than is kept. Nothing was stored. */
export class DiskFull extends Error {
  constructor(
    readonly got: number,
    readonly limit: number,
  ) {
    super(`${got} bytes of the disk are free, ${limit} are kept: nothing is stored until there is more`);
  }
}

export class Store {
  /** May be changed at any time. */
  readonly tuning: Tuning = { ...TUNING_DEFAULT };
  readonly #intake: Record<Table, Intake>;
  #free: { bytes: number; untilMs: number } = { bytes: Infinity, untilMs: -Infinity };

  readonly #folder: string | undefined;

  /**
   * `folder` is where the database grows, where that is here; `scratchDir` where files lie on their way in and out, and
   * need not exist.
   */
  private constructor(
    readonly database: Database,
    folder: string | undefined,
    readonly scratchDir: string,
  ) {
    this.#folder = folder;

    this.#intake = {
      downloads: new Intake(database, "downloads", COLUMNS, this.tuning),
      errors: new Intake(database, "errors", ERROR_COLUMNS, this.tuning),
    };
  }

  /**
   * Opens or makes the tables in DATA_DIR/origo.duckdb, or where `databaseUrl` says; DATA_DIR is this Store's alone.
   * Throws when that is not to be had, or newer.
   */
  static async open(dataDir: string, databaseUrl?: string): Promise<Store> {
    const database = databaseUrl === undefined ? await openDuckDb(dataDir) : await openPostgres(databaseUrl);
    try {
      await migrate(database.patient);
      const scratchDir = join(dataDir, "scratch");
      // What a process left there that was killed.
      await rm(scratchDir, { recursive: true, force: true });
      return new Store(database, databaseUrl === undefined ? dataDir : undefined, scratchDir);
    } catch (error) {
      await database.close();
      throw error;
    }
  }

  /**
   * Stores the records whose id is new, all or none of them. Throws IntakeFull when too many wait already, or DiskFull.
   */
  async addRecords(records: readonly DownloadRecord[], nowMs: number): Promise<IntakeResponse> {
    await this.checkDisk();
    return this.#intake.downloads.add(records.map((record) => rowOf(record, nowMs)));
  }

  /**
   * Stores the reports whose id is new, all or none of them. Throws IntakeFull when too many wait already, or DiskFull.
   */
  async addErrors(errors: readonly ErrorReport[], nowMs: number): Promise<IntakeResponse> {
    await this.checkDisk();
    return this.#intake.errors.add(errors.map((error) => ({ ...rowOfError(error), receivedAtMs: nowMs })));
  }

  /** Stores the traces whose id is new, all or none of them. Throws DiskFull. */
  async addTraces(traces: readonly Trace[], nowMs: number): Promise<IntakeResponse> {
    await this.checkDisk();
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

  /** Undefined when `before` names no stored record. */
  async records(limit: number, before?: string): Promise<Page<DownloadRecord> | undefined> {
    const page = await this.#page("downloads", limit, before);
    return page && { items: page.items.map(recordOf), next: page.next };
  }

  /** Undefined when `before` names no stored report. */
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

  /** Deletes what was received before then; resolves to the number of records deleted. */
  async deleteBefore(thenMs: number): Promise<number> {
    return this.database.patient.transaction(async (inside) => {
      for (const table of ["errors", "traces"])
        await inside.run(`DELETE FROM ${table} WHERE received_at_ms < $1`, [thenMs]);
      return inside.run("DELETE FROM downloads WHERE received_at_ms < $1", [thenMs]);
    });
  }

  /** Throws DiskFull. */
  async checkDisk(): Promise<void> {
    if (this.#folder === undefined) return;
    if (performance.now() >= this.#free.untilMs) {
      const { bavail, bsize } = await statfs(this.#folder);
      this.#free = { bytes: bavail * bsize, untilMs: performance.now() + FREE_MS };
    }
    const limit = this.tuning.diskReserveBytes;
    if (this.#free.bytes < limit) throw new DiskFull(this.#free.bytes, limit);
  }

  /** Resolves if the database answers. */
  async check(): Promise<void> {
    await this.database.all("SELECT 1 AS one");
  }

  /** Waits for writes under way, then closes the database. */
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

/** UUIDs are read as text, cells under the names of their fields. */
const selected = (columns: readonly Column[]): string =>
  columns.map(({ name, column, kind }) => `${column}${kind === "uuid" ? "::VARCHAR" : ""} AS "${name}"`).join(", ");

function rowOfError({ id, clientId, atMs, source, kind, message, url }: ErrorReport): Row {
  return { id, clientId: clientId ?? null, atMs, source, kind, message, url: url ?? null };
}

function errorOf({ id, clientId, atMs, source, kind, message, url }: Row): ErrorReport {
  return {
    id,
    ...(clientId === null ? {} : { clientId }),
    atMs,
    source,
    kind,
    message,
    ...(url === null ? {} : { url }),
  } as ErrorReport;
}
