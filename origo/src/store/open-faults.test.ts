/** Tests what Origo says of a database that it cannot open: the thing, the cause and the remedy, and no password. */
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { startPostgres, type TestPostgres } from "../../test/postgres";
import { AdminStore } from "./admin-store";
import { Store } from "./index";

jest.setTimeout(60_000);

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-fault-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("a DuckDB file", () => {
  const file = (): string => join(folder, "origo.duckdb");
  const made = async (): Promise<number> => {
    const store = await Store.open(folder);
    await new AdminStore(store.database).secret("one", () => "x");
    await store.close();
    return (await stat(file())).size;
  };
  const backup = "put a backup in its place";

  test.each<[string, (size: number) => number]>([
    ["one byte short", (size) => size - 1],
    ["one block short", (size) => size - 262_144],
    ["cut in its middle", (size) => size >> 1],
    ["cut after its headers", () => 12_288],
    ["cut in its headers", () => 5000],
  ])("that is %s is named with what to do, and is left as it is", async (_name, lengthOf) => {
    await truncate(file(), lengthOf(await made()));
    const before = await readFile(file());
    const opened = Store.open(folder);
    await expect(opened).rejects.toThrow(file());
    await expect(opened).rejects.toThrow(backup);
    expect((await readFile(file())).equals(before)).toBe(true);
  });

  test("that has a damaged block is named with what to do", async () => {
    const size = await made();
    const bytes = await readFile(file());
    for (let at = 13_000; at < size; at += 997) bytes[at]! ^= 255;
    await writeFile(file(), bytes);
    await expect(Store.open(folder)).rejects.toThrow(`${file()} cannot be opened: ${backup}`);
  });
});

describe("PostgreSQL", () => {
  let postgres: TestPostgres;
  let made: string;
  beforeAll(async () => {
    postgres = await startPostgres();
    made = await postgres.newDatabase();
  });
  afterAll(() => postgres.stop());

  const query = async (sql: string): Promise<void> => {
    const client = new Client({ connectionString: made });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  const other = (change: (url: URL) => void): string => {
    const url = new URL(made);
    change(url);
    return url.href;
  };

  test.each<[string, string, (url: URL) => void, RegExp]>([
    ["does not run", "", (url) => (url.port = "1"), /at 127\.0\.0\.1:1, .*nothing listens there: start PostgreSQL/],
    ["has no such database", "", (url) => (url.pathname = "/lost"), /database lost as .*: create the database/],
    [
      "has no such user",
      "",
      (url) => (url.username = "lost"),
      /as user lost, .*: the server does not let this user in/,
    ],
    ["gives no rights", "CREATE USER poor", (url) => (url.username = "poor"), /user poor, .*: make the user the owner/],
    [
      "is read-only",
      "ALTER ROLE poor SET default_transaction_read_only = on",
      (url) => (url.username = "poor"),
      /is read-only/,
    ],
  ])("that %s is named with what to do, without the password", async (_name, sql, change, text) => {
    if (sql !== "") await query(sql);
    const url = other((given) => {
      given.password = "hush";
      change(given);
    });
    const opened = Store.open(folder, url);
    await expect(opened).rejects.toThrow(text);
    await expect(opened).rejects.not.toThrow("hush");
  });
});
