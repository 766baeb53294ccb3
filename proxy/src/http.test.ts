/** The HTTP endpoint with the real egress, chunks and shaper behind it, asked over real sockets. */
import type { Rejection } from "@tributary/contract";
import { createHash } from "node:crypto";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { ChunkStore } from "./chunks";
import { Clients } from "./clients";
import { STAND_INS_MAX } from "./download-readers";
import { Egress } from "./egress/fetch";
import { makeApp, type HttpOptions } from "./http";
import type { Log } from "./log";
import { Shaper } from "./shaper";
import type { Allowance } from "./token";

const CLIENT = { headers: { "tributary-client": "test" } };
const EXTENSION = "chrome-extension://abcdefghijklmnop";
const limits = { addressBytes: 1e9, addressOffers: 100, controlPerMille: 400 };
const clients = new Clients(() => limits);
const RESOURCE = Buffer.from(Array.from({ length: 300_000 }, (_, index) => (index * 7) % 251));
let fetches: string[] = [];
let closedEarly = 0;
let finishSlow = (): unknown => undefined;
const finishPrivate: (() => void)[] = [];

const origin = http.createServer((request, response) => {
  fetches.push(request.url!);
  response.on("close", () => void (response.writableFinished || closedEarly++));
  const range = /bytes=(\d+)-(\d+)/.exec(request.headers.range ?? "");
  const common = {
    "content-type": "video/mp4",
    etag: '"e"',
    "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT",
    "access-control-allow-origin": "http://page.test",
    "cache-control": request.url === "/unknown-age" ? "no-cache" : "public, max-age=60",
    "set-cookie": "a=b",
  };
  if (request.url === "/404") response.writeHead(404, { "content-length": 4 }).end("gone");
  else if (request.headers["if-none-match"] === '"e"') response.writeHead(304, { etag: '"e"' }).end();
  else if (request.url === "/short")
    response.writeHead(200, { "content-length": 1000 }).write("abc", () => response.destroy());
  else if (request.url === "/chunked") response.writeHead(200, common).write(RESOURCE, () => response.end("end"));
  else if (request.url === "/endless") {
    const timer = setInterval(() => response.write(Buffer.alloc(10_000)), 2);
    response.on("close", () => clearInterval(timer));
  } else if (request.url === "/slow") {
    response.writeHead(200, { "content-length": 2000 }).write(Buffer.alloc(1000));
    finishSlow = () => response.end(Buffer.alloc(1000));
  } else if (request.url === "/private") {
    // Stays open until the test has opened all its requests.
    response.writeHead(200, { "content-length": 2000, "cache-control": "private" });
    response.write(Buffer.alloc(1000, fetches.length));
    finishPrivate.push(() => response.end(Buffer.alloc(1000, fetches.length)));
  } else if (request.url === "/personal") {
    const headers = { "content-length": 2000, "cache-control": "no-store" };
    response.writeHead(200, headers).end(Buffer.alloc(2000, fetches.length));
  } else if (range) {
    const [start, end] = [Number(range[1]), Math.min(Number(range[2]), RESOURCE.length - 1)];
    response.writeHead(206, {
      ...common,
      "content-length": end - start + 1,
      "content-range": `bytes ${start}-${end}/${RESOURCE.length}`,
    });
    response.end(RESOURCE.subarray(start, end + 1));
  } else response.writeHead(200, { ...common, "content-length": RESOURCE.length }).end(RESOURCE);
});

/** Answers /STATUS with a body of two bytes, and /STATUS-unknown without telling its length. */
const oddOrigin = net.createServer((socket) => {
  socket
    .on("error", () => undefined)
    .once("data", (request) => {
      const [path, status] = /\/(\d+)\S*/.exec(String(request))!;
      const length = path.endsWith("unknown") ? "" : "Content-Length: 2\r\n";
      socket.end(`HTTP/1.1 ${status} Odd\r\n${length}Connection: close\r\n\r\nok`);
    });
});

