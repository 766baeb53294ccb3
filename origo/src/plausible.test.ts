/** Records whose fields do not fit together are refused, and whatever is taken can be exported and imported again. */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Readable } from "node:stream";
import { buffer, text } from "node:stream/consumers";
import { recordFields } from "@tributary/contract/record-fields";
import { ChartQuery, DifferenceQuery } from "@tributary/contract/query-schema";
import { RecordsRequest, type DownloadRecord } from "@tributary/contract/schema";
import { bareRecordOf, recordOf } from "../../contract/test/samples";
import { DATABASES, stopDatabases, type TestDatabase } from "../test/databases";
import { CLOCK_AHEAD_MS_MAX, recordFault, reportFault, STARTED_MS_MIN } from "./plausible";
import { startOrigo } from "./server";
import { exportCsv, FIELDS, importFile, queryChart, queryDifference, withParquet, type Store } from "./store";

const NOW = 1_790_000_000_000;
/** Records of the random test. */
const TAKEN = 150;
const MAX = Number.MAX_SAFE_INTEGER;
afterAll(stopDatabases);
jest.setTimeout(120_000);

const at = (fields: Partial<DownloadRecord>): string | undefined => recordFault(recordOf(fields), NOW)?.field;
const proxy = recordOf().proxies[0]!;

test.each<[Partial<DownloadRecord>, Partial<DownloadRecord>, string]>([
  [{ startedAtMs: STARTED_MS_MIN }, { startedAtMs: STARTED_MS_MIN - 1 }, "startedAtMs"],
  [{ startedAtMs: NOW }, { startedAtMs: 0 }, "startedAtMs"],
  [{ startedAtMs: NOW }, { startedAtMs: 8.64e15 }, "startedAtMs"],
  [{ startedAtMs: NOW + CLOCK_AHEAD_MS_MAX - 1000 }, { startedAtMs: NOW + CLOCK_AHEAD_MS_MAX + 1 }, "startedAtMs"],
  [{ durationMs: CLOCK_AHEAD_MS_MAX - 1 }, { durationMs: MAX }, "durationMs"],
  [{ firstByteMs: 855.5 }, { firstByteMs: 855.6 }, "firstByteMs"],
  [{ netBytes: 112_716 }, { netBytes: 112_717 }, "netBytes"],
  [{ directBytes: 112_716 }, { directBytes: 112_717 }, "directBytes"],
  [{ grossBytes: MAX, durationMs: 1000 }, { grossBytes: MAX, durationMs: 999 }, "throughputBytesPerSec"],
  [{ durationMs: 0, firstByteMs: 0 }, { durationMs: 5e-324, firstByteMs: 0 }, "throughputBytesPerSec"],
  [{ serverFetchMs: 855.5 }, { serverFetchMs: 855.5 - 1e-12, netBytes: 112_716 }, "goodputAfterFetchBytesPerSec"],
  [{ proxies: [{ ...proxy, lost: MAX }] }, { proxies: [{ ...proxy, lost: MAX }, proxy] }, "proxies"],
  [{ experiments: [{ id: "e", arm: "=" }] }, { experiments: [{ id: "=e", arm: "a" }] }, "experiments[0].id"],
])("%j is taken, %j is refused at %s", (taken, refused, field) => {
  const startedAtMs = NOW - 1000;
  expect([at({ startedAtMs, ...taken }), at({ startedAtMs, ...refused })]).toEqual([undefined, field]);
});

test.each([
  [STARTED_MS_MIN, STARTED_MS_MIN - 1],
  [NOW + CLOCK_AHEAD_MS_MAX, NOW + CLOCK_AHEAD_MS_MAX + 1],
])("a report of an error at %d ms is taken, one at %d is refused", (taken, refused) => {
  const report = { id: recordOf().id, source: "cli", kind: "stalled", message: "it stalled" } as const;
  const faults = [taken, refused].map((atMs) => reportFault({ ...report, atMs }, NOW)?.field);
  expect(faults).toEqual([undefined, "atMs"]);
});

test("POST /v1/records refuses the whole batch and names the record, the value and the limit", async () => {
  const dataDir = await mkdtemp(join(tmpdir(), "origo-plausible-"));
  const origo = await startOrigo({ host: "127.0.0.1", port: 0, dataDir, dashboardDir: dataDir, login: "off" });
  try {
    const records = [recordOf(), recordOf({ netBytes: MAX, grossBytes: MAX, durationMs: 0.001, firstByteMs: 0 })];
    const answer = await fetch(`${origo.url}/v1/records`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        records: records.map((record) => ({ ...record, throughputBytesPerSec: 0, goodputBytesPerSec: 0 })),
      }),
    });
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: { kind: "badField", field: "records[1].throughputBytesPerSec", limit: MAX } },
    ]);
  } finally {
    await origo.close();
    await rm(dataDir, { recursive: true });
  }
});

