/**
 * The origin of the transparency test. The query of an address chooses the kind of answer. A log tells the page's own
 * requests, which have a referrer, from the transport's, which have none. For the transport the origin plays the proxy,
 * too: it allows access and sends the origin's CORS headers under other names.
 */
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import https from "node:https";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { URLSearchParams } from "node:url";

/** The first byte of a connection that begins with TLS (RFC 8446 §5.1). */
const TLS_HANDSHAKE = 22;
export const MEDIA_BYTES = 3_000_000;
export const media = Buffer.alloc(MEDIA_BYTES);
for (let at = 0, state = 1; at < MEDIA_BYTES; at++) {
  state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
  media[at] = state >>> 24;
}
const REWRITTEN = Buffer.from(media).reverse();
/** Larger than the chunks that go direct because they are small. */
const TEXT = Buffer.from(`{"text":"Grüße, 世界"${" ".repeat(20_000)}}`);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Starts one origin. `log` gets { path, native, range, method, isSecure }. */
export async function startOrigin(port, log) {
  const server = http.createServer(listener(log));
  await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
  return server;
}

function listener(log) {
  return (request, response) => {
    answer(request, response, log).catch(() => response.destroy());
  };
}

/** Starts an origin for names below `.test` on one port, which speaks https to who begins with TLS, and else http. */
export async function startDualOrigin(log) {
  const plain = http.createServer(listener(log));
  const secure = https.createServer(certificate(), listener(log));
  const server = net.createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("readable", () => {
      const first = socket.read();
      if (first === null) return;
      socket.unshift(first);
      (first[0] === TLS_HANDSHAKE ? secure : plain).emit("connection", socket);
    });
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return server;
}

function certificate() {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "tributary-origin-"));
  const [key, cert] = ["key", "cert"].map((name) => path.join(folder, name));
  const kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"];
  const subject = ["-subj", "/CN=media.test", "-addext", "subjectAltName=DNS:*.test"];
  execFileSync("openssl", ["req", "-x509", ...kind, "-keyout", key, "-out", cert, ...subject], { stdio: "pipe" });
  const pair = { key: fs.readFileSync(key), cert: fs.readFileSync(cert) };
  fs.rmSync(folder, { recursive: true });
  return pair;
}

async function answer(request, response, log) {
  const url = new URL(request.url, "http://origin");
  const isTransport = request.headers.referer === undefined;
  // `stranger` is the query that counts for the transport, which does not have the page's cookies.
  const query = new URLSearchParams((isTransport && url.searchParams.get("stranger")) || url.searchParams);
  if (url.pathname === "/page.html") return page(response, query);
  if (url.pathname === "/worker.js") return worker(response, query);
  log.push({
    path: url.pathname + url.search,
    native: !isTransport,
    range: request.headers.range ?? null,
    method: request.method,
    isSecure: request.socket.encrypted === true,
  });
  if (query.has("wait")) await pause(Number(query.get("wait")));
  if (query.has("redirect"))
    return response.writeHead(302, { location: query.get("redirect"), ...corsHeaders(query, isTransport) }).end();
  const status = Number(query.get("status") ?? 200);
  const body =
    status !== 200
      ? Buffer.from("no such thing")
      : url.pathname.endsWith("/text.mp4")
        ? TEXT
        : url.pathname === "/empty.mp4"
          ? Buffer.alloc(0)
          : !isTransport && query.has("rewritten")
            ? REWRITTEN
            : media;
  await send(request, response, { query, status, body, isTransport, cors: corsHeaders(query, isTransport) });
}

function page(response, query) {
  const headers = { "content-type": "text/html; charset=utf-8" };
  if (query.has("coep"))
    Object.assign(headers, {
      "cross-origin-embedder-policy": "require-corp",
      "cross-origin-opener-policy": "same-origin",
    });
  if (query.has("csp"))
    headers["content-security-policy"] = "default-src 'self'; frame-src 'none'; require-trusted-types-for 'script'";
  for (const name of ["content-security-policy", "content-security-policy-report-only"])
    if (query.has(name)) headers[name] = query.get(name);
  const script = query.has("asks") ? `<script>${ASK}</script>` : "";
  if (query.has("turn")) headers["content-security-policy"] = policyInTurn(query);
  response.writeHead(200, headers).end(`<!doctype html><title>page</title>${script}<body>page`);
}

