/**
 * Proxies that read a chunk from its origin together. Real processes; the origin's own log counts its bytes. Without
 * sharing they are four times the body. On a busy machine peers seem late, and parts are read again, so the limits here
 * only tell the two apart. `npm run bench -- spread` measures.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseRange, resolveRange } from "@tributary/contract";
import { startFleet, type Fleet } from "@tributary/lab-stack";
import { cli } from "./support";

const BYTES = 1_500_000;
const body = Buffer.alloc(BYTES);
for (let at = 0; at < BYTES; at += 32) createHash("sha256").update(String(at)).digest().copy(body, at);

interface Asked {
  path: string;
  range: string | undefined;
  bytes: number;
}

let fleet: Fleet;
let origin: Server;
let site: string;
const asked: Asked[] = [];

/** Paths say how the origin answers: `ranges`, `whole` (no ranges), `weak` (no strong validator), `changing`. */
function answer(request: IncomingMessage, response: ServerResponse): void {
  const path = request.url ?? "";
  const range = path.startsWith("/whole") ? undefined : parseRange(request.headers.range);
  const part = range ? resolveRange(range, BYTES) : undefined;
  const count = asked.filter((other) => other.path === path).length;
  const isNew = path.startsWith("/changing") && count >= 4;
  const bytes = part ? body.subarray(part.start, part.end + 1) : body;
  if (range && !part) {
    response.writeHead(416, { "content-range": `bytes */${BYTES}` }).end();
    return;
  }
  asked.push({ path, range: request.headers.range, bytes: bytes.length });
  const etag = path.startsWith("/weak") ? {} : { etag: isNew ? '"2"' : '"1"' };
  const told = part ? { "content-range": `bytes ${part.start}-${part.end}/${BYTES}` } : {};
  const headers = { ...etag, ...told, "content-length": bytes.length, "cache-control": "max-age=60" };
  response.writeHead(part ? 206 : 200, { ...headers, "content-type": "video/mp4" });
  response.end(isNew ? Buffer.from(bytes.map((byte) => byte ^ 1)) : bytes);
}

beforeAll(async () => {
  origin = createServer(answer);
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const host = `127.0.0.1:${(origin.address() as AddressInfo).port}`;
  site = `http://${host}`;
  fleet = await startFleet({ proxyCount: 4, ports: "any", allow: [host], rateBytesPerSec: 2_000_000 });
});

afterAll(async () => {
  await fleet.stop();
  origin.close();
});

/** `words`: more options of the command line. */
async function get(path: string, ...words: string[]): Promise<{ bytes: Buffer; factor: number }> {
  const before = asked.length;
  const own = ["get", `${site}${path}`, "--origo", fleet.origo.url, "--no-fallback", "--connections", "4", "-o", "-"];
  const { stdout, status, stderr } = await cli(...own, ...words);
  expect([status, stderr.replace(/.*\r/g, "")]).toEqual([0, expect.anything()]);
  const reads = asked.slice(before).filter((each) => each.path === path);
  const readBytes = reads.reduce((sum, { bytes }) => sum + bytes, 0);
  return { bytes: stdout, factor: readBytes / stdout.length };
}

test("four proxies read a chunk of unknown length from its origin once", async () => {
  const { bytes, factor } = await get("/ranges/1", "--sharing");
  expect(bytes.equals(body)).toBe(true);
  expect(factor).toBeLessThan(1.5);
});

test("four proxies read a range of known length once", async () => {
  const { bytes, factor } = await get("/ranges/2", "--sharing", "--range", "1000-1200999");
  expect(bytes.equals(body.subarray(1000, 1_201_000))).toBe(true);
  expect(factor).toBeLessThan(1.5);
});

test("without sharing each of the four proxies reads all", async () => {
  const { bytes, factor } = await get("/ranges/3", "--no-sharing");
  expect(bytes.equals(body)).toBe(true);
  expect(factor).toBeGreaterThan(3.5);
});

test.each(["/whole", "/weak"])("an origin whose parts cannot be joined (%s) is read by each proxy", async (path) => {
  const { bytes } = await get(`${path}/1`, "--sharing");
  expect(bytes.equals(body)).toBe(true);
});

test("eight viewers at once share what is read", async () => {
  const before = asked.length;
  const all = await Promise.all(Array.from({ length: 8 }, () => get("/ranges/4", "--sharing")));
  for (const { bytes } of all) expect(bytes.equals(body)).toBe(true);
  const readBytes = asked.slice(before).reduce((sum, { bytes }) => sum + bytes, 0);
  expect(readBytes / BYTES).toBeLessThan(3);
});

test("a proxy that stops in the middle is replaced", async () => {
  const download = get("/ranges/slow", "--sharing");
  while (asked.filter(({ path }) => path === "/ranges/slow").length < 8) await sleep(5);
  process.kill(fleet.proxies[1]!.pid, "SIGSTOP");
  try {
    const { bytes, factor } = await download;
    expect(bytes.equals(body)).toBe(true);
    expect(factor).toBeLessThan(3);
  } finally {
    process.kill(fleet.proxies[1]!.pid, "SIGCONT");
  }
});

test("the origin's answer changes between two parts: the bytes are of one version, or the download fails", async () => {
  const url = `${site}/changing/1`;
  const words = ["get", url, "--origo", fleet.origo.url, "--no-fallback", "--connections", "4", "--sharing", "-o", "-"];
  const { stdout, status } = await cli(...words);
  const changed = Buffer.from(body.map((byte) => byte ^ 1));
  const isOne = [body, changed].some((version) => version.subarray(0, stdout.length).equals(stdout));
  expect([isOne, status === 0 ? stdout.length : BYTES]).toEqual([true, BYTES]);
});
