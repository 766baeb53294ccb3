/**
 * The sample origin: an ordinary web server with a real video, player pages, and paths that misbehave on purpose.
 * It knows nothing of proxies. What it must be: cacheable, seekable, readable from any site, and honest in its log.
 *
 *   /                      index of the player pages: /hls.html /dash.html /shaka.html /videojs.html /plain.html
 *   /media/...             the video (lab/sample/media)
 *   /aes/media.m3u8        the lowest quality, its segments encrypted with AES-128
 *   /static/...            the same video in PeerTube's layout: HLS of byte ranges in fragmented MP4 files, and web videos
 *   /players/NAME          the players' own builds, from node_modules
 *   /__log?since=MS        the access log as JSON
 *   /__size/N              N deterministic bytes (bytes.ts), with ranges; N.mp4 is the same under a name that looks like media
 *   /__chunked/N           the same without Content-Length
 *   /__short/N             promises N bytes, sends half of them, hangs up
 *   /__status/CODE         that status with a short text
 *   /__redirect?to=URL     one redirect; /__loop redirects to itself for ever
 */
import { createCipheriv, createHash } from "node:crypto";
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
  "video.js": "video.js/dist/video.min.js",
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
  addEncrypted(app);
  addPeerTubeLayout(app);
  app.use("/media", serveFiles(mediaDir, "public, max-age=3600"));
  app.use(serveFiles(path.join(sampleDir, "pages"), "no-cache"));
  app.use((request, response) => void response.status(404).type("text").send(`no such path: ${request.path}\n`));
  return { app, log };
}

const AES_KEY = Buffer.from("000102030405060708090a0b0c0d0e0f", "hex");
const AES_IV = Buffer.alloc(16, 7);

/** HLS with AES-128: each segment a whole cipher text, the init segment in the clear before the key (RFC 8216 §4.3.2.4). */
function addEncrypted(app: Express): void {
  app.get("/aes/media.m3u8", (_request, response) => {
    const key = `#EXT-X-KEY:METHOD=AES-128,URI="/aes/video.key",IV=0x${AES_IV.toString("hex")}`;
    const playlist = readFileSync(path.join(mediaDir, "cmaf/media_0.m3u8"), "utf8").replace(/"init-0\.m4s"/, '"/media/cmaf/init-0.m4s"');
    const [first = "", ...rest] = playlist.split(/(?=^#EXTINF)/m);
    response.type("application/vnd.apple.mpegurl").send([first, `${key}\n`, ...rest].join(""));
  });
  app.get("/aes/video.key", (_request, response) => response.type("application/octet-stream").send(AES_KEY));
  app.get("/aes/:name", (request, response) => {
    const { name } = request.params;
    if (!/^segment-0-\d{3}\.m4s$/.test(name)) return void response.sendStatus(404);
    const cipher = createCipheriv("aes-128-cbc", AES_KEY, AES_IV);
    response.type("video/iso.segment").set("Cache-Control", "public, max-age=3600");
    response.send(Buffer.concat([cipher.update(readFileSync(path.join(mediaDir, "cmaf", name))), cipher.final()]));
  });
}

const VIDEO_ID = "8c5f2d1e-3b7a-4f60-9c1d-2a4e6b8d0f13";
const HLS_FOLDER = `/static/streaming-playlists/hls/${VIDEO_ID}`;

/** PeerTube's paths: a file a quality, which its playlist cuts into byte ranges, and the whole video beside it. */
function addPeerTubeLayout(app: Express): void {
  const inMedia = (name: string): Buffer => readFileSync(path.join(mediaDir, "cmaf", name));
  const parts = (track: string): Buffer[] => {
    const segments = readdirSync(path.join(mediaDir, "cmaf")).filter((name) => name.startsWith(`segment-${track}-`)).sort();
    return [`init-${track}.m4s`, ...segments].map(inMedia);
  };
  app.get(`${HLS_FOLDER}/master.m3u8`, (_request, response) => {
    const master = inMedia("master.m3u8").toString().replace(/media_(\d)\.m3u8/g, `${VIDEO_ID}-$1.m3u8`);
    response.type("application/vnd.apple.mpegurl").send(master);
  });
  app.get(new RegExp(`^${HLS_FOLDER}/${VIDEO_ID}-(\\d)\\.m3u8$`), (request, response) => {
    const track = String(request.params[0]);
    response.type("application/vnd.apple.mpegurl").send(rangedPlaylist(inMedia(`media_${track}.m3u8`).toString(), `${VIDEO_ID}-${track}-fragmented.mp4`, parts(track)));
  });
  app.get(new RegExp(`^${HLS_FOLDER}/${VIDEO_ID}-(\\d)-fragmented\\.mp4$`), (request, response) => sendRange(request, response, Buffer.concat(parts(String(request.params[0])))));
  app.get(`/static/web-videos/${VIDEO_ID}-720.mp4`, (request, response) => sendRange(request, response, readFileSync(path.join(mediaDir, "progressive.mp4"))));
}

/** `playlist`, of whole segments, as one of ranges of `file` (RFC 8216 §4.3.2.2). */
function rangedPlaylist(playlist: string, file: string, parts: readonly Buffer[]): string {
  let offset = 0;
  let index = 0;
  const next = (): string => {
    const range = `${parts[index]?.length ?? 0}@${offset}`;
    offset += parts[index++]?.length ?? 0;
    return range;
  };
  const lines = playlist.split("\n").map((line) => {
    if (line.startsWith("#EXT-X-MAP")) return `#EXT-X-MAP:URI="${file}",BYTERANGE="${next()}"`;
    return line.endsWith(".m4s") ? `#EXT-X-BYTERANGE:${next()}\n${file}` : line;
  });
  return lines.join("\n");
}

function sendRange(request: Request, response: Response, bytes: Buffer): void {
  const etag = `"${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}"`;
  response.set({ "Content-Type": "video/mp4", "Accept-Ranges": "bytes", "Cache-Control": "public, max-age=3600", ETag: etag });
  const range = parseRange(request.get("range"), bytes.length);
  if (range.kind === "unsatisfiable") return void response.status(416).set("Content-Range", `bytes */${bytes.length}`).end();
  const [start, end] = range.kind === "range" ? [range.start, range.end + 1] : [0, bytes.length];
  if (range.kind === "range") response.status(206).set("Content-Range", `bytes ${start}-${end - 1}/${bytes.length}`);
  response.set("Content-Length", String(end - start)).end(bytes.subarray(start, end));
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