let originUrl: string;
let oddUrl: string;
let proxyUrl: string;
let proxy: http.Server;
let egress: Egress;
let chunks: ChunkStore;
let status: "starting" | "ok" | "draining" = "ok";
let deliveries = 0;
let allowance: Allowance | undefined;
const failures: Rejection[] = [];
const logged: string[] = [];
const log: Log = (event, fields) => void logged.push(`${event} ${JSON.stringify(fields)}`);

const listening = (server: net.Server) =>
  new Promise<string>((resolve) =>
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)),
  );

beforeAll(async () => {
  originUrl = await listening(origin);
  oddUrl = await listening(oddOrigin);
  const allowPrivate = [originUrl, oddUrl].map((url) => ({ host: "127.0.0.1", port: Number(new URL(url).port) }));
  egress = new Egress({ policy: { allow: [{ host: "*" }], allowPrivate, ownAddresses: new Set() } });
  chunks = new ChunkStore({
    egress,
    log,
    limits: {
      cacheBytes: 1e7,
      pinnedBytes: 2 ** 28,
      cacheKeepMs: 60_000,
      readAheadBytes: 1e6,
      unreadBytes: 1e8,
      originFetchesMax: 1000,
    },
  });
  const options: HttpOptions = {
    health: () => ({ status, name: "p", engine: "e", sessions: 0 }),
    metrics: { contentType: "text/plain", text: () => Promise.resolve("metric 1\n") },
    nonce: "nonce",
    chunks,
    shared: { held: () => undefined },
    shaper: new Shaper(0),
    log,
    admit: () => allowance,
    clientAt: (address) => clients.of(address),
    trustedHops: 0,
    pageOrigins: ["https://player.test"],
    openSession: async (offer) =>
      offer === "good" ? { sessionId: "1", sdp: "answer" } : { kind: "badOffer", message: "bad" },
    onDelivery: (change, failure) => {
      deliveries += change;
      if (failure) failures.push(failure);
    },
  };
  proxy = http.createServer(makeApp(options));
  proxyUrl = await listening(proxy);
});
beforeEach(() => {
  fetches = [];
  closedEarly = 0;
  status = "ok";
});
afterAll(() => {
  egress.close();
  oddOrigin.close();
  for (const server of [origin, proxy]) {
    server.closeAllConnections();
    server.close();
  }
});

const through = (url: string, headers: Record<string, string> = {}, signal?: AbortSignal) =>
  fetch(`${proxyUrl}/v1/fetch?url=${encodeURIComponent(url)}`, {
    headers: { "tributary-client": "test", origin: EXTENSION, ...headers },
    ...(signal ? { signal } : {}),
  });

async function errorOf(response: Response): Promise<[status: number, kind: string]> {
  const body = (await response.json()) as { error: Rejection };
  return [response.status, body.error.kind];
}

const isWhole = async (response: Response) => Buffer.from(await response.arrayBuffer()).equals(RESOURCE);

const until = async (condition: () => boolean) => {
  for (let tries = 0; tries < 200 && !condition(); tries++) await new Promise((resolve) => setTimeout(resolve, 5));
  expect(condition()).toBe(true);
};

test("http: a whole resource comes with the allowed headers of the origin and no others", async () => {
  const response = await through(`${originUrl}/video`);
  expect(response.status).toBe(200);
  expect(await isWhole(response)).toBe(true);
  expect(Object.fromEntries(response.headers)).toMatchObject({
    "content-type": "video/mp4",
    "content-length": "300000",
    etag: '"e"',
    "last-modified": "Thu, 01 Jan 2026 00:00:00 GMT",
    "access-control-allow-origin": EXTENSION,
    "x-origin-access-control-allow-origin": "http://page.test",
    "timing-allow-origin": "*",
    "access-control-expose-headers": "*",
  });
  expect(response.headers.get("set-cookie")).toBeNull();
  expect(response.headers.get("server-timing")).toMatch(/^origin;dur=\d+\.\d$/);
});

