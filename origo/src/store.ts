/**
 * Store: download records and error reports in one DuckDB file, each counted once by its id.
 * A batch is one transaction: when `add*` resolves it is on disk (and survives kill -9), when it rejects nothing of it is.
 * "Newest" is the order of arrival, which unlike clients' clocks has no ties and does not move under a reader's pages.
 * Not here: checking what is stored. Records come from schema.ts, parsed.
 */
import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import { DuckDBInstance, type DuckDBConnection } from "@duckdb/node-api";
import type { DownloadRecord, ErrorReport, IntakeResponse, RecordProxy } from "./schema";

/** Raised when a table changes its columns. What leads from the version before to this one is in MIGRATIONS. */
const SCHEMA_VERSION = 2;
const FILE_NAME = "origo.duckdb";
/** By the version that a file has; a file of any other version is refused, never guessed at. */
const MIGRATIONS: Record<number, string> = { 1: "ALTER TABLE download_proxies ADD COLUMN transport VARCHAR" };

type Cell = string | number | null;
type Row = Record<string, Cell>;
type ColumnType = "UUID" | "VARCHAR" | "BIGINT" | "DOUBLE";
type Columns = Record<string, ColumnType>;

const ARRIVAL = { id: "UUID", seq: "BIGINT", received_at_ms: "DOUBLE" } as const satisfies Columns;

const DOWNLOADS = {
  ...ARRIVAL, client_id: "UUID", started_at_ms: "DOUBLE", source: "VARCHAR", url: "VARCHAR", range_start: "BIGINT", range_end: "BIGINT",
  mode: "VARCHAR", connections: "BIGINT", status: "BIGINT", net_bytes: "BIGINT", gross_bytes: "BIGINT", duration_ms: "DOUBLE",
  first_byte_ms: "DOUBLE", first_packet_ms: "DOUBLE", server_fetch_ms: "DOUBLE", throughput_bytes_per_sec: "DOUBLE",
  goodput_bytes_per_sec: "DOUBLE", normalized_goodput: "DOUBLE", outcome: "VARCHAR", error_kind: "VARCHAR", error_message: "VARCHAR",
  fallback_reason: "VARCHAR", fallback_bytes: "BIGINT", sha256: "VARCHAR", generation_size: "BIGINT", window_packets: "BIGINT",
  symbol_bytes: "BIGINT", comment: "VARCHAR",
} as const satisfies Columns;

const DOWNLOAD_PROXIES = {
  download_id: "UUID", position: "BIGINT", proxy_id: "VARCHAR", name: "VARCHAR", bytes: "BIGINT", packets: "BIGINT", innovative: "BIGINT",
  duplicate: "BIGINT", late: "BIGINT", rejected: "BIGINT", lost: "BIGINT", rtt_ms: "DOUBLE", state: "VARCHAR", error: "VARCHAR",
  transport: "VARCHAR",
} as const satisfies Columns;

const ERRORS = {
  ...ARRIVAL, client_id: "UUID", at_ms: "DOUBLE", source: "VARCHAR", kind: "VARCHAR", message: "VARCHAR", url: "VARCHAR",
} as const satisfies Columns;

/** One page, newest first; `next` is the id to pass as `before` for the following page, null on the last. */
export interface Page<T> {
  items: T[];
  next: string | null;
}

export class Store {
  private writing: Promise<unknown> = Promise.resolve();

  private constructor(
    private readonly instance: DuckDBInstance,
    private readonly writer: DuckDBConnection,
    private readonly reader: DuckDBConnection,
    private readonly nextSeq: { downloads: number; errors: number },
  ) {}

  /** Opens or makes DATA_DIR/origo.duckdb. Throws when it is held by another process, is no DuckDB file, or has another version. */
  static async open(dataDir: string): Promise<Store> {
    await mkdir(dataDir, { recursive: true });
    const instance = await DuckDBInstance.create(join(dataDir, FILE_NAME));
    try {
      const writer = await instance.connect();
      await makeTables(writer);
      const nextSeq = { downloads: await nextSeqOf(writer, "downloads"), errors: await nextSeqOf(writer, "errors") };
      return new Store(instance, writer, await instance.connect(), nextSeq);
    } catch (error) {
      instance.closeSync();
      throw error;
    }
  }

  /** Stores the records whose id is new, all or none of them. */
  addRecords(records: readonly DownloadRecord[], nowMs: number): Promise<IntakeResponse> {
    return this.inTurn("downloads", records, async (fresh, firstSeq) => {
      const rows = fresh.map((record, index) => ({ ...rowOfRecord(record), seq: firstSeq + index, received_at_ms: nowMs }));
      await append(this.writer, "downloads", DOWNLOADS, rows);
      await append(this.writer, "download_proxies", DOWNLOAD_PROXIES, fresh.flatMap(rowsOfProxies));
    });
  }

