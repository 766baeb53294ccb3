/** Tests when the file of DuckDB has a checkpoint and when it is vacuumed. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBConnection } from "@duckdb/node-api";
import { openDuckDb } from "./duckdb";

jest.setTimeout(60_000);

const IDLE_MS = 1500;
const sleep = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

test("duckdb: the file is vacuumed once when nothing is written, and not while something is written", async () => {
  const folder = await mkdtemp(join(tmpdir(), "origo-duckdb-"));
  const run = jest.spyOn(DuckDBConnection.prototype, "run");
  const count = (sql: string): number => run.mock.calls.filter(([got]) => got === sql).length;
  const vacuums = (): number => count("SET max_vacuum_tasks = 100");
  const database = await openDuckDb(folder, IDLE_MS);
  try {
    await database.run("CREATE TABLE t (a VARCHAR)");
    // After four transactions of 2.6 MB the log is long enough for a checkpoint.
    for (let times = 0; times < 4; times++)
      await database.run("INSERT INTO t SELECT repeat(md5(n::VARCHAR), 8) FROM range(10000) r(n)");
    for (const endMs = Date.now() + 2 * IDLE_MS; Date.now() < endMs; await sleep(50))
      await database.run("INSERT INTO t VALUES ('x')");
    expect([count("CHECKPOINT"), vacuums()]).toEqual([1, 0]);
    for (let tries = 0; tries < 200 && vacuums() === 0; tries++) await sleep(50);
    await sleep(IDLE_MS);
    expect(vacuums()).toBe(1);
  } finally {
    await database.close();
    run.mockRestore();
    await rm(folder, { recursive: true });
  }
});

test("duckdb: a query is right when rows are written between its planning and its run", async () => {
  const texts = Array.from({ length: 20 }, (_, index) => `${index} `.repeat(40));
  const wrong: string[] = [];
  for (let round = 0; round < 25; round++) {
    const folder = await mkdtemp(join(tmpdir(), "origo-duckdb-"));
    const database = await openDuckDb(folder);
    await database.run("CREATE TABLE t (a VARCHAR)");
    await Promise.all(
      texts.map(async (text) => {
        for (const write of [true, false]) {
          const rows = await database.all("SELECT a FROM t ORDER BY a");
          wrong.push(...rows.map(({ a }) => String(a)).filter((a) => !texts.includes(a)));
          if (write) await database.run("INSERT INTO t VALUES ($1)", [text]);
        }
      }),
    );
    await database.close();
    await rm(folder, { recursive: true });
  }
  expect(wrong).toEqual([]);
});
