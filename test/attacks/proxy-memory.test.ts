/**
 * One client attacks the memory of a real proxy, or the origin behind it, for seconds. Meanwhile a viewer at another
 * address must be served. Each test prints what it measured.
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { pipeline, Readable } from "node:stream";
import { setTimeout as after } from "node:timers/promises";
import { repoRoot, startService, type Service } from "@tributary/lab-stack";
import { encodeFrame, encodeUdpPacket, LIMITS, parseUdpPacket, UDP_NONCE_BYTES, type Frame } from "@tributary/protocol";

const CHUNK_BYTES = LIMITS.chunkBytesMax;
const VIEWER_BYTES = 5_000_000;
const CODER_BYTES = 64 * 1024 * 1024;
/** Bounds that hold on a slow machine. A proxy takes about 140 MB when it rests. */
const SERVED_MS_MAX = 8000;
const CLIENT_HEADERS = { "tributary-client": "attack" };

let folder: string;
let proxy: Service;
let udpPort: number;
let originBytes = 0;

const PIECE = Buffer.alloc(64 * 1024, 7);

/** `/viewer/` has a short body. The others announce the longest chunk, and `/trickle/` sends it slowly. */
const origin = http.createServer((request, response) => {
  const length = request.url!.startsWith("/viewer") ? VIEWER_BYTES : CHUNK_BYTES;
  response.writeHead(200, { "content-type": "video/mp4", "content-length": length, "cache-control": "max-age=60" });
  if (request.url!.startsWith("/trickle")) {
    const timer = setInterval(() => response.write(PIECE.subarray(0, 1024)), 100);
    response.on("close", () => clearInterval(timer));
  } else pipeline(Readable.from(bodyOf(length)), response, () => undefined);
});

/** Counts what has left the origin. */
function* bodyOf(length: number): Generator<Buffer> {
  for (let left = length; left > 0; left -= PIECE.length) {
    const piece = PIECE.subarray(0, left);
    originBytes += piece.length;
    yield piece;
  }
}

beforeEach(async () => {
  originBytes = 0;
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  folder = await mkdtemp(path.join(os.tmpdir(), "tributary-attack-"));
  const probe = http.createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  udpPort = (probe.address() as AddressInfo).port;
  probe.close();
  const host = `127.0.0.1:${(origin.address() as AddressInfo).port}`;
  proxy = await startService({
    name: "proxy",
    script: path.join(repoRoot, "proxy/dist/main.js"),
    env: {
      HOST: "127.0.0.1",
      PORT: "0",
      UDP_PLAIN_PORT: String(udpPort),
      ALLOW_HOSTS: host,
      ALLOW_PRIVATE_HOSTS: host,
      CODER_BYTES: String(CODER_BYTES),
    },
    logFile: path.join(folder, "proxy.log"),
  });
});
afterEach(async () => {
  await proxy.kill();
  origin.closeAllConnections();
  await new Promise((resolve) => origin.close(resolve));
  await rm(folder, { recursive: true, force: true });
});

const originUrl = (name: string): string => `http://127.0.0.1:${(origin.address() as AddressInfo).port}/${name}`;
const memoryMb = (): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${proxy.pid}/status`, "utf8"))?.[1]) / 1000;

/** Resolves with the answer before its body is read. */
function ask(name: string, localAddress = "127.0.0.1"): Promise<http.IncomingMessage> {
  return new Promise((resolve, reject) => {
    const url = `${proxy.url}/v1/fetch?url=${encodeURIComponent(originUrl(name))}`;
    http
      .get(url, { localAddress, agent: false, headers: CLIENT_HEADERS }, (response) => {
        response.on("error", () => undefined);
        resolve(response);
      })
      .on("error", reject);
  });
}

async function take(name: string, localAddress?: string): Promise<{ status: number; bytes: number; ms: number }> {
  const startMs = performance.now();
  const response = await ask(name, localAddress);
  let bytes = 0;
  for await (const piece of response) bytes += (piece as Buffer).length;
  return { status: response.statusCode!, bytes, ms: performance.now() - startMs };
}

/** A viewer at another address takes a segment each second, while the attack lasts. */
async function view(segments: number): Promise<number> {
  let msMax = 0;
  for (let index = 0; index < segments; index++) {
    const { status, bytes, ms } = await take(`viewer/${index}`, "127.0.0.2");
    expect([status, bytes]).toEqual([200, VIEWER_BYTES]);
    msMax = Math.max(msMax, ms);
    await after(500);
  }
  expect(msMax).toBeLessThan(SERVED_MS_MAX);
  return msMax;
}

/** Opens a session over plain UDP (transport.md §5). It counts what it sends and drops what it gets. */
async function openSession(): Promise<{ sentBytes: number; send(frame: Frame): void; close(): void }> {
  const socket = dgram.createSocket("udp4");
  await new Promise<void>((resolve) => socket.connect(udpPort, "127.0.0.1", resolve));
  const nonce = randomBytes(UDP_NONCE_BYTES);
  const token = await new Promise<Uint8Array>((resolve) => {
    socket.on("message", (bytes) => {
      const packet = parseUdpPacket(bytes);
      if (packet?.type === "cookie") socket.send(encodeUdpPacket({ type: "open", nonce, cookie: packet.cookie }));
      if (packet?.type === "opened") resolve(Uint8Array.from(packet.token));
    });
    socket.send(encodeUdpPacket({ type: "hello", nonce }));
  });
  const session = {
    sentBytes: 0,
    send: (frame: Frame): void => {
      const packet = encodeUdpPacket({ type: "message", token, datagram: encodeFrame(frame) });
      session.sentBytes += packet.length;
      socket.send(packet);
    },
    close: () => void socket.close(),
  };
  return session;
}

const codedRequest = (requestId: number, name: string): Frame => ({
  type: "request",
  requestId,
  mode: "coded",
  symbolBytes: LIMITS.symbolBytesDefault,
  generationSize: LIMITS.generationSizeMax,
  windowPackets: 1,
  share: { start: 0, end: 0, firstGeneration: 0 },
  url: originUrl(name),
});

const GENERATIONS = Math.ceil(CHUNK_BYTES / LIMITS.symbolBytesDefault / LIMITS.generationSizeMax);
const grantOf = (requestId: number, generations: number[]): Frame => ({
  type: "grant",
  requestId,
  grantSequence: 1,
  fromSequence: 0,
  base: 0,
  runs: generations.map((generationIndex) => ({ generationIndex, count: 1 })),
});

function report(attack: string, viewerMs: number): void {
  console.log(`${attack}: memory ${memoryMb().toFixed(0)} MB, a viewer's segment in ${viewerMs.toFixed(0)} ms at most`);
}

