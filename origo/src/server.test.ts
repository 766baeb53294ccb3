/** Tests Origo on a free port with real HTTP, real socket.io clients and a real DuckDB file. */
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { io, type Socket } from "socket.io-client";
import { BODY_BYTES_MAX } from "./http";
import {
  ErrorResponse,
  FleetResponse,
  ProxiesResponse,
  RecordsResponse,
  type ProxyAck,
} from "@tributary/contract/schema";
import { startOrigo, type Origo } from "./server";
import { joinProxy } from "../test/proxy";
import { bareRecordOf, errorOf, helloOf, recordOf, statusOf } from "../../contract/test/samples";

let folder: string;
let origo: Origo;
let skewMs = 0;
let sockets: Socket[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-server-"));
  await writeFile(join(folder, "index.html"), "<!doctype html><title>page</title>");
  skewMs = 0;
  origo = await start();
});
afterEach(async () => {
  for (const socket of sockets) socket.disconnect();
  sockets = [];
  await origo.close();
  await rm(folder, { recursive: true, force: true });
});

const start = (): Promise<Origo> =>
  startOrigo({
    host: "127.0.0.1",
    port: 0,
    dataDir: folder,
    dashboardDir: folder,
    login: "off",
    pageOrigins: ["https://player.example"],
    nowMs: () => Date.now() + skewMs,
  });

function socketTo(namespace: string, auth: object): Promise<Socket> {
  const socket = io(origo.url + namespace, { auth, transports: ["websocket"], reconnection: false, forceNew: true });
  sockets.push(socket);
  return new Promise((resolve, reject) => {
    socket.on("connect", () => resolve(socket));
    socket.on("connect_error", reject);
  });
}

async function proxy(number: number): Promise<{ socket: Socket; id: string }> {
  const hello = helloOf({ name: `proxy-${number}`, url: `http://127.0.0.1:${7610 + number}` });
  const joined = await joinProxy(origo.url, folder, hello);
  sockets.push(joined.socket);
  return joined;
}

const get = (path: string, init?: RequestInit): Promise<Response> => fetch(origo.url + path, init);
const post = (path: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> =>
  get(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });
const faultIn = async (response: Response): Promise<ErrorResponse["error"]> =>
  ErrorResponse.parse(await response.json()).error;

async function until(check: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; tries < 100; tries++) {
    if (await check()) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error("it did not come true within 2 s");
}

const listed = async (query: string): Promise<ProxiesResponse["proxies"]> =>
  ProxiesResponse.parse(await (await get(`/v1/proxies${query}`)).json()).proxies;

