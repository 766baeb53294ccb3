/** The sample origin over HTTP: what players and proxies rely on, and the paths that misbehave. */
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { sizeBytes } from "./bytes";
import { createSampleOrigin } from "./origin";
import type { AccessLog } from "./access-log";

let server: Server;
let log: AccessLog;
let base: string;
beforeAll(async () => {
  const origin = createSampleOrigin();
  log = origin.log;
  server = origin.app.listen(0, "127.0.0.1");
  await new Promise((resolve) => server.once("listening", resolve));
  base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const get = (path: string, headers: Record<string, string> = {}, method = "GET"): Promise<Response> =>
  fetch(base + path, { method, headers, redirect: "manual" });

test.each([
  ["/media/cmaf/master.m3u8", "application/vnd.apple.mpegurl"],
  ["/media/cmaf/stream.mpd", "application/dash+xml"],
  ["/media/cmaf/segment-0-001.m4s", "video/iso.segment"],
  ["/media/progressive.mp4", "video/mp4"],
])("%s has its type, a strong ETag and CORS for every site", async (path, type) => {
  const response = await get(path);
  await response.arrayBuffer();
  expect(response.status).toBe(200);
  expect(response.headers.get("content-type")).toBe(type);
  expect(response.headers.get("etag")).toMatch(/^"[0-9a-f]{32}"$/);
  expect(response.headers.get("access-control-allow-origin")).toBe("*");
  expect(response.headers.get("access-control-expose-headers")).toContain("Content-Range");
  expect(response.headers.get("accept-ranges")).toBe("bytes");
});

test("a range of a media file: inside, guarded by If-Range, beyond the end", async () => {
  const whole = new Uint8Array(await (await get("/media/cmaf/init-0.m4s")).arrayBuffer());
  const part = await get("/media/cmaf/init-0.m4s", { Range: "bytes=10-19" });
  expect(part.status).toBe(206);
  expect(part.headers.get("content-range")).toBe(`bytes 10-19/${whole.length}`);
  expect(new Uint8Array(await part.arrayBuffer())).toEqual(whole.slice(10, 20));
  expect(
    (await get("/media/cmaf/init-0.m4s", { Range: "bytes=10-19", "If-Range": part.headers.get("etag") ?? "" })).status,
  ).toBe(206);
  expect((await get("/media/cmaf/init-0.m4s", { Range: "bytes=10-19", "If-Range": '"other"' })).status).toBe(200);
  expect((await get("/media/cmaf/init-0.m4s", { Range: `bytes=${whole.length}-` })).status).toBe(416);
});

test("preflight with Range is allowed", async () => {
  const response = await get(
    "/media/cmaf/init-0.m4s",
    { Origin: "http://elsewhere", "Access-Control-Request-Method": "GET" },
    "OPTIONS",
  );
  expect(response.status).toBe(204);
  expect(response.headers.get("access-control-allow-headers")).toContain("Range");
});

test.each([
  "/",
  "/hls.html",
  "/dash.html",
  "/shaka.html",
  "/plain.html",
  "/players/hls.js",
  "/players/dash.js",
  "/players/shaka.js",
])("page or player %s is there", async (path) => {
  expect((await get(path)).status).toBe(200);
});

test("/__size: whole, empty, in part, beyond, too large", async () => {
  expect(new Uint8Array(await (await get("/__size/70000")).arrayBuffer())).toEqual(sizeBytes(0, 70_000));
  const empty = await get("/__size/0");
  expect([empty.status, empty.headers.get("content-length")]).toEqual([200, "0"]);
  const part = await get("/__size/70000", { Range: "bytes=65535-65536" });
  expect([part.status, part.headers.get("content-range")]).toEqual([206, "bytes 65535-65536/70000"]);
  expect(new Uint8Array(await part.arrayBuffer())).toEqual(sizeBytes(65_535, 65_537));
  expect((await get("/__size/10", { Range: "bytes=10-" })).status).toBe(416);
  expect((await get("/__size/100000000001")).status).toBe(400);
});

test("paths that misbehave do so", async () => {
  expect((await get("/__status/404")).status).toBe(404);
  expect((await get("/__loop")).headers.get("location")).toBe("/__loop");
  expect((await get("/__redirect?to=http://127.0.0.1:1/")).headers.get("location")).toBe("http://127.0.0.1:1/");
  expect((await get("/__chunked/10")).headers.get("content-length")).toBeNull();
  const short = await get("/__short/1000");
  expect(short.headers.get("content-length")).toBe("1000");
  await expect(short.arrayBuffer()).rejects.toThrow();
  expect((await get("/nowhere")).status).toBe(404);
  expect((await get("/players/none.js")).status).toBe(404);
});

test("the access log tells who fetched what, and how much", async () => {
  const sinceMs = Date.now();
  await (await get("/__size/1000?x=1", { Range: "bytes=0-9", "User-Agent": "someone" })).arrayBuffer();
  const expected = {
    method: "GET",
    path: "/__size/1000?x=1",
    range: "bytes=0-9",
    userAgent: "someone",
    bytes: 10,
    status: 206,
  };
  expect(log.entries(sinceMs).filter((entry) => entry.userAgent === "someone")).toEqual([
    expect.objectContaining(expected),
  ]);
  expect(await (await get(`/__log?since=${sinceMs}`)).json()).toEqual(
    expect.arrayContaining([expect.objectContaining(expected)]),
  );
});