  /** Stores the reports whose id is new, all or none of them. */
  addErrors(errors: readonly ErrorReport[], nowMs: number): Promise<IntakeResponse> {
    return this.inTurn("errors", errors, (fresh, firstSeq) => {
      const rows = fresh.map((error, index) => ({ ...rowOfError(error), seq: firstSeq + index, received_at_ms: nowMs }));
      return append(this.writer, "errors", ERRORS, rows);
    });
  }

  /** Undefined when `before` names no stored record. */
  async records(limit: number, before?: string): Promise<Page<DownloadRecord> | undefined> {
    const page = await this.page("downloads", DOWNLOADS, limit, before);
    if (page === undefined || page.items.length === 0) return page && { items: [], next: null };
    const [newest, oldest] = [page.items[0], page.items[page.items.length - 1]];
    const sql = `SELECT ${selected(DOWNLOAD_PROXIES, "p")} FROM download_proxies p JOIN downloads d ON d.id = p.download_id
      WHERE d.seq BETWEEN $1 AND $2 ORDER BY p.position`;
    const proxies = new Map<Cell, Row[]>();
    for (const row of await this.read(sql, [oldest?.["seq"] ?? 0, newest?.["seq"] ?? 0])) {
      const id = row["download_id"] ?? null;
      proxies.set(id, [...(proxies.get(id) ?? []), row]);
    }
    return { items: page.items.map((row) => recordOf(row, proxies.get(row["id"] ?? null) ?? [])), next: page.next };
  }

  /** Undefined when `before` names no stored report. */
  async errors(limit: number, before?: string): Promise<Page<ErrorReport> | undefined> {
    const page = await this.page("errors", ERRORS, limit, before);
    return page && { items: page.items.map(errorOf), next: page.next };
  }

  /** Resolves if the file answers. */
  async check(): Promise<void> {
    await this.read("SELECT 1 AS one", []);
  }

  /** Waits for writes under way, then closes the file. */
  async close(): Promise<void> {
    await this.writing;
    this.reader.closeSync();
    this.writer.closeSync();
    this.instance.closeSync();
  }

  /** Writes one batch at a time: the ids already stored are found, and the others added, in one transaction. */
  private inTurn<T extends { id: string }>(
    table: "downloads" | "errors", items: readonly T[], add: (fresh: T[], firstSeq: number) => Promise<void>,
  ): Promise<IntakeResponse> {
    const turn = this.writing.then(async () => {
      const byId = new Map(items.map((item) => [item.id, item]));
      await this.writer.run("BEGIN TRANSACTION");
      try {
        for (const id of await storedIds(this.writer, table, [...byId.keys()])) byId.delete(id);
        const fresh = [...byId.values()];
        await add(fresh, this.nextSeq[table]);
        await this.writer.run("COMMIT");
        this.nextSeq[table] += fresh.length;
        return { accepted: fresh.length, duplicate: items.length - fresh.length };
      } catch (error) {
        await this.writer.run("ROLLBACK").catch(() => undefined);
        throw error;
      }
    });
    this.writing = turn.catch(() => undefined);
    return turn;
  }

  private async page(table: "downloads" | "errors", columns: Columns, limit: number, before?: string): Promise<Page<Row> | undefined> {
    let seqBound = this.nextSeq[table];
    if (before !== undefined) {
      const [found] = await this.read(`SELECT seq::DOUBLE AS seq FROM ${table} WHERE id = $1`, [before]);
      if (found === undefined) return undefined;
      seqBound = Number(found["seq"]);
    }
    const sql = `SELECT ${selected(columns, "t")} FROM ${table} t WHERE t.seq < $1 ORDER BY t.seq DESC LIMIT $2`;
    const rows = await this.read(sql, [seqBound, limit + 1]);
    const items = rows.slice(0, limit);
    return { items, next: rows.length > limit ? textOf(items[items.length - 1] ?? {}, "id") : null };
  }

  private async read(sql: string, values: Cell[]): Promise<Row[]> {
    const result = await this.reader.runAndReadAll(sql, values);
    return result.getRowObjectsJS().map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) =>
      [name, typeof value === "bigint" ? Number(value) : (value as Cell)])));
  }
}

