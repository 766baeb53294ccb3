/**
 * Tests several Origos over a real PostgreSQL and a real Redis. A load balancer gives each connection to the next
 * Origo.
 */
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type AddressInfo, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { io, type Socket } from "socket.io-client";
import { startOrigo, type Origo } from "./server";
import type { FleetProxy, FleetResponse, ProxiesResponse, ProxyControl } from "@tributary/contract/schema";
import { joinProxy } from "../test/proxy";
import { fileOf, objectOf, TestPublisher } from "../test/publisher";
import { startPostgres, type TestPostgres } from "../test/postgres";
import { startRedis, type TestRedis } from "../test/redis";
import { startRelay } from "../test/relay";
import { helloOf, recordOf, statusOf } from "../../contract/test/samples";

jest.setTimeout(60_000);

let postgres: TestPostgres;
let redis: TestRedis;
let folder: string;
let databaseUrl: string;
let origos: Origo[] = [];
let sockets: Socket[] = [];
let balancer: { server: Server; url: string };

beforeAll(async () => {
  // One after the other, so that a missing one leaves nothing running that `afterAll` does not know.
  folder = await mkdtemp(join(tmpdir(), "origo-cluster-"));
  redis = await startRedis();
  postgres = await startPostgres();
});

afterAll(async () => {
  await Promise.all([postgres?.stop(), redis?.stop(), rm(folder, { recursive: true })]);
});

beforeEach(async () => {
  databaseUrl = await postgres.newDatabase();
  const start = (): Promise<Origo> =>
    startOrigo({
      host: "127.0.0.1",
      port: 0,
      dataDir: folder,
      databaseUrl,
      redisUrl: redis.url,
      dashboardDir: folder,
      login: "off",
    });
  origos = await Promise.all([start(), start()]);
  balancer = await balance(origos.map(({ url }) => Number(new URL(url).port)));
});

afterEach(async () => {
  for (const socket of sockets) socket.disconnect();
  sockets = [];
  await Promise.all(origos.map((origo) => origo.close()));
  balancer?.server.close();
});

async function balance(ports: readonly number[]): Promise<{ server: Server; url: string }> {
  let turn = 0;
  const server = createServer((near) => {
    const far = connect(ports[turn++ % ports.length]!, "127.0.0.1");
    near
      .on("error", () => far.destroy())
      .pipe(far)
      .on("error", () => near.destroy())
      .pipe(near);
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  return { server, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` };
}

async function until<T>(what: string, read: () => Promise<T | undefined | false> | T | undefined | false): Promise<T> {
  for (const deadlineMs = Date.now() + 20_000; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const value = await read();
    if (value) return value;
    if (Date.now() > deadlineMs) throw new Error(`not seen: ${what}`);
  }
}

/** A proxy that consists only of its link to Origo. */
async function register(
  url: string,
  name: string,
  status = statusOf(),
): Promise<{ id: string; socket: Socket; controls: ProxyControl[] }> {
  const controls: ProxyControl[] = [];
  const hello = helloOf({ name, url: `http://127.0.0.1/${name}` });
  const { id, socket } = await joinProxy(url, folder, hello, (event, message) => {
    if (event === "control") controls.push(message as ProxyControl);
  });
  sockets.push(socket);
  const beats = setInterval(() => socket.emit("status", status), 500);
  await socket.emitWithAck("status", status);
  socket.on("disconnect", () => clearInterval(beats));
  return { id, socket, controls };
}

const fleet = async ({ url }: Origo): Promise<FleetProxy[]> =>
  ((await (await fetch(`${url}/v1/fleet`)).json()) as FleetResponse).proxies;
const [first, second] = [(): Origo => origos[0]!, (): Origo => origos[1]!];

test("cluster: each Origo lists every proxy, accepts every token, and forgets proxies that leave", async () => {
  const proxies = await Promise.all(["a", "b", "c", "d"].map((name) => register(balancer.url, name)));
  for (const origo of origos) await until("all four", async () => (await fleet(origo)).length === 4);
  const { proxies: listed, token } = (await (
    await fetch(`${balancer.url}/v1/proxies?count=4`)
  ).json()) as ProxiesResponse;
  expect(listed.map(({ id }) => id).sort()).toEqual(proxies.map(({ id }) => id).sort());
  const keys = await Promise.all(
    origos.map(async ({ url }) => (await fetch(`${url}/.well-known/tributary-keys.json`)).text()),
  );
  expect(keys[0]).toBe(keys[1]);
  expect(token?.split(".")).toHaveLength(3);
  proxies[0]?.socket.disconnect();
  for (const origo of origos) await until("one less", async () => (await fleet(origo)).length === 3);
});

test("cluster: a decision at one Origo reaches proxies and pages of the other", async () => {
  const { id, controls } = await register(first().url, "a");
  await until("the proxy at the other", async () => (await fleet(second())).length === 1);
  const { csrfToken } = (await (await fetch(`${second().url}/v1/login`)).json()) as { csrfToken: string };
  const response = await fetch(`${second().url}/v1/fleet/${id}`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify({ action: "drain" }),
  });
  expect(response.status).toBe(200);
  await until("the proxy is told to drain", () => controls.some(({ draining }) => draining));
  for (const origo of origos) await until("draining", async () => (await fleet(origo))[0]?.state === "draining");
});

test("cluster: a page at one Origo hears of records that another took in", async () => {
  const page = io(`${second().url}/dashboard`, { transports: ["websocket"], forceNew: true });
  sockets.push(page);
  let heard = 0;
  page.on("records", () => heard++);
  await new Promise((resolve) => page.once("connect", () => resolve(undefined)));
  const sent = await fetch(`${first().url}/v1/records`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ records: [recordOf()] }),
  });
  expect(sent.status).toBe(202);
  await until("news", () => heard > 0);
});