test("http: the second request is answered from the cache, and the headers say so", async () => {
  await (await through(`${originUrl}/again`)).arrayBuffer();
  const response = await through(`${originUrl}/again`);
  expect(await isWhole(response)).toBe(true);
  expect(response.headers.get("server-timing")).toBe("origin;dur=0.0");
  expect(fetches).toEqual(["/again"]);
});

test("http: an answer without freshness is used again when the origin has confirmed it", async () => {
  await (await through(`${originUrl}/unknown-age`)).arrayBuffer();
  const bytesBefore = chunks.stats.originBytes;
  const response = await through(`${originUrl}/unknown-age`);
  expect(await isWhole(response)).toBe(true);
  expect([fetches.length, chunks.stats.originBytes - bytesBefore]).toEqual([2, 0]);
});

test("http: the cache mode of a request reaches the store, and an unknown one is refused", async () => {
  const withMode = (cache: string) =>
    fetch(`${proxyUrl}/v1/fetch?url=${encodeURIComponent(`${originUrl}/mode`)}&cache=${cache}`, {
      headers: { "tributary-client": "test", origin: EXTENSION },
    });
  for (const cache of ["default", "no-cache", "no-store"]) expect(await isWhole(await withMode(cache))).toBe(true);
  expect(fetches).toHaveLength(3);
  expect(await errorOf(await withMode("only-if-cached"))).toEqual([400, "badRequest"]);
});

test("http: a range is passed on and answered with 206", async () => {
  const response = await through(`${originUrl}/video`, { range: "bytes=100-199" });
  expect([response.status, response.headers.get("content-range"), response.headers.get("content-length")]).toEqual([
    206,
    "bytes 100-199/300000",
    "100",
  ]);
  expect(Buffer.from(await response.arrayBuffer())).toEqual(RESOURCE.subarray(100, 200));
});

test("http: ten requests at the same time cost the origin one fetch", async () => {
  const responses = await Promise.all(Array.from({ length: 10 }, () => through(`${originUrl}/shared`)));
  for (const response of responses) expect(await isWhole(response)).toBe(true);
  expect(fetches).toEqual(["/shared"]);
});

test("http: the origin's 404 is passed on with its body", async () => {
  const response = await through(`${originUrl}/404`);
  expect([response.status, await response.text()]).toEqual([404, "gone"]);
});

test.each(["099", "099-unknown", "600", "999-unknown"])(
  "http: an invalid status of the origin (%s) is the origin's failure",
  async (path) => {
    expect(await errorOf(await through(`${oddUrl}/${path}`))).toEqual([502, "originFailed"]);
  },
);

test("http: the lowest and highest allowed status are passed on (200, 599)", async () => {
  for (const code of [200, 599]) {
    const response = await through(`${oddUrl}/${code}`);
    expect([response.status, await response.text()]).toEqual([code, "ok"]);
  }
});

test("http: a body of unknown length is streamed", async () => {
  const response = await through(`${originUrl}/chunked`);
  expect(response.headers.get("content-length")).toBeNull();
  expect(Buffer.from(await response.arrayBuffer()).equals(Buffer.concat([RESOURCE, Buffer.from("end")]))).toBe(true);
});

test("http: bytes are passed on as they arrive", async () => {
  const response = await through(`${originUrl}/slow`);
  const reader = response.body!.getReader();
  expect((await reader.read()).value).toHaveLength(1000);
  finishSlow();
  expect((await reader.read()).value).toHaveLength(1000);
});

const DIGEST_BYTES = 16;
const BLOCK_BYTES = 32_768;

function digestsOf(body: Buffer): Buffer {
  const starts = Array.from({ length: Math.ceil(body.length / BLOCK_BYTES) }, (_, index) => index * BLOCK_BYTES);
  const digest = (start: number): Buffer =>
    createHash("sha256")
      .update(body.subarray(start, start + BLOCK_BYTES))
      .digest()
      .subarray(0, DIGEST_BYTES);
  return Buffer.concat(starts.map(digest));
}

