/**
 * Kills a proxy again and again (SIGKILL) while it takes objects, and starts it again with the same library. Checks
 * that no acknowledged object is lost and that nobody ever gets wrong bytes:
 *   npm run kills -- --kills 50 --objects 200 --seed 1
 * A kill does not take the machine's memory of written pages, so this says nothing of a loss of power.
 */
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { grantOf, startOrigo } from "./origo.mjs";

const require = createRequire(import.meta.url);
const { hexOf, LeafMaker, objectId, Tree } = require("@tributary/contract/tree");
const { xorshift128 } = require("@tributary/protocol");
const { hash } = require("node:crypto");

const MAIN = path.resolve(import.meta.dirname, "../dist/main.js");
const UPLOADS_AT_ONCE = 4;
const OBJECT_BYTES_MAX = 2 ** 20;
/** The longest time from an acknowledgement to the kill that follows it. */
const KILL_MS_MAX = 60;

const options = { kills: { type: "string" }, objects: { type: "string" }, seed: { type: "string" } };
const { values } = parseArgs({ options });
const [killCount, objectCount, seed] = [
  Number(values.kills ?? 50),
  Number(values.objects ?? 200),
  Number(values.seed ?? 1),
];
const rng = xorshift128(seed);
const upTo = (max) => rng() % (max + 1);
const sha256 = (bytes) => hash("sha256", bytes, "buffer");

function makeObject(index) {
  // Every length around one and two blocks, then any.
  const edges = [0, 1, 16_383, 16_384, 16_385, 32_768];
  const bytes = Buffer.alloc(edges[index] ?? upTo(OBJECT_BYTES_MAX));
  for (let at = 0; at + 4 <= bytes.length; at += 4) bytes.writeUInt32LE(rng(), at);
  const leaves = new LeafMaker(sha256);
  leaves.update(bytes);
  const root = hexOf(new Tree(leaves.finish(), sha256).root);
  return { id: objectId({ root, bytes: bytes.length }), bytes };
}

const objects = Array.from({ length: objectCount }, (_, index) => makeObject(index));
const waiting = [...objects];
const acknowledged = [];
const faults = [];
const counts = { kills: 0, resumed: 0, reads: 0 };
const folder = await mkdtemp(path.join(tmpdir(), "kills-"));
const origo = await startOrigo();
let proxy;
let isOver = false;

async function startProxy() {
  const child = spawn(process.execPath, [MAIN, "--library", path.join(folder, "library"), "--coder", "cpu"], {
    env: { PATH: process.env.PATH, ORIGO_URL: origo.url, DATA_DIR: folder, WEBTRANSPORT_PORT: "off", PROXY_NAME: "p" },
    stdio: ["ignore", "pipe", "pipe"],
  });
  child.stderr.setEncoding("utf8").on("data", (text) => {
    if (/objectDamaged|internalError/.test(text)) faults.push(`the proxy logs ${text.trim()}`);
  });
  const line = await new Promise((resolve) => createInterface({ input: child.stdout }).once("line", resolve));
  proxy = { child, url: `${JSON.parse(line).url}/v1/objects/` };
}

/** Uploads what is missing of the object, in parts. True if the proxy has acknowledged it. */
async function upload({ id, bytes }) {
  const headers = { authorization: `Bearer ${grantOf(id)}` };
  const head = await fetch(proxy.url + id, { method: "HEAD", headers });
  if (head.status === 200) return true;
  if (head.status !== 204) return false;
  const offset = Number(head.headers.get("upload-offset"));
  if (offset > 0) counts.resumed++;
  const end = Math.min(bytes.length, offset + Math.max(1, upTo(bytes.length)));
  const sent = { ...headers, "upload-offset": String(offset) };
  const answer = await fetch(proxy.url + id, { method: "PATCH", headers: sent, body: bytes.subarray(offset, end) });
  const text = await answer.text();
  if (![201, 204, 403, 409, 503].includes(answer.status)) faults.push(`PATCH ${id}: ${answer.status} ${text}`);
  return answer.status === 201;
}

async function uploader() {
  for (let object = waiting.shift(); object; object = waiting.shift()) {
    while (!(await upload(object).catch(() => false))) await sleep(5);
    acknowledged.push(object);
  }
}

/** An object that was acknowledged is there. Any other is not there or is right. */
async function check({ id, bytes }, mustBeThere) {
  const answer = await fetch(proxy.url + id);
  const body = Buffer.from(await answer.arrayBuffer());
  counts.reads++;
  if (answer.status === 200 ? !body.equals(bytes) : mustBeThere || answer.status !== 404)
    faults.push(`GET ${id}: ${answer.status}, ${body.length} bytes, acknowledged: ${mustBeThere}`);
}

async function reader() {
  while (!isOver) {
    // Reads that a kill cuts say nothing.
    await check(objects[upTo(objects.length - 1)], false).catch(() => undefined);
    await sleep(10);
  }
}

await startProxy();
const work = Promise.all(Array.from({ length: UPLOADS_AT_ONCE }, uploader));
const reading = reader();
for (; counts.kills < killCount; counts.kills++) {
  const goal = Math.floor(((counts.kills + 1) * (objectCount - UPLOADS_AT_ONCE)) / (killCount + 1));
  while (acknowledged.length < goal) await sleep(1);
  await sleep(upTo(KILL_MS_MAX));
  const ended = new Promise((resolve) => proxy.child.once("close", resolve));
  proxy.child.kill("SIGKILL");
  await ended;
  const promised = [...acknowledged];
  await startProxy();
  for (const object of promised.slice(-8)) await check(object, true);
}
await work;
isOver = true;
await reading;
for (const object of objects) await check(object, true);
while (origo.seen.objects.size < objectCount && faults.length === 0) await sleep(50);
proxy.child.kill("SIGKILL");
await origo.close();
await rm(folder, { recursive: true, force: true });
const damagedObjects = origo.seen.status?.library?.damagedObjects ?? 0;
process.stdout.write(`${JSON.stringify({ seed, objects: objectCount, ...counts, damagedObjects, faults })}\n`);
process.exit(faults.length + damagedObjects > 0 ? 1 : 0);
