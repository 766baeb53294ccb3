/**
 * Strangers attack a real Origo for seconds, each with what a page or a script can send without a login. Meanwhile
 * `/healthz` and the list of proxies must answer, memory and disk must stay bounded, and a client at another address
 * must still be able to store its records. Each test prints what it measured.
 */
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync, statSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import http from "node:http";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { gzipSync } from "node:zlib";
import { repoRoot, startService, type Service } from "@tributary/lab-stack";
import { recordOf } from "../../contract/test/samples";

const ATTACK_MS = 3000;
/** Bounds that hold on a slow machine: Origo takes about 120 MB when it rests. */
const HEALTH_MS_MAX = 2500;
const MEMORY_BYTES_MAX = 600e6;
/** Three checks of a password, of which two are a stranger's. */
const OWNER_MS_MAX = 10_000;

let folder: string;
let origo: Service;

const startAttacked = (env: Record<string, string>): Promise<Service> =>
  startService({
    name: "origo",
    script: path.join(repoRoot, "origo/dist/main.js"),
    env: { HOST: "127.0.0.1", PORT: "0", DATA_DIR: folder, ...env },
    logFile: path.join(folder, "origo.log"),
  });

beforeEach(async () => {
  folder = await mkdtemp(path.join(os.tmpdir(), "tributary-attack-"));
  origo = await startAttacked({ LOGIN: "required", TRUSTED_HOPS: "1" });
});
afterEach(async () => {
  await origo.kill();
  await rm(folder, { recursive: true, force: true });
});

interface Answer {
  status: number;
  body: string;
  retryAfter: string | undefined;
}

/** `from` is the address that the balancer in front of Origo would name. Resolves to status 0 when it breaks. */
function send(agent: http.Agent, url: string, body?: Buffer, from = "198.51.100.66", gzip = false): Promise<Answer> {
  return new Promise((resolve) => {
    const headers = {
      "x-forwarded-for": from,
      ...(body && { "content-type": "application/json", "content-length": String(body.length) }),
      ...(gzip && { "content-encoding": "gzip" }),
    };
    const request = http.request(origo.url + url, { agent, method: body ? "POST" : "GET", headers }, (response) => {
      let text = "";
      response.on("data", (chunk: Buffer) => (text += chunk.toString()));
      response.on("close", () =>
        resolve({ status: response.statusCode ?? 0, body: text, retryAfter: response.headers["retry-after"] }),
      );
    });
    request.on("error", () => resolve({ status: 0, body: "", retryAfter: undefined }));
    request.end(body);
  });
}

const memoryOf = (pid: number): number =>
  Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024;

const diskBytes = (): number =>
  ["origo.duckdb", "origo.duckdb.wal"]
    .map((name) => path.join(folder, name))
    .reduce((sum, file) => sum + (existsSync(file) ? statSync(file).size : 0), 0);

/** Sends what `next` makes over `connections` connections at once, and asks for the health meanwhile. */
async function attack(
  connections: number,
  next: () => { url: string; body: Buffer; gzip?: boolean; from?: string },
): Promise<{ healthMsMax: number; listMsMax: number; memoryBytes: number; statuses: Record<string, number> }> {
  const agent = new http.Agent({ keepAlive: true, maxSockets: connections });
  const others = new http.Agent({ keepAlive: true });
  const untilMs = performance.now() + ATTACK_MS;
  const statuses: Record<string, number> = {};
  const attackers = Array.from({ length: connections }, async () => {
    while (performance.now() < untilMs) {
      const { url, body, gzip, from } = next();
      const { status } = await send(agent, url, body, from, gzip);
      statuses[status] = (statuses[status] ?? 0) + 1;
      if (status === 0) await after(20);
    }
  });
  const slowest = async (url: string): Promise<number> => {
    let msMax = 0;
    while (performance.now() < untilMs) {
      const startMs = performance.now();
      const { status } = await send(others, url, undefined, `203.0.113.${Math.floor(Math.random() * 256)}`);
      msMax = Math.max(msMax, status === 200 ? performance.now() - startMs : Infinity);
      await after(50);
    }
    return msMax;
  };
  const [healthMsMax, listMsMax] = await Promise.all([slowest("/healthz"), slowest("/v1/proxies?count=4")]);
  await Promise.all(attackers);
  agent.destroy();
  others.destroy();
  return { healthMsMax, listMsMax, memoryBytes: memoryOf(origo.pid), statuses };
}

