/** Evidence against a proxy, with real HTTP and a real database. */
import { createHash, randomBytes, randomUUID } from "node:crypto";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Socket } from "socket.io-client";
import type { Conviction } from "@tributary/contract/conviction";
import { FleetResponse } from "@tributary/contract/schema";
import { LeafMaker, Tree } from "@tributary/contract/tree";
import { helloOf, statusOf } from "../../contract/test/samples";
import { joinProxy } from "../test/proxy";
import { ask, fileOf, objectOf, TestPublisher, type Answered } from "../test/publisher";
import { startOrigo, type Origo } from "./server";

jest.setTimeout(60_000);

const hash = (bytes: Uint8Array): Uint8Array => createHash("sha256").update(bytes).digest();
const content = randomBytes(40_000);
const maker = new LeafMaker(hash);
maker.update(content);
const proof = new Tree(maker.finish(), hash).proofOf(0);
let folder: string;
let origo: Origo;
let publisher: TestPublisher;
let proxy: { socket: Socket; id: string };

async function start(): Promise<void> {
  const place = { host: "127.0.0.1", port: 0, dataDir: folder, dashboardDir: folder };
  origo = await startOrigo({ ...place, login: "off", trustedHops: 1 });
}

/** A proxy that holds the film. */
async function connect(): Promise<void> {
  proxy = await joinProxy(origo.url, folder, helloOf({ name: "p1", url: "http://p1.example:7611" }));
  const library = { objects: 0, bytes: 0, freeBytes: 1e9, servedBytes: 0, takenBytes: 0, damagedObjects: 0 };
  const { socket } = proxy;
  const beat = () => socket.emitWithAck("status", statusOf({ library }));
  await beat();
  setInterval(() => socket.connected && void beat(), 1000).unref();
}

const report = () => proxy.socket.emitWithAck("objects", { isFirst: true, added: [objectOf(content)], removed: [] });

async function restart(): Promise<void> {
  proxy.socket.disconnect();
  await origo.close();
  await start();
  await connect();
  await report();
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-convictions-"));
  await start();
  publisher = await TestPublisher.make(origo.url);
  await connect();
  const { code } = (await admin("POST", "/v1/publishers")).body;
  await publisher.act({ kind: "enrol", label: "Ana", code: String(code) });
  await publisher.begin("film", 1, [fileOf("film.mp4", "video/mp4", content)]);
  await report();
  expect((await publisher.act({ kind: "release", name: "film", revision: 1 })).status).toBe(200);
});
afterAll(async () => {
  proxy.socket.disconnect();
  await origo.close();
  await rm(folder, { recursive: true, force: true });
});

async function admin(method: string, path: string, body?: unknown): Promise<Answered> {
  const { csrfToken } = (await ask(`${origo.url}/v1/login`)).body;
  const headers = { "x-csrf-token": String(csrfToken), "content-type": "application/json" };
  return ask(origo.url + path, { method, headers, ...(body === undefined ? {} : { body: JSON.stringify(body) }) });
}

async function accuse(from: string, more: Partial<Conviction> = {}): Promise<string> {
  const evidence: Conviction = {
    proxy: proxy.id,
    key: publisher.key,
    name: "film",
    object: objectOf(content),
    offset: 0,
    symbolBytes: 1024,
    coding: { kind: "systematic", symbolIndex: 3 },
    payload: randomBytes(1024).toString("base64"),
    generation: content.toString("base64"),
    proofs: [Buffer.from(proof).toString("base64")],
    ...more,
  };
  const headers = { "content-type": "application/json", "x-forwarded-for": from };
  const { status, body } = await ask(`${origo.url}/v1/convictions`, {
    ...{ method: "POST", headers, body: JSON.stringify(evidence) },
  });
  return `${status} ${body.error?.kind ?? String(body["networks"])}`;
}

const row = async () =>
  FleetResponse.parse((await ask(`${origo.url}/v1/fleet`)).body).proxies.map(({ state, convictedBy = 0 }) => [
    state,
    convictedBy,
  ]);
const listed = async () => ((await ask(`${origo.url}/v1/proxies`)).body["proxies"] as unknown[]).length;

