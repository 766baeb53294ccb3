/** Tests intake, queries and files over HTTP, on both databases. */
import { FIELDS } from "./store/fields";
import { once } from "node:events";
import { mkdir, readdir } from "node:fs/promises";
import { request, type IncomingMessage } from "node:http";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { DATABASES, stopDatabases, type TestDatabase } from "../test/databases";
import { bareRecordOf, errorOf, recordOf } from "../../contract/test/samples";
import type { DownloadsPage, FieldsResponse, Trace } from "@tributary/contract/query-schema";
import type { DownloadRecord, RecordsResponse } from "@tributary/contract/schema";
import { startOrigo, type Origo } from "./server";

const HOSTILE = `'; DROP TABLE downloads; --\r\n<img src=x onerror=alert(1)> "quoted", ünï 🎬`;
const DAY_MS = 86_400_000;
afterAll(stopDatabases);
jest.setTimeout(60_000);

describe.each(DATABASES)("HTTP over %s", (_name, make) => {
  let place: TestDatabase;
  let origo: Origo;
  let token: string;
  let cookie: string;

  const start = async (more: { nowMs?: () => number; retentionDays?: number } = {}): Promise<void> => {
    origo = await startOrigo({
      host: "127.0.0.1",
      port: 0,
      dataDir: place.environment.DATA_DIR,
      databaseUrl: place.environment.DATABASE_URL,
      dashboardDir: "/nonexistent",
      login: "off",
      ...more,
    });
    const login = await fetch(`${origo.url}/v1/login`);
    token = ((await login.json()) as { csrfToken: string }).csrfToken;
    cookie = login.headers.get("set-cookie")?.split(";")[0] ?? "";
  };
  beforeEach(async () => {
    place = await make();
    await start();
  });
  afterEach(async () => {
    await origo.close();
    await place.remove();
  });

  const get = (path: string): Promise<Response> => fetch(origo.url + path);
  const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    fetch(origo.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", "x-csrf-token": token, cookie, ...headers },
      body: typeof body === "string" || body instanceof Uint8Array ? (body as string) : JSON.stringify(body),
    });
  const stored = async (): Promise<DownloadRecord[]> =>
    ((await (await get("/v1/records?limit=500")).json()) as RecordsResponse).records;

  test("takes compressed bodies, and refuses bodies that are too large, also after unpacking", async () => {
    const records = [recordOf(), recordOf()];
    const packed = await post("/v1/records", gzipSync(JSON.stringify({ records })), { "content-encoding": "gzip" });
    expect([packed.status, await packed.json()]).toEqual([202, { accepted: 2, duplicate: 0 }]);
    const large = JSON.stringify({ records: [recordOf()], padding: "x".repeat(10_000_000) });
    expect((await post("/v1/records", large)).status).toBe(413);
    expect((await post("/v1/records", gzipSync(large), { "content-encoding": "gzip" })).status).toBe(413);
    expect((await post("/v1/records", gzipSync("{"), { "content-encoding": "gzip" })).status).toBe(400);
    expect(await stored()).toHaveLength(2);
  });

  test("hostile text in every text field is stored and returned unchanged", async () => {
    const record = recordOf({
      clientVersion: HOSTILE.slice(0, 64),
      agent: HOSTILE.slice(0, 60),
      os: "'--",
      player: "';",
      experiments: [{ id: "'", arm: "';--" }],
      contentType: HOSTILE,
      comment: HOSTILE,
      userComment: HOSTILE,
      error: { kind: "stalled", message: HOSTILE },
      fallback: { kind: "stalled", message: HOSTILE, bytes: 0 },
      engine: "\"'`;",
      proxies: recordOf().proxies.map((proxy) => ({
        ...proxy,
        id: "'",
        name: "';--",
        error: { kind: "stalled" as const, message: HOSTILE },
      })),
    });
    expect((await post("/v1/records", { records: [record] })).status).toBe(202);
    expect((await post("/v1/errors", { errors: [errorOf({ kind: "stalled", message: HOSTILE })] })).status).toBe(202);
    expect(await (await get(`/v1/records/${record.id}`)).json()).toEqual(record);
    const nul = recordOf({ comment: "a\0b\ud800c" });
    await post("/v1/records", { records: [nul] });
    expect(((await (await get(`/v1/records/${nul.id}`)).json()) as DownloadRecord).comment).toBe("a\ufffdb\ufffdc");
  });

  test("nothing of a bad batch is stored, and the answer names the field", async () => {
    const answer = await post("/v1/records", { records: [recordOf(), recordOf({ status: -1 })] });
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: { kind: "badField", field: "records[1].status" } },
    ]);
    expect((await post("/v1/records", { records: [{ ...recordOf(), future: 1 }] })).status).toBe(400);
    expect(await stored()).toEqual([]);
  });

  test("a query that nothing can match is refused, with the value and what is allowed", async () => {
    const arms = ["control", "wide"].map((name, index) => ({
      name,
      weight: 1,
      values: { "client.windowPackets": 60 + index },
    }));
    const made = await post("/v1/experiments", { name: "e", question: "", arms });
    expect(made.status).toBe(201);
    const arm = `arm:${((await made.json()) as { id: string }).id}`;
    await post("/v1/records", { records: [recordOf({ experiments: [{ id: "elsewhere", arm: "x" }] })] });
    const box = { chart: "box", metric: "netBytes" };
    const time = { chart: "time", metric: "netBytes", bucketMs: 60_000 };
    const where = (...conditions: readonly (readonly [string, string, unknown])[]) => ({
      ...box,
      where: conditions.map(([field, op, value]) => ({ field, op, value })),
    });
    const cases: (readonly [body: object, field: string, message: RegExp])[] = [
      [{ ...box, chart: "pie" }, "chart", /'box' .*got "pie"$/],
      [{ ...time, statistic: "max" }, "statistic", /'median' .*received 'max'$/],
      [{ ...time, bucketMs: 1e300 }, "bucketMs", /315576000000, got 1e\+300$/],
      [{ ...time, bucketMs: 999 }, "bucketMs", /1000, got 999$/],
      [{ ...box, groupBy: ["mode", "mode"] }, "groupBy", /twice/],
      [{ ...box, groupBy: ["country"] }, "groupBy[0]", /"country"/],
      [{ ...box, groupBy: ["arm:e9"] }, "groupBy[0]", /no experiment "e9"/],
      [{ chart: "histogram", metric: "netBytes", bins: 201 }, "bins", /200, got 201$/],
      [where(["mode", "contains", "zzz"]), "where[0].value", /one of direct, .*got "zzz"$/],
      [where(["mode", "<", "coded"]), "where[0].op", /must be =, !=, in or contains for mode, got <$/],
      [where(["id", "=", "xyz"]), "where[0].value", /must be a UUID in lower case for id, got "xyz"$/],
      [where(["sha256", "in", ["x"]]), "where[0].value[0]", /64 lower-case hex digits for sha256, got "x"$/],
      [where(["status", "=", 600]), "where[0].value", /must be 0 to 599 for status, got 600$/],
      [where(["startedAtMs", "=", -1]), "where[0].value", /must be 0 to 8640000000000000 for startedAtMs, got -1$/],
      [where(["netBytes", "<", 0]), "where[0]", /netBytes < 0$/],
      [where(["netBytes", ">=", 5], ["netBytes", "<", 5]), "where[1]", /netBytes < 5$/],
      [where(["netBytes", "=", 5], ["mode", "=", "coded"], ["netBytes", ">", 6]), "where[2]", /netBytes > 6$/],
      [where(["mode", "=", "coded"], ["mode", "in", ["direct"]]), "where[1]", /mode in 1 items$/],
      [where([arm, "=", "narrow"]), "where[0].value", /must be one of control, wide for arm:\S+, got "narrow"$/],
      [where(["arm:e9", "=", "x"]), "where[0].field", /no experiment "e9", and no download/],
    ];
    for (const [body, field, message] of cases)
      expect([body, await (await post("/v1/query/chart", body)).json()]).toEqual([
        body,
        { error: { kind: "badField", field, message: expect.stringMatching(message) as string } },
      ]);
    const compared = { metric: "netBytes", field: arm, a: "control", b: "narrow" };
    expect(await (await post("/v1/query/difference", compared)).json()).toMatchObject({ error: { field: "b" } });
    const right = [
      where(["id", "=", recordOf().id.toUpperCase()], ["netBytes", ">", 5], ["netBytes", "<=", 6]),
      where([arm, "=", "wide"], ["arm:elsewhere", "=", "x"], ["mode", "contains", "DIR"], ["status", ">", -1]),
    ];
    for (const body of right) expect((await post("/v1/query/chart", body)).status).toBe(200);
  });

  test("a parameter that an endpoint does not take is refused, and the answer names those that it takes", async () => {
    for (const [path, message] of [
      ["/v1/records?lmit=5", "lmit: /v1/records has no such parameter: it takes limit, before"],
      ["/v1/proxies?country=DE", "country: /v1/proxies has no such parameter: it takes count, exclude,"],
      ["/v1/records?limit=5&limit=6", "limit: /v1/records takes it once, got it 2 times"],
      ["/v1/views?page=downloads", "page: /v1/views has no such parameter: it takes none"],
      ["/v1/records?limit=501", "limit: Number must be less than or equal to 500, got"],
      ["/v1/records?limit=abc", 'limit: must be a whole number, got "abc"'],
      ["/v1/records?before=abc", 'before: Invalid uuid, got "abc"'],
    ] as const) {
      const refused = await get(path);
      const { error } = (await refused.json()) as { error: { message: string } };
      expect([refused.status, error.message]).toEqual([400, expect.stringContaining(message)]);
    }
    for (const path of ["/healthz?from=monitor", "/metrics?x", "/v1/records?limit=5"])
      expect([path, (await get(path)).status]).toEqual([path, 200]);
  });

  test("answers the queries of the dashboard", async () => {
    const record = recordOf({ mode: "coded" });
    await post("/v1/records", { records: [record, bareRecordOf()] });
    const { fields } = (await (await get("/v1/fields")).json()) as FieldsResponse;
    expect(fields.map(({ name }) => name)).toEqual(FIELDS.map(({ name }) => name));
    expect(Object.keys(fields[0] ?? {})).not.toContain("sql");
    const page = (await (
      await post("/v1/query/downloads", { columns: ["mode"], where: [{ field: "mode", op: "=", value: "coded" }] })
    ).json()) as DownloadsPage;
    expect(page).toEqual({ ids: [record.id], rows: [["coded"]], matching: 1, next: null });
    expect(
      await (await post("/v1/query/chart", { chart: "box", metric: "durationMs", groupBy: ["mode"] })).json(),
    ).toMatchObject({
      boxes: [
        { group: ["coded"], n: 1 },
        { group: ["direct"], n: 1 },
      ],
    });
    expect(
      await (
        await post("/v1/query/difference", { metric: "durationMs", field: "mode", a: "coded", b: "direct" })
      ).json(),
    ).toMatchObject({ interval: null });
    expect(await (await get(`/v1/records/${record.id}`)).json()).toEqual(record);
    expect((await get(`/v1/records/${recordOf().id}`)).status).toBe(404);
    expect((await get("/v1/records/nope")).status).toBe(400);
    for (const [path, body, field] of [
      ["/v1/query/downloads", { columns: ["id;"] }, "columns[0]"],
      ["/v1/query/chart", { chart: "box", metric: "url" }, "metric"],
      ["/v1/query/difference", { metric: "durationMs", field: "zz", a: 1, b: 2 }, "field"],
      ["/v1/query/difference", { metric: "durationMs", field: "mode", a: "coded", b: "warp" }, "b"],
      [
        "/v1/query/downloads",
        { columns: ["id"], where: [{ field: "outcome", op: "=", value: "x" }] },
        "where[0].value",
      ],
      [
        "/v1/query/chart",
        { chart: "box", metric: "netBytes", where: [{ field: "mode", op: "in", value: ["coded", "x"] }] },
        "where[0].value[1]",
      ],
    ] as const) {
      const refused = await post(path, body);
      expect([refused.status, await refused.json()]).toMatchObject([400, { error: { kind: "badField", field } }]);
    }
  });

  test("keeps traces for their downloads", async () => {
    const trace: Trace = {
      id: recordOf().id,
      generationCount: 1,
      packets: [[0.5, 0, 0, "innovative"]],
      feedback: [[1, 0]],
    };
    expect(await (await post("/v1/traces", { traces: [trace] })).json()).toEqual({ accepted: 1, duplicate: 0 });
    expect(await (await get(`/v1/records/${trace.id}/trace`)).json()).toEqual(trace);
    expect((await get(`/v1/records/${recordOf().id}/trace`)).status).toBe(404);
    expect((await post("/v1/traces", { traces: [{ ...trace, packets: [[-1, 0, 0, "x"]] }] })).status).toBe(400);
  });

  test.each(["csv", "parquet"] as const)("records exported as %s are the same after the import", async (format) => {
    const records = [
      recordOf({ comment: HOSTILE, userComment: "" }),
      bareRecordOf(),
      recordOf({ durationMs: 1000.1 + 0.2, netBytes: 2 ** 52 + 1, grossBytes: 2 ** 52 + 3 }),
    ];
    expect((await post("/v1/records", { records })).status).toBe(202);
    const answer = await get(`/v1/export?format=${format}`);
    expect(answer.headers.get("content-disposition")).toBe(`attachment; filename="tributary-records.${format}"`);
    const file = new Uint8Array(await answer.arrayBuffer());
    const before = await stored();
    expect(
      await (await post(`/v1/import?format=${format}`, file, { "content-type": "application/octet-stream" })).json(),
    ).toEqual({ accepted: 0, duplicate: 3 });
    await origo.close();
    await place.remove();
    place = await make();
    await start();
    expect(
      await (await post(`/v1/import?format=${format}`, file, { "content-type": "application/octet-stream" })).json(),
    ).toEqual({ accepted: 3, duplicate: 0 });
    expect(await stored()).toEqual(before);
  });

  test("a text that looks like a formula is harmless in CSV, and is the same after the import", async () => {
    const comments = [
      '=HYPERLINK("http://evil.example")',
      "+1",
      "-1",
      "@SUM(A1)",
      "\t=1",
      "'=1",
      "''@",
      "'plain",
      "1-1",
    ];
    const records = comments.map((userComment) => recordOf({ userComment }));
    expect((await post("/v1/records", { records })).status).toBe(202);
    const text = await (await get("/v1/export?format=csv")).text();
    expect(text).not.toMatch(/(^|,)"?[=+@\t]/m);
    for (const written of [`,"'=HYPERLINK(""http://evil.example"")",`, ",'-1,", ",''=1,", ",'plain,"])
      expect(text).toContain(written);
    const before = await stored();
    await origo.close();
    await place.remove();
    place = await make();
    await start();
    expect(await (await post("/v1/import?format=csv", text, { "content-type": "text/csv" })).json()).toEqual({
      accepted: comments.length,
      duplicate: 0,
    });
    expect(await stored()).toEqual(before);
  });

  test("an imported file is in the data folder until it is read, and a restart removes leftovers", async () => {
    const scratch = join(place.environment.DATA_DIR, "scratch");
    await mkdir(join(scratch, "file-left"), { recursive: true });
    await origo.close();
    await start();
    expect(await readdir(place.environment.DATA_DIR)).not.toContain("scratch");
    const upload = request(`${origo.url}/v1/import?format=csv`, {
      method: "POST",
      headers: { "content-type": "text/csv", "x-csrf-token": token, cookie },
    });
    upload.write("a,b\r\n");
    for (let tries = 0; tries < 250 && (await readdir(scratch).catch(() => [])).length === 0; tries++)
      await new Promise((resolve) => setTimeout(resolve, 20));
    expect(await readdir(scratch)).toHaveLength(1);
    upload.end("1,2\r\n");
    const [response] = (await once(upload, "response")) as [IncomingMessage];
    response.resume();
    expect([response.statusCode, await readdir(scratch)]).toEqual([400, []]);
  });

  test("a file in a wrong format, or with one wrong row, is refused whole", async () => {
    await post("/v1/records", { records: [recordOf(), recordOf()] });
    const text = (await (await get("/v1/export?format=csv")).text())
      .replace("coded-mutp", "no-mode")
      .replaceAll(/,[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12},/g, `,${recordOf().id},`);
    const refused = await post("/v1/import?format=csv", text, { "content-type": "text/csv" });
    expect([refused.status, await refused.json()]).toMatchObject([400, { error: { field: "row 1" } }]);
    for (const [format, body, message] of [
      ["parquet", "no parquet", /^body: is not a parquet file that Origo exported: .*records\.parquet/],
      ["csv", "a,b\r\n1,2\r\n", /lacks \d+ of \d+ columns, the first is id$/],
      ["csv", text.replace("netBytes,", "bytes,"), /lacks 1 of \d+ columns, the first is netBytes$/],
    ] as const) {
      const wrong = await post(`/v1/import?format=${format}`, body, { "content-type": "text/csv" });
      const { error } = (await wrong.json()) as { error: { message: string } };
      expect([wrong.status, error.message]).toEqual([400, expect.stringMatching(message)]);
      expect(error.message).not.toContain("/scratch/");
    }
    expect(await stored()).toHaveLength(2);
  });

  test("a file of an Origo that did not know who vouches comes in", async () => {
    await post("/v1/records", { records: [recordOf()] });
    const text = await (await get("/v1/export?format=csv")).text();
    const older = text.replace("vouchedBy", "notKnownHere");
    const taken = await post("/v1/import?format=csv", older, { "content-type": "text/csv" });
    expect([taken.status, await taken.json()]).toEqual([200, { accepted: 0, duplicate: 1 }]);
  });

  test("deletes records that are older than the retention", async () => {
    await post("/v1/records", { records: [recordOf()] });
    await origo.close();
    await start({ retentionDays: 30, nowMs: () => Date.now() + 29 * DAY_MS });
    expect(await stored()).toHaveLength(1);
    await origo.close();
    // A clock that runs years ahead costs no records, not even once a client has reported under it.
    await start({ retentionDays: 30, nowMs: () => Date.now() + 4000 * DAY_MS });
    await post("/v1/records", { records: [recordOf()] });
    expect(await stored()).toHaveLength(2);
    await origo.close();
    await start({ retentionDays: 30, nowMs: () => Date.now() + 4100 * DAY_MS });
    expect(await stored()).toHaveLength(2);
    await origo.close();
    await start({ retentionDays: 30, nowMs: () => Date.now() + 31 * DAY_MS });
    // The other one has the time of that clock.
    expect(await stored()).toHaveLength(1);
  });
});