const ask = (route: string, url: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${proxyUrl}/v1/${route}url=${encodeURIComponent(originUrl + url)}`, {
    headers: { ...CLIENT.headers, ...headers },
  });

test("http: digests are those of the body's blocks, also of a range", async () => {
  const whole = await ask("digests?", "/digests");
  expect(whole.headers.get("x-origin-content-length")).toBe("300000");
  expect(whole.headers.get("content-length")).toBe(String(10 * DIGEST_BYTES));
  expect(Buffer.from(await whole.arrayBuffer())).toEqual(digestsOf(RESOURCE));
  const range = await ask("digests?", "/digests", { range: "bytes=1-40000" });
  expect([range.status, range.headers.get("x-origin-content-length")]).toEqual([206, "40000"]);
  expect(Buffer.from(await range.arrayBuffer())).toEqual(digestsOf(RESOURCE.subarray(1, 40_001)));
});

test.each([
  ["0-0", 0, 1],
  ["299999-299999", 299_999, 300_000],
  ["299999-400000", 299_999, 300_000],
  ["300000-300001", 300_000, 300_000],
  ["5-9007199254", 5, 300_000],
])("http: part %s gives those bytes of the body and tells its whole length", async (part, start, end) => {
  const response = await ask(`fetch?part=${part}&`, "/part");
  expect([response.status, response.headers.get("x-origin-content-length")]).toEqual([200, "300000"]);
  expect(Buffer.from(await response.arrayBuffer())).toEqual(RESOURCE.subarray(start, end));
});

test.each(["", "5", "5-", "-5", "9-5", "a-b", "0-1,3-4", "0-99999999999999999999"])(
  "http: part %j is no range of bytes",
  async (part) => expect(await errorOf(await ask(`fetch?part=${part}&`, "/part"))).toEqual([400, "badRequest"]),
);

test("http: digests and parts of a body that cannot be shared are refused", async () => {
  for (const route of ["digests?", "fetch?part=0-9&"])
    expect(await errorOf(await ask(route, "/chunked"))).toEqual([502, "lengthUnknown"]);
});

test.each(["", "a b", "x".repeat(65), "\u00e4"])("http: %j is no name of a download", async (name) => {
  const route = `fetch?download=${encodeURIComponent(name)}&`;
  expect(await errorOf(await ask(route, "/video"))).toEqual([400, "badRequest"]);
});

/** Which fetch of the origin the answer came from. */
async function fetchOf(from: string, name: string): Promise<number> {
  const url = `${proxyUrl}/v1/fetch?download=${name}&url=${encodeURIComponent(`${originUrl}/private`)}`;
  return new Promise((resolve, reject) => {
    http
      .get(url, { ...CLIENT, localAddress: from, agent: false }, (response) => {
        response.once("data", (bytes: Buffer) => resolve(bytes[0]!)).on("error", reject);
      })
      .on("error", reject);
  });
}

test("http: the requests of one download share an answer that is private, and nobody else's do", async () => {
  const first = await fetchOf("127.0.0.1", "mine");
  expect(await fetchOf("127.0.0.1", "mine")).toBe(first);
  expect(await fetchOf("127.0.0.1", "other")).toBe(2);
  expect(await fetchOf("127.0.0.2", "mine")).toBe(3);
  expect(first).toBe(1);
  for (const finish of finishPrivate.splice(0)) finish();
  await until(() => deliveries === 0);
});

test("http: between the requests of a download its answer stays, until too many others do", async () => {
  const fetchedBy = async (name: string, route = "fetch?part=0-9&"): Promise<number> => {
    const response = await ask(`${route}download=${name}&`, "/personal");
    const [first] = Buffer.from(await response.arrayBuffer());
    await until(() => deliveries === 0);
    return first!;
  };
  const before = fetches.length;
  await fetchedBy("mine", "digests?");
  expect([await fetchedBy("mine"), await fetchedBy("mine")]).toEqual([before + 1, before + 1]);
  expect(await fetchedBy("other")).toBe(before + 2);
  expect(await fetchedBy("mine")).toBe(before + 1);
  for (let index = 0; index < STAND_INS_MAX; index++) await fetchedBy(`other-${index}`, "digests?");
  expect(await fetchedBy("mine")).toBe(before + 2 + STAND_INS_MAX + 1);
});

test("http: a body that is too short resets the connection", async () => {
  const response = await through(`${originUrl}/short`);
  await expect(response.arrayBuffer()).rejects.toThrow();
  await until(() => failures.at(-1)?.kind === "shortBody");
});

test("http: when the client leaves, the connection to the origin closes and nothing is left", async () => {
  const leave = new AbortController();
  const response = await through(`${originUrl}/endless`, {}, leave.signal);
  await response.body!.getReader().read();
  leave.abort();
  await until(() => closedEarly === 1 && deliveries === 0);
});

test.each<[string, string, number, string]>([
  ["a private address", "http://10.0.0.1/", 403, "egressRefused"],
  ["another port of an allowed host", "http://127.0.0.1:1/", 403, "egressRefused"],
  ["no URL at all", "nonsense", 400, "badUrl"],
  ["credentials", "http://u:p@example.com/", 400, "badUrl"],
  ["another scheme", "file:///etc/passwd", 400, "badUrl"],
  ["a name that is not there", "http://nowhere.invalid/", 502, "dnsFailed"],
])("http: %s (%s) is refused with %i %s", async (_what, url, code, kind) => {
  expect(await errorOf(await through(url))).toEqual([code, kind]);
});

test("http: refuses no url, two urls, two ranges, a bad method and a bad path", async () => {
  expect(await errorOf(await fetch(`${proxyUrl}/v1/fetch`, CLIENT))).toEqual([400, "badUrl"]);
  expect(await errorOf(await fetch(`${proxyUrl}/v1/fetch?url=http://a&url=http://b`, CLIENT))).toEqual([400, "badUrl"]);
  expect(await errorOf(await through(`${originUrl}/video`, { range: "bytes=0-1,5-6" }))).toEqual([400, "badRange"]);
  expect(await errorOf(await fetch(`${proxyUrl}/v1/nothing`))).toEqual([404, "notFound"]);
  expect(await errorOf(await fetch(`${proxyUrl}/v1/fetch?url=${originUrl}`, { method: "POST" }))).toEqual([
    404,
    "notFound",
  ]);
  expect((await fetch(`${proxyUrl}/v1/fetch?url=${originUrl}`, { method: "HEAD" })).status).toBe(405);
  expect(fetches).toEqual([]);
});

