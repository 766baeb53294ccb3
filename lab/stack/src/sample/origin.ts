/**
 * The sample origin: an ordinary web server with a real video, player pages, and paths that misbehave on purpose.
 * It knows nothing of proxies. What it must be: cacheable, seekable, readable from any site, and honest in its log.
 *
 *   /                      index of the player pages: /hls.html /dash.html /shaka.html /videojs.html /plain.html
 *   /media/...             the video (lab/stack/sample/media)
 *   /aes/media.m3u8        the lowest quality, its segments encrypted with AES-128
 * /static/...            the same video in PeerTube's layout: HLS of byte ranges in fragmented MP4 files, and web
 * videos
 *   /live/...              the same for ever: master.m3u8 (sliding), low-latency.m3u8, stream.mpd (live.ts)
 * /long/ID/SEC/master.m3u8   the picture for so many seconds, of 2.5, 5 and 10 Mbit/s (long.ts); a new ID makes new
 * addresses; also stream.mpd
 *   /ranges/stream.mpd     the middle quality as byte ranges of one file (DASH SegmentList)
 *   /players/NAME          the players' own builds, from node_modules
 *   /__log?since=MS        the access log as JSON
 * /__size/N              N deterministic bytes (bytes.ts), with ranges; N.mp4 is the same under a name that looks like
 * media
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
import { formatContentRange } from "@tributary/contract";
import { AccessLog } from "./access-log";
import { rangeOf, sizeBytesPieces } from "./bytes";
import { LiveStream, PARTS_PER_SEGMENT } from "./live";
import { LONG_SEGMENT_SEC, LongVideo, longManifest, longMaster, longPlaylist } from "./long";

const SIZE_BYTES_MAX = 100_000_000_000;

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

/** The folder lab/stack/sample. The path is the same from src/sample and from dist/sample. */
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
  addLive(app);
  addLong(app);
  addRangedDash(app);
  app.use("/media", serveFiles(mediaDir, "public, max-age=3600"));
  // The same under addresses that no cache has from an earlier play.
  app.use(/^\/copy\/[\w-]{1,64}/, serveFiles(mediaDir, "public, max-age=3600"));
  app.use(serveFiles(path.join(sampleDir, "pages"), "no-cache"));
  app.use((request, response) => void response.status(404).type("text").send(`no such path: ${request.path}\n`));
  return { app, log };
}

const AES_KEY = Buffer.from("000102030405060708090a0b0c0d0e0f", "hex");
const AES_IV = Buffer.alloc(16, 7);

/**
 * HLS with AES-128: each segment is a whole cipher text, the init segment is in the clear (RFC 8216 §4.3.2.4).
 */