async function makeTables(connection: DuckDBConnection): Promise<void> {
  await connection.run("CREATE TABLE IF NOT EXISTS origo_schema (version INTEGER)");
  const [row] = (await connection.runAndReadAll("SELECT version FROM origo_schema")).getRowObjectsJS();
  const migration = MIGRATIONS[Number(row?.["version"])];
  if (migration !== undefined) await connection.run(`BEGIN TRANSACTION; ${migration}; UPDATE origo_schema SET version = ${SCHEMA_VERSION}; COMMIT`);
  else if (row !== undefined && row["version"] !== SCHEMA_VERSION) {
    throw new Error(`${FILE_NAME} has schema version ${String(row["version"])}, this Origo reads version ${SCHEMA_VERSION}: use another DATA_DIR`);
  }
  await connection.run("BEGIN TRANSACTION");
  if (row === undefined) await connection.run("INSERT INTO origo_schema VALUES ($1)", [SCHEMA_VERSION]);
  await connection.run(`CREATE TABLE IF NOT EXISTS downloads (${defined(DOWNLOADS)}, PRIMARY KEY (id))`);
  await connection.run(`CREATE TABLE IF NOT EXISTS download_proxies (${defined(DOWNLOAD_PROXIES)}, PRIMARY KEY (download_id, position))`);
  await connection.run(`CREATE TABLE IF NOT EXISTS errors (${defined(ERRORS)}, PRIMARY KEY (id))`);
  await connection.run("COMMIT");
}

async function nextSeqOf(connection: DuckDBConnection, table: string): Promise<number> {
  const result = await connection.runAndReadAll(`SELECT coalesce(max(seq), 0) + 1 AS next FROM ${table}`);
  return Number(result.getRowObjectsJS()[0]?.["next"] ?? 1);
}

async function storedIds(connection: DuckDBConnection, table: string, ids: string[]): Promise<string[]> {
  const places = ids.map((_, index) => `$${index + 1}::UUID`).join(", ");
  const result = await connection.runAndReadAll(`SELECT id::VARCHAR AS id FROM ${table} WHERE id IN (${places})`, ids);
  return result.getRowObjectsJS().map((row) => String(row["id"]));
}

async function append(connection: DuckDBConnection, table: string, columns: Columns, rows: readonly Row[]): Promise<void> {
  if (rows.length === 0) return;
  const appender = await connection.createAppender(table);
  for (const row of rows) {
    for (const [name, type] of Object.entries(columns)) {
      const cell = row[name] ?? null;
      if (cell === null) appender.appendNull();
      else if (typeof cell === "string") appender.appendVarchar(cell);
      else if (type === "BIGINT") appender.appendBigInt(BigInt(cell));
      else appender.appendDouble(cell);
    }
    appender.endRow();
  }
  appender.closeSync();
}

const defined = (columns: Columns): string => Object.entries(columns).map(([name, type]) => `${name} ${type}`).join(", ");

/** UUIDs are read as text. */
const selected = (columns: Columns, table: string): string => Object.entries(columns)
  .map(([name, type]) => (type === "UUID" ? `${table}.${name}::VARCHAR AS ${name}` : `${table}.${name}`)).join(", ");

function rowOfRecord(record: DownloadRecord): Row {
  return {
    id: record.id, client_id: record.clientId, started_at_ms: record.startedAtMs, source: record.source, url: record.url,
    range_start: record.range?.start ?? null, range_end: record.range?.end ?? null, mode: record.mode, connections: record.connections,
    status: record.status, net_bytes: record.netBytes, gross_bytes: record.grossBytes, duration_ms: record.durationMs,
    first_byte_ms: record.firstByteMs, first_packet_ms: record.firstPacketMs ?? null, server_fetch_ms: record.serverFetchMs,
    throughput_bytes_per_sec: record.throughputBytesPerSec, goodput_bytes_per_sec: record.goodputBytesPerSec,
    normalized_goodput: record.normalizedGoodput, outcome: record.outcome, error_kind: record.error?.kind ?? null,
    error_message: record.error?.message ?? null, fallback_reason: record.fallback?.reason ?? null, fallback_bytes: record.fallback?.bytes ?? null,
    sha256: record.sha256, generation_size: record.generationSize ?? null, window_packets: record.windowPackets ?? null,
    symbol_bytes: record.symbolBytes ?? null, comment: record.comment ?? null,
  };
}