describe("the proxy link", () => {
  test("lists registered proxies at random without excluded ones, and drops closed ones", async () => {
    const proxies = await Promise.all([1, 2, 3, 4].map(proxy));
    expect((await listed("?count=32")).map(({ id }) => id).sort()).toEqual(proxies.map(({ id }) => id).sort());
    expect(await listed("?count=2")).toHaveLength(2);
    const excluded = proxies
      .slice(0, 3)
      .map(({ id }) => id)
      .join(",");
    expect(await listed(`?count=4&exclude=${excluded}`)).toEqual([
      { id: proxies[3]?.id, name: "proxy-4", url: "http://127.0.0.1:7614" },
    ]);
    proxies[0]?.socket.disconnect();
    await until(async () => (await listed("")).length === 3);
  });

  test("the list tells the client's network, but not its address", async () => {
    expect(ProxiesResponse.parse(await (await get("/v1/proxies")).json()).network).toBe("127.0.0.0/24");
  });

  test("a connected but silent proxy is gone after two heartbeats, and back with the next one", async () => {
    const { socket, id } = await proxy(1);
    skewMs = 3500;
    expect(await listed("")).toHaveLength(1);
    skewMs = 4001;
    expect(await listed("")).toHaveLength(0);
    expect(await socket.emitWithAck("status", statusOf())).toEqual({ id });
    expect(await listed("")).toHaveLength(1);
  });

  test("the fleet shows status and rates", async () => {
    const { socket, id } = await proxy(1);
    socket.emit("status", statusOf({ sentBytes: 0, uptimeMs: 2000 }));
    await socket.emitWithAck("status", statusOf({ sentBytes: 3_000_000, uptimeMs: 4000 }));
    const fleet = FleetResponse.parse(await (await get("/v1/fleet")).json());
    expect(fleet.proxies).toMatchObject([
      { id, name: "proxy-1", engine: "native/avx2", sentBytesPerSec: 1_500_000, status: { sentBytes: 3_000_000 } },
    ]);
  });

  test("a proxy that reconnects keeps its id, also after a restart of Origo", async () => {
    const first = await proxy(1);
    expect((await proxy(1)).id).toBe(first.id);
    await origo.close();
    origo = await start();
    expect((await proxy(1)).id).toBe(first.id);
  });

  test("the root namespace is refused with a connect_error that says so", async () => {
    await expect(socketTo("/", {})).rejects.toMatchObject({ data: { kind: "unknownNamespace" } });
  });

  test("bad messages are answered with the wrong field and do not affect other proxies", async () => {
    const { socket } = await proxy(1);
    const bad: [string, unknown, string][] = [
      ["hello", { ...helloOf(), name: "" }, "name"],
      ["hello", { ...helloOf(), shell: "sh" }, "shell"],
      ["status", { ...statusOf(), errors: -1 }, "errors"],
    ];
    for (const [event, message, field] of bad)
      expect(await socket.emitWithAck(event, message, ...(event === "hello" ? [{}] : []))).toMatchObject({
        error: { kind: "badField", field },
      });
    for (const junk of [null, 7, "x", [], Buffer.from([1, 2])]) {
      expect(await socket.emitWithAck("hello", junk, junk)).toMatchObject({ error: { kind: "badField" } });
    }
    socket.emit("hello", "no ack, no proxy");
    socket.emit("launch", {});
    const other = await socketTo("/proxies", {});
    expect((await other.emitWithAck("status", statusOf())) as ProxyAck).toMatchObject({
      error: { kind: "helloMissing" },
    });
    expect((await get("/healthz")).status).toBe(200);
  });

  test("a message over the limit closes only its own connection", async () => {
    const { socket } = await proxy(1);
    await proxy(2);
    const closed = new Promise((resolve) => socket.on("disconnect", resolve));
    socket.emit("hello", { name: "x".repeat(30_000) });
    await closed;
    await until(async () => (await listed("")).map(({ name }) => name).join() === "proxy-2");
  });
});

