/**
 * Opens databases that Origos of older schema versions left behind, DuckDB files and PostgreSQL dumps (test/schema-N),
 * and compares them with new databases.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { gunzipSync } from "node:zlib";
import { Client } from "pg";
import { DATABASES, stopDatabases, type TestDatabase } from "../../test/databases";
import { recordOf } from "../../../contract/test/samples";
import { AdminStore } from "./admin-store";
import { ConvictionStore } from "./conviction-store";
import { PublicationStore } from "./publication-store";
import { PublisherStore } from "./publisher-store";
import type { Store } from "./store";

const NOW = 1_790_000_000_000;
const KEY = "K".repeat(43);
afterAll(stopDatabases);
jest.setTimeout(60_000);

/** Puts the old database where the store will open it. */
async function lay(version: number, { environment: { DATA_DIR, DATABASE_URL } }: TestDatabase): Promise<void> {
  const folder = join(__dirname, `../../test/schema-${version}`);
  if (DATABASE_URL === undefined) {
    const packed = await readFile(join(folder, "origo.duckdb.gz"));
    return writeFile(join(DATA_DIR, "origo.duckdb"), gunzipSync(packed));
  }
  const client = new Client({ connectionString: DATABASE_URL });
  await client.connect();
  await client.query(await readFile(join(folder, "postgres.sql"), "utf8"));
  await client.end();
}

const SHAPES = {
  duckdb: [
    "SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns",
    "SELECT table_name, constraint_type, constraint_text FROM duckdb_constraints()",
  ],
  postgres: [
    `SELECT table_name, column_name, data_type, is_nullable, column_default FROM information_schema.columns
      WHERE table_schema = 'public'`,
    "SELECT tablename, indexdef FROM pg_indexes WHERE schemaname = 'public'",
  ],
} as const;

/** Columns, constraints and indexes, in an order that does not depend on when they were made. */
async function shapeOf({ database }: Store): Promise<string[]> {
  const rows = await Promise.all(SHAPES[database.kind].map((sql) => database.all(sql)));
  return rows
    .flat()
    .map((row) => JSON.stringify(row))
    .sort();
}

const OLD = [3, 4].flatMap((version) => DATABASES.map(([name, make]) => [name, version, make] as const));

describe.each(OLD)("a %s database of schema version %s", (_name, version, make) => {
  let [place, newPlace]: TestDatabase[] = [];
  let store: Store;

  beforeEach(async () => {
    [place, newPlace] = [await make(), await make()];
    await lay(version, place);
    store = await place.open();
  });
  afterEach(async () => {
    await store.close();
    await Promise.all([place!.remove(), newPlace!.remove()]);
  });

  test("becomes like a new one, and stays so", async () => {
    const fresh = await newPlace!.open();
    expect(await shapeOf(store)).toEqual(await shapeOf(fresh));
    await fresh.close();
    await store.close();
    store = await place!.open();
    expect((await store.records(9))?.items).toHaveLength(2);
  });

  test("keeps its records, people, decisions and publications", async () => {
    expect((await store.records(9))?.items).toMatchObject([
      { id: "00000000-0000-4000-8000-000000000002", mode: "direct", netBytes: 100_000, proxies: [] },
      { id: "00000000-0000-4000-8000-000000000001", comment: "ünïcode 🎬", proxies: [{ id: "p1" }, { id: "p2" }] },
    ]);
    expect((await store.errors(9))?.items).toMatchObject([{ id: "00000000-0000-4000-8000-000000000003" }]);
    const admin = new AdminStore(store.database);
    expect(await admin.users()).toMatchObject([{ name: "ada", role: "admin" }]);
    expect(await admin.secret("key", () => "another")).toBe("secret");
    const decided = { id: "proxy-1", state: "disabled", name: "Proxy 1", isConvicted: false };
    expect(await admin.proxyStates()).toEqual([decided]);
    expect(await new PublisherStore(store.database).all()).toMatchObject([{ key: KEY, label: "Ana" }]);
    const publications = new PublicationStore(store.database);
    expect(await publications.all()).toMatchObject([{ key: KEY, name: "film", revision: 1, state: "released" }]);
    expect(Buffer.from((await publications.playlist(`${"0".repeat(64)}-7`))!).toString()).toBe("#EXTM3U");
  });

  test("takes what only later versions know", async () => {
    const record = recordOf({ vouchedBy: "publisher" });
    expect(await store.addRecords([record], NOW)).toEqual({ accepted: 1, duplicate: 0 });
    expect(await store.record(record.id)).toEqual(record);
    const publications = new PublicationStore(store.database);
    expect(await publications.servedBytes({ key: KEY, name: "film" })).toBe(0);
    const accusation = { kind: "evidence", proxyId: "proxy-1", network: "n" } as const;
    const networks = version < 4 ? 0 : 1;
    expect(await new ConvictionStore(store.database).note(accusation, NOW, 0)).toEqual([networks, networks + 1]);
    const admin = new AdminStore(store.database);
    await admin.decide("proxy-1", { state: "disabled", name: "Proxy 1", isConvicted: true });
    await admin.decide("proxy-2", { state: "disabled", name: null, isConvicted: true });
    expect((await admin.proxyStates()).map(({ isConvicted }) => isConvicted)).toEqual([true, true]);
  });
});