function rowsOfProxies(record: DownloadRecord): Row[] {
  return record.proxies.map((proxy, position) => ({
    download_id: record.id, position, proxy_id: proxy.id, name: proxy.name ?? null, bytes: proxy.bytes, packets: proxy.packets,
    innovative: proxy.innovative, duplicate: proxy.duplicate, late: proxy.late, rejected: proxy.rejected, lost: proxy.lost,
    rtt_ms: proxy.rttMs, state: proxy.state, error: proxy.error ?? null, transport: proxy.transport ?? null,
  }));
}

function rowOfError(error: ErrorReport): Row {
  return {
    id: error.id, client_id: error.clientId ?? null, at_ms: error.atMs, source: error.source, kind: error.kind, message: error.message,
    url: error.url ?? null,
  };
}

function recordOf(row: Row, proxies: readonly Row[]): DownloadRecord {
  return {
    id: textOf(row, "id"), clientId: textOf(row, "client_id"), startedAtMs: numberOf(row, "started_at_ms"),
    source: textOf(row, "source") as DownloadRecord["source"], url: textOf(row, "url"),
    ...(has(row, "range_start") ? { range: { start: numberOf(row, "range_start"), end: numberOf(row, "range_end") } } : {}),
    mode: textOf(row, "mode") as DownloadRecord["mode"], connections: numberOf(row, "connections"), status: numberOf(row, "status"),
    netBytes: numberOf(row, "net_bytes"), grossBytes: numberOf(row, "gross_bytes"), durationMs: numberOf(row, "duration_ms"),
    firstByteMs: numberOf(row, "first_byte_ms"), ...(has(row, "first_packet_ms") ? { firstPacketMs: numberOf(row, "first_packet_ms") } : {}),
    serverFetchMs: numberOf(row, "server_fetch_ms"), throughputBytesPerSec: numberOf(row, "throughput_bytes_per_sec"),
    goodputBytesPerSec: numberOf(row, "goodput_bytes_per_sec"), normalizedGoodput: numberOf(row, "normalized_goodput"),
    outcome: textOf(row, "outcome") as DownloadRecord["outcome"],
    ...(has(row, "error_kind") ? { error: { kind: textOf(row, "error_kind"), message: textOf(row, "error_message") } } : {}),
    fallback: has(row, "fallback_reason") ? { reason: textOf(row, "fallback_reason"), bytes: numberOf(row, "fallback_bytes") } : null,
    sha256: has(row, "sha256") ? textOf(row, "sha256") : null,
    ...(has(row, "generation_size") ? { generationSize: numberOf(row, "generation_size") } : {}),
    ...(has(row, "window_packets") ? { windowPackets: numberOf(row, "window_packets") } : {}),
    ...(has(row, "symbol_bytes") ? { symbolBytes: numberOf(row, "symbol_bytes") } : {}),
    ...(has(row, "comment") ? { comment: textOf(row, "comment") } : {}),
    proxies: proxies.map(proxyOf),
  };
}

function proxyOf(row: Row): RecordProxy {
  return {
    id: textOf(row, "proxy_id"), ...(has(row, "name") ? { name: textOf(row, "name") } : {}), bytes: numberOf(row, "bytes"),
    packets: numberOf(row, "packets"), innovative: numberOf(row, "innovative"), duplicate: numberOf(row, "duplicate"),
    late: numberOf(row, "late"), rejected: numberOf(row, "rejected"), lost: numberOf(row, "lost"),
    rttMs: has(row, "rtt_ms") ? numberOf(row, "rtt_ms") : null, state: textOf(row, "state") as RecordProxy["state"],
    ...(has(row, "error") ? { error: textOf(row, "error") } : {}),
    ...(has(row, "transport") ? { transport: textOf(row, "transport") as NonNullable<RecordProxy["transport"]> } : {}),
  };
}

function errorOf(row: Row): ErrorReport {
  return {
    id: textOf(row, "id"), ...(has(row, "client_id") ? { clientId: textOf(row, "client_id") } : {}), atMs: numberOf(row, "at_ms"),
    source: textOf(row, "source") as ErrorReport["source"], kind: textOf(row, "kind"), message: textOf(row, "message"),
    ...(has(row, "url") ? { url: textOf(row, "url") } : {}),
  };
}

const has = (row: Row, name: string): boolean => row[name] !== null && row[name] !== undefined;

function textOf(row: Row, name: string): string {
  const cell = row[name];
  if (typeof cell !== "string") throw new Error(`${FILE_NAME}: column ${name} should hold text, got ${String(cell)}`);
  return cell;
}

function numberOf(row: Row, name: string): number {
  const cell = row[name];
  if (typeof cell !== "number") throw new Error(`${FILE_NAME}: column ${name} should hold a number, got ${String(cell)}`);
  return cell;
}