describe("records and errors", () => {
  test("are stored once and returned newest first, page by page", async () => {
    const records = [bareRecordOf(), recordOf(), recordOf()];
    const first = await post("/v1/records", { records });
    expect([first.status, await first.json()]).toEqual([202, { accepted: 3, duplicate: 0 }]);
    expect(await (await post("/v1/records", { records })).json()).toEqual({ accepted: 0, duplicate: 3 });
    const page = RecordsResponse.parse(await (await get("/v1/records?limit=2")).json());
    expect(page.records).toEqual([records[2], records[1]]);
    expect(RecordsResponse.parse(await (await get(`/v1/records?limit=2&before=${page.next}`)).json())).toEqual({
      records: [records[0]],
      next: null,
    });
    const errors = [errorOf()];
    expect((await post("/v1/errors", { errors })).status).toBe(202);
    expect(await (await get("/v1/errors")).json()).toEqual({ errors, next: null });
  });

  test("one bad record makes its whole batch refused, and the answer names the field", async () => {
    const response = await post("/v1/records", {
      records: [recordOf(), { ...recordOf(), url: "http://h.example/v?sig=1" }],
    });
    expect(response.status).toBe(400);
    expect(await faultIn(response)).toMatchObject({ kind: "badField", field: "records[1].url" });
    expect(await (await get("/v1/records")).json()).toEqual({ records: [], next: null });
  });

  test("a body just under the limit is read, and a body just over it is refused with both numbers", async () => {
    const padded = (bytes: number): string => JSON.stringify({ records: [bareRecordOf()] }).padEnd(bytes, " ");
    expect((await post("/v1/records", padded(BODY_BYTES_MAX))).status).toBe(202);
    const refused = await post("/v1/records", padded(BODY_BYTES_MAX + 1));
    expect(refused.status).toBe(413);
    expect(await faultIn(refused)).toMatchObject({
      kind: "bodyTooLarge",
      got: BODY_BYTES_MAX + 1,
      limit: BODY_BYTES_MAX,
    });
  });

  test.each([
    ["text that is not JSON", "{", {}, 400, "badJson"],
    ["a list", "[]", {}, 400, "badField"],
    ["null", "null", {}, 400, "badField"],
    ["an empty body", "", {}, 400, "badJson"],
    ["another type", "x", { "content-type": "text/plain" }, 415, "unsupportedMediaType"],
    ["another charset", "{}", { "content-type": "application/json; charset=klingon" }, 415, "unsupportedMediaType"],
    ["another encoding", "{}", { "content-encoding": "zzz" }, 415, "unsupportedMediaType"],
    ["broken gzip", "{}", { "content-encoding": "gzip" }, 400, "badRequest"],
  ])("%s is refused", async (_name, body, headers, status, kind) => {
    for (const path of ["/v1/records", "/v1/errors"]) {
      const response = await post(path, body, headers as Record<string, string>);
      expect([response.status, (await faultIn(response)).kind]).toEqual([status, kind]);
    }
  });
});

