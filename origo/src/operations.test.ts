/** Tests the parts for people who run Origo: OpenAPI, metrics, readiness, and a log without addresses. */
/* eslint-disable @typescript-eslint/no-explicit-any -- answers are looked at field by field, as a stranger would */
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import pino from "pino";
import { RateLimit } from "./rate-limit";
import { startOrigo, type Origo } from "./server";
import { keep, matches } from "./password";
import { recordOf } from "../../contract/test/samples";

jest.setTimeout(60_000);
let folder: string;
let origo: Origo;
let logged = "";

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-operations-"));
  const sink = new PassThrough();
  sink.on("data", (text: Buffer) => (logged += text.toString()));
  origo = await startOrigo({
    host: "127.0.0.1",
    port: 0,
    dataDir: folder,
    dashboardDir: folder,
    login: "required",
    log: pino(sink),
  });
});
afterAll(async () => {
  await origo.close();
  await rm(folder, { recursive: true, force: true });
});

const json = async (path: string): Promise<any> => (await fetch(origo.url + path)).json();

test("every documented path is served, and every other method on it is answered with 405", async () => {
  const { openapi, paths } = await json("/openapi.json");
  expect(openapi).toBe("3.1.0");
  for (const [path, operations] of Object.entries(paths as Record<string, object>)) {
    const response = await fetch(origo.url + path.replace(/\{\w+\}/g, "x"), { method: "OPTIONS" });
    const allowed = (response.headers.get("allow") ?? "")
      .split(", ")
      .filter((method) => method !== "HEAD" && method !== "OPTIONS")
      .map((method) => method.toLowerCase());
    expect([path, allowed.sort()]).toEqual([path, Object.keys(operations).sort()]);
  }
});

test("the description marks the parameters that are required, and has every body", async () => {
  const { paths } = await json("/openapi.json");
  expect(paths["/v1/export"].get.parameters).toMatchObject([{ name: "format", required: true }]);
  expect(paths["/v1/records"].get.parameters).toMatchObject([
    { name: "limit", required: false },
    { name: "before", required: false },
  ]);
  expect(Object.keys(paths["/v1/import"].post.requestBody.content)).toEqual(["application/octet-stream"]);
  expect(Object.keys(paths["/v1/records"].post.requestBody.content)).toEqual(["application/json"]);
});

test.each([
  "/healthz",
  "/readyz",
  "/v1/proxies",
  "/v1/client-config",
  "/v1/site-rules",
  "/v1/login",
  "/.well-known/tributary-keys.json",
  "/openapi.json",
])("%s answers with the fields that its description requires, and no others", async (path) => {
  const { schema } = (await json("/openapi.json")).paths[path].get.responses["200"].content["application/json"];
  const answer = await json(path);
  for (const field of schema.required ?? []) expect(answer).toHaveProperty(field);
  if (schema.additionalProperties === false)
    expect(Object.keys(schema.properties)).toEqual(expect.arrayContaining(Object.keys(answer)));
});

test("metrics show requests by route, intake, fleet and storage, and contain no address", async () => {
  await fetch(`${origo.url}/v1/records`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ records: [recordOf(), recordOf()] }),
  });
  await fetch(`${origo.url}/v1/records/some-id?secret=1`);
  const response = await fetch(`${origo.url}/metrics`);
  const text = await response.text();
  expect(response.headers.get("content-type")).toContain("text/plain");
  expect(text).toContain('origo_intake_total{kind="record",result="accepted"} 2');
  expect(text).toMatch(/origo_http_request_seconds_count\{route="\/v1\/records",method="POST",status="202"\} 1/);
  expect(text).toContain('origo_proxies{state="live"} 0');
  expect(Number(/^origo_storage_bytes (\S+)/m.exec(text)?.[1])).toBeGreaterThan(0);
  expect(text).not.toMatch(/127\.0\.0\.1|some-id|secret=1/);
  expect(logged).not.toMatch(/127\.0\.0\.1|secret=1/);
});

test("passwords: equal passwords are stored differently, and each matches only itself", async () => {
  const [first, second] = [await keep("correct horse"), await keep("correct horse")];
  expect(first).not.toBe(second);
  expect(first).not.toContain("correct");
  expect([
    await matches("correct horse", first),
    await matches("correct horsE", first),
    await matches("correct horse", undefined),
  ]).toEqual([true, false, false]);
});

test("attempts: the limit holds in its window, and the table stays bounded", () => {
  const attempts = new RateLimit({ limit: () => 2, windowMs: () => 1000, keysMax: 3 });
  attempts.add("a", 0);
  expect(attempts.waitMs("a", 0)).toBe(0);
  attempts.add("a", 400);
  expect([
    attempts.waitMs("a", 400),
    attempts.waitMs("a", 999),
    attempts.waitMs("a", 1000),
    attempts.waitMs("b", 400),
  ]).toEqual([600, 1, 0, 0]);
  attempts.add("a", 1000);
  expect(attempts.waitMs("a", 1000)).toBe(0);
  attempts.add("a", 1001);
  for (const key of ["b", "c", "d"]) attempts.add(key, 1002);
  expect(attempts.waitMs("a", 1002)).toBe(0);
});
