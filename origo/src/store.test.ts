/** Store, on a real DuckDB file. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DuckDBInstance } from "@duckdb/node-api";
import { Store } from "./store";
import type { DownloadRecord } from "./schema";
import { bareRecordOf, errorOf, recordOf } from "../test/samples";

const NOW = 1_790_000_000_000;
let folder: string;
let store: Store;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-store-"));
  store = await Store.open(folder);
});
afterEach(async () => {
  await store.close();
  await rm(folder, { recursive: true, force: true });
});

const all = async (): Promise<DownloadRecord[]> => (await store.records(500))?.items ?? [];

async function query(sql: string): Promise<unknown> {
  await store.close();
  const instance = await DuckDBInstance.create(join(folder, "origo.duckdb"));
  const connection = await instance.connect();
  const rows = (await connection.runAndReadAll(sql)).getRowObjectsJson();
  connection.closeSync();
  instance.closeSync();
  store = await Store.open(folder);
  return rows;
}

describe("store", () => {
  test("gives back what it was given, with every optional field and with none", async () => {
    const [full, bare] = [recordOf({ netBytes: Number.MAX_SAFE_INTEGER }), bareRecordOf()];
    expect(await store.addRecords([full, bare], NOW)).toEqual({ accepted: 2, duplicate: 0 });
    expect(await all()).toEqual([bare, full]);
    const errors = [errorOf(), errorOf({ clientId: full.clientId, url: "http://h.example/a" })];
    expect(await store.addErrors(errors, NOW)).toEqual({ accepted: 2, duplicate: 0 });
    expect((await store.errors(10))?.items).toEqual([...errors].reverse());
  });

  test("counts a record once, in one batch, over batches and over a restart", async () => {
    const [first, second, third] = [recordOf(), recordOf(), recordOf()];
    expect(await store.addRecords([first, first, second], NOW)).toEqual({ accepted: 2, duplicate: 1 });
    expect(await store.addRecords([second, third], NOW)).toEqual({ accepted: 1, duplicate: 1 });
    await store.close();
    store = await Store.open(folder);
    expect(await store.addRecords([first, second, third], NOW)).toEqual({ accepted: 0, duplicate: 3 });
    expect((await all()).map((record) => record.id)).toEqual([third.id, second.id, first.id]);
    expect(await query("SELECT count(*)::INTEGER AS n FROM download_proxies")).toEqual([{ n: 6 }]);
  });

  test("counts a record once when it arrives many times at once", async () => {
    const record = recordOf();
    const answers = await Promise.all(Array.from({ length: 20 }, () => store.addRecords([record, recordOf()], NOW)));
    expect(answers.reduce((sum, answer) => sum + answer.accepted, 0)).toBe(21);
    expect(await all()).toHaveLength(21);
  });

  test("stores nothing of a batch that fails, and goes on", async () => {
    const broken = { ...recordOf(), clientId: "no uuid" };
    await expect(store.addRecords([recordOf(), broken, recordOf()], NOW)).rejects.toThrow();
    expect(await all()).toEqual([]);
    const badProxy = recordOf();
    badProxy.proxies = badProxy.proxies.map((proxy) => ({ ...proxy, packets: 0.5 }));
    await expect(store.addRecords([recordOf(), badProxy], NOW)).rejects.toThrow();
    expect(await all()).toEqual([]);
    expect(await store.addRecords([recordOf()], NOW)).toEqual({ accepted: 1, duplicate: 0 });
    expect(await query("SELECT count(*)::INTEGER AS n FROM download_proxies")).toEqual([{ n: 2 }]);
  });

  test("pages newest first without gap or repeat while new records arrive", async () => {
    const records = Array.from({ length: 25 }, () => recordOf());
    await store.addRecords(records, NOW);
    const seen: string[] = [];
    let before: string | undefined;
    for (let pages = 0; pages < 10; pages++) {
      const page = await store.records(10, before);
      seen.push(...(page?.items ?? []).map((record) => record.id));
      await store.addRecords([recordOf()], NOW);
      if (!page?.next) break;
      before = page.next;
    }
    expect(seen).toEqual(records.map((record) => record.id).reverse());
  });

  test("a page that holds exactly the rest is the last (10 of 10, 10 of 11)", async () => {
    const records = Array.from({ length: 10 }, () => recordOf());
    await store.addRecords(records, NOW);
    expect((await store.records(10))?.next).toBeNull();
    await store.addRecords([recordOf()], NOW);
    expect((await store.records(10))?.next).toBe(records[1]?.id);
  });

  test("an id that is not stored is no place to page from", async () => {
    expect(await store.records(10, recordOf().id)).toBeUndefined();
    expect(await store.errors(10, recordOf().id)).toBeUndefined();
    expect(await store.records(10)).toEqual({ items: [], next: null });
  });

  test("columns are typed, so that the file can be analysed", async () => {
    await store.addRecords([recordOf(), recordOf({ mode: "direct", proxies: [] })], NOW);
    const rows = await query("SELECT mode, percentile_cont(0.5) WITHIN GROUP (ORDER BY goodput_bytes_per_sec) AS p FROM downloads GROUP BY mode ORDER BY mode");
    expect(rows).toEqual([{ mode: "coded-mutp", p: 116_891 }, { mode: "direct", p: 116_891 }]);
  });

  test("a file of the version before is brought to this one, its records kept", async () => {
    const { proxies } = recordOf();
    const old = recordOf({ proxies: proxies.map(({ transport: _, ...proxy }) => proxy) });
    await store.addRecords([old], NOW);
    await query("ALTER TABLE download_proxies DROP COLUMN transport");
    await query("UPDATE origo_schema SET version = 1");
    await store.close();
    store = await Store.open(folder);
    const fresh = recordOf();
    await store.addRecords([fresh], NOW);
    expect(await all()).toEqual([fresh, old]);
  });

  test("a file of another version, and one that is no database, are refused", async () => {
    await store.close();
    const instance = await DuckDBInstance.create(join(folder, "origo.duckdb"));
    const connection = await instance.connect();
    await connection.run("UPDATE origo_schema SET version = 99");
    connection.closeSync();
    instance.closeSync();
    await expect(Store.open(folder)).rejects.toThrow("schema version 99, this Origo reads version 2");
    const other = await mkdtemp(join(tmpdir(), "origo-store-"));
    await writeFile(join(other, "origo.duckdb"), "this is not a database".repeat(500));
    await expect(Store.open(other)).rejects.toThrow("not a valid DuckDB database file");
    await rm(other, { recursive: true });
    await rm(join(folder, "origo.duckdb"));
    store = await Store.open(folder);
  });
});
