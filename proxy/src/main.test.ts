/** Tests the proxy as a process with a real client over WebRTC. Both run from the built files. */
import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import http from "node:http";
import dgram from "node:dgram";
import net, { type AddressInfo } from "node:net";
import path from "node:path";
import type { PublishedRange } from "./config";
import type { Rejection } from "@tributary/contract";
import type { ReceiverStats } from "@tributary/protocol";

const MAIN = path.resolve(__dirname, "../dist/main.js");
const PEER = path.resolve(__dirname, "../test/peer.mjs");
const RESOURCE = Buffer.from(Array.from({ length: 1_000_000 }, (_, index) => (index * 31 + (index >> 8)) % 256));

jest.setTimeout(40_000);

/** What test/peer.mjs prints. */
interface PeerResult {
  status: number | undefined;
  sha256: string;
  bytes: number;
  durationMs: number;
  failure: Rejection | undefined;
  stats: ReceiverStats;
  /** The candidates in the proxy's answer. */
  candidates: string[];
}

const origin = http.createServer((request, response) => {
  if (request.url === "/404") response.writeHead(404, { "content-length": 4 }).end("gone");
  else if (request.url === "/short")
    response
      .writeHead(200, { "content-length": 500_000 })
      .write(RESOURCE.subarray(0, 100_000), () => response.destroy());
  else if (request.url === "/slow") {
    response.writeHead(200, { "content-length": 200_000 }).write(RESOURCE.subarray(0, 100_000));
    setTimeout(() => response.end(RESOURCE.subarray(100_000, 200_000)), 3000);
  } else if (request.url === "/empty") response.writeHead(200, { "content-length": 0 }).end();
  else response.writeHead(200, { "content-length": RESOURCE.length, "cache-control": "max-age=60" }).end(RESOURCE);
});
let originPort: number;
const children: ChildProcess[] = [];
const digest = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

