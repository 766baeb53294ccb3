/** The library in proxies that run as processes, with a stand-in for Origo: kills, all modes, and what Origo hears. */
import { spawn, type ChildProcess } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { bytesOf, idOf } from "../../test/objects";

const MAIN = path.resolve(__dirname, "../../dist/main.js");
const TEST = path.resolve(__dirname, "../../test");
const ROOT = path.resolve(__dirname, "../../..");

jest.setTimeout(120_000);

const children: ChildProcess[] = [];
let folder: string;

beforeAll(() => {
  if (!existsSync(MAIN)) throw new Error(`${MAIN} is missing: run npm run build first`);
});
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "library-"));
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

interface Started {
  child: ChildProcess;
  line: Promise<string>;
  err: () => string;
}

function start(args: string[], env: Record<string, string> = {}): Started {
  const child = spawn(process.execPath, args, {
    cwd: ROOT,
    env: { PATH: process.env["PATH"], ...env },
    stdio: ["pipe", "pipe", "pipe"],
  });
  children.push(child);
  let err = "";
  child.stderr.on("data", (text) => (err += text));
  const line = new Promise<string>((resolve, reject) => {
    createInterface({ input: child.stdout }).once("line", resolve);
    child.once("close", () => reject(new Error(`the process ended: ${err}`)));
  });
  return { child, line, err: () => err };
}

const sha256 = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");

test("library: kills lose no acknowledged object, and nobody gets a torn one (seed 7)", async () => {
  const line = await start([path.join(TEST, "kills.mjs"), "--kills", "3", "--objects", "20", "--seed", "7"]).line;
  expect(JSON.parse(line)).toMatchObject({ objects: 20, kills: 3, damagedObjects: 0, faults: [] });
});

interface Seen {
  objects: string[];
  served: Record<string, number>;
  status: { library: Record<string, number> };
}

/** Origo's stand-in, asked over its standard input. */
async function startOrigo() {
  const { child, line } = start([path.join(TEST, "origo-main.mjs")]);
  const lines = createInterface({ input: child.stdout! });
  const ask = async <T>(question: object): Promise<T> => {
    const answer = new Promise<string>((resolve) => lines.once("line", resolve));
    child.stdin!.write(`${JSON.stringify(question)}\n`);
    return JSON.parse(await answer) as T;
  };
  const { url } = JSON.parse(await line) as { url: string };
  return {
    url,
    grantOf: (id: string) => ask<string>({ grant: id }),
    forget: (id: string) => ask({ forget: id }),
    seen: () => ask<Seen>({ seen: true }),
  };
}

async function startProxy(origoUrl: string, env: Record<string, string> = {}): Promise<string> {
  const { line } = start([MAIN, "--library", path.join(folder, "library"), "--coder", "cpu"], {
    ORIGO_URL: origoUrl,
    DATA_DIR: folder,
    PROXY_NAME: "p",
    WEBTRANSPORT_PORT: "off",
    ...env,
  });
  return (JSON.parse(await line) as { url: string }).url;
}

/** Repeats the upload until the proxy has its keys from Origo. */
async function upload(url: string, id: string, bytes: Uint8Array, grant: string): Promise<number> {
  for (;;) {
    const headers = { authorization: `Bearer ${grant}`, "upload-offset": "0" };
    const { status } = await fetch(`${url}/v1/objects/${id}`, { method: "PATCH", headers, body: bytes as BodyInit });
    if (status !== 403) return status;
  }
}

test("library: an object is served in sessions and over HTTP, and Origo hears of it", async () => {
  const origo = await startOrigo();
  const url = await startProxy(origo.url, { LIBRARY_BYTES: "4000000" });
  const bytes = bytesOf(2_500_000);
  const id = idOf(bytes);
  expect(await upload(url, id, bytes, await origo.grantOf(id))).toBe(201);
  for (const mode of ["coded", "coded-mutp", "uncoded-mutp"]) {
    const line = await start([path.join(TEST, "peer.mjs"), url, `object:${id}`, mode]).line;
    expect(JSON.parse(line)).toMatchObject({ status: 200, bytes: bytes.length, sha256: sha256(bytes) });
  }
  const missing = await start([path.join(TEST, "peer.mjs"), url, `object:${idOf(bytesOf(5))}`, "coded"]).line;
  expect(JSON.parse(missing)).toMatchObject({ failure: { kind: "objectMissing" } });
  const fetched = await fetch(`${url}/v1/fetch?url=object:${id}`, {
    headers: { "tributary-client": "test", range: "bytes=1000000-1999999" },
  });
  expect([fetched.status, sha256(Buffer.from(await fetched.arrayBuffer()))]).toEqual([
    206,
    sha256(bytes.subarray(1_000_000, 2_000_000)),
  ]);
  let seen = await origo.seen();
  while ((seen.status?.library["servedBytes"] ?? 0) < 8_500_000) seen = await origo.seen();
  expect(seen.objects).toEqual([id]);
  while ((seen.served[id] ?? 0) < seen.status.library["servedBytes"]!) seen = await origo.seen();
  expect(Object.keys(seen.served)).toEqual([id]);
  expect(seen.status.library).toMatchObject({ objects: 1, bytes: bytes.length, takenBytes: bytes.length });
  const other = bytesOf(2_500_000, 2);
  expect(await upload(url, idOf(other), other, await origo.grantOf(idOf(other)))).toBe(507);
  await origo.forget(id);
  while ((await upload(url, idOf(other), other, await origo.grantOf(idOf(other)))) !== 201) await origo.seen();
  while (!seen.objects.includes(idOf(other))) seen = await origo.seen();
  expect(seen.objects).toEqual([idOf(other)]);
});
