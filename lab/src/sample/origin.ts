/**
 * The sample origin: an ordinary web server with a real video, player pages, and paths that misbehave on purpose.
 * It knows nothing of proxies. What it must be: cacheable, seekable, readable from any site, and honest in its log.
 *
 *   /                      index of the player pages: /hls.html /dash.html /shaka.html /plain.html
 *   /media/...             the video (lab/sample/media)
 *   /players/NAME          the players' own builds, from node_modules
 *   /__log?since=MS        the access log as JSON
 *   /__size/N              N deterministic bytes (bytes.ts), with ranges; N.mp4 is the same under a name that looks like media
 *   /__chunked/N           the same without Content-Length
 *   /__short/N             promises N bytes, sends half of them, hangs up
 *   /__status/CODE         that status with a short text
 *   /__redirect?to=URL     one redirect; /__loop redirects to itself for ever
 */
import { createHash } from "node:crypto";
import { readFileSync, readdirSync, statSync } from "node:fs";
import path from "node:path";
import { Readable } from "node:stream";
import express from "express";
import type { Express, NextFunction, Request, Response } from "express";
import { AccessLog } from "./accessLog";
import { parseRange, sizeBytesPieces } from "./bytes";

const SIZE_BYTES_MAX = 1_073_741_824;

const CONTENT_TYPES: Record<string, string> = {
  ".m3u8": "application/vnd.apple.mpegurl",
  ".mpd": "application/dash+xml",
  ".m4s": "video/iso.segment",
  ".mp4": "video/mp4",
};

const PLAYERS: Record<string, string> = {
  "hls.js": "hls.js/dist/hls.min.js",
  "dash.js": "dashjs/dist/modern/umd/dash.all.min.js",
  "shaka.js": "shaka-player/dist/shaka-player.compiled.js",
};

/** Folder lab/sample, seen from lab/src/sample and from lab/dist/sample alike. */
export const sampleDir = path.resolve(__dirname, "../../sample");
export const mediaDir = path.join(sampleDir, "media");

export function createSampleOrigin(): { app: Express; log: AccessLog } {
  const log = new AccessLog();
  const app = express();
  app.disable("x-powered-by");
  app.use(log.record, allowEverySite);
  app.get("/__log", (request, response) => {
    response.set("Cache-Control", "no-store").json(log.entries(Number(request.query["since"]) || 0));
  });
  addTestPaths(app);
  app.get("/players/:name", sendPlayer);
  app.use("/media", serveFiles(mediaDir, "public, max-age=3600"));
  app.use(serveFiles(path.join(sampleDir, "pages"), "no-cache"));
  app.use((request, response) => void response.status(404).type("text").send(`no such path: ${request.path}\n`));
  return { app, log };
}

function allowEverySite(request: Request, response: Response, next: NextFunction): void {
  response.set({
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": "Content-Length, Content-Range, Accept-Ranges, ETag, Last-Modified, Content-Type, Date",
    "Timing-Allow-Origin": "*",
  });
  if (request.method !== "OPTIONS") return next();
  response.set({ "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS", "Access-Control-Allow-Headers": "Range, If-Range, If-None-Match", "Access-Control-Max-Age": "600" });
  response.sendStatus(204);
}

/** Static files with strong ETags (a digest of the content), which `If-Range` needs. */
function serveFiles(folder: string, cacheControl: string): express.Handler {
  const etags = new Map(filesBelow(folder).map((file) => [file, `"${createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 32)}"`]));
  return express.static(folder, {
    cacheControl: false,
    setHeaders: (response, file) => {
      const etag = etags.get(file);
      if (etag) response.setHeader("ETag", etag);
      const contentType = CONTENT_TYPES[path.extname(file)];
      if (contentType) response.setHeader("Content-Type", contentType);
      response.setHeader("Cache-Control", cacheControl);
    },
  });
}

function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap((name) => {
    const file = path.join(folder, name);
    return statSync(file).isDirectory() ? filesBelow(file) : [file];
  });
}

function sendPlayer(request: Request, response: Response): void {
  const file = PLAYERS[String(request.params["name"])];
  if (!file) return void response.status(404).type("text").send(`no such player: ${request.path}\n`);
  const [packageName = "", ...rest] = file.split("/");
  response.sendFile(path.join(packageFolder(packageName), ...rest), { dotfiles: "allow", headers: { "Cache-Control": "no-cache" } });
}

/** Folder of an installed package: npm may have put it beside this one or at the root of the workspace. */
function packageFolder(name: string): string {
  for (const base of require.resolve.paths(name) ?? []) {
    const folder = path.join(base, name);
    if (statSync(folder, { throwIfNoEntry: false })?.isDirectory()) return folder;
  }
  throw new Error(`${name} is not installed: run npm ci`);
}

function addTestPaths(app: Express): void {
  app.get("/__size/:bytes", (request, response) => {
    const totalBytes = sizeOf(request, response);
    if (totalBytes === undefined) return;
    response.set({ "Accept-Ranges": "bytes", ETag: `"size-${totalBytes}"`, "Content-Type": "application/octet-stream", "Cache-Control": "public, max-age=3600" });
    const range = parseRange(request.get("range"), totalBytes);
    if (range.kind === "unsatisfiable") {
      return void response.status(416).set("Content-Range", `bytes */${totalBytes}`).end();
    }
    const [start, end] = range.kind === "range" ? [range.start, range.end + 1] : [0, totalBytes];
    if (range.kind === "range") response.status(206).set("Content-Range", `bytes ${start}-${end - 1}/${totalBytes}`);
    response.set("Content-Length", String(end - start));
    if (request.method === "HEAD") return void response.end();
    Readable.from(sizeBytesPieces(start, end)).pipe(response);
  });
  app.get("/__chunked/:bytes", (request, response) => {
    const totalBytes = sizeOf(request, response);
    if (totalBytes !== undefined) Readable.from(sizeBytesPieces(0, totalBytes)).pipe(response.type("application/octet-stream"));
  });
  app.get("/__short/:bytes", (request, response) => {
    const totalBytes = sizeOf(request, response);
    if (totalBytes === undefined) return;
    response.set({ "Content-Type": "application/octet-stream", "Content-Length": String(totalBytes) });
    const half = Readable.from(sizeBytesPieces(0, Math.floor(totalBytes / 2)));
    half.on("end", () => setTimeout(() => response.socket?.destroy(), 50));
    half.pipe(response, { end: false });
  });
  app.get("/__status/:code", (request, response) => {
    const code = Number(request.params["code"]);
    const status = Number.isInteger(code) && code >= 200 && code <= 599 ? code : 400;
    response.status(status).type("text").send(`status ${status}\n`);
  });
  app.get("/__redirect", (request, response) => response.redirect(302, String(request.query["to"] ?? "/")));
  app.get("/__loop", (_request, response) => response.redirect(302, "/__loop"));
}

function sizeOf(request: Request, response: Response): number | undefined {
  const bytes = Number(String(request.params["bytes"]).replace(/\.mp4$/, ""));
  if (Number.isInteger(bytes) && bytes >= 0 && bytes <= SIZE_BYTES_MAX) return bytes;
  response.status(400).type("text").send(`size must be a whole number from 0 to ${SIZE_BYTES_MAX}, got ${request.params["bytes"]}\n`);
  return undefined;
}