beforeAll(async () => {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: run npm run build first`);
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  originPort = (origin.address() as AddressInfo).port;
});
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});
afterAll(() => {
  origin.closeAllConnections();
  origin.close();
});

interface StartedProcess {
  child: ChildProcess;
  out: string;
  err: string;
  ended: Promise<number | null>;
}

function run(script: string, args: string[], env: Record<string, string> = {}): StartedProcess {
  const child = spawn(process.execPath, [script, ...args], {
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  const started: StartedProcess = {
    child,
    out: "",
    err: "",
    ended: new Promise((resolve) => child.once("close", resolve)),
  };
  child.stdout!.on("data", (text) => (started.out += text));
  child.stderr!.on("data", (text) => (started.err += text));
  return started;
}

async function startProxy(env: Record<string, string> = {}, args: string[] = []) {
  const started = run(MAIN, args, { ALLOW_PRIVATE_HOSTS: `127.0.0.1:${originPort}`, PROXY_NAME: "test", ...env });
  while (!started.out.includes("\n")) {
    if (started.child.exitCode !== null) throw new Error(`the proxy ended: ${started.err}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  return {
    ...started,
    ready: JSON.parse(started.out) as { ready: true; name: string; url: string; udpPort: number },
    run: started,
  };
}

async function get(proxyUrl: string, resource: string, mode = "coded-mutp"): Promise<PeerResult> {
  const peer = run(PEER, [proxyUrl, `http://127.0.0.1:${originPort}${resource}`, mode]);
  await peer.ended;
  if (peer.out === "") throw new Error(`the peer ended: ${peer.err}`);
  return JSON.parse(peer.out) as PeerResult;
}

test.each(["coded-mutp", "uncoded-mutp"])("proxy: a real client downloads 1 MB over %s", async (mode) => {
  const { ready } = await startProxy();
  const result = await get(ready.url, "/video", mode);
  expect(result).toMatchObject({ status: 200, bytes: 1_000_000, sha256: digest(RESOURCE) });
  const [proxy] = result.stats.proxies;
  expect(proxy!.packets).toBe(proxy!.innovative + proxy!.duplicate + proxy!.late + proxy!.rejected);
  expect(proxy!.rejected).toBe(0);
  expect(result.candidates).toEqual([expect.stringContaining(` 127.0.0.1 ${ready.udpPort} typ host`)]);
});

test.each([
  ["auto", "cpu", "libnone.so"],
  ["cpu", "cpu", "stand-in"],
  ["gpu", "stand-in and cpu for decoding", "stand-in"],
  ["both", "stand-in and cpu", "stand-in"],
  ["both", "cpu", "libnone.so"],
])("proxy: --coder %s uses %s with the %s, and its metrics say what was coded", async (setting, coders, device) => {
  // With the plain engine, coders are cheaper for the proxy's event loop than coding on it.
  const isSlow = device === "stand-in" && setting !== "cpu";
  const engine = isSlow ? { TRIBUTARY_ENGINE: "scalar" } : {};
  const { ready, run: proxy } = await startProxy({ TRIBUTARY_GPU: device, ...engine }, ["--coder", setting]);
  while (!proxy.err.includes('"event":"coder"')) await new Promise((resolve) => setTimeout(resolve, 10));
  const results = await Promise.all([get(ready.url, "/shared"), get(ready.url, "/shared", "coded")]);
  expect(results.map(({ sha256 }) => sha256)).toEqual([digest(RESOURCE), digest(RESOURCE)]);
  const line = proxy.err.split("\n").find((text) => text.includes('"event":"coder"'))!;
  expect(JSON.parse(line)).toMatchObject({ setting, coders });
  expect(proxy.err.split("\n").filter((text) => text.includes('"event":"noGpu"'))).toHaveLength(
    device === "libnone.so" ? 1 : 0,
  );
  const response = await fetch(`${ready.url}/metrics`);
  expect(response.headers.get("content-type")).toContain("text/plain");
  const metrics = await response.text();
  const value = (name: string): number => Number(metrics.split(`\n${name} `)[1]?.split("\n")[0]);
  expect(value("tributary_response_seconds_count")).toBe(2);
  expect(value('tributary_coder_symbols_total{what="sent"}')).toBeGreaterThan(900);
  if (isSlow) expect(value('tributary_coder_symbols_total{what="service"}')).toBeGreaterThan(0);
  expect(value('tributary_coder_stage_seconds_count{stage="sending"}')).toBeGreaterThan(0);
  expect(metrics).not.toContain("127.0.0.1");
});

test("proxy: symbols that are coded anew are timed, too, and nothing is shared", async () => {
  const { ready } = await startProxy({ CODES_ANEW: "1" });
  expect((await get(ready.url, "/shared")).sha256).toBe(digest(RESOURCE));
  const metrics = await (await fetch(`${ready.url}/metrics`)).text();
  for (const stage of ["input", "coding"])
    expect(metrics).toMatch(new RegExp(`tributary_coder_stage_seconds_count\\{stage="${stage}"\\} [1-9]`));
  expect(metrics).toContain('tributary_coder_symbols_total{what="sent"} 0\n');
});

test("proxy: four clients at the same time through one UDP port cost the origin one fetch", async () => {
  const { ready } = await startProxy();
  let fetches = 0;
  const count = () => void fetches++;
  origin.on("request", count);
  const results = await Promise.all(Array.from({ length: 4 }, () => get(ready.url, "/shared")));
  origin.off("request", count);
  expect(results.map(({ sha256 }) => sha256)).toEqual(Array(4).fill(digest(RESOURCE)));
  expect(fetches).toBe(1);
});

test("proxy: the client learns of a 404, an empty body, a short body and a refused host", async () => {
  const { ready, run: proxy } = await startProxy();
  expect(await get(ready.url, "/404")).toMatchObject({ status: 404, bytes: 4, sha256: digest(Buffer.from("gone")) });
  expect(await get(ready.url, "/empty")).toMatchObject({ status: 200, bytes: 0 });
  expect(await get(ready.url, "/short")).toMatchObject({
    status: 200,
    failure: { kind: "shortBody", got: 100_000, limit: 500_000 },
  });
  const other = run(PEER, [ready.url, "http://10.0.0.1/a?token=1", "coded-mutp"]);
  await other.ended;
  expect(JSON.parse(other.out)).toMatchObject({ failure: { kind: "egressRefused" } });
  expect(proxy.err).toContain("egressRefused");
  expect(proxy.err).not.toMatch(/token|\/short/);
});

test("proxy: keeps its rate over WebRTC (1 MB at 2 MB/s takes at least 0.4 s)", async () => {
  const { ready } = await startProxy({ RATE_BYTES_PER_SEC: "2000000" });
  const { durationMs, sha256 } = await get(ready.url, "/video");
  expect(sha256).toBe(digest(RESOURCE));
  expect(durationMs).toBeGreaterThan(400);
});

test("proxy: a garbage offer is answered with 400 and does no harm", async () => {
  const { ready } = await startProxy();
  for (const sdp of [
    "garbage",
    "v=0\r\n",
    `v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 0\r\na=ice-ufrag:abcd\r\na=ice-pwd:${"a".repeat(24)}\r\n`,
    "\0".repeat(1000),
  ]) {
    const response = await fetch(`${ready.url}/v1/sessions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ sdp }),
    });
    expect([response.status, ((await response.json()) as { error: { kind: string } }).error.kind]).toEqual([
      400,
      "badOffer",
    ]);
  }
  expect(await get(ready.url, "/video")).toMatchObject({ sha256: digest(RESOURCE) });
});

test("proxy: with MAX_SESSIONS 0 a session is refused with the limit", async () => {
  const { ready } = await startProxy({ MAX_SESSIONS: "0" });
  const response = await fetch(`${ready.url}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: '{"sdp":"x"}',
  });
  expect([response.status, await response.json()]).toEqual([
    503,
    { error: expect.objectContaining({ kind: "tooManySessions", got: 1, limit: 0 }) },
  ]);
});

test("proxy: on SIGTERM it finishes running requests, refuses new ones and exits with 0", async () => {
  const { ready, run: proxy } = await startProxy();
  const running = get(ready.url, "/slow");
  const direct = fetch(`${ready.url}/v1/fetch?url=http://127.0.0.1:${originPort}/slow`, {
    headers: { "tributary-client": "test" },
  });
  await direct;
  while (!proxy.err.includes("sessionOpened")) await new Promise((resolve) => setTimeout(resolve, 10));
  await new Promise((resolve) => setTimeout(resolve, 200));
  proxy.child.kill("SIGTERM");
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect((await fetch(`${ready.url}/healthz`)).status).toBe(503);
  expect((await (await direct).arrayBuffer()).byteLength).toBe(200_000);
  expect(await running).toMatchObject({ bytes: 200_000, sha256: digest(RESOURCE.subarray(0, 200_000)) });
  expect(await proxy.ended).toBe(0);
});

test("proxy: an idle proxy exits with 0 at once on SIGINT", async () => {
  const { run: proxy } = await startProxy();
  const startMs = performance.now();
  proxy.child.kill("SIGINT");
  expect(await proxy.ended).toBe(0);
  // A proxy that waits for its requests waits 5 s.
  expect(performance.now() - startMs).toBeLessThan(4000);
});

test("proxy: bad values and taken ports end the process with a reason", async () => {
  const bad = run(MAIN, [], { PORT: "x", ALLOW_HOSTS: "http://a" });
  expect(await bad.ended).toBe(2);
  expect(bad.err).toMatch(/PORT: .*got "x"\nALLOW_HOSTS: /);
  const taken = run(MAIN, [], { PORT: String(originPort) });
  expect(await taken.ended).toBe(1);
  expect(taken.err).toContain("EADDRINUSE");
});

test("proxy: without the native part or its port it offers only WebRTC, and logs a missing part once", async () => {
  const without = await startProxy({ TRIBUTARY_NATIVE_TRANSPORT: "off" });
  expect(without.ready).not.toHaveProperty("webTransport");
  expect(without.run.err.match(/noWebTransport/g)).toHaveLength(1);
  const off = await startProxy({ WEBTRANSPORT_PORT: "off" });
  expect(off.ready).not.toHaveProperty("webTransport");
  expect(off.run.err).not.toContain("noWebTransport");
  expect(await get(without.ready.url, "/video")).toMatchObject({ sha256: digest(RESOURCE) });
});

test("proxy: serves clients while Origo is away, and logs this once", async () => {
  const dataDir = await mkdtemp(path.join(tmpdir(), "tributary-proxy-"));
  const { ready, run: proxy } = await startProxy({ ORIGO_URL: "http://127.0.0.1:9", DATA_DIR: dataDir });
  expect(await get(ready.url, "/video")).toMatchObject({ sha256: digest(RESOURCE) });
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(proxy.err.match(/origoUnreachable/g)).toHaveLength(1);
  await rm(dataDir, { recursive: true });
});

test("proxy: finds its published TCP and UDP ports among others, and serves through them", async () => {
  const [tcpPort, udpPort] = [await freePort(), await freePort()];
  const range = await publish(tcpPort, udpPort);
  const { ready } = await startProxy({
    PORT: String(tcpPort),
    UDP_PORT: String(udpPort),
    PROBE_PUBLISHED: `127.0.0.1:${range.first}-${range.last}`,
  });
  expect(ready.url).toBe(`http://127.0.0.1:${range.first + 1}`);
  const result = await get(ready.url, "/video");
  expect(result.sha256).toBe(digest(RESOURCE));
  expect(result.candidates.join()).toContain(` 127.0.0.1 ${range.first + 2} typ host`);
  await range.close();
});

async function freePort(): Promise<number> {
  const probe = net.createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise<void>((resolve) => probe.close(() => resolve()));
  return port;
}

/**
 * Publishes ports as a container engine does: the second one leads to the proxy's TCP port, the third to its UDP port.
 */
async function publish(tcpPort: number, udpPort: number): Promise<PublishedRange & { close(): Promise<void> }> {
  const tcp = net.createServer((client) => {
    const inner = net.connect(tcpPort, "127.0.0.1");
    for (const [from, to] of [
      [client, inner],
      [inner, client],
    ] as const)
      from.pipe(to).on("error", () => from.destroy());
    client.on("error", () => inner.destroy());
  });
  const outer = dgram.createSocket("udp4");
  const inner = dgram.createSocket("udp4");
  let client: dgram.RemoteInfo | undefined;
  outer.on("message", (message, from) => {
    client = from;
    inner.send(message, udpPort, "127.0.0.1");
  });
  inner.on("message", (message) => client && outer.send(message, client.port, client.address));
  const first = (await freePort()) - 1;
  await new Promise<void>((resolve) => tcp.listen(first + 1, "127.0.0.1", resolve));
  await new Promise<void>((resolve, reject) => outer.once("error", reject).bind(first + 2, "127.0.0.1", resolve));
  return {
    host: "127.0.0.1",
    first,
    last: first + 3,
    close: async () => void (tcp.close(), outer.close(), inner.close()),
  };
}
