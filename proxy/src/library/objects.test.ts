/** The library over HTTP, on a real disk and real sockets. */
import { spawnSync } from "node:child_process";
import { mkdtemp, open, readdir, rm, truncate, writeFile } from "node:fs/promises";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import type { Rejection } from "@tributary/contract";
import { checkProof, hexOf, objectId, parseObjectId, pieceCountOf } from "@tributary/contract/tree";
import { bytesOf, grantOf, idOf, KEYS, treeOf } from "../../test/objects";
import { ChunkStore } from "../chunks";
import { Clients } from "../clients";
import { egressError } from "../egress/error";
import { makeApp } from "../http";
import { OrigoKeys } from "../origo-keys";
import { Shaper } from "../shaper";
import { grantFault } from "./grants";
import { Library, sha256, treeOf as treeOfLeaves } from "./library";
import { ObjectOrigin } from "./object-origin";
import { UPLOAD_PACE, type Pace } from "./upload-pace";
import { Uploads } from "./uploads";

const MIB = 2 ** 20;
const LIMITS = {
  cacheBytes: 0,
  pinnedBytes: 2 ** 28,
  cacheKeepMs: 60_000,
  readAheadBytes: 4 * MIB,
  unreadBytes: 2 ** 28,
  originFetchesMax: 100,
};

interface Made {
  url: string;
  dir: string;
  library: Library;
  uploads: Uploads;
  limits: { libraryBytes: number; uploadsMax: number; addressUploads: number };
  clock: { ms: number };
  pace: Pace;
  logged: string[];
  /** Begins anew with the same folder, as after a kill. */
  restart: () => Promise<void>;
}

const closing: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).reverse()) await close();
});

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(path.join(tmpdir(), "library-"));
  closing.push(() => rm(folder, { recursive: true, force: true }));
  return folder;
}

