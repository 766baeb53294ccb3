import { parseHops, type RangeRequest } from "@tributary/contract";
import http from "node:http";
import net, { type AddressInfo } from "node:net";
import { EgressError } from "./error";
import { Egress, originHeader, type EgressOptions, type OriginResponse } from "./fetch";
import { parseHostRule } from "./policy";

const RESOURCE = Buffer.from(Array.from({ length: 5000 }, (_, index) => index % 251));
const closers: (() => void)[] = [];
let hits: { url: string; headers: http.IncomingHttpHeaders }[] = [];
let base: string;
let port: number;

/** An origin with one path for each behaviour. */
const server = http.createServer((request, response) => {
  const url = request.url!;
  hits.push({ url, headers: request.headers });
  const redirect = (location: string, status = 302): void =>
    void response
      .writeHead(status, { location, "access-control-allow-origin": "https://page.test", "set-cookie": "a=b" })
      .end();
  if (url === "/ok" || url === "/ok?")
    response.writeHead(200, { "content-length": RESOURCE.length, etag: '"1"' }).end(RESOURCE);
  else if (url === "/range") {
    const [, first, last] = /bytes=(\d+)-(\d+)/.exec(request.headers.range!)!.map(Number) as [number, number, number];
    const end = Math.min(last, RESOURCE.length - 1);
    response
      .writeHead(206, { "content-range": `bytes ${first}-${end}/${RESOURCE.length}` })
      .end(RESOURCE.subarray(first, end + 1));
  } else if (url === "/wrong-range")
    response.writeHead(206, { "content-range": "bytes 1-10/5000" }).end(RESOURCE.subarray(1, 11));
  else if (url === "/no-content-range") response.writeHead(206).end("x");
  else if (url === "/416") response.writeHead(416, { "content-range": "bytes */5000", "content-length": 3 }).end("no!");
  else if (url === "/chunked") response.writeHead(200).write("ab", () => response.end("c"));
  else if (url === "/short")
    response.writeHead(200, { "content-length": 5000 }).write(RESOURCE.subarray(0, 100), () => response.destroy());
  else if (url === "/broken-chunked") response.writeHead(200).write("ab", () => response.destroy());
  else if (url === "/hang") return;
  else if (url === "/stall") response.writeHead(200, { "content-length": 5000 }).write("a");
  else if (url === "/endless") drip(response);
  else if (url === "/huge-header" || url === "/long-header")
    response.writeHead(200, { "x-long": "a".repeat(url === "/long-header" ? 40_000 : 70_000) }).end();
  else if (url === "/gzip") response.writeHead(200, { "content-encoding": "gzip" }).end("abc");
  else if (url === "/204") response.writeHead(204).end();
  else if (url === "/empty") response.writeHead(200, { "content-length": 0 }).end();
  else if (url === "/loop") redirect("/loop");
  else if (url === "/loop-a") redirect("/loop-b");
  else if (url === "/loop-b") redirect("/loop-a");
  else if (url.startsWith("/hops/")) redirect(url === "/hops/1" ? "/ok" : `/hops/${Number(url.slice(6)) - 1}`, 307);
  else if (url.startsWith("/long-hops/"))
    response
      .writeHead(302, {
        location: `/long-hops/${Number(url.slice(11)) - 1}`,
        "access-control-allow-origin": `https://${"p".repeat(200)}.test`,
      })
      .end();
  else if (url === "/to-private") redirect("http://10.0.0.1/");
  else if (url === "/to-other-port") redirect("http://127.0.0.1:1/");
  else if (url === "/to-file") redirect("file:///etc/passwd");
  else if (url === "/to-nowhere") redirect("http://[");
  else response.writeHead(404, { "content-length": 9 }).end("not found");
});

function drip(response: http.ServerResponse): void {
  response.writeHead(200);
  const timer = setInterval(() => response.write(Buffer.alloc(1000)), 5);
  response.on("close", () => clearInterval(timer));
}

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  port = (server.address() as AddressInfo).port;
  base = `http://127.0.0.1:${port}`;
});
beforeEach(() => {
  hits = [];
});
afterEach(() => {
  for (const close of closers.splice(0)) close();
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

/** Longer than any answer takes on a busy machine. Tests of the times themselves use shorter ones. */
const PATIENT = { headMs: 20_000, stallMs: 20_000, totalMs: 20_000 };
const IMPATIENT: Record<string, EgressOptions["times"]> = {
  "/hang": { headMs: 100 },
  "/stall": { stallMs: 100 },
  "/endless": { totalMs: 300 },
};

function egress(options: Partial<EgressOptions> = {}, allowPrivate = `127.0.0.1:${port}`): Egress {
  const policy = {
    allow: [{ host: "*" }],
    allowPrivate: allowPrivate.split(",").map((rule) => parseHostRule(rule)!),
    ownAddresses: new Set<string>(),
  };
  const made = new Egress({ policy, times: PATIENT, ...options });
  closers.push(() => made.close());
  return made;
}

const get = (path: string, range?: RangeRequest, from = egress({ times: { ...PATIENT, ...IMPATIENT[path] } })) =>
  from.fetch(base + path, range, new AbortController().signal);

async function bytesOf(response: OriginResponse): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const piece of response.body) pieces.push(piece);
  return Buffer.concat(pieces);
}

