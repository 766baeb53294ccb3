/**
 * Database: the interface that Origo needs of a database. duckdb.ts (a file in DATA_DIR) and postgres.ts (DATABASE_URL)
 * implement it. SQL statements use only what both understand, with a place like `$1` for every value from outside.
 * migrations.ts has the tables, and store.ts says what is in them.
 */

/** Integers above 2^53 do not occur, since all stored values come from JSON. */
export type Cell = string | number | boolean | null | Uint8Array;
export type Row = Record<string, Cell>;
export type Kind = "duckdb" | "postgres";

/** A column of a table. Rows have its cell under `name`; the database calls it `column`. */
export interface Column {
  name: string;
  column: string;
  kind: "text" | "whole" | "real" | "uuid" | "time";
  /** Every row has a value. */
  required: boolean;
}

export interface Queries {
  /** Resolves to the number of changed rows. */
  run(sql: string, values?: readonly Cell[]): Promise<number>;
  /** All kinds of numbers arrive as numbers, and UUIDs as text. */
  all(sql: string, values?: readonly Cell[]): Promise<Row[]>;
  /**
   * Adds the rows whose `id` is not in the table and not in an earlier row, in this order. Resolves to the added ids.
   * The table has these columns and `seq`, which counts up in the order of arrival.
   */
  insertNew(table: string, columns: readonly Column[], rows: readonly Row[]): Promise<Set<string>>;
}

export interface Database extends Queries {
  readonly kind: Kind;
  /** The same database for large reads and writes: a statement may take minutes, where others may take seconds. */
  readonly patient: Database;
  /**
   * Commits to disk what `work` did when it resolves, and undoes all of it when it rejects. `work` must use `inside`,
   * not the database itself: DuckDB runs one transaction at a time and would wait for itself.
   */
  transaction<T>(work: (inside: Queries) => Promise<T>): Promise<T>;
  /**
   * A transaction during which no other exclusive transaction runs, at any Origo over this database. So what it reads
   * stays true until it commits.
   */
  exclusive<T>(work: (inside: Queries) => Promise<T>): Promise<T>;
  /** Gives the rows in pieces while they are read, so that memory does not grow with their number. */
  stream(sql: string, values?: readonly Cell[]): AsyncIterable<Row[]>;
  /** The size of the tables and logs in use. */
  storageBytes(): Promise<number>;
  /** Waits for running statements; for a database on another machine only some seconds. Safe to call twice. */
  close(): Promise<void>;
}
