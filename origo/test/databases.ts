/** Databases: both kinds of database, for `describe.each`. Each gives stores over a new database. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Store } from "../src/store/index";
import { startPostgres, type TestPostgres } from "./postgres";

export interface TestDatabase {
  /** Opens a store. A second call opens the same database again. */
  open(): Promise<Store>;
  /** The environment of a process over the same database. */
  environment: { DATA_DIR: string; DATABASE_URL?: string };
  remove(): Promise<void>;
}

let postgres: TestPostgres | undefined;

/** Call this in `afterAll`. */
export async function stopDatabases(): Promise<void> {
  await postgres?.stop();
  postgres = undefined;
}

async function newDatabase(databaseUrl?: string): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), "origo-store-"));
  return {
    open: () => Store.open(folder, databaseUrl),
    environment: { DATA_DIR: folder, ...(databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl }) },
    remove: () => rm(folder, { recursive: true, force: true }),
  };
}

export const DATABASES: readonly [name: string, make: () => Promise<TestDatabase>][] = [
  ["DuckDB", () => newDatabase()],
  ["PostgreSQL", async () => newDatabase(await (postgres ??= await startPostgres()).newDatabase())],
];