test("cluster: when an Origo is gone, the others forget its proxies", async () => {
  await register(first().url, "a");
  await until("the proxy at the other", async () => (await fleet(second())).length === 1);
  await first().close();
  await until("none left", async () => (await fleet(second())).length === 0);
});

test("cluster: without Redis each Origo has its own proxies, and with Redis it finds the others again", async () => {
  await Promise.all([register(first().url, "a"), register(second().url, "b")]);
  for (const origo of origos) await until("both", async () => (await fleet(origo)).length === 2);
  const port = new URL(redis.url).port;
  await redis.stop();
  for (const origo of origos) await until("only its own", async () => (await fleet(origo)).length === 1);
  redis = await startRedis(Number(port));
  for (const origo of origos) await until("both again", async () => (await fleet(origo)).length === 2);
});

test("cluster: a silent Redis does not stop an Origo from closing, and Origo reconnects to it", async () => {
  const relay = await startRelay(Number(new URL(redis.url).port));
  const own = await mkdtemp(join(tmpdir(), "origo-cluster-"));
  const third = await startOrigo({
    host: "127.0.0.1",
    port: 0,
    dataDir: own,
    databaseUrl,
    redisUrl: relay.through(redis.url),
    dashboardDir: own,
    login: "off",
  });
  try {
    await register(first().url, "a");
    await until("the proxy at the third", async () => (await fleet(third)).length === 1);
    relay.silence("pass");
    await until("none", async () => (await fleet(third)).length === 0);
    await until("the proxy again", async () => (await fleet(third)).length === 1);
    relay.silence("silent");
    const begunMs = Date.now();
    await third.close();
    expect(Date.now() - begunMs).toBeLessThan(10_000);
  } finally {
    relay.close();
    await third.close();
    await rm(own, { recursive: true });
  }
});

test("cluster: the link for the first admin is the same at all Origos and works once", async () => {
  const start = (): Promise<Origo> =>
    startOrigo({ host: "127.0.0.1", port: 0, dataDir: folder, databaseUrl, dashboardDir: folder, login: "required" });
  const two = [await start(), await start()] as const;
  const setUp = async ({ url }: Origo, name: string): Promise<number> => {
    const body = JSON.stringify({
      token: (two[0].setupPath ?? "").split("=")[1],
      name,
      password: "a long enough password",
    });
    return (await fetch(`${url}/v1/setup`, { method: "POST", headers: { "content-type": "application/json" }, body }))
      .status;
  };
  try {
    expect(two[0].setupPath).toMatch(/^\/#setup=[\w-]{32}$/);
    expect(two[1].setupPath).toBe(two[0].setupPath);
    expect([await setUp(two[1], "ada"), await setUp(two[0], "eve"), await setUp(two[1], "eve")]).toEqual([
      200, 403, 403,
    ]);
  } finally {
    await Promise.all(two.map((origo) => origo.close()));
  }
});

test("cluster: one publishes through all Origos, and each sends players to the holders at the others", async () => {
  const library = { objects: 0, bytes: 0, freeBytes: 1e9, servedBytes: 0, takenBytes: 0, damagedObjects: 0 };
  const forgotten: unknown[] = [];
  const { id, socket } = await register(second().url, "a", statusOf({ library }));
  socket.on("forget", ({ objects }: { objects: string[] }) => forgotten.push(...objects));
  const { csrfToken } = (await (await fetch(`${first().url}/v1/login`)).json()) as { csrfToken: string };
  const headers = { "x-csrf-token": csrfToken };
  const made = await fetch(`${first().url}/v1/publishers`, { method: "POST", headers });
  const { code } = (await made.json()) as { code: string };
  const there = await TestPublisher.make(first().url);
  const here = there.at(second().url);
  const [object, files] = [objectOf("media"), [fileOf("a.mp4", "video/mp4", "media")]];
  expect((await there.act({ kind: "enrol", label: "Ana", code })).status).toBe(200);
  await until("the key is known", async () => (await here.act({ kind: "list" })).status === 200);
  await until("the proxy is known", async () => (await fleet(first())).some((proxy) => proxy.id === id));
  expect((await there.begin("film", 1, files)).body["proxies"]).toMatchObject([{ id }]);
  const granted = await here.act({ kind: "grants", name: "film", revision: 1, objects: [object] });
  expect(granted.body["grants"]).toHaveLength(1);
  expect(await socket.emitWithAck("objects", { isFirst: true, added: [object], removed: [] })).toEqual({
    unwanted: [],
  });
  expect((await there.act({ kind: "release", name: "film", revision: 1 })).status).toBe(200);
  for (const origo of origos) {
    const address = `${origo.url}/v/${there.key}/film/a.mp4`;
    await until("a holder", async () => (await fetch(address, { redirect: "manual" })).status === 307);
  }
  // An Origo that comes later asks the others.
  const third = await startOrigo({
    ...{ host: "127.0.0.1", port: 0, dataDir: folder, databaseUrl, redisUrl: redis.url },
    ...{ dashboardDir: folder, login: "off" },
  });
  origos.push(third);
  const address = `${third.url}/v/${there.key}/film/a.mp4`;
  await until("a holder", async () => (await fetch(address, { redirect: "manual" })).status === 307);
  expect((await there.at(third.url).act({ kind: "unpublish", name: "film" })).status).toBe(200);
  await until("the proxy forgets", () => forgotten.includes(object));
});