test("what proves nothing is refused", async () => {
  const payload = content.subarray(3 * 1024, 4 * 1024).toString("base64");
  expect(await accuse("192.0.2.1", { payload })).toBe("422 evidenceWrong");
  expect(await accuse("192.0.2.1", { proofs: [randomBytes(96).toString("base64")] })).toBe("422 evidenceWrong");
  expect(await accuse("192.0.2.1", { proxy: "nobody" })).toBe("404 notFound");
  expect(await accuse("192.0.2.1", { name: "other" })).toBe("404 notFound");
  expect(await accuse("192.0.2.1", { object: objectOf("other") })).toBe("404 notFound");
  expect(await accuse("192.0.2.1", { generation: "A".repeat(300_000) })).toBe("413 bodyTooLarge");
  expect(await row()).toEqual([["live", 0]]);
});

test("a proxy that clients in three networks convicted is not listed, until an admin enables it again", async () => {
  expect(await accuse("198.51.100.1")).toBe("202 1");
  expect(await accuse("198.51.100.2")).toBe("202 1");
  expect(await accuse("203.0.113.1")).toBe("202 2");
  expect([await row(), await listed()]).toEqual([[["live", 2]], 1]);
  expect(await accuse("2001:db8::1")).toBe("202 3");
  expect([await row(), await listed()]).toEqual([[["disabled", 3]], 0]);
  const { errors } = (await ask(`${origo.url}/v1/errors?limit=10`)).body as unknown as {
    errors: { message: string }[];
  };
  expect(errors.map(({ message }) => message)[0]).toMatch(/^Proxy p1: .* Networks with evidence: 3. The proxy is disa/);
  await admin("POST", `/v1/fleet/${proxy.id}`, { action: "enable" });
  expect([await row(), await listed()]).toEqual([[["live", 0]], 1]);
});

test("a conviction survives a restart of Origo, says why the proxy is not listed, and can be cleared", async () => {
  const why = async () =>
    FleetResponse.parse((await ask(`${origo.url}/v1/fleet`)).body).proxies.map(
      ({ state, convictedBy = 0, disabledFor }) => [state, convictedBy, disabledFor],
    );
  for (const from of ["198.51.100.3", "203.0.113.3", "2001:db8:1::1"]) await accuse(from);
  expect([await why(), await listed()]).toEqual([[["disabled", 3, "convictions"]], 0]);
  await restart();
  expect([await why(), await listed()]).toEqual([[["disabled", 3, "convictions"]], 0]);
  await admin("POST", `/v1/fleet/${proxy.id}`, { action: "clear" });
  expect([await why(), await listed()]).toEqual([[["live", 0, undefined]], 1]);
  await accuse("198.51.100.4");
  await admin("POST", `/v1/fleet/${proxy.id}`, { action: "disable" });
  await admin("POST", `/v1/fleet/${proxy.id}`, { action: "clear" });
  expect([await why(), await listed()]).toEqual([[["disabled", 0, undefined]], 0]);
  await admin("POST", `/v1/fleet/${proxy.id}`, { action: "enable" });
});

test("what clients only say is counted apart, by networks, and disables nothing", async () => {
  const accuseOnly = async (from: string, accused: string): Promise<number> => {
    const headers = { "content-type": "application/json", "x-forwarded-for": from };
    const error = { id: randomUUID(), atMs: Date.now(), source: "cli", kind: "proofWrong", message: "m", accused };
    const body = JSON.stringify({ errors: [error, { ...error, id: randomUUID() }] });
    return (await ask(`${origo.url}/v1/errors`, { method: "POST", headers, body })).status;
  };
  const counts = async () =>
    FleetResponse.parse((await ask(`${origo.url}/v1/fleet`)).body).proxies.map(
      ({ state, hintedBy = 0, convictedBy = 0 }) => [state, hintedBy, convictedBy],
    );
  for (const from of ["198.51.100.5", "198.51.100.6", "203.0.113.5", "192.0.2.5", "2001:db8:2::1"])
    expect(await accuseOnly(from, proxy.id)).toBe(202);
  expect(await accuseOnly("192.0.2.5", "nobody")).toBe(202);
  for (let tries = 0; (await counts())[0]?.[1] !== 4 && tries < 100; tries++)
    await new Promise((resolve) => setTimeout(resolve, 50));
  expect([await counts(), await listed()]).toEqual([[["live", 4, 0]], 1]);
  await admin("POST", `/v1/fleet/${proxy.id}`, { action: "clear" });
  expect(await counts()).toEqual([["live", 0, 0]]);
});

test("one address can send ten in ten minutes", async () => {
  for (let count = 0; count < 10; count++) await accuse("192.0.2.77", { proxy: "nobody" });
  expect(await accuse("192.0.2.77")).toBe("429 tooManyAttempts");
});