test("http: the log has hosts, but no paths or queries", async () => {
  await through("http://10.0.0.1/path?token=secret");
  expect(logged.join()).toContain("10.0.0.1");
  expect(logged.join()).not.toMatch(/path|token|secret/);
});

test("http: preflights permit extensions and the pages that the operator allows, and no others", async () => {
  const permitted = async (origin: string) => {
    const response = await fetch(`${proxyUrl}/v1/fetch`, { method: "OPTIONS", headers: { origin } });
    const { headers, status } = response;
    return [status, headers.get("access-control-allow-origin"), headers.get("access-control-allow-headers")];
  };
  const names = "Content-Type, Range, tributary-client";
  for (const origin of [EXTENSION, "moz-extension://0f0e-11", "https://player.test"])
    expect(await permitted(origin)).toEqual([204, origin, names]);
  for (const origin of ["https://evil.test", "http://player.test", "null", "chrome-extension://a.evil.test", ""])
    expect([origin, ...(await permitted(origin))]).toEqual([origin, 403, null, null]);
});

test("http: other pages get nothing, and a client names itself", async () => {
  const refused = [403, "clientRefused"];
  const kind = async (response: Response) => [
    response.status,
    ((await response.json()) as { error: Rejection }).error.kind,
  ];
  expect(await kind(await through(`${originUrl}/video`, { origin: "https://evil.test" }))).toEqual(refused);
  expect(await kind(await fetch(`${proxyUrl}/v1/fetch?url=${encodeURIComponent(`${originUrl}/video`)}`))).toEqual(
    refused,
  );
  const session = { method: "POST", body: '{"sdp":"good"}' };
  const headers = { "content-type": "application/json", origin: "https://evil.test" };
  expect(await kind(await fetch(`${proxyUrl}/v1/sessions`, { ...session, headers }))).toEqual(refused);
  expect(fetches).toEqual([]);
  const page = await through(`${originUrl}/video`, { origin: "https://player.test" });
  expect([page.status, page.headers.get("access-control-allow-origin")]).toEqual([200, "https://player.test"]);
  await page.arrayBuffer();
});