function addEncrypted(app: Express): void {
  app.get("/aes/media.m3u8", (_request, response) => {
    const key = `#EXT-X-KEY:METHOD=AES-128,URI="/aes/video.key",IV=0x${AES_IV.toString("hex")}`;
    const playlist = readFileSync(path.join(mediaDir, "cmaf/media_0.m3u8"), "utf8").replace(
      /"init-0\.m4s"/,
      '"/media/cmaf/init-0.m4s"',
    );
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

/** PeerTube's paths: one file a quality, which its playlist cuts into byte ranges, and the whole video. */
function addPeerTubeLayout(app: Express): void {
  const inMedia = (name: string): Buffer => readFileSync(path.join(mediaDir, "cmaf", name));
  const parts = (track: string): Buffer[] => {
    const segments = readdirSync(path.join(mediaDir, "cmaf"))
      .filter((name) => name.startsWith(`segment-${track}-`))
      .sort();
    return [`init-${track}.m4s`, ...segments].map(inMedia);
  };
  app.get(`${HLS_FOLDER}/master.m3u8`, (_request, response) => {
    const master = inMedia("master.m3u8")
      .toString()
      .replace(/media_(\d)\.m3u8/g, `${VIDEO_ID}-$1.m3u8`);
    response.type("application/vnd.apple.mpegurl").send(master);
  });
  app.get(new RegExp(`^${HLS_FOLDER}/${VIDEO_ID}-(\\d)\\.m3u8$`), (request, response) => {
    const track = String(request.params[0]);
    response
      .type("application/vnd.apple.mpegurl")
      .send(
        rangedPlaylist(inMedia(`media_${track}.m3u8`).toString(), `${VIDEO_ID}-${track}-fragmented.mp4`, parts(track)),
      );
  });
  app.get(new RegExp(`^${HLS_FOLDER}/${VIDEO_ID}-(\\d)-fragmented\\.mp4$`), (request, response) =>
    sendRange(request, response, Buffer.concat(parts(String(request.params[0])))),
  );
  app.get(`/static/web-videos/${VIDEO_ID}-720.mp4`, (request, response) =>
    sendRange(request, response, readFileSync(path.join(mediaDir, "progressive.mp4"))),
  );
}

/** Turns a playlist of whole segments into one of byte ranges of `file` (RFC 8216 §4.3.2.2). */
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

const LIVE_TRACK = "1";
/** Its parts are a few frames of the lowest quality, so small that proxies bring no gain. */
const LOW_LATENCY_TRACK = "0";
const CODECS: Record<string, string> = { "0": "avc1.640016", "1": "avc1.640028" };
/** A low-latency playlist's answer is held back for at most this long. */
const BLOCK_MS_MAX = 6000;

/** Live streams, which begin when the server starts. */
function addLive(app: Express): void {
  const stream = new LiveStream(path.join(mediaDir, "cmaf"), Date.now());
  const until = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
  const hls = (response: Response, text: string): void =>
    void response.set("Cache-Control", "no-cache").type("application/vnd.apple.mpegurl").send(text);
  const master = (track: string, media: string): string =>
    `#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1000000,CODECS="${CODECS[track]}"\n${media}\n`;
  app.get("/live/master.m3u8", (_request, response) => hls(response, master(LIVE_TRACK, "media.m3u8")));
  app.get("/live/media.m3u8", (_request, response) => hls(response, stream.playlist(LIVE_TRACK, Date.now())));
  app.get("/live/low-latency.m3u8", (_request, response) =>
    hls(response, master(LOW_LATENCY_TRACK, "low-latency-media.m3u8")),
  );
  app.get("/live/low-latency-media.m3u8", async (request, response) => {
    const [number, part] = [Number(request.query["_HLS_msn"] ?? 0), Number(request.query["_HLS_part"] ?? -1)];
    const waitMs = stream.waitMs(number, part < 0 ? PARTS_PER_SEGMENT : part + 1, Date.now());
    if (!(waitMs <= BLOCK_MS_MAX))
      return void response
        .status(400)
        .type("text")
        .send(`segment ${number} is ${waitMs} ms away, at most ${BLOCK_MS_MAX} ms are waited for\n`);
    if (request.query["_HLS_msn"] !== undefined) await until(waitMs);
    hls(response, stream.lowLatencyPlaylist(LOW_LATENCY_TRACK, Date.now()));
  });
  app.get("/live/stream.mpd", (_request, response) => {
    response
      .set("Cache-Control", "no-cache")
      .type("application/dash+xml")
      .send(stream.manifest(LIVE_TRACK, CODECS[LIVE_TRACK] ?? "", Date.now()));
  });
  app.get(/^\/live\/segment-([01])-(\d{1,9})\.m4s$/, (request, response) => {
    const [track, number] = [String(request.params[0]), Number(request.params[1])];
    if (stream.waitMs(number + 1, 0, Date.now()) > 0)
      return void response
        .status(404)
        .set("Cache-Control", "no-store")
        .type("text")
        .send(`segment ${number} is not there yet\n`);
    sendRange(request, response, stream.segment(track, number));
  });
  app.get(/^\/live\/part-([01])-(\d{1,9})-([0-7])\.m4s$/, async (request, response) => {
    const [track, number, part] = [String(request.params[0]), Number(request.params[1]), Number(request.params[2])];
    const waitMs = stream.waitMs(number, part + 1, Date.now());
    if (!(waitMs <= BLOCK_MS_MAX))
      return void response.status(404).type("text").send(`part ${part} of segment ${number} is ${waitMs} ms away\n`);
    await until(waitMs);
    sendRange(request, response, stream.part(track, number, part));
  });
}

/** Each ID is a video with addresses of its own, so no cache has it from an earlier one. */
function addLong(app: Express): void {
  const video = new LongVideo(path.join(mediaDir, "cmaf"));
  const folder = "^/long/[\\w-]{1,64}/(\\d{1,4})";
  const playlist = (response: Response, text: string, type = "application/vnd.apple.mpegurl"): void =>
    void response.set("Cache-Control", "public, max-age=3600").type(type).send(text);
  app.get(new RegExp(`${folder}/master\\.m3u8$`), (_request, response) => playlist(response, longMaster()));
  app.get(new RegExp(`${folder}/media-([012])\\.m3u8$`), (request, response) =>
    playlist(response, longPlaylist(Number(request.params[1]), Number(request.params[0]))),
  );
  app.get(new RegExp(`${folder}/stream\\.mpd$`), (request, response) =>
    playlist(response, longManifest(Number(request.params[0])), "application/dash+xml"),
  );
  app.get(new RegExp(`${folder}/init-([012])\\.m4s$`), (request, response) =>
    sendRange(request, response, readFileSync(path.join(mediaDir, `cmaf/init-${request.params[1]}.m4s`))),
  );
  app.get(new RegExp(`${folder}/segment-([012])-(\\d{1,4})\\.m4s$`), (request, response) => {
    const [seconds, track, number] = [0, 1, 2].map((index) => Number(request.params[index])) as [
      number,
      number,
      number,
    ];
    if (number * LONG_SEGMENT_SEC >= seconds)
      return void response.status(404).type("text").send(`the video has ${seconds} s\n`);
    sendRange(request, response, video.segment(track, number));
  });
}

/**
 * DASH by byte ranges: PeerTube's file of the middle quality, with a list of its segments (ISO/IEC 23009-1 §5.3.9.3).
 */
function addRangedDash(app: Express): void {
  app.get("/ranges/stream.mpd", (_request, response) => {
    const folder = path.join(mediaDir, "cmaf");
    const names = readdirSync(folder)
      .filter((name) => name.startsWith(`segment-${LIVE_TRACK}-`))
      .sort();
    let offset = 0;
    const [first, ...ranges] = [`init-${LIVE_TRACK}.m4s`, ...names].map((name) => {
      const start = offset;
      offset += statSync(path.join(folder, name)).size;
      return `${start}-${offset - 1}`;
    });
    const file = `${HLS_FOLDER}/${VIDEO_ID}-${LIVE_TRACK}-fragmented.mp4`;
    response.set("Cache-Control", "no-cache").type("application/dash+xml").send(`<?xml version="1.0" encoding="utf-8"?>
<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" profiles="urn:mpeg:dash:profile:isoff-main:2011" type="static"
  mediaPresentationDuration="PT24S" minBufferTime="PT2S">
  <Period id="0" start="PT0S">
    <AdaptationSet contentType="video" segmentAlignment="true" startWithSAP="1">
      <Representation id="${LIVE_TRACK}" mimeType="video/mp4" codecs="${CODECS[LIVE_TRACK]}"
        bandwidth="900000" width="832" height="468">
        <BaseURL>${file}</BaseURL>
        <SegmentList timescale="12288" duration="24576">
          <Initialization range="${first}"/>
          ${ranges.map((range) => `<SegmentURL mediaRange="${range}"/>`).join("")}
        </SegmentList>
      </Representation>
    </AdaptationSet>
  </Period>
</MPD>
`);
  });
}

function sendRange(request: Request, response: Response, bytes: Buffer): void {
  const etag = `"${createHash("sha256").update(bytes).digest("hex").slice(0, 32)}"`;
  response.set({
    "Content-Type": "video/mp4",
    "Accept-Ranges": "bytes",
    "Cache-Control": "public, max-age=3600",
    ETag: etag,
  });
  const range = rangeOf(request.get("range"), bytes.length);
  if (range.kind === "unsatisfiable")
    return void response.status(416).set("Content-Range", `bytes */${bytes.length}`).end();
  const [start, end] = range.kind === "range" ? [range.start, range.end + 1] : [0, bytes.length];
  if (range.kind === "range") response.status(206).set("Content-Range", formatContentRange(range, bytes.length));
  response.set("Content-Length", String(end - start)).end(bytes.subarray(start, end));
}

function allowEverySite(request: Request, response: Response, next: NextFunction): void {
  response.set({
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers":
      "Content-Length, Content-Range, Accept-Ranges, ETag, Last-Modified, Content-Type, Date",
    "Timing-Allow-Origin": "*",
  });
  if (request.method !== "OPTIONS") return next();
  response.set({
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "Range, If-Range, If-None-Match",
    "Access-Control-Max-Age": "600",
  });
  response.sendStatus(204);
}

/** Static files with strong ETags (a digest of the content), which `If-Range` needs. */
function serveFiles(folder: string, cacheControl: string): express.Handler {
  const etags = new Map(
    filesBelow(folder).map((file) => [
      file,
      `"${createHash("sha256").update(readFileSync(file)).digest("hex").slice(0, 32)}"`,
    ]),
  );
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
  response.sendFile(path.join(packageFolder(packageName), ...rest), {
    dotfiles: "allow",
    headers: { "Cache-Control": "no-cache" },
  });
}

/** Folder of an installed package. npm puts it beside this package or at the root of the workspace. */
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
    response.set({
      "Accept-Ranges": "bytes",
      ETag: `"size-${totalBytes}"`,
      "Content-Type": "application/octet-stream",
      "Cache-Control": "public, max-age=3600",
    });
    const range = rangeOf(request.get("range"), totalBytes);
    if (range.kind === "unsatisfiable") {
      return void response.status(416).set("Content-Range", `bytes */${totalBytes}`).end();
    }
    const [start, end] = range.kind === "range" ? [range.start, range.end + 1] : [0, totalBytes];
    if (range.kind === "range") response.status(206).set("Content-Range", formatContentRange(range, totalBytes));
    response.set("Content-Length", String(end - start));
    if (request.method === "HEAD") return void response.end();
    Readable.from(sizeBytesPieces(start, end)).pipe(response);
  });
  app.get("/__chunked/:bytes", (request, response) => {
    const totalBytes = sizeOf(request, response);
    if (totalBytes !== undefined)
      Readable.from(sizeBytesPieces(0, totalBytes)).pipe(response.type("application/octet-stream"));
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
  response
    .status(400)
    .type("text")
    .send(`size must be a whole number from 0 to ${SIZE_BYTES_MAX}, got ${request.params["bytes"]}\n`);
  return undefined;
}