async function makeStore(cacheBytes = 0, folder?: string): Promise<Made> {
  const dir = folder ?? (await makeFolder());
  const made = {
    dir,
    limits: { libraryBytes: 2 ** 40, uploadsMax: 8, addressUploads: 8 },
    clock: { ms: Date.now() },
    pace: UPLOAD_PACE,
    logged: [] as string[],
  } as unknown as Made;
  const log = (event: string, fields?: object) => void made.logged.push(`${event} ${JSON.stringify(fields)}`);
  const keys = new OrigoKeys({ nowMs: () => made.clock.ms, log });
  keys.setKeys(KEYS);
  keys.setId("p");
  const clients = new Clients(() => ({ addressBytes: 2 ** 40, addressOffers: 100, controlPerMille: 400 }));
  let server: http.Server | undefined;
  const stop = async (): Promise<void> => {
    made.uploads?.close();
    made.library?.close();
    server?.closeAllConnections();
    await new Promise<unknown>((resolve) => (server ? server.close(resolve) : resolve(undefined)));
  };
  closing.push(stop);
  made.restart = async () => {
    await stop();
    const library = new Library({ dir, bytesMax: () => made.limits.libraryBytes, log });
    const { pace } = made;
    const uploads = new Uploads({ library, limits: () => made.limits, log, pace, nowMs: () => made.clock.ms });
    await library.open();
    await uploads.open();
    const others = {
      vet: () => {
        throw egressError("egressRefused", "no origins here");
      },
      fetch: () => Promise.reject(new Error("no origins here")),
    };
    const chunks = new ChunkStore({
      egress: new ObjectOrigin(others, library),
      log,
      limits: { ...LIMITS, cacheBytes },
    });
    const app = makeApp({
      health: () => ({ status: "ok", name: "p", engine: "e", sessions: 0 }),
      metrics: { contentType: "text/plain", text: () => Promise.resolve("") },
      nonce: "nonce",
      chunks,
      shared: { held: () => undefined },
      objects: { library, uploads, grantFault: (text, id) => grantFault(keys, text, id) },
      shaper: new Shaper(0),
      log,
      admit: () => undefined,
      clientAt: (address) => clients.of(address),
      trustedHops: 0,
      pageOrigins: [],
      openSession: () => Promise.reject(new Error("no sessions here")),
      onDelivery: () => undefined,
    });
    server = http.createServer(app);
    await new Promise<void>((resolve) => server!.listen(0, "127.0.0.1", resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/objects/`;
    Object.assign(made, { library, uploads, url });
  };
  await made.restart();
  return made;
}

interface Sent {
  grant?: string;
  offset?: number | string;
}

const send = ({ url }: Made, id: string, bytes: Uint8Array, { grant = grantOf(id), offset = 0 }: Sent = {}) =>
  fetch(url + id, {
    method: "PATCH",
    headers: { authorization: `Bearer ${grant}`, "upload-offset": String(offset) },
    body: bytes as BodyInit,
  });

const ask = ({ url }: Made, id: string, headers: Record<string, string> = {}, query = "") =>
  fetch(`${url}${id}${query}`, { headers });

const offsetOf = async ({ url }: Made, id: string) =>
  (await fetch(url + id, { method: "HEAD", headers: { authorization: `Bearer ${grantOf(id)}` } })).headers.get(
    "upload-offset",
  );

const bodyOf = async (response: Response) => Buffer.from(await response.arrayBuffer());
const kindOf = async (response: Response) => ((await response.json()) as { error: Rejection }).error.kind;

test.each([0, 1, 16_383, 16_384, 16_385, 3 * MIB + 1])(
  "library: an object of %d bytes is taken, served whole after a restart, and proven",
  async (length) => {
    const made = await makeStore();
    const bytes = bytesOf(length);
    const id = idOf(bytes);
    expect((await ask(made, id)).status).toBe(404);
    const taken = await send(made, id, bytes);
    expect([taken.status, taken.headers.get("upload-offset")]).toEqual([201, String(length)]);
    await made.restart();
    const answer = await ask(made, id, {}, "?type=video/mp4");
    expect(answer.status).toBe(200);
    expect(Object.fromEntries(answer.headers)).toMatchObject({
      "content-type": "video/mp4",
      "content-length": String(length),
      etag: `"${id}"`,
      "accept-ranges": "bytes",
      "cache-control": "public, max-age=31536000, immutable",
      "access-control-allow-origin": "*",
      "x-content-type-options": "nosniff",
      "content-security-policy": "sandbox; default-src 'none'",
    });
    expect((await bodyOf(answer)).equals(bytes)).toBe(true);
    const pieceCount = pieceCountOf(length);
    for (let piece = 0; piece < pieceCount; piece++) {
      const proof = await bodyOf(await fetch(`${made.url}${id}/proof?first=${piece}&last=${piece}`));
      expect(checkProof(parseObjectId(id)!, piece, proof, sha256)).toBeDefined();
    }
    expect(made.library.status()).toMatchObject({ objects: 1, bytes: length, damagedObjects: 0 });
  },
);

test("library: a range, an unsatisfiable one, several ranges, and conditions, as RFC 9110 says", async () => {
  const made = await makeStore(2 ** 28);
  const bytes = bytesOf(100_000);
  const id = idOf(bytes);
  await send(made, id, bytes);
  expect(made.library.takeServed(9)).toEqual([]);
  const part = await ask(made, id, { range: "bytes=20000-40000" });
  expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 20000-40000/100000"]);
  expect((await bodyOf(part)).equals(bytes.subarray(20_000, 40_001))).toBe(true);
  while (made.library.status().servedBytes < 20_001) await new Promise((resolve) => setTimeout(resolve, 1));
  expect(made.library.takeServed(9)).toEqual([{ object: id, bytes: 20_001 }]);
  expect(made.library.takeServed(9)).toEqual([]);
  const last = await ask(made, id, { range: "bytes=-1" });
  expect((await bodyOf(last)).equals(bytes.subarray(-1))).toBe(true);
  const beyond = await ask(made, id, { range: "bytes=100000-" });
  expect([beyond.status, beyond.headers.get("content-range")]).toEqual([416, "bytes */100000"]);
  for (const headers of [
    { range: "bytes=0-1,5-6" },
    { range: "lines=0-1" },
    { range: "bytes=0-1", "if-range": '"another"' },
  ])
    expect([(await ask(made, id, headers)).status, headers]).toEqual([200, headers]);
  expect((await ask(made, id, { range: "bytes=0-1", "if-range": `"${id}"` })).status).toBe(206);
  expect((await ask(made, id, { "if-none-match": `W/"${id}"` })).status).toBe(304);
  const head = await fetch(made.url + id, { method: "HEAD" });
  expect([head.status, head.headers.get("content-length"), await head.text()]).toEqual([200, "100000", ""]);
  expect((await fetch(`${made.url}${id.replace(/^./, "g")}`, { method: "HEAD" })).status).toBe(400);
});

test("library: an upload that breaks off goes on, also after a restart", async () => {
  const made = await makeStore();
  const bytes = bytesOf(3 * MIB + 5);
  const id = idOf(bytes);
  expect(await offsetOf(made, id)).toBe("0");
  const first = await send(made, id, bytes.subarray(0, 100_000));
  expect([first.status, first.headers.get("upload-offset")]).toEqual([204, "100000"]);
  const wrong = await send(made, id, bytes.subarray(50_000), { offset: 50_000 });
  expect([wrong.status, wrong.headers.get("upload-offset"), await kindOf(wrong)]).toEqual([
    409,
    "100000",
    "offsetWrong",
  ]);
  await send(made, id, bytes.subarray(100_000, 2 * MIB), { offset: 100_000 });
  await made.restart();
  expect(await offsetOf(made, id)).toBe(String(2 * MIB));
  expect((await ask(made, id)).status).toBe(404);
  expect((await send(made, id, bytes.subarray(2 * MIB), { offset: 2 * MIB })).status).toBe(201);
  expect((await bodyOf(await ask(made, id))).equals(bytes)).toBe(true);
  expect(await readdir(path.join(made.dir, "parts"))).toEqual([]);
  const again = await send(made, id, bytes);
  expect([again.status, again.headers.get("upload-offset")]).toEqual([201, String(bytes.length)]);
});

test("library: an upload that trickles ends with an error, keeps what came, and lets another go on", async () => {
  const made = await makeStore();
  made.pace = { bytes: 16_384, ms: 200 };
  await made.restart();
  const bytes = bytesOf(200_000);
  const id = idOf(bytes);
  const headers = { authorization: `Bearer ${grantOf(id)}`, "upload-offset": "0", "content-length": "200000" };
  const request = http.request(made.url + id, { method: "PATCH", headers });
  request.on("error", () => undefined);
  request.write(bytes.subarray(0, 100_000));
  let sent = 100_000;
  const trickle = setInterval(() => request.write(bytes.subarray(sent, ++sent)), 5);
  const response = await new Promise<http.IncomingMessage>((resolve) => request.once("response", resolve));
  clearInterval(trickle);
  expect(response.statusCode).toBe(408);
  const { error } = JSON.parse((await response.toArray()).join("")) as { error: Rejection };
  expect(error).toMatchObject({ kind: "uploadTooSlow", limit: 16_384 });
  expect(error.message).toMatch(/^The upload brought \d+ bytes in 0\.2 s, and must bring 16384/);
  request.destroy();
  const offset = Number(await offsetOf(made, id));
  expect(offset).toBeGreaterThanOrEqual(100_000);
  expect((await send(made, id, bytes.subarray(offset), { offset })).status).toBe(201);
});

test("library: bytes with another root and bytes beyond the length are thrown away", async () => {
  const made = await makeStore();
  const id = idOf(bytesOf(20_000));
  const other = await send(made, id, bytesOf(20_000, 2));
  expect([other.status, await kindOf(other)]).toEqual([422, "rootMismatch"]);
  expect(await offsetOf(made, id)).toBe("0");
  const long = await send(made, id, bytesOf(20_001));
  expect([long.status, await kindOf(long)]).toEqual([413, "requestTooLarge"]);
  expect(made.library.ids).toEqual([]);
});

/** The same grant with another signature. */
const forged = (grant: string) =>
  grant.replace(/\.(.)([^.]*)$/, (_all, first, rest) => `.${first === "A" ? "B" : "A"}${rest}`);

test.each([
  ["no grant", "grantMissing", 401, () => ({ authorization: "" })],
  ["a grant of another Origo", "grantRefused", 403, (id: string) => ({ grant: forged(grantOf(id)) })],
  ["a grant for other proxies", "grantRefused", 403, (id: string) => ({ grant: grantOf(id, { aud: ["q"] }) })],
  ["a grant for another object", "grantRefused", 403, () => ({ grant: grantOf(idOf(bytesOf(1))) })],
  ["a token instead", "grantRefused", 403, (id: string) => ({ grant: grantOf(id, { object: undefined, bytes: 1 }) })],
  ["a grant of yesterday", "grantExpired", 403, (id: string) => ({ grant: grantOf(id, {}, Date.now() - 86_400_000) })],
])("library: %s is refused (%s)", async (_name, kind, status, made) => {
  const store = await makeStore();
  const id = idOf(bytesOf(100));
  const { grant, authorization } = made(id) as { grant?: string; authorization?: string };
  const headers = { authorization: authorization ?? `Bearer ${grant!}`, "upload-offset": "0" };
  const answer = await fetch(store.url + id, { method: "PATCH", headers, body: bytesOf(100) as BodyInit });
  expect([answer.status, await kindOf(answer)]).toEqual([status, kind]);
  expect(await readdir(path.join(store.dir, "parts"))).toEqual([]);
});

test("library: a clock that is off by a day changes nothing, because Origo's clock counts", async () => {
  const made = await makeStore();
  made.clock.ms = Date.now() - 86_400_000;
  const bytes = bytesOf(100);
  const id = idOf(bytes);
  expect((await send(made, id, bytes, { grant: grantOf(id, {}, made.clock.ms) })).status).toBe(201);
});

test.each([
  ["a changed byte", async (file: string) => void (await flip(file, 2 * MIB))],
  ["a changed first byte", async (file: string) => void (await flip(file, 0))],
  ["a cut file", (file: string) => truncate(file, MIB)],
  ["a file that is gone", (file: string) => rm(file)],
  ["a changed leaf", async (file: string) => void (await flip(`${file}.leaves`, 40))],
  ["leaves that are gone", (file: string) => rm(`${file}.leaves`)],
])("library: %s is found when it is read, and the object is taken out", async (_name, damage) => {
  const made = await makeStore();
  const bytes = bytesOf(3 * MIB);
  const id = idOf(bytes);
  await send(made, id, bytes);
  await made.restart();
  await damage(path.join(made.dir, "objects", id));
  const read = await ask(made, id)
    .then(async (answer) => (answer.status === 200 ? bodyOf(answer) : answer.status))
    .catch(() => "reset");
  expect(["reset", 500]).toContain(read);
  expect(made.library.status()).toMatchObject({ objects: 0, bytes: 0, damagedObjects: 1 });
  expect((await ask(made, id)).status).toBe(404);
  expect(made.logged.filter((line) => line.startsWith("objectDamaged"))).toHaveLength(1);
  expect((await send(made, id, bytes)).status).toBe(201);
  expect((await bodyOf(await ask(made, id))).equals(bytes)).toBe(true);
});

async function flip(file: string, at: number): Promise<void> {
  const handle = await open(file, "r+");
  const byte = Buffer.alloc(1);
  await handle.read(byte, 0, 1, at);
  await handle.write(Buffer.from([byte[0]! ^ 1]), 0, 1, at);
  await handle.close();
}

test("library: what a start finds: whole objects stay, torn ones and strangers go", async () => {
  const made = await makeStore();
  const [kept, cut, bare] = [bytesOf(100, 1), bytesOf(100, 2), bytesOf(100, 3)];
  for (const bytes of [kept, cut, bare]) await send(made, idOf(bytes), bytes);
  const objects = path.join(made.dir, "objects");
  await truncate(path.join(objects, idOf(cut)), 50);
  await rm(path.join(objects, idOf(bare)));
  await writeFile(path.join(objects, "stranger"), "x");
  await writeFile(path.join(made.dir, "parts", "stranger"), "x");
  await made.restart();
  expect(made.library.ids).toEqual([idOf(kept)]);
  expect(await readdir(objects)).toEqual([idOf(kept), `${idOf(kept)}.leaves`]);
  expect(await readdir(path.join(made.dir, "parts"))).toEqual([]);
});

test("library: a second proxy is kept off the folder, and a lock that a kill left is not in the way", async () => {
  const made = await makeStore();
  const second = () => new Library({ dir: made.dir, bytesMax: () => 2 ** 30, log: () => undefined });
  await expect(second().open()).rejects.toThrow(`another proxy uses the library ${made.dir}`);
  made.library.close();
  const script = `require("net").createServer().listen(process.argv[1], () => process.kill(process.pid, "SIGKILL"))`;
  spawnSync(process.execPath, ["-e", script, path.join(made.dir, "lock")]);
  expect(await readdir(made.dir)).toContain("lock");
  const third = second();
  await third.open();
  third.close();
});

test("library: when there is no room, unpinned objects go first, and pinned ones never", async () => {
  const made = await makeStore();
  const [a, b, c] = [bytesOf(100_000, 1), bytesOf(100_000, 2), bytesOf(100_000, 3)];
  made.limits.libraryBytes = 250_000;
  for (const bytes of [a, b]) await send(made, idOf(bytes), bytes);
  const full = await send(made, idOf(c), c);
  expect([full.status, await kindOf(full)]).toEqual([507, "libraryFull"]);
  expect(made.library.ids).toEqual([idOf(a), idOf(b)]);
  expect(made.library.freeBytes).toBeLessThan(100_000);
  made.library.pin([idOf(a), idOf(b)], false);
  expect(made.library.freeBytes).toBe(made.limits.libraryBytes);
  await ask(made, idOf(a));
  expect((await send(made, idOf(c), c)).status).toBe(201);
  expect(made.library.ids).toEqual([idOf(a), idOf(c)]);
  const large = await send(made, idOf(bytesOf(300_000)), bytesOf(300_000));
  expect([large.status, made.library.ids]).toEqual([507, [idOf(a), idOf(c)]]);
  // HEAD with a grant means that a publication is to have the object.
  await offsetOf(made, idOf(a));
  expect((await send(made, idOf(b), b)).status).toBe(507);
});

test("library: an object of 10 GB is proven and read at its end, and its tree leaves the event loop free", async () => {
  const made = await makeStore();
  const bytes = 10 * 2 ** 30 + 1;
  const block = sha256(new Uint8Array(16_384));
  const leaves = Buffer.alloc((32 * (bytes - 1)) / 16_384 + 32).fill(block);
  sha256(new Uint8Array(1)).forEach((byte, at) => (leaves[leaves.length - 32 + at] = byte));
  const id = objectId({ root: hexOf((await treeOfLeaves(leaves)).root), bytes });
  const file = path.join(made.dir, "objects", id);
  await writeFile(file, "");
  await truncate(file, bytes);
  await writeFile(`${file}.leaves`, leaves);
  await made.restart();
  const turns = setInterval(() => turnCount++, 1);
  let turnCount = 0;
  const last = await ask(made, id, { range: `bytes=${bytes - 100_000}-` });
  clearInterval(turns);
  expect(turnCount).toBeGreaterThan(20);
  expect(last.headers.get("content-range")).toBe(`bytes ${bytes - 100_000}-${bytes - 1}/${bytes}`);
  expect((await bodyOf(last)).equals(Buffer.alloc(100_000))).toBe(true);
  const piece = pieceCountOf(bytes) - 1;
  const proof = await bodyOf(await fetch(`${made.url}${id}/proof?first=${piece}&last=${piece}`));
  expect(checkProof(parseObjectId(id)!, piece, proof, sha256)).toBeDefined();
  const whole = await ask(made, id);
  expect(whole.headers.get("content-length")).toBe(String(bytes));
  await whole.body!.cancel();
});

/** A file system of 2 MB; undefined where the machine does not let this process mount one. */
async function smallDisk(): Promise<string | undefined> {
  const folder = await makeFolder();
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", folder]);
  if (status !== 0) return undefined;
  closing.push(() => void spawnSync("umount", [folder]));
  return folder;
}

test("library: a disk that fills up during an upload refuses it, and nothing is half taken", async () => {
  const disk = await smallDisk();
  if (disk === undefined) return console.warn("not tested: this machine lets nobody mount a small disk");
  const made = await makeStore(0, path.join(disk, "library"));
  const [kept, bytes] = [bytesOf(100_000, 2), bytesOf(1_500_000)];
  const id = idOf(bytes);
  await send(made, idOf(kept), kept);
  const headers = { authorization: `Bearer ${grantOf(id)}`, "upload-offset": "0", "content-length": bytes.length };
  const request = http.request(made.url + id, { method: "PATCH", headers });
  const answered = new Promise<http.IncomingMessage>((resolve) => request.once("response", resolve));
  request.on("error", () => undefined).write(bytes.subarray(0, 500_000));
  while ((await offsetOf(made, id)) !== "500000") await new Promise((resolve) => setTimeout(resolve, 5));
  await writeFile(path.join(disk, "filler"), Buffer.alloc(1_200_000));
  request.end(bytes.subarray(500_000));
  expect((await answered).statusCode).toBe(507);
  expect(await readdir(path.join(disk, "library", "parts"))).toEqual([]);
  const soon = await send(made, id, bytes);
  expect([soon.status, await kindOf(soon)]).toEqual([507, "libraryFull"]);
  expect((await bodyOf(await ask(made, idOf(kept)))).equals(kept)).toBe(true);
  await rm(path.join(disk, "filler"));
  expect((await send(made, id, bytes)).status).toBe(201);
});

test("library: one upload at a time writes an object, and uploads are counted", async () => {
  const made = await makeStore();
  const bytes = bytesOf(100_000);
  const id = idOf(bytes);
  const begin = (of: string): net.Socket => {
    const { port, hostname } = new URL(made.url);
    const socket = net.connect(Number(port), hostname);
    socket.write(
      `PATCH /v1/objects/${of} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${grantOf(of)}\r\n` +
        `Upload-Offset: 0\r\nContent-Length: 100000\r\n\r\nx`,
    );
    return socket;
  };
  const socket = begin(id);
  while ((await offsetOf(made, id)) !== "1") await new Promise((resolve) => setTimeout(resolve, 5));
  const second = await send(made, id, bytes);
  expect([second.status, await kindOf(second)]).toEqual([503, "proxyBusy"]);
  made.limits.addressUploads = 1;
  const other = await send(made, idOf(bytesOf(5)), bytesOf(5));
  expect([other.status, await kindOf(other)]).toEqual([503, "proxyBusy"]);
  socket.destroy();
  let status = 503;
  while (status === 503) {
    const answer = await send(made, id, bytes.subarray(1), { offset: 1 });
    status = answer.status;
  }
  // The first upload had begun with another byte.
  expect(status).toBe(422);
});

test("library: pages of every origin may read and upload, and no page runs under the proxy's name", async () => {
  const made = await makeStore();
  const bytes = Buffer.from("<script>alert(1)</script>");
  const id = idOf(bytes);
  const preflight = await fetch(made.url + id, {
    method: "OPTIONS",
    headers: { origin: "https://page.example", "access-control-request-method": "PATCH" },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-methods")).toContain("PATCH");
  expect(preflight.headers.get("access-control-allow-headers")).toMatch(/Authorization.*Upload-Offset/);
  await send(made, id, bytes);
  const page = await ask(made, id, { origin: "https://page.example" }, "?type=text/html");
  expect(page.headers.get("content-security-policy")).toBe("sandbox; default-src 'none'");
  expect(page.headers.get("access-control-allow-origin")).toBe("*");
  for (const type of ["html", "text/html\r\nx: y", `text/${"x".repeat(100)}`])
    expect((await ask(made, id, {}, `?type=${encodeURIComponent(type)}`)).status).toBe(400);
});

test("library: proofs beyond the object or too many at once are refused", async () => {
  const made = await makeStore();
  const bytes = bytesOf(2 * MIB);
  const id = idOf(bytes);
  await send(made, id, bytes);
  const proof = await bodyOf(await fetch(`${made.url}${id}/proof?first=0&last=1`));
  expect(proof.equals(Buffer.concat([treeOf(bytes).proofOf(0), treeOf(bytes).proofOf(1)]))).toBe(true);
  for (const query of ["first=0&last=2", "first=1&last=0", "first=0", "first=-1&last=0", "first=a&last=b"])
    expect([query, await kindOf(await fetch(`${made.url}${id}/proof?${query}`))]).toEqual([query, "badRange"]);
});