function report(name: string, seen: Awaited<ReturnType<typeof attack>>): void {
  const { healthMsMax, listMsMax, memoryBytes, statuses } = seen;
  const mb = (bytes: number): string => `${(bytes / 1e6).toFixed(0)} MB`;
  console.log(
    `${name}: health ${healthMsMax.toFixed(0)} ms at most, list ${listMsMax.toFixed(0)} ms, ` +
      `memory ${mb(memoryBytes)}, disk ${mb(diskBytes())}, answers ${JSON.stringify(statuses)}`,
  );
}

const agentOfOthers = new http.Agent();
const storeOne = (from: string): Promise<Answer> =>
  send(agentOfOthers, "/v1/records", Buffer.from(JSON.stringify({ records: [recordOf()] })), from);

function hold(seen: Awaited<ReturnType<typeof attack>>): void {
  expect(seen.healthMsMax).toBeLessThan(HEALTH_MS_MAX);
  expect(seen.listMsMax).toBeLessThan(HEALTH_MS_MAX);
  expect(seen.memoryBytes).toBeLessThan(MEMORY_BYTES_MAX);
}

const filled = (item: string, bytes: number): string => `${item},`.repeat(Math.floor(bytes / (item.length + 1)));
const ID = randomUUID();
const BOMBS = [
  { name: "empty traces", url: "/v1/traces", text: `{"traces":[${filled("{}", 3.9e6)}{}]}` },
  {
    name: "bad packets",
    url: "/v1/traces",
    text: `{"traces":[{"id":"${ID}","generationCount":1,"feedback":[],"packets":[${filled("[]", 3.9e5)}[]]}]}`,
  },
  { name: "deep lists", url: "/v1/traces", text: "[".repeat(1.9e6) + "]".repeat(1.9e6) },
  { name: "empty records", url: "/v1/records", text: `{"records":[${filled("{}", 0.99e6)}{}]}` },
  {
    name: "unknown fields",
    url: "/v1/errors",
    text: `{${Array.from({ length: 80_000 }, (_, index) => `"k${index}":0`).join(",")}}`,
  },
];

/** Compressed JSON is refused where anyone may send a body, except by the intake. */
const LOGIN_BOMB = { name: "deep login", url: "/v1/login", text: "[".repeat(499_000) + "]".repeat(499_000) };

const bombs = [...BOMBS, LOGIN_BOMB].map(({ name, url, text }) => ({
  name,
  url,
  body: gzipSync(text, { level: 9 }),
  gzip: true,
}));
const someAddress = (): string => `192.0.2.${Math.floor(Math.random() * 256)}`;
const SENDERS: [name: string, from: () => string][] = [
  ["one address", () => "198.51.100.66"],
  ["256 addresses", someAddress],
];

test.each(SENDERS)("bombs of kilobytes from %s do not stop Origo", async (name, from) => {
  let count = 0;
  const seen = await attack(16, () => ({ ...bombs[count++ % bombs.length]!, from: from() }));
  report(`bombs from ${name} (${bombs.map((bomb) => `${bomb.name} ${bomb.body.length} bytes`).join(", ")})`, seen);
  hold(seen);
});

test("compressed JSON is refused unread where anyone may send JSON, and so is a long body", async () => {
  const agent = new http.Agent();
  const long = Buffer.from(JSON.stringify({ name: "x".repeat(20_000), password: "x" }));
  const answers = await Promise.all([
    send(agent, LOGIN_BOMB.url, gzipSync(LOGIN_BOMB.text), undefined, true),
    send(agent, "/v1/login", gzipSync('{"name":"ada","password":"x"}'), undefined, true),
    send(agent, "/v1/setup", gzipSync('{"name":"ada","password":"x"}'), undefined, true),
    send(agent, "/v1/login", long),
  ]);
  expect(answers.map(({ status }) => status)).toEqual([415, 415, 415, 413]);
});

test("a person who asks hundreds of questions and exports at once holds nobody up", async () => {
  await origo.kill();
  origo = await startAttacked({ LOGIN: "off", TRUSTED_HOPS: "0" });
  const agent = new http.Agent({ keepAlive: true, maxSockets: 300 });
  const records = Buffer.from(JSON.stringify({ records: Array.from({ length: 200 }, () => recordOf()) }));
  expect((await send(agent, "/v1/records", records)).status).toBe(202);
  const question = Buffer.from(JSON.stringify({ metric: "durationMs", field: "source", a: "cli", b: "library" }));
  const asked = [
    ...Array.from({ length: 200 }, () => send(agent, "/v1/query/difference", question)),
    ...Array.from({ length: 32 }, () => send(agent, "/v1/export?format=csv")),
  ];
  const stored = await storeOne("");
  const answers = await Promise.all(asked);
  agent.destroy();
  const count = (part: Answer[], status: number): number => part.filter((answer) => answer.status === status).length;
  const [questions, exports] = [answers.slice(0, 200), answers.slice(200)];
  console.log(`at once: ${count(questions, 200)} of 200 questions and ${count(exports, 200)} of 32 exports answered`);
  expect(stored.status).toBe(202);
  // Without a limit all are answered.
  expect(count(questions, 429)).toBeGreaterThan(10);
  expect(count(answers, 200) + count(answers, 429)).toBe(answers.length);
});