describe("HTTP", () => {
  test.each([
    ["/v1/proxies?count=0", 400, "count"],
    ["/v1/proxies?count=33", 400, "count"],
    ["/v1/proxies?count=2.5", 400, "count"],
    ["/v1/proxies?count=1&count=2", 400, "count"],
    ["/v1/proxies?near=me", 400, "near"],
    [`/v1/proxies?exclude=${"x".repeat(65)}`, 400, "exclude[0]"],
    [`/v1/proxies?exclude=${"x,".repeat(65)}`, 400, "exclude"],
    ["/v1/records?limit=0", 400, "limit"],
    ["/v1/records?limit=501", 400, "limit"],
    ["/v1/records?before=yesterday", 400, "before"],
    ["/v1/records?before=0b8f5a0e-6a1e-4c4e-8b0f-0123456789ab", 404, "before"],
    ["/v1/errors?limit=x", 400, "limit"],
  ])("%s is refused with the field", async (path, status, field) => {
    const response = await get(path);
    expect([response.status, (await faultIn(response)).field]).toEqual([status, field]);
  });

  test("the largest value of each limit is accepted", async () => {
    for (const path of [
      "/v1/proxies?count=32",
      "/v1/proxies?count=1",
      "/v1/records?limit=500",
      "/v1/records?limit=1",
      `/v1/proxies?exclude=${"x".repeat(64)}`,
    ]) {
      expect((await get(path)).status).toBe(200);
    }
  });

  test("an unknown path is answered with 404, and a wrong method with 405", async () => {
    for (const path of ["/nothing", "/v1", "/v1/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%ff"])
      expect((await get(path)).status).toBe(404);
    const response = await get("/v1/fleet", { method: "DELETE" });
    expect([response.status, response.headers.get("allow"), (await faultIn(response)).kind]).toEqual([
      405,
      "GET, HEAD, OPTIONS",
      "methodNotAllowed",
    ]);
  });

  test("extensions and allowed pages may list proxies and send records, other pages read nothing", async () => {
    const acao = (response: Response): string | null => response.headers.get("access-control-allow-origin");
    const from = (origin: string) => ({ headers: { origin } });
    for (const origin of ["chrome-extension://abcdefghijklmnop", "moz-extension://0f0e-11", "https://player.example"]) {
      expect(acao(await get("/v1/proxies", from(origin)))).toBe(origin);
      for (const path of ["/", "/v1/records", "/v1/errors", "/v1/fleet", "/healthz"])
        expect(acao(await get(path, from(origin)))).toBeNull();
      const preflight = await get("/v1/records", {
        method: "OPTIONS",
        headers: { origin, "access-control-request-method": "POST" },
      });
      expect([
        preflight.status,
        acao(preflight),
        preflight.headers.get("access-control-allow-headers"),
        preflight.headers.get("access-control-allow-methods"),
      ]).toEqual([204, origin, "content-type, content-encoding, range", "POST"]);
    }
    for (const origin of ["https://evil.example", "http://player.example", "null", "https://a.player.example"]) {
      for (const path of ["/v1/proxies", "/v1/client-config", "/v1/site-rules"])
        expect([path, acao(await get(path, from(origin)))]).toEqual([path, null]);
      const preflight = await get("/v1/records", { method: "OPTIONS", ...from(origin) });
      expect([acao(preflight), preflight.headers.get("access-control-allow-headers")]).toEqual([null, null]);
    }
  });

  test("an address gets so many lists in ten seconds", async () => {
    const statuses = await Promise.all(Array.from({ length: 230 }, async () => (await get("/v1/proxies")).status));
    expect(statuses.filter((status) => status === 200)).toHaveLength(200);
    const refused = await get("/v1/proxies");
    expect([refused.status, Number(refused.headers.get("retry-after")) > 0]).toEqual([429, true]);
    expect((await get("/healthz")).status).toBe(200);
  });

  test("every answer has the security headers", async () => {
    for (const path of ["/", "/nothing", "/v1/proxies", "/v1/proxies?count=0"]) {
      const { headers } = await get(path);
      expect(headers.get("content-security-policy")).toContain("default-src 'self'");
      expect(headers.get("content-security-policy")).toContain("frame-ancestors 'none'");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(headers.get("x-powered-by")).toBeNull();
    }
  });

  test("serves the dashboard, or says how to build it", async () => {
    expect(await (await get("/")).text()).toContain("<title>page</title>");
    await origo.close();
    await rm(join(folder, "index.html"));
    origo = await start();
    const response = await get("/");
    expect([response.status, await response.text()]).toEqual([503, expect.stringContaining("webpack")]);
  });

  test("bytes that are not HTTP end only their own connection", async () => {
    const { port } = new URL(origo.url);
    const answer = await new Promise<string>((resolve) => {
      const socket = connect(Number(port), "127.0.0.1", () => socket.write("\u0000\u0001garbage\r\n\r\n"));
      let text = "";
      socket.on("data", (data) => (text += data.toString()));
      socket.on("close", () => resolve(text));
    });
    expect(answer).toContain("400");
    expect((await get("/healthz")).status).toBe(200);
  });

  test("a taken port is an error, and the store is closed again", async () => {
    const other = await mkdtemp(join(tmpdir(), "origo-server-"));
    const options = { host: "127.0.0.1", dataDir: other, dashboardDir: other, login: "off" as const };
    await expect(startOrigo({ ...options, port: Number(new URL(origo.url).port) })).rejects.toThrow("EADDRINUSE");
    await (await startOrigo({ ...options, port: 0 })).close();
    await rm(other, { recursive: true });
  });

  test("closing ends the connections of the proxies and refuses new ones, and can be called twice", async () => {
    const { socket } = await proxy(1);
    const gone = new Promise((resolve) => socket.on("disconnect", resolve));
    await Promise.all([origo.close(), origo.close(), gone]);
    await expect(get("/healthz")).rejects.toThrow();
  });
});