test("http: a download ends when its token or its address is used up", async () => {
  allowance = { leftBytes: 100_000, sessions: 0, budgetBytes: 100_000 };
  const response = await through(`${originUrl}/video`);
  await expect(response.arrayBuffer()).rejects.toThrow();
  expect(failures.at(-1)?.kind).toBe("budgetSpent");
  expect(allowance.leftBytes).toBeGreaterThan(-150_000);
  allowance = undefined;
  limits.addressBytes = 1;
  expect(await errorOf(await through(`${originUrl}/video`))).toEqual([429, "budgetSpent"]);
  limits.addressBytes = 1e9;
});

test("http: health has the name, engine and sessions, and is 503 while draining or starting", async () => {
  expect(await (await fetch(`${proxyUrl}/healthz`)).json()).toEqual({
    status: "ok",
    name: "p",
    engine: "e",
    sessions: 0,
  });
  for (status of ["draining", "starting"] as const) {
    expect((await fetch(`${proxyUrl}/healthz`)).status).toBe(503);
    expect(await errorOf(await through(`${originUrl}/video`))).toEqual([503, status]);
    expect(await errorOf(await post({ sdp: "good" }))).toEqual([503, status]);
  }
});

const post = (body: unknown, type = "application/json") =>
  fetch(`${proxyUrl}/v1/sessions`, {
    method: "POST",
    headers: { "content-type": type },
    body: typeof body === "string" ? body : JSON.stringify(body),
  });

test("http: a good offer makes a session, and everything else is refused with a kind", async () => {
  const made = await post({ sdp: "good" });
  expect([made.status, await made.json()]).toEqual([201, { sessionId: "1", sdp: "answer" }]);
  expect(await errorOf(await post({ sdp: "other" }))).toEqual([400, "badOffer"]);
  expect(await errorOf(await post({ sdp: "" }))).toEqual([400, "badRequest"]);
  expect(await errorOf(await post({ sdp: "good", join: "x" }))).toEqual([400, "badRequest"]);
  expect(await errorOf(await post({ sdp: "good", more: 1 }))).toEqual([400, "badRequest"]);
  expect(await errorOf(await post("{"))).toEqual([400, "badRequest"]);
  expect(await errorOf(await post("hello", "text/plain"))).toEqual([400, "badRequest"]);
  expect(await errorOf(await post({ sdp: "x".repeat(40_000) }))).toEqual([413, "requestTooLarge"]);
});

test("http: metrics are open, but not to pages", async () => {
  expect(await (await fetch(`${proxyUrl}/metrics`)).text()).toBe("metric 1\n");
  const headers = { origin: "https://page.example" };
  expect((await fetch(`${proxyUrl}/metrics`, { headers })).status).toBe(403);
});

test("http: whoami answers with the nonce", async () => {
  expect(await (await fetch(`${proxyUrl}/v1/whoami`)).text()).toBe("nonce");
});