const NUMBERS = [0, -0, 1, 0.1, 1e-7, 5e-324, 1 / 3, 1000.1 + 0.2, 2 ** 31, 2 ** 52 + 1, MAX, 8.64e15, NOW];
const TEXTS = [
  "",
  "x",
  "=1",
  "'=1",
  "''",
  '"',
  '""',
  ",",
  "\r",
  "\n",
  "\r\n",
  "\0",
  "\u001f",
  "a\u001fb",
  "\\N",
  "NULL",
];
const MORE_TEXTS = [
  "\ud800",
  "ünï 🎬",
  " ",
  "\t=",
  "\u2028",
  "\ufeff",
  "-1",
  "1e3",
  "true",
  "x".repeat(64),
  "🎬".repeat(500),
];

const URLS = [
  "http://a/",
  "HTTPS://A.EXAMPLE:443/%00%22",
  " http://a/ ",
  "http:a",
  "http:\\\\a\\b",
  "http://a/\n,\"'\r\t=",
  "https://xn--nxasmq6b/🎬",
  "https://bücher.example/\u2028",
  "http://[::1]:1/",
  `https://a.example/${"x".repeat(8192 - 18)}`,
];
const DIGESTS = ["0".repeat(64), "e".repeat(64), "1e5".padEnd(64, "0"), null];

/** Draws records from edge values, each with a few fields changed. */
function drawer(seed: number): () => unknown {
  let state = seed;
  const below = (bound: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * bound);
  };
  const oneOf = <T>(list: readonly T[]): T => list[below(list.length)]!;
  const fields = recordFields.filter(([, { record, type }]) => record !== undefined && type !== "uuid");
  const valueOf = (type: string): unknown => {
    if (type === "url") return oneOf(URLS);
    if (type === "sha256") return oneOf(DIGESTS);
    return ["count", "number", "time"].includes(type) ? oneOf(NUMBERS) : oneOf([...TEXTS, ...MORE_TEXTS]);
  };
  return () => {
    const record: Record<string, unknown> = { ...(below(4) === 0 ? bareRecordOf() : recordOf()) };
    for (let changes = below(4); changes >= 0; changes--) {
      const [name, { type, values }] = oneOf(fields);
      record[name] = values ? oneOf(values) : valueOf(type);
    }
    if (below(4) === 0)
      record["experiments"] = [
        { id: oneOf(TEXTS), arm: oneOf(MORE_TEXTS) },
        { id: "e", arm: oneOf(TEXTS) },
      ];
    if (below(4) === 0) record["range"] = { start: oneOf(NUMBERS), end: oneOf(NUMBERS) };
    if (below(4) === 0) record["fallback"] = { kind: oneOf(TEXTS), message: oneOf(TEXTS), bytes: oneOf(NUMBERS) };
    if (below(8) === 0) {
      const counts = { packets: oneOf(NUMBERS), bytes: oneOf(NUMBERS), innovative: 0, duplicate: 0, rejected: 0 };
      record["proxies"] = [
        { ...proxy, ...counts, late: counts.packets, rttMs: null, id: oneOf([...TEXTS, ...MORE_TEXTS]) },
      ];
    }
    if (below(4) === 0) record["error"] = { kind: oneOf(TEXTS), message: oneOf(MORE_TEXTS).repeat(2) };
    if (below(4) === 0)
      record["proxies"] = [{ ...proxy, lost: oneOf(NUMBERS), rttMs: oneOf(NUMBERS), name: oneOf(TEXTS) }, proxy];
    if (below(8) === 0)
      record["proxies"] = Array(64).fill({ ...proxy, error: { kind: "proxyLost", message: '"\u0001\\'.repeat(600) } });
    return record;
  };
}

