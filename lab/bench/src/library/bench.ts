/**
 * `npm run bench -- library`: what one core serves of 8 MB objects over plain HTTP, from a proxy's library and from
 * nginx on the same files, by turns. Rates are bytes over the processor time of the server, so that other programs on
 * the machine do not count. Exit status 0 measured, 1 could not measure, 2 bad option.
 */
import { spawn, type ChildProcess } from "node:child_process";
import { createHash, hash, randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { hexOf, LeafMaker, objectId, Tree } from "@tributary/contract/tree";
import { repoRoot } from "@tributary/lab-stack";
import { countOf, optionsOf, runBench, TEXT } from "../kit/command";
import { exitOf, linesOf } from "../kit/driver";
import { median } from "../kit/figures";
import { allowedCores, machineText, processorSecOf } from "../kit/machine";
import { table } from "../kit/table";
import { readFor } from "./reader";

const USAGE = `npm run bench -- library [--rounds N] [--sec N] [--objects N]
  --rounds N    of each server, by turns (default 5)
  --sec N       of one round (default 3)
  --objects N   of 8 MB each (default 8)`;
const OBJECT_BYTES = 8_000_000;
const FLOOR = 0.3;
const CONNECTIONS = 4;
const HOST = "127.0.0.1";

interface Served {
  name: string;
  child: ChildProcess;
  port: number;
  /** The address of an object. */
  pathOf: (id: string) => string;
}

interface Round {
  /** Of the server's processor time. */
  bytesPerSec: number;
  wallBytesPerSec: number;
}

/** Puts an object into the library's folder as a proxy keeps it, and returns its id. */
function makeObject(directory: string): string {
  const bytes = randomBytes(OBJECT_BYTES);
  const sha256 = (part: Uint8Array): Uint8Array => hash("sha256", part, "buffer");
  const leaves = new LeafMaker(sha256);
  leaves.update(bytes);
  const tree = new Tree(leaves.finish(), sha256);
  const id = objectId({ root: hexOf(tree.root), bytes: bytes.length });
  writeFileSync(path.join(directory, id), bytes);
  writeFileSync(path.join(directory, `${id}.leaves`), tree.leaves);
  return id;
}

const pinned = (core: number, words: readonly string[], env: Record<string, string> = {}): ChildProcess =>
  spawn("taskset", ["-c", String(core), ...words], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "ignore"],
  });

async function startProxy(core: number, folder: string, name: string, cacheBytes: number): Promise<Served> {
  const words = [process.execPath, path.join(repoRoot, "proxy/dist/main.js"), "--library", folder, "--coder", "cpu"];
  const child = pinned(core, words, { HOST, WEBTRANSPORT_PORT: "off", CACHE_BYTES: String(cacheBytes) });
  const { url } = JSON.parse(await linesOf(child).next()) as { url: string };
  return { name, child, port: Number(new URL(url).port), pathOf: (id) => `/v1/objects/${id}` };
}

/** One process, as the proxy is one. */
const nginxConfig = (folder: string, port: number): string => `
daemon off; master_process off; worker_processes 1; pid ${folder}/nginx.pid; error_log ${folder}/nginx.log;
events { worker_connections 256; }
http {
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; default_type application/octet-stream;
  client_body_temp_path ${folder}/nginx-body; proxy_temp_path ${folder}/nginx-proxy;
  fastcgi_temp_path ${folder}/nginx-fastcgi; uwsgi_temp_path ${folder}/nginx-uwsgi; scgi_temp_path ${folder}/nginx-scgi;
  server { listen ${HOST}:${port}; root ${folder}/objects; }
}
`;

