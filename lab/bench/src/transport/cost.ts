/**
 * Processor time that a sender spends on each gigabyte, at a steady rate over loopback: a proxy over WebTransport and
 * WebRTC, and nginx (a program of this machine) that serves the same bytes over HTTP/2 and TLS. The receivers are this
 * process; in turns.
 */
import { execFileSync, spawn } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import http2 from "node:http2";
import os from "node:os";
import path from "node:path";
import { createNodeClient } from "@tributary/client/node";
import { freePort, startFleet } from "@tributary/lab-stack";
import { exitOf } from "../kit/driver";
import { processorSecOf } from "../kit/machine";
import { secPerGbOf } from "./rows";
import type { Cost } from "./rows";

const HOST = "127.0.0.1";
const NGINX_PORT_FIRST = 7690;
const RATE_BYTES_PER_SEC = 20_000_000;
const BODY_BYTES = 16_000_000;
const START_MS_MAX = 5000;

/** Of HTTP/2, a stream's and the connection's: 13 ms at the rate, which is how often nginx then sends. */
const WINDOW_BYTES = 256 * 1024;

interface Sender {
  name: Cost["sender"];
  pid: number;
  /** Fetches the body once; resolves with its length. */
  fetchOnce(): Promise<number>;
  close(): Promise<void>;
}

/** Each sender sends `bodies` in each turn. */
export async function measureCost(turns: number, bodies: number, print: (line: string) => void): Promise<Cost[]> {
  const fleet = await startFleet({ proxyCount: 1, rateBytesPerSec: RATE_BYTES_PER_SEC, ports: "any" });
  const senders: Sender[] = [];
  try {
    const url = `${fleet.sample.url}/__size/${BODY_BYTES}.mp4`;
    senders.push(await startNginx(Buffer.from(await (await fetch(url)).arrayBuffer())));
    for (const transport of ["webtransport", "webrtc"] as const)
      senders.push(proxyOver(transport, fleet.proxies[0]!.pid, fleet.origo.url, url));
    for (const sender of senders) await expectBody(sender);
    const costs: Cost[] = [];
    for (let turn = 0; turn < turns; turn++) {
      for (const sender of senders) {
        const cost = await costOf(sender, bodies);
        print(
          `  ${cost.sender}: ${secPerGbOf(cost).toFixed(2)} s of a processor per GB at ` +
            `${(cost.bytes / cost.seconds / 1e6).toFixed(1)} MB/s`,
        );
        costs.push(cost);
      }
    }
    return costs;
  } finally {
    for (const sender of senders) await sender.close();
    await fleet.stop();
  }
}

async function costOf(sender: Sender, bodies: number): Promise<Cost> {
  const [startMs, before] = [performance.now(), processorSecOf(sender.pid)];
  for (let body = 0; body < bodies; body++) await expectBody(sender);
  return {
    sender: sender.name,
    bytes: bodies * BODY_BYTES,
    seconds: (performance.now() - startMs) / 1000,
    cpuSec: processorSecOf(sender.pid) - before,
  };
}

async function expectBody({ name, fetchOnce }: Sender): Promise<void> {
  const bytes = await fetchOnce();
  if (bytes !== BODY_BYTES) throw new Error(`${name}: got ${bytes} bytes, expected ${BODY_BYTES}`);
}

function proxyOver(transport: "webtransport" | "webrtc", pid: number, origoUrl: string, url: string): Sender {
  const client = createNodeClient({ origoUrl, transport, reportRecords: false });
  const fetchOnce = async (): Promise<number> => {
    const download = client.get(url, { mode: "coded", connections: 1, allowFallback: false });
    let bytes = 0;
    for await (const piece of download.body) bytes += piece.length;
    const other = (await download.record).proxies.find((proxy) => proxy.transport !== transport);
    if (other) throw new Error(`${other.name} was reached over ${other.transport ?? "nothing"}, not over ${transport}`);
    return bytes;
  };
  return { name: transport, pid, fetchOnce, close: () => client.close() };
}

const configurationOf = (folder: string, port: number): string => `
daemon off;
user root;
worker_processes 1;
pid ${folder}/pid;
error_log stderr;
events {}
http {
  access_log off;
  server {
    listen ${HOST}:${port} ssl http2;
    ssl_certificate ${folder}/certificate.pem;
    ssl_certificate_key ${folder}/key.pem;
    ssl_protocols TLSv1.3;
    root ${folder};
    limit_rate ${RATE_BYTES_PER_SEC};
  }
}
`;

/** nginx as it comes, with one worker. Throws a sentence where it is not installed. */
async function startNginx(body: Buffer): Promise<Sender> {
  try {
    execFileSync("nginx", ["-v"], { stdio: "ignore" });
  } catch {
    throw new Error("nginx is not installed (Debian package nginx)");
  }
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-nginx-"));
  const port = await freePort(NGINX_PORT_FIRST, new Set());
  await writeFile(path.join(folder, "body"), body);
  await writeFile(path.join(folder, "nginx.conf"), configurationOf(folder, port));
  const key = [
    "-newkey",
    "ec",
    "-pkeyopt",
    "ec_paramgen_curve:prime256v1",
    "-nodes",
    "-keyout",
    path.join(folder, "key.pem"),
  ];
  execFileSync(
    "openssl",
    ["req", "-x509", ...key, "-out", path.join(folder, "certificate.pem"), "-days", "2", "-subj", `/CN=${HOST}`],
    { stdio: "ignore" },
  );
  const child = spawn("nginx", ["-e", "stderr", "-c", path.join(folder, "nginx.conf")], {
    stdio: ["ignore", "ignore", "inherit"],
  });
  let connection: http2.ClientHttp2Session | undefined;
  const close = async (): Promise<void> => {
    connection?.close();
    child.kill("SIGTERM");
    await exitOf(child);
    await rm(folder, { recursive: true, force: true });
  };
  try {
    const open = (connection = await connectTo(`https://${HOST}:${port}`));
    return { name: "nginx", pid: child.pid!, fetchOnce: () => bytesOf(open, "/body"), close };
  } catch (error) {
    await close();
    throw error;
  }
}

async function connectTo(url: string): Promise<http2.ClientHttp2Session> {
  for (const endMs = Date.now() + START_MS_MAX; ; await new Promise((resolve) => setTimeout(resolve, 50))) {
    const connection = http2.connect(url, { rejectUnauthorized: false, settings: { initialWindowSize: WINDOW_BYTES } });
    const problem = await new Promise<Error | undefined>((resolve) => {
      connection.once("connect", () => resolve(undefined));
      connection.once("error", resolve);
    });
    if (!problem) {
      connection.setLocalWindowSize(WINDOW_BYTES);
      return connection;
    }
    if (Date.now() > endMs) throw new Error(`nginx did not answer within ${START_MS_MAX} ms: ${problem.message}`);
  }
}

function bytesOf(connection: http2.ClientHttp2Session, name: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const stream = connection.request({ ":path": name });
    let bytes = 0;
    stream.on("data", (piece: Buffer) => (bytes += piece.length));
    stream.once("error", reject);
    stream.once("end", () => resolve(bytes));
  });
}