describe.each(DATABASES)("export and import over %s", (_name, make) => {
  const places: { place: TestDatabase; store: Store }[] = [];
  const opened = async (): Promise<Store> => {
    const place = await make();
    const store = await place.open();
    places.push({ place, store });
    return store;
  };
  const csvOf = (store: Store): Promise<string> => text(exportCsv(store.database));
  const parquetOf = async (store: Store): Promise<Buffer> => {
    let file = Buffer.alloc(0);
    await withParquet(store, async (stream) => void (file = await buffer(stream)));
    return file;
  };
  afterEach(async () => {
    for (const { place, store } of places.splice(0)) {
      await store.close();
      await place.remove();
    }
  });

  test("whatever is taken is exported, imported and exported again byte for byte (seed 40)", async () => {
    const draw = drawer(40);
    const [first, second, third] = [await opened(), await opened(), await opened()];
    const taken: DownloadRecord[] = [];
    for (let tries = 0; tries < 4000 && taken.length < TAKEN; tries++) {
      const read = RecordsRequest.safeParse({ records: [draw()] });
      const record = read.data?.records[0];
      if (record && recordFault(record, NOW) === undefined) taken.push(record);
    }
    expect(taken.length).toBe(TAKEN);
    await first.addRecords(taken, NOW);
    const file = await csvOf(first);
    expect(await importFile(second, "csv", Readable.from([file]), NOW)).toEqual({ accepted: TAKEN, duplicate: 0 });
    expect(await csvOf(second)).toBe(file);
    const parquet = await parquetOf(first);
    expect(await importFile(third, "parquet", Readable.from([parquet]), NOW)).toEqual({
      accepted: TAKEN,
      duplicate: 0,
    });
    expect(await csvOf(third)).toBe(file);
    expect((await third.records(TAKEN))?.items).toEqual((await first.records(TAKEN))?.items);
    for (const { name, type } of FIELDS) {
      if (type !== "number" && type !== "time") continue;
      await queryChart(first.database, ChartQuery.parse({ chart: "histogram", metric: name }));
      const compared = { metric: name, field: "mode", a: "coded", b: "direct" };
      await queryDifference(first.database, DifferenceQuery.parse(compared));
    }
  });

  test("records of clients whose clocks are hours off are taken, exported, and imported again", async () => {
    const [first, second] = [await opened(), await opened()];
    const records = [-23, -1, 0, 1, 23].map((hours) => recordOf({ startedAtMs: NOW + hours * 3_600_000 }));
    expect(records.map((record) => recordFault(record, NOW))).toEqual(records.map(() => undefined));
    await first.addRecords(records, NOW);
    const file = await csvOf(first);
    expect(await importFile(second, "csv", Readable.from([file]), NOW)).toEqual({ accepted: 5, duplicate: 0 });
    expect(await csvOf(second)).toBe(file);
  });

  test("what an Origo stored while its clock was years ahead is imported as of now", async () => {
    const [first, second] = [await opened(), await opened()];
    await first.addRecords([recordOf({ startedAtMs: NOW })], NOW + 9e11);
    const file = await csvOf(first);
    expect(await importFile(second, "csv", Readable.from([file]), NOW)).toEqual({ accepted: 1, duplicate: 0 });
    expect(await csvOf(second)).toBe(file.replace(String(NOW + 9e11), String(NOW)));
  });

  test("records that an older Origo took do not keep the others out of an import", async () => {
    const [old, fresh] = [await opened(), await opened()];
    const good = [recordOf(), recordOf({ experiments: [{ id: "a=b", arm: "x".repeat(64) }] })];
    const bad = [
      recordOf({ netBytes: MAX, grossBytes: MAX, durationMs: 0.001, firstByteMs: 0 }),
      recordOf({ grossBytes: 1, durationMs: 5e-324, firstByteMs: 0 }),
      recordOf({ netBytes: MAX }),
      recordOf({ startedAtMs: 0 }),
      recordOf({ startedAtMs: 8.64e15 }),
      recordOf({ firstByteMs: 1e6 }),
    ];
    await old.addRecords([...bad, ...good, recordOf({ experiments: [{ id: "=e", arm: "a" }] })], NOW);
    for (const format of ["csv", "parquet"] as const) {
      const file = format === "csv" ? await csvOf(old) : await parquetOf(old);
      const answer = await importFile(fresh, format, Readable.from([file]), NOW);
      expect(answer).toMatchObject({
        leftOut: { records: 7, first: expect.stringMatching(/^row 1: throughputBytesPerSec: must be at most/) },
      });
      expect(answer.accepted + answer.duplicate).toBe(2);
    }
    const ids = (await fresh.records(10))?.items.map(({ id }) => id);
    expect(ids).toEqual(good.map(({ id }) => id).reverse());
  });
});