/** The kind of the rejection with which a promise ends. */
async function failure(promise: Promise<unknown>): Promise<string> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return error instanceof EgressError ? error.rejection.kind : `no EgressError: ${String(error)}`;
}

test("fetch: asks for a body without coding and under our own name, and gives its length", async () => {
  const response = await get("/ok");
  expect(response).toMatchObject({ status: 200, totalBytes: 5000, headers: { etag: '"1"' } });
  expect(response.serverFetchMs).toBeGreaterThan(0);
  expect(await bytesOf(response)).toEqual(RESOURCE);
  expect(hits[0]!.headers).toMatchObject({
    host: `127.0.0.1:${port}`,
    "user-agent": "tributary-proxy/0.1",
    "accept-encoding": "identity",
  });
  expect(hits[0]!.headers).not.toHaveProperty("range");
  expect(hits[0]!.headers).not.toHaveProperty("origin");
});

test("fetch: a range that ends at the end of the resource has the length in Content-Range", async () => {
  const response = await get("/range", { start: 4990, end: 5100 });
  expect(response).toMatchObject({ status: 206, totalBytes: 10 });
  expect(await bytesOf(response)).toEqual(RESOURCE.subarray(4990));
});

test.each([
  ["/404", 404, 9],
  ["/416", 416, 3],
  ["/204", 204, 0],
  ["/empty", 200, 0],
])("fetch: %s is a response with status %i", async (path, status, totalBytes) => {
  const response = await get(path);
  expect(response).toMatchObject({ status, totalBytes });
  expect(await bytesOf(response)).toHaveLength(totalBytes);
});