test.each(SENDERS)("a flood of valid records from %s does not fill the disk or stop Origo", async (name, from) => {
  const comment = "x".repeat(900);
  const texts = Array.from({ length: 30 }, () =>
    JSON.stringify({ records: Array.from({ length: 200 }, () => recordOf({ id: randomUUID(), comment })) }),
  );
  const seen = await attack(16, () => {
    const text = texts[Math.floor(Math.random() * texts.length)]!;
    const body = Buffer.from(text.replace(/"id":"[0-9a-f]{8}-/g, () => `"id":"${randomUUID().slice(0, 8)}-`));
    return { url: "/v1/records", body, from: from() };
  });
  report(`records from ${name} (${((diskBytes() / ATTACK_MS) * 1e-3).toFixed(1)} MB/s to disk)`, seen);
  expect(seen.statuses[202]).toBeGreaterThan(0);
  hold(seen);
});

test("another address stores its records while one floods, and the flooder is told when to come back", async () => {
  const body = Buffer.from(JSON.stringify({ records: [recordOf({ comment: "x".repeat(900) })] }));
  const refused: Answer[] = [];
  const agent = new http.Agent({ keepAlive: true, maxSockets: 16 });
  for (let round = 0; round < 100 && refused.length === 0; round++) {
    const answers = await Promise.all(Array.from({ length: 64 }, () => send(agent, "/v1/records", body)));
    refused.push(...answers.filter(({ status }) => status !== 202));
  }
  agent.destroy();
  expect(refused[0]).toMatchObject({ status: 429, body: expect.stringContaining("tooFast") as string });
  expect(Number(refused[0]?.retryAfter)).toBeGreaterThan(0);
  expect((await storeOne("203.0.113.9")).status).toBe(202);
});

const [TEXT, PING] = [0x81, 0x89];

/** WebSocket frames of a client (RFC 6455 section 5.2) with these texts, as often as they fit into 64 KiB. */
function framesOf(texts: string[], type = TEXT): Buffer {
  const frames = texts.map((text) => {
    const length = text.length < 126 ? [0x80 | text.length] : [0x80 | 126, text.length >> 8, text.length & 255];
    return Buffer.concat([Buffer.from([type, ...length, 0, 0, 0, 0]), Buffer.from(text)]);
  });
  const once = Buffer.concat(frames);
  return Buffer.concat(Array<Buffer>(Math.ceil(65_536 / once.length)).fill(once));
}

/**
 * Writes the frames as fast as Origo reads them, until it cuts the connection, and reads no answer. Returns the bytes
 * that Origo took.
 */
function floodOnce(frames: Buffer, isOver: () => boolean): Promise<number> {
  const { hostname, port } = new URL(origo.url);
  return new Promise((resolve) => {
    const socket = net.connect({ host: hostname, port: Number(port) });
    const write = (): void => {
      while (socket.write(frames)) if (isOver()) break;
      if (isOver()) socket.destroy();
    };
    socket.on("error", () => undefined).on("close", () => resolve(socket.bytesWritten));
    socket.on("drain", write).once("data", () => {
      socket.pause();
      write();
    });
    const key = "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
    socket.write(
      `GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: origo\r\nX-Forwarded-For: 198.51.100.66\r\n` +
        `Connection: Upgrade\r\nUpgrade: websocket\r\n${key}\r\n\r\n`,
    );
  });
}

const HELLO = JSON.stringify(["hello", { name: "x" }, { publicKey: "A".repeat(43), signature: "B".repeat(86) }]);

test.each([
  ["calls of the dashboard's namespace", framesOf(["40/dashboard,"])],
  ["calls of unknown namespaces", framesOf(["40/x,"])],
  ["hellos of false proxies", framesOf(["40/proxies,", ...Array<string>(50).fill(`42/proxies,1${HELLO}`)])],
  ["messages of the largest size", framesOf([`42/proxies,${"x".repeat(16_000)}`])],
  ["pings without a text", framesOf([""], PING)],
  ["pings with the longest text", framesOf(["x".repeat(125)], PING)],
])("a flood over socket.io (%s) holds nobody up", async (name, frames) => {
  let [connections, bytes] = [0, 0];
  const untilMs = performance.now() + ATTACK_MS;
  const floods = Array.from({ length: 8 }, async () => {
    for (; performance.now() < untilMs; connections++)
      bytes += await floodOnce(frames, () => performance.now() > untilMs);
  });
  const seen = await attack(0, () => ({ url: "", body: Buffer.from("") }));
  await Promise.all(floods);
  report(`${name}: ${connections} connections were cut, ${(bytes / 1e6).toFixed(0)} MB written`, seen);
  hold(seen);
});

test("guesses at passwords from everywhere hold nobody up, and the owner signs in meanwhile", async () => {
  let token: string | undefined;
  for (; token === undefined; await after(50))
    token = /setup=([\w-]+)/.exec(readFileSync(path.join(folder, "origo.log"), "utf8"))?.[1];
  const owner = { name: "ada", password: "correct horse battery" };
  const from = { "x-forwarded-for": "203.0.113.9", "content-type": "application/json" };
  const post = (url: string, body: object, cookie = ""): Promise<Response> =>
    fetch(origo.url + url, { method: "POST", headers: { ...from, cookie }, body: JSON.stringify(body) });
  const device = (await post("/v1/setup", { ...owner, token })).headers
    .getSetCookie()
    .map((cookie) => cookie.split(";")[0])
    .find((cookie) => cookie?.startsWith("tributary_device="));
  const isFirst = (): boolean => Math.random() < 0.5;
  const guessing = attack(32, () => ({
    url: "/v1/login",
    body: Buffer.from(JSON.stringify({ name: isFirst() ? "ada" : randomUUID(), password: randomUUID() })),
    from: someAddress(),
  }));
  await after(ATTACK_MS / 3);
  const startMs = performance.now();
  const { status } = await post("/v1/login", owner, device);
  const ownerMs = performance.now() - startMs;
  const seen = await guessing;
  report(`guesses, and the owner was signed in after ${ownerMs.toFixed(0)} ms`, seen);
  expect(status).toBe(200);
  expect(ownerMs).toBeLessThan(OWNER_MS_MAX);
  hold(seen);
});

test("bodies that stay open do not take the memory", async () => {
  const piece = Buffer.from("[0,0,0],".repeat(100_000));
  const statuses: number[] = [];
  const requests = Array.from({ length: 120 }, (_, index) => {
    const headers = { "content-type": "application/json", "x-forwarded-for": `192.0.2.${index % 12}` };
    const request = http.request(`${origo.url}/v1/traces`, { method: "POST", headers }, (response) => {
      statuses.push(response.statusCode ?? 0);
      response.resume();
    });
    request.on("error", () => undefined);
    request.write('{"traces":[');
    request.write(piece);
    return request;
  });
  await after(ATTACK_MS);
  const memoryBytes = memoryOf(origo.pid);
  console.log(`open bodies: ${statuses.length} of 120 refused, memory ${(memoryBytes / 1e6).toFixed(0)} MB`);
  expect(statuses.every((status) => status === 429 || status === 503)).toBe(true);
  expect(statuses.length).toBeGreaterThan(50);
  expect(memoryBytes).toBeLessThan(MEMORY_BYTES_MAX);
  expect((await send(agentOfOthers, "/healthz", undefined, "203.0.113.9")).status).toBe(200);
  for (const request of requests) request.destroy();
});

test("a full database refuses records and keeps the ones it has", async () => {
  await origo.kill();
  origo = await startAttacked({ LOGIN: "off", TRUSTED_HOPS: "0" });
  expect((await storeOne("")).status).toBe(202);
  const { csrfToken } = (await (await fetch(`${origo.url}/v1/login`)).json()) as { csrfToken: string };
  const changed = await fetch(`${origo.url}/v1/config`, {
    method: "PUT",
    headers: { "content-type": "application/json", "x-csrf-token": csrfToken },
    body: JSON.stringify({ baseVersion: 0, values: { "origo.storageBytesMax": 1 }, reason: "test" }),
  });
  expect(changed.status).toBe(200);
  expect(await storeOne("")).toMatchObject({
    status: 503,
    body: expect.stringContaining("storageFull") as string,
    retryAfter: "30",
  });
  const { records } = (await (await fetch(`${origo.url}/v1/records`)).json()) as { records: unknown[] };
  expect(records).toHaveLength(1);
});