test("64 coded requests of cached chunks", async () => {
  const names = Array.from({ length: 6 }, (_, index) => `fast/cached-${index}`);
  for (const name of names) await take(name);
  const beforeMb = memoryMb();
  const sessions = await Promise.all(Array.from({ length: 4 }, openSession));
  for (const session of sessions)
    for (let requestId = 0; requestId < 16; requestId++)
      session.send(codedRequest(requestId, names[requestId % names.length]!));
  await after(300);
  for (const session of sessions)
    for (let requestId = 0; requestId < 16; requestId++)
      session.send(grantOf(requestId, [...Array(GENERATIONS).keys()]));
  const ms = await view(4);
  const sentKb = sessions.reduce((sum, { sentBytes }) => sum + sentBytes, 0) / 1000;
  for (const session of sessions) session.close();
  report(`64 coded requests, ${sentKb.toFixed(0)} KB sent, memory ${beforeMb.toFixed(0)} MB before`, ms);
  // Copies of all chunks would take 200 MB. The coder may take CODER_BYTES.
  expect(memoryMb() - beforeMb).toBeLessThan(150);
}, 60_000);

test("64 readers of long chunks at two addresses that read slowly", async () => {
  const addresses = ["127.0.0.1", "127.0.0.3"];
  const answers = await Promise.all(
    Array.from({ length: 64 }, (_, index) => ask(`fast/${index}`, addresses[index % 2]).catch(() => undefined)),
  );
  const ms = await view(3);
  for (const answer of answers) answer?.destroy();
  report("64 slow readers", ms);
  expect(memoryMb()).toBeLessThan(700);
}, 60_000);

test("8 readers of chunks in the cache that read slowly, and a cache that changes", async () => {
  for (let index = 0; index < 8; index++) await take(`fast/${index}`);
  const answers = await Promise.all(Array.from({ length: 8 }, (_, index) => ask(`fast/${index}`)));
  for (let index = 8; index < 16; index++) await take(`fast/${index}`, "127.0.0.2");
  const ms = await view(2);
  for (const answer of answers) answer.destroy();
  report("8 slow readers of cached chunks", ms);
}, 60_000);

test("200 answers that trickle in from the viewer's own origin", async () => {
  const answers = Array.from({ length: 200 }, (_, index) => ask(`trickle/${index}`).catch(() => undefined));
  await after(1500);
  const ms = await view(4);
  report("200 trickling answers", ms);
  await proxy.kill();
  for (const answer of await Promise.all(answers)) answer?.destroy();
}, 60_000);

test("a client that reads nothing, and one that asks for the last packets only", async () => {
  const answers = Array.from({ length: 16 }, (_, index) => ask(`fast/http-${index}`).catch(() => undefined));
  const session = await openSession();
  const requestIds = Array.from({ length: 16 }, (_, index) => index);
  for (const requestId of requestIds) session.send(codedRequest(requestId, `fast/datagram-${requestId}`));
  await after(300);
  for (const requestId of requestIds) session.send(grantOf(requestId, [GENERATIONS - 1]));
  const ms = await view(4);
  const readMb = (originBytes - 4 * VIEWER_BYTES) / 1e6;
  const wantedMb = (32 * CHUNK_BYTES) / 1e6;
  report(`32 requests that read nothing: ${readMb.toFixed(0)} of ${wantedMb.toFixed(0)} MB from the origin`, ms);
  session.close();
  await proxy.kill();
  for (const answer of await Promise.all(answers)) answer?.destroy();
  expect(readMb).toBeLessThan(700);
}, 60_000);

test("a client that asks for chunk after chunk and leaves", async () => {
  let sentKb = 0;
  const attack = (async () => {
    for (let index = 0; index < 250; index++) {
      sentKb += 0.2;
      const answer = await ask(`fast/left-${index}`);
      await after(5);
      answer.destroy();
    }
  })();
  const ms = await view(4);
  await attack;
  const readMb = (originBytes - 4 * VIEWER_BYTES) / 1e6;
  report(`250 requests that were left, ${sentKb.toFixed(0)} KB sent: ${readMb.toFixed(0)} MB from the origin`, ms);
  expect(readMb).toBeLessThan(700);
}, 60_000);