test.each([
  ["099", "originFailed"],
  ["200", "200"],
  ["599", "599"],
  ["600", "originFailed"],
  ["999", "originFailed"],
])("fetch: an origin that answers with status %s gives %s", async (status, outcome) => {
  const origin = net.createServer((socket) => {
    socket
      .on("error", () => undefined)
      .once("data", () => socket.end(`HTTP/1.1 ${status} Odd\r\nContent-Length: 2\r\n\r\nok`));
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  closers.push(() => origin.close());
  const at = `127.0.0.1:${(origin.address() as AddressInfo).port}`;
  const fetched = egress({}, at).fetch(`http://${at}/`, undefined, new AbortController().signal);
  expect(outcome === "originFailed" ? await failure(fetched) : String((await fetched).status)).toBe(outcome);
});

test("fetch: a chunked body has no length and arrives whole", async () => {
  const response = await get("/chunked");
  expect(response.totalBytes).toBeNull();
  expect(String(await bytesOf(response))).toBe("abc");
});

test.each([
  ["/wrong-range", "rangeMismatch"],
  ["/no-content-range", "rangeMismatch"],
  ["/hang", "originTimeout"],
  ["/huge-header", "originUnreachable"],
  ["/gzip", "contentEncoded"],
  ["/loop", "redirectLoop"],
  ["/loop-a", "redirectLoop"],
  ["/hops/21", "tooManyRedirects"],
  ["/long-hops/20", "tooManyRedirects"],
  ["/to-private", "egressRefused"],
  ["/to-other-port", "egressRefused"],
  ["/to-file", "badUrl"],
  ["/to-nowhere", "badRedirect"],
])("fetch: %s is refused as %s", async (path, kind) => {
  expect(await failure(get(path, { start: 0, end: 9 }))).toBe(kind);
});

test("fetch: a header of 40 KB and an empty query come through", async () => {
  expect((await get("/long-header")).headers["x-long"]).toHaveLength(40_000);
  (await get("/ok?")).cancel();
  expect(hits.at(-1)!.url).toBe("/ok?");
});

test("fetch: 20 redirects are followed, and the answer has the final address", async () => {
  expect((await get("/hops/20")).status).toBe(200);
  hits = [];
  const response = await get("/hops/3");
  expect([response.status, new URL(response.headers["location"]!).pathname]).toEqual([200, "/ok"]);
  expect(hits).toHaveLength(4);
  const hop = { origin: base, allowedOrigin: "https://page.test", setsCookie: true };
  expect(parseHops(response.headers["hops"])).toEqual([hop, hop, hop]);
  const { location, hops } = (await get("/ok")).headers;
  expect([location, hops]).toEqual([undefined, undefined]);
});

const [PAGE, AWAY, THIRD] = ["https://page.example", "https://away.example", "https://third.example"] as const;
test.each([
  ["no page", undefined, [AWAY], undefined],
  ["the page's own origin", PAGE, [PAGE], undefined],
  ["a redirect within the page's own origin", PAGE, [PAGE, PAGE], undefined],
  ["another origin", PAGE, [AWAY], PAGE],
  ["a redirect within another origin", PAGE, [AWAY, AWAY], PAGE],
  ["a redirect away from the page's own origin", PAGE, [PAGE, AWAY], PAGE],
  ["a redirect from another origin to a third one", PAGE, [AWAY, THIRD], "null"],
  ["a redirect from another origin to the page's own", PAGE, [AWAY, PAGE], "null"],
  ["what follows such a redirect", PAGE, [AWAY, THIRD, THIRD], "null"],
])("fetch: the Origin of a request for a page: %s", (_name, page, way, header) => {
  const hops = way.map((origin) => ({ origin }));
  expect(originHeader(page, hops)).toBe(header);
});

test("fetch: names the page to the origin, also after a redirect", async () => {
  const details = { pageOrigin: PAGE };
  const response = await egress().fetch(`${base}/hops/1`, undefined, new AbortController().signal, undefined, details);
  response.cancel();
  expect(hits.map(({ headers }) => headers.origin)).toEqual([PAGE, PAGE]);
});

test.each([
  ["/short", "shortBody"],
  ["/broken-chunked", "shortBody"],
  ["/stall", "originStalled"],
  ["/endless", "originStalled"],
])("fetch: the body of %s ends with %s", async (path, kind) =>
  expect(await failure(get(path).then(bytesOf))).toBe(kind),
);

test("fetch: the error of a short body has the received and the announced length", async () => {
  await expect(get("/short").then(bytesOf)).rejects.toMatchObject({ rejection: { got: 100, limit: 5000 } });
});

test("fetch: an origin that does not answer and an unknown name are errors", async () => {
  const closed = await freePort();
  expect(
    await failure(
      egress({}, `127.0.0.1:${closed}`).fetch(`http://127.0.0.1:${closed}/`, undefined, new AbortController().signal),
    ),
  ).toBe("originUnreachable");
  const nowhere = egress({ resolve: async () => [] });
  expect(await failure(nowhere.fetch("http://nowhere.test/", undefined, new AbortController().signal))).toBe(
    "dnsFailed",
  );
});

test("fetch: connects to the vetted address with the name in the URL", async () => {
  const pinned = egress({ resolve: async () => ["127.0.0.1"] }, `video.test:${port}`);
  expect((await pinned.fetch(`http://video.test:${port}/ok`, undefined, new AbortController().signal)).status).toBe(
    200,
  );
  expect(hits[0]!.headers.host).toBe(`video.test:${port}`);
});

test("fetch: a name with one private address is refused without a connection", async () => {
  const mixed = egress({ resolve: async () => ["93.184.216.34", "127.0.0.1"] });
  expect(await failure(mixed.fetch("http://rebind.test/ok", undefined, new AbortController().signal))).toBe(
    "egressRefused",
  );
  expect(hits).toHaveLength(0);
});

test("fetch: a connection is used again, and replaced if the origin has closed it", async () => {
  let connections = 0;
  const sockets: net.Socket[] = [];
  const origin = http.createServer(
    (_request, response) => void response.writeHead(200, { "content-length": 2 }).end("ok"),
  );
  origin.on("connection", (socket) => {
    connections++;
    sockets.push(socket);
  });
  await new Promise<void>((resolve) => origin.listen(0, "127.0.0.1", resolve));
  const at = (origin.address() as AddressInfo).port;
  const from = egress({}, `127.0.0.1:${at}`);
  const once = async () =>
    String(await bytesOf(await from.fetch(`http://127.0.0.1:${at}/`, undefined, new AbortController().signal)));
  expect(await once()).toBe("ok");
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await once()).toBe("ok");
  expect(connections).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 20));
  for (const socket of sockets) socket.destroy();
  expect(await once()).toBe("ok");
  expect(connections).toBe(2);
  origin.closeAllConnections();
  origin.close();
});

test("fetch: a cancel before the head or during the body closes the connection to the origin", async () => {
  const early = new AbortController();
  const waiting = failure(egress().fetch(`${base}/hang`, undefined, early.signal));
  setTimeout(() => early.abort(), 30);
  expect(await waiting).toBe("aborted");
  const later = new AbortController();
  const response = await egress().fetch(`${base}/endless`, undefined, later.signal);
  setTimeout(() => later.abort(), 30);
  expect(await failure(bytesOf(response))).toBe("aborted");
  const open = (): Promise<number> =>
    new Promise((resolve) => server.getConnections((_error, count) => resolve(count)));
  while ((await open()) > 0) await new Promise((resolve) => setTimeout(resolve, 10));
});

async function freePort(): Promise<number> {
  const probe = net.createServer();
  await new Promise<void>((resolve) => probe.listen(0, "127.0.0.1", resolve));
  const { port: free } = probe.address() as AddressInfo;
  await new Promise<void>((resolve) => probe.close(() => resolve()));
  return free;
}
