/** Runs the same tests of the store on a real DuckDB file and on a real PostgreSQL. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DownloadRecord } from "@tributary/contract/schema";
import { DATABASES, stopDatabases, type TestDatabase } from "../../test/databases";
import { bareRecordOf, errorOf, recordOf } from "../../../contract/test/samples";
import { COLUMNS, ERROR_COLUMNS, FIELDS } from "./fields";
import { Store } from ".";

const NOW = 1_790_000_000_000;
afterAll(stopDatabases);
jest.setTimeout(60_000);

describe.each(DATABASES)("store over %s", (_name, make) => {
  let place: TestDatabase;
  let store: Store;

  beforeEach(async () => {
    place = await make();
    store = await place.open();
  });
  afterEach(async () => {
    await store.close();
    await place.remove();
  });

  const all = async (): Promise<DownloadRecord[]> => (await store.records(500))?.items ?? [];
  const reopen = async (): Promise<void> => {
    await store.close();
    store = await place.open();
  };

  test("returns records unchanged, with every optional field and with none", async () => {
    const most = { netBytes: Number.MAX_SAFE_INTEGER, durationMs: 1000 };
    const [full, bare] = [recordOf(most), bareRecordOf()];
    expect(await store.addRecords([full, bare], NOW)).toEqual({ accepted: 2, duplicate: 0 });
    expect(await all()).toEqual([bare, full]);
    expect(await store.record(full.id)).toEqual(full);
    expect(await store.record(recordOf().id)).toBeUndefined();
    const errors = [errorOf(), errorOf({ clientId: full.clientId, url: "http://h.example/a" })];
    expect(await store.addErrors(errors, NOW)).toEqual({ accepted: 2, duplicate: 0 });
    expect((await store.errors(10))?.items).toEqual([...errors].reverse());
  });

  test("counts a record once, in one batch, over several batches and over a restart", async () => {
    const [first, second, third] = [recordOf(), recordOf(), recordOf()];
    expect(await store.addRecords([first, first, second], NOW)).toEqual({ accepted: 2, duplicate: 1 });
    expect(await store.addRecords([second, third], NOW)).toEqual({ accepted: 1, duplicate: 1 });
    await reopen();
    expect(await store.addRecords([first, second, third], NOW)).toEqual({ accepted: 0, duplicate: 3 });
    expect((await all()).map((record) => record.id)).toEqual([third.id, second.id, first.id]);
  });

  test("counts a record once when it arrives many times at once", async () => {
    const record = recordOf();
    const answers = await Promise.all(Array.from({ length: 20 }, () => store.addRecords([record, recordOf()], NOW)));
    expect(answers.reduce((sum, answer) => sum + answer.accepted, 0)).toBe(21);
    expect(await all()).toHaveLength(21);
  });

  test("stores nothing of a batch that fails, but all other batches, and continues", async () => {
    const broken = { ...recordOf(), clientId: "no uuid" };
    const [good, bad, alsoGood] = await Promise.allSettled([
      store.addRecords([recordOf()], NOW),
      store.addRecords([recordOf(), broken, recordOf()], NOW),
      store.addRecords([recordOf()], NOW),
    ]);
    expect([good.status, bad.status, alsoGood.status]).toEqual(["fulfilled", "rejected", "fulfilled"]);
    expect(await all()).toHaveLength(2);
    expect(await store.addRecords([recordOf()], NOW)).toEqual({ accepted: 1, duplicate: 0 });
  });

  test("refuses records at once when too many wait, and takes them later", async () => {
    const batch = Array.from({ length: 2500 }, () => recordOf());
    const rows = Array.from({ length: 5 }, (_, index) =>
      store.addRecords(index === 0 ? batch : batch.map((record) => ({ ...record, id: recordOf().id })), NOW),
    );
    const outcomes = await Promise.allSettled(rows);
    expect(outcomes.map(({ status }) => status)).toEqual([
      "fulfilled",
      "fulfilled",
      "fulfilled",
      "fulfilled",
      "rejected",
    ]);
    expect(outcomes[4]).toMatchObject({ reason: { got: 10_000, limit: 10_000 } });
    expect(await store.addRecords([recordOf()], NOW)).toEqual({ accepted: 1, duplicate: 0 });
  });

  test("gives pages newest first, without gaps or repeats, while new records arrive", async () => {
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

  test("a page that holds exactly the rest is the last one (10 of 10, 10 of 11)", async () => {
    const records = Array.from({ length: 10 }, () => recordOf());
    await store.addRecords(records, NOW);
    expect((await store.records(10))?.next).toBeNull();
    await store.addRecords([recordOf()], NOW);
    expect((await store.records(10))?.next).toBe(records[1]?.id);
  });

  test("there is no page before an id that is not stored", async () => {
    expect(await store.records(10, recordOf().id)).toBeUndefined();
    expect(await store.errors(10, recordOf().id)).toBeUndefined();
    expect(await store.records(10)).toEqual({ items: [], next: null });
  });

  test("stores the trace of a download once", async () => {
    const { id } = recordOf();
    const trace = {
      id,
      generationCount: 2,
      packets: [
        [1.5, 0, 0, "innovative"],
        [2, 1, 1, "duplicate"],
      ] as [number, number, number, "innovative"][],
      feedback: [[3, 0]] as [number, number][],
    };
    expect(await store.addTraces([trace, trace], NOW)).toEqual({ accepted: 1, duplicate: 1 });
    expect(await store.trace(id)).toEqual(trace);
    expect(await store.trace(recordOf().id)).toBeUndefined();
  });

  test("deletes only records that are older than the given time", async () => {
    const [old, young] = [recordOf(), recordOf()];
    await store.addRecords([old], NOW - 1000);
    await store.addErrors([errorOf()], NOW - 1000);
    await store.addTraces([{ id: old.id, generationCount: 0, packets: [], feedback: [] }], NOW - 1000);
    await store.addRecords([young], NOW);
    expect(await store.deleteBefore(NOW)).toBe(1);
    expect((await all()).map(({ id }) => id)).toEqual([young.id]);
    expect((await store.errors(10))?.items).toEqual([]);
    expect(await store.trace(old.id)).toBeUndefined();
  });

  test("tells the latest time of a client's clock", async () => {
    expect(await store.newestClientMs()).toBeUndefined();
    await store.addErrors([{ ...errorOf(), atMs: NOW - 5000 }], NOW);
    expect(await store.newestClientMs()).toBe(NOW - 5000);
    await store.addRecords([{ ...recordOf(), startedAtMs: NOW - 9000 }], NOW);
    expect(await store.newestClientMs()).toBe(NOW - 5000);
    await store.addRecords([{ ...recordOf(), startedAtMs: NOW - 1000 }], NOW);
    expect(await store.newestClientMs()).toBe(NOW - 1000);
  });

  test("every listed column is in the table, and the SQL of every field runs", async () => {
    await store.addRecords([recordOf(), bareRecordOf()], NOW);
    const [row] = await store.database.all("SELECT * FROM downloads");
    expect(Object.keys(row ?? {}).sort()).toEqual(["seq", ...COLUMNS.map(({ column }) => column)].sort());
    const rows = await store.database.all(
      `SELECT ${FIELDS.map(({ name, sql }) => `${sql} AS "${name}"`).join(", ")} FROM downloads ORDER BY seq`,
    );
    expect(rows[0]).toMatchObject({
      throughputBytesPerSec: (112_716 * 1000) / 855.5,
      duplicateShare: 5 / 101,
      lossShare: 2 / 103,
      transferMs: 584.5,
      host: "origin.example",
      sizeClass: "0 - 0.25 MB",
      packetsPerFeedback: 101 / 13,
      directShare: 0,
      rttMsMin: 0.5,
      transport: "mixed",
      proxiesUsed: 2,
      proxiesFailed: 1,
    });
    expect(rows[1]).toMatchObject({
      duplicateShare: null,
      goodputPerProxyBytesPerSec: null,
      transport: null,
      rttMsMin: null,
    });
    const [error] = await store.database.all("SELECT * FROM errors");
    expect(error).toBeUndefined();
    await store.addErrors([errorOf()], NOW);
    expect(Object.keys((await store.database.all("SELECT * FROM errors"))[0] ?? {}).sort()).toEqual(
      ["seq", ...ERROR_COLUMNS.map(({ column }) => column)].sort(),
    );
  });

  test("a transaction that throws leaves nothing, and a committed one is visible at once", async () => {
    const { database } = store;
    await database.run("CREATE TABLE t (a BIGINT, b TEXT, c BYTEA, d BOOLEAN)");
    await expect(
      database.transaction(async (inside) => {
        await inside.run("INSERT INTO t VALUES ($1, $2, $3, $4)", [1, "x", null, true]);
        throw new Error("no");
      }),
    ).rejects.toThrow("no");
    await database.transaction((inside) =>
      inside.run("INSERT INTO t VALUES ($1, $2, $3, $4)", [2, "'; DROP TABLE t; --", new Uint8Array([0, 255]), false]),
    );
    const [row, ...more] = await database.all("SELECT * FROM t");
    expect(more).toEqual([]);
    expect({ ...row, c: [...(row?.["c"] as Uint8Array)] }).toEqual({
      a: 2,
      b: "'; DROP TABLE t; --",
      c: [0, 255],
      d: false,
    });
  });

  test("streams rows in pieces", async () => {
    const rows: number[] = [];
    for await (const piece of store.database.stream(
      "SELECT n FROM generate_series(1, $1::BIGINT) AS t(n) ORDER BY n",
      [5000],
    ))
      rows.push(...piece.map(({ n }) => Number(n)));
    expect(rows).toHaveLength(5000);
    expect(rows[4999]).toBe(5000);
  });

  test("tables newer than this Origo are refused", async () => {
    await store.database.run("UPDATE origo_schema SET version = 99");
    await store.close();
    await expect(place.open()).rejects.toThrow(
      /schema version 99, this Origo reads up to version \d+: use a newer Origo/,
    );
  });
});

describe("DuckDB file", () => {
  test("that is no database is refused", async () => {
    const folder = await mkdtemp(join(tmpdir(), "origo-store-"));
    await writeFile(join(folder, "origo.duckdb"), "this is not a database".repeat(500));
    await expect(Store.open(folder)).rejects.toThrow("no database of Origo");
    await rm(folder, { recursive: true });
  });
});
