/** Tests when the file of DuckDB has a checkpoint and when it is vacuumed, and what is told of a damaged log. */
import { copyFile, mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
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
  const database = await openDuckDb(folder, { idleMs: IDLE_MS });
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

/** Two database files as a killed Origo leaves them, with the log as `damage` makes it of a log of 1000 rows. */
async function withDamaged(damage: (log: Buffer) => Buffer, use: (folder: string, log: Buffer) => Promise<void>) {
  const [folder, next] = [await mkdtemp(join(tmpdir(), "origo-wal-")), await mkdtemp(join(tmpdir(), "origo-wal-"))];
  const database = await openDuckDb(folder);
  try {
    await database.run("CREATE TABLE t (a VARCHAR)");
    await database.run("CHECKPOINT");
    for (let times = 0; times < 100; times++)
      await database.run("INSERT INTO t SELECT md5((n * 7)::VARCHAR) FROM range(10) r(n)");
    await copyFile(join(folder, "origo.duckdb"), join(next, "origo.duckdb"));
    const log = damage(await readFile(join(folder, "origo.duckdb.wal")));
    await writeFile(join(next, "origo.duckdb.wal"), log);
    await use(next, log);
  } finally {
    await database.close();
    for (const each of [folder, next]) await rm(each, { recursive: true });
  }
}

const flipped = (log: Buffer, at: number): Buffer => {
  const copy = Buffer.from(log);
  copy[at]! ^= 255;
  return copy;
};

test.each<[string, (log: Buffer) => Buffer, number, RegExp | undefined]>([
  ["nothing", (log) => log, 1000, undefined],
  ["the first byte", (log) => flipped(log, 0), 0, / 0 bytes could be read/],
  ["all", (log) => Buffer.alloc(log.length), 0, / 0 bytes could be read/],
  ["the end", (log) => flipped(log, log.length - 20), 990, /about [\d.]+ KiB could be read/],
])("duckdb: %s of the log is damaged: what is lost is told, and the log is kept", async (_name, damage, left, told) =>
  withDamaged(damage, async (folder, log) => {
    const warnings: string[] = [];
    const opened = await openDuckDb(folder, { warn: (message) => warnings.push(message) });
    try {
      expect(await opened.all("SELECT count(*)::DOUBLE AS n FROM t")).toEqual([{ n: left }]);
      await opened.run("INSERT INTO t VALUES ('x')");
    } finally {
      await opened.close();
    }
    expect(warnings).toEqual(told === undefined ? [] : [expect.stringMatching(told)]);
    const copy = "origo.duckdb.wal.damaged";
    if (told === undefined) expect(await readdir(folder)).not.toContain(copy);
    else expect((await readFile(join(folder, copy))).equals(log)).toBe(true);
  }),
);

test("duckdb: a log that is damaged in its middle is an error that says what to do", async () =>
  withDamaged(
    (log) => flipped(log, log.length >> 1),
    async (folder) => {
      await expect(openDuckDb(folder)).rejects.toThrow(/wal is damaged: put a backup .* or move that one away/);
      await rm(join(folder, "origo.duckdb.wal"));
      await (await openDuckDb(folder)).close();
    },
  ));
