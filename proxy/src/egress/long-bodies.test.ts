/** Long bodies over a real server: one request for all ranges. */
import http from "node:http";
import type { AddressInfo } from "node:net";
import { LIMITS } from "@tributary/protocol";
import { Egress } from "./fetch";
import { LongBodies } from "./long-bodies";
import { parseHostRule } from "./policy";

const TOTAL = LIMITS.chunkBytesMax + 8_000_000;
const BYTES = Buffer.from(Uint8Array.from({ length: TOTAL }, (_, index) => (index * 7 + (index >> 12)) & 255));
const MIB = 1024 * 1024;

let requests: string[] = [];
let closed = 0;
let url: string;
let egress: Egress;
let bodies: LongBodies;
const server = http.createServer((request, response) => {
  requests.push(request.headers.range ?? "whole");
  response.on("close", () => closed++);
  const [, first, last] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "") ?? [];
  if (first !== undefined && Number(last) - Number(first) >= LIMITS.chunkBytesMax) {
    const range = {
      "content-range": `bytes ${first}-${last}/${TOTAL}`,
      "content-length": Number(last) - Number(first) + 1,
    };
    return void response
      .writeHead(206, { ...range, etag: '"one"' })
      .end(BYTES.subarray(Number(first), Number(last) + 1));
  }
  if (request.headers.range) return void response.writeHead(403, { "content-length": 0 }).end();
  response.writeHead(200, { "content-length": TOTAL, etag: '"one"' }).end(BYTES);
});

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  url = `http://127.0.0.1:${port}/film`;
  const allowPrivate = [parseHostRule(`127.0.0.1:${port}`)!];
  egress = new Egress({ policy: { allow: [], allowPrivate, ownAddresses: new Set() } });
});
beforeEach(async () => {
  requests = [];
  closed = 0;
  bodies = new LongBodies(egress);
});
afterAll(() => {
  egress.close();
  server.closeAllConnections();
  server.close();
});

/** Asks for the whole and leaves it, as the store does with a body that is too long for a chunk. */
async function open(): Promise<void> {
  const store = new AbortController();
  const response = await bodies.fetch(url, undefined, store.signal);
  store.abort();
  response.cancel();
}

/** Asks for a long range and leaves it. */
async function openRange(start: number, end: number): Promise<void> {
  const store = new AbortController();
  const response = await bodies.fetch(url, { start, end }, store.signal);
  store.abort();
  response.cancel();
}

/** The status and the first `count` bytes of a range. */
async function read(start: number, end: number, count = Infinity, signal = new AbortController().signal) {
  const { status, headers, totalBytes, body } = await bodies.fetch(url, { start, end }, signal);
  const pieces: Uint8Array[] = [];
  let got = 0;
  for await (const piece of body) {
    pieces.push(piece);
    if ((got += piece.length) >= count) break;
  }
  return { status, contentRange: headers["content-range"], totalBytes, bytes: Buffer.concat(pieces) };
}

test("long bodies: ranges in order come from the answer that told the length", async () => {
  await open();
  for (const [start, end] of [[0, 8 * MIB - 1] as const, [8 * MIB, TOTAL + 5] as const]) {
    const last = Math.min(end, TOTAL - 1);
    const part = await read(start, end);
    expect(part).toMatchObject({
      status: 206,
      contentRange: `bytes ${start}-${last}/${TOTAL}`,
      totalBytes: last - start + 1,
    });
    expect(part.bytes.equals(BYTES.subarray(start, last + 1))).toBe(true);
  }
  expect(requests).toEqual(["whole"]);
  expect((await read(0, 9)).status).toBe(403);
});

test("long bodies: the parts of a long range come from one request for that range", async () => {
  const [start, end] = [1000, 1000 + LIMITS.chunkBytesMax + 500];
  await openRange(start, end);
  for (const [from, to] of [
    [start, 8 * MIB],
    [8 * MIB + 1, end + 9],
  ] as const) {
    const part = await read(from, to);
    const last = Math.min(to, end);
    expect(part).toMatchObject({ status: 206, contentRange: `bytes ${from}-${last}/${TOTAL}` });
    expect(part.bytes.equals(BYTES.subarray(from, last + 1))).toBe(true);
  }
  expect(requests).toEqual([`bytes=${start}-${end}`]);
});

test("long bodies: a range that is left early does not spoil the next one", async () => {
  await open();
  await read(0, 4 * MIB - 1, 100);
  const giveUp = new AbortController();
  const unread = await bodies.fetch(url, { start: 4 * MIB, end: 5 * MIB - 1 }, giveUp.signal);
  giveUp.abort();
  unread.cancel();
  const [first, second] = await Promise.all([read(5 * MIB, 6 * MIB - 1), read(6 * MIB, 7 * MIB - 1)]);
  expect(first.bytes.equals(BYTES.subarray(5 * MIB, 6 * MIB))).toBe(true);
  expect(second.bytes.equals(BYTES.subarray(6 * MIB, 7 * MIB))).toBe(true);
  expect(requests).toEqual(["whole"]);
});

test("long bodies: a request that is left before its head serves the ranges all the same", async () => {
  const store = new AbortController();
  const whole = bodies.fetch(url, undefined, store.signal);
  store.abort();
  const part = await read(0, MIB - 1);
  expect([part.status, part.bytes.equals(BYTES.subarray(0, MIB)), requests]).toEqual([206, true, ["whole"]]);
  (await whole).cancel();
});

test("long bodies: a range backwards, far ahead, or of another client is a request of its own", async () => {
  await open();
  await read(0, MIB - 1);
  const statuses = [await read(0, 9), await read(20 * MIB, 21 * MIB)].map(({ status }) => status);
  expect(statuses).toEqual([403, 403]);
  const other = { name: "other", bytesRefusal: () => undefined, noteOrigin: () => undefined } as never;
  const response = await bodies.fetch(url, { start: MIB, end: 2 * MIB }, new AbortController().signal, other);
  expect(response.status).toBe(403);
  response.cancel();
});

test("long bodies: a body that is read whole, and the oldest of too many, are closed", async () => {
  const store = new AbortController();
  const response = await bodies.fetch(url, undefined, store.signal);
  for await (const piece of response.body) if (piece.length > 0) break;
  store.abort();
  for (let i = 0; i < 17; i++) {
    const stop = new AbortController();
    (await bodies.fetch(`${url}?${i}`, undefined, stop.signal)).cancel();
  }
  for (let waits = 0; closed < 2 && waits < 100; waits++) await new Promise((resolve) => setTimeout(resolve, 20));
  expect(closed).toBe(2);
});

test("long bodies: five viewers of one film behind one address read a body each", async () => {
  for (let viewer = 0; viewer < 5; viewer++) {
    await open();
    const { status } = await read(0, MIB - 1);
    expect(status).toBe(206);
  }
  const parts = await Promise.all([1, 2, 3, 4, 5].map(() => read(MIB, 2 * MIB - 1)));
  expect(parts.map(({ status, bytes }) => [status, bytes.equals(BYTES.subarray(MIB, 2 * MIB))])).toEqual(
    Array(5).fill([206, true]),
  );
  expect(requests).toEqual(Array(5).fill("whole"));
});