const turns = new Map();

/** The next of the policies that an address names, in turn. */
function policyInTurn(query) {
  const turn = turns.get(`${query}`) ?? 0;
  turns.set(`${query}`, turn + 1);
  return query.getAll("turn")[turn] ?? "";
}

/** The extension's answer to a document with a plain video, as any script of the document can have it. */
const ASK = `
  const ask = () => new Promise((resolve) => {
    const detail = new URL("/media.mp4", document.baseURI).href;
    document.addEventListener("tby-answer", ({ detail: told }) => resolve(told.split(" ")[0]));
    document.dispatchEvent(new CustomEvent("tby-video", { detail }));
  });
  if (document.prerendering) {
    const store = async (what) => localStorage.setItem(what + " " + location.href, await ask());
    store("prerendered");
    document.addEventListener("prerenderingchange", () => store("shown"));
  }`;

/** A service worker that takes its pages at once. `answers` is a path that it answers itself. */
function worker(response, query) {
  const answer = `addEventListener("fetch", (event) => {
    if (new URL(event.request.url).pathname === "${query.get("answers")}") event.respondWith(new Response("worker"));
  });`;
  response.writeHead(200, { "content-type": "text/javascript" }).end(
    `addEventListener("install", () => skipWaiting());
    addEventListener("activate", (event) => event.waitUntil(clients.claim()));
    ${query.has("answers") ? answer : ""}`,
  );
}

function corsHeaders(query, isTransport) {
  const headers = {};
  if (isTransport) Object.assign(headers, { "access-control-allow-origin": "*", "access-control-expose-headers": "*" });
  const prefix = isTransport ? "x-origin-" : "";
  if (query.has("acao")) headers[`${prefix}access-control-allow-origin`] = query.get("acao");
  if (query.has("expose")) headers[`${prefix}access-control-expose-headers`] = query.get("expose");
  return headers;
}

async function send(request, response, { query, status: given, body, isTransport, cors }) {
  let status = given;
  const headers = {
    "content-type": query.get("type") ?? "video/mp4",
    etag: '"v1"',
    "last-modified": "Sat, 01 Aug 2026 00:00:00 GMT",
    "accept-ranges": "bytes",
    "cache-control": "no-store",
    ...cors,
  };
  const range = /^bytes=(\d+)-(\d*)$/.exec(request.headers.range ?? "");
  let [start, end] = [0, body.length - 1];
  if (range !== null && status === 200) {
    [start, end] = [Number(range[1]), range[2] === "" ? end : Math.min(end, Number(range[2]))];
    if (start >= body.length)
      return response
        .writeHead(416, { ...headers, "content-range": `bytes */${body.length}`, "content-length": 0 })
        .end();
    headers["content-range"] = `bytes ${start}-${end}/${body.length}`;
    status = 206;
  }
  if (query.has("more"))
    Object.assign(headers, { age: "5", expires: "0", "content-language": "de", vary: "origin", "x-more": "Grüße" });
  if (query.has("bloat")) headers["x-bloat"] = "x".repeat(Number(query.get("bloat")));
  if (!isTransport && query.get("validators") === "other") headers.etag = '"v2"';
  const part = body.subarray(start, end + 1);
  if (!query.has("nolength")) headers["content-length"] = part.length;
  const reason = query.get("reason");
  response.writeHead(status, ...(reason === null || isTransport ? [] : [reason]), headers);
  if (request.method === "HEAD") return response.end();
  const slow = Number(query.get("slow") ?? 0);
  for (let at = 0; slow > 0 && at < part.length && !response.destroyed; at += 100_000) {
    response.write(part.subarray(at, at + 100_000));
    await pause(slow);
  }
  response.end(slow > 0 ? undefined : part);
}