async function startNginx(core: number, folder: string): Promise<Served> {
  const port = await freePort();
  const file = path.join(folder, "nginx.conf");
  writeFileSync(file, nginxConfig(folder, port));
  const child = pinned(core, ["nginx", "-c", file, "-p", folder]);
  const served = { name: "nginx", child, port, pathOf: (id: string) => `/${id}` };
  while (child.exitCode === null) {
    const answer = await fetch(`http://${HOST}:${port}/`).catch(() => undefined);
    if (answer) return served;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  throw new Error(`nginx did not start: see ${folder}/nginx.log`);
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, HOST, () => {
      const { port } = server.address() as { port: number };
      server.close(() => resolve(port));
    });
  });
}

/** Every server must give the same bytes. */
async function check({ name, port, pathOf }: Served, ids: readonly string[]): Promise<string> {
  const all = createHash("sha256");
  for (const id of ids) {
    const answer = await fetch(`http://${HOST}:${port}${pathOf(id)}`);
    if (answer.status !== 200) throw new Error(`${name} answered ${answer.status}`);
    all.update(Buffer.from(await answer.arrayBuffer()));
  }
  return all.digest("hex");
}

async function measure(served: Served, ids: readonly string[], sec: number): Promise<Round> {
  const beforeSec = processorSecOf(served.child.pid!);
  const startMs = performance.now();
  const bytes = await readFor({
    host: HOST,
    port: served.port,
    paths: ids.map(served.pathOf),
    bodyBytes: OBJECT_BYTES,
    connections: CONNECTIONS,
    ms: sec * 1000,
  });
  return {
    bytesPerSec: bytes / (processorSecOf(served.child.pid!) - beforeSec),
    wallBytesPerSec: (bytes * 1000) / (performance.now() - startMs),
  };
}

async function main(): Promise<number> {
  const words = optionsOf({ rounds: TEXT, sec: TEXT, objects: TEXT });
  const rounds = countOf("rounds", words.rounds) ?? 5;
  const sec = countOf("sec", words.sec) ?? 3;
  const objectCount = countOf("objects", words.objects) ?? 8;
  const [core] = allowedCores();
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-library-"));
  const directory = path.join(folder, "objects");
  mkdirSync(directory);
  const ids = Array.from({ length: objectCount }, () => makeObject(directory));
  const servers: Served[] = [];
  try {
    servers.push(await startNginx(core!, folder));
    servers.push(await startProxy(core!, folder, "library", 2 * objectCount * OBJECT_BYTES));
    servers.push(await startProxy(core!, folder, "library, each block read and checked each time", 0));
    const digests = new Set<string>();
    for (const served of servers) digests.add(await check(served, ids));
    if (digests.size > 1) throw new Error("the servers gave different bytes");
    const results = servers.map((): Round[] => []);
    for (let round = 0; round < rounds; round++)
      for (const [index, served] of servers.entries()) results[index]!.push(await measure(served, ids, sec));
    report(servers, results);
  } finally {
    for (const { child } of servers) child.kill("SIGKILL");
    await Promise.all(servers.map(({ child }) => exitOf(child)));
    rmSync(folder, { recursive: true, force: true });
  }
  return 0;
}

function report(servers: readonly Served[], results: readonly Round[][]): void {
  const mb = (value: number): string => (value / 1e6).toFixed(0);
  const lines = servers.map(({ name }, index) => {
    const rounds = results[index]!;
    const ratio = median(rounds.map(({ bytesPerSec }, round) => bytesPerSec / results[0]![round]!.bytesPerSec));
    const verdict = index !== 1 ? "" : ratio >= FLOOR ? "reached" : "NOT reached";
    const [perCpu, perWall] = [rounds.map((each) => each.bytesPerSec), rounds.map((each) => each.wallBytesPerSec)];
    return [name, mb(median(perCpu)), mb(median(perWall)), ratio.toFixed(2), verdict];
  });
  const head = ["server", "MB per second of processor", "MB/s seen", "over nginx", `floor ${FLOOR}`];
  console.log(`8 MB objects, plain HTTP, ${CONNECTIONS} connections; ${machineText()}\n\n${table(head, lines)}`);
}

runBench(USAGE, main);
