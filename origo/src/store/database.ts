/**
 * Database: what Origo asks of a database, met by DuckDB (duckdb.ts, a file in DATA_DIR) and PostgreSQL (postgres.ts,
 * DATABASE_URL) alike. SQL is the part that both speak, with `$1` places for every value that comes from outside. Not
 * here: tables (migrations.ts) and what is kept in them (store.ts).
 */

/** Integers beyond 2^53 do not occur: what is stored comes from JSON. */
export type Cell = string | number | boolean | null | Uint8Array;
export type Row = Record<string, Cell>;
export type Kind = "duckdb" | "postgres";

/** A column as both databases know it; a row has a cell for it under the name of the field. */
export interface Column {
  name: string;
  column: string;
  kind: "text" | "whole" | "real" | "uuid" | "time";
}

export interface Queries {
  /** Resolves to the number of rows changed. */
  run(sql: string, values?: readonly Cell[]): Promise<number>;
  /** Numbers of any width arrive as numbers, UUIDs as text. */
  all(sql: string, values?: readonly Cell[]): Promise<Row[]>;
  /**
   * Adds, in order, the rows whose `id` is not in the table yet and not in an earlier row; resolves to the ids added.
   * The table has the columns given and `seq`, which counts up in order of arrival.
   */
  insertNew(table: string, columns: readonly Column[], rows: readonly Row[]): Promise<Set<string>>;
}

export interface Database extends Queries {
  readonly kind: Kind;
  /**
   * The same database for what may read or write much: each statement has minutes to be answered in, where others have
   * seconds.
   */
  readonly patient: Database;
  /**
   * Commits what `work` did when it resolves (then it is on disk), takes all of it back when it rejects. `work` must
   * ask `inside`, never the database itself: DuckDB runs one transaction at a time and would wait for itself.
   */
  transaction<T>(work: (inside: Queries) => Promise<T>): Promise<T>;
  /**
   * A transaction beside which no other exclusive one runs at any Origo over this database: what it finds stays so
   * until it commits.
   */
  exclusive<T>(work: (inside: Queries) => Promise<T>): Promise<T>;
  /** The rows in pieces, as they are read: memory does not grow with their number. */
  stream(sql: string, values?: readonly Cell[]): AsyncIterable<Row[]>;
  /** Waits for what is under way, for seconds at most where that is another machine's. Safe to call twice. */
  close(): Promise<void>;
}
