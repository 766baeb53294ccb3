/** Whole videos from a real server, with a stand-in for the proxies: the client asks the origin directly. */
import { createCipheriv } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import path from "node:path";
import { gzipSync } from "node:zlib";
import { createNodeClient, type ProxyClient } from "../node";
import { repeatedly } from "./load";
import type { VideoProgressReport } from "./progress";
import { downloadVideo, type VideoOptions, type VideoResult } from "./download";

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

let server: Server;
let client: ProxyClient;
let folder: string;
let url: string;
/** Path -> answer, or the body. */
let site: Record<string, Answer | string | Buffer>;
/** Paths in the order of their requests. */
let asked: string[];

beforeAll(async () => {
  server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? "/", "http://x");
    asked.push(request.url ?? "");
    const answer = site[pathname];
    if (typeof answer === "function") answer(request, response);
    else if (answer === undefined) response.writeHead(404).end("no such path");
    else response.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  client = createNodeClient({ origoUrl: "http://127.0.0.1:9", reportRecords: false });
});
afterAll(async () => {
  await client.close();
  server.close();
});
beforeEach(async () => {
  folder = await mkdtemp(path.join(tmpdir(), "video-test-"));
  site = {};
  asked = [];
});
afterEach(() => rm(folder, { recursive: true }));

const film = (): string => path.join(folder, "film.ts");
const get = (address: string, options: Partial<VideoOptions> = {}): Promise<VideoResult> =>
  downloadVideo(client, `${url}${address}`, {
    output: film(),
    get: { mode: "direct" },
    ffmpeg: null,
    retries: 1,
    ...options,
  });

const bytesOf = (index: number): Buffer => Buffer.alloc(70_000 + index, index);
const list = (...lines: string[]): string => `#EXTM3U\n#EXT-X-TARGETDURATION:1\n${lines.join("\n")}\n#EXT-X-ENDLIST\n`;
const segmentLines = (count: number): string[] =>
  Array.from({ length: count }, (_, index) => [`#EXTINF:1,`, `s${index}.ts`]).flat();
const segments = (count: number): Record<string, Buffer> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`/s${index}.ts`, bytesOf(index)]));
const joined = (...indexes: number[]): Buffer => Buffer.concat(indexes.map(bytesOf));

test("segments that end in any order are joined in their own, and the folder of parts is gone", async () => {
  site = { "/list.m3u8": list(...segmentLines(12)), ...segments(12) };
  site["/s0.ts"] = (_request, response) => void setTimeout(() => response.end(bytesOf(0)), 300);
  const reports: VideoProgressReport[] = [];
  const result = await get("/list.m3u8", { onProgress: (report) => reports.push(report) });
  expect(reports.at(-1)).toMatchObject({ phase: "joined", segmentsDone: 12, leftMs: 0 });
  expect(result).toMatchObject({ segments: 12, gaps: 0, durationSec: 12 });
  expect(readFileSync(film()).equals(joined(...Array.from({ length: 12 }, (_, index) => index)))).toBe(true);
  expect(await readdir(folder)).toEqual(["film.ts"]);
});

test("a redirected, gzipped playlist: addresses begin where it lies", async () => {
  site = {
    "/go": (_request, response) => response.writeHead(302, { location: "/deep/list.m3u8?x=1" }).end(),
    "/deep/list.m3u8": (_request, response) =>
      response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(list("#EXTINF:1,", "../s1.ts"))),
    ...segments(2),
  };
  await get("/go");
  expect(readFileSync(film()).equals(joined(1))).toBe(true);
});

test("byte ranges of one file with an init segment and a key; the key is asked for once", async () => {
  const key = Buffer.alloc(16, 3);
  const seal = (index: number): Buffer => {
    const cipher = createCipheriv("aes-128-cbc", key, Buffer.concat([Buffer.alloc(15), Buffer.from([index])]));
    return Buffer.concat([cipher.update(bytesOf(index)), cipher.final()]);
  };
  const sealed = [seal(0), seal(1), seal(2)];
  const whole = Buffer.concat([Buffer.from("INIT"), ...sealed]);
  site = {
    "/list.m3u8": list(
      '#EXT-X-MAP:URI="v.mp4",BYTERANGE="4@0"',
      '#EXT-X-KEY:METHOD=AES-128,URI="key"',
      ...sealed.flatMap(({ length }, index) => [
        `#EXT-X-BYTERANGE:${length}${index === 0 ? "@4" : ""}`,
        "#EXTINF:1,",
        "v.mp4",
      ]),
    ),
    "/key": key,
    "/v.mp4": (request, response) => {
      const [start = 0, end = 0] = (request.headers.range ?? "").match(/\d+/g)!.map(Number);
      response.writeHead(206, { "content-range": `bytes ${start}-${end}/${whole.length}` });
      response.end(whole.subarray(start, end + 1));
    },
  };
  await get("/list.m3u8");
  expect(readFileSync(film()).equals(Buffer.concat([Buffer.from("INIT"), joined(0, 1, 2)]))).toBe(true);
  expect(asked.filter((address) => address === "/key")).toHaveLength(1);
});

test("a wrong key is an error, and no film appears under the old one's name", async () => {
  writeFileSync(film(), "the old film");
  site = { "/list.m3u8": list('#EXT-X-KEY:METHOD=AES-128,URI="key"', ...segmentLines(1)), ...segments(1) };
  site["/key"] = Buffer.alloc(16);
  await expect(get("/list.m3u8")).rejects.toThrow(/Segment 1 of 1 of video .*do not open with the key/);
  site["/key"] = Buffer.alloc(3);
  await expect(get("/list.m3u8")).rejects.toThrow(/key .* has 3 bytes, and AES-128 needs 16/);
  expect(readFileSync(film(), "utf8")).toBe("the old film");
});

test("one segment fails: it is asked for again, the error names it, and the next run goes on", async () => {
  site = { "/list.m3u8": list(...segmentLines(9)), ...segments(9) };
  site["/s7.ts"] = (_request, response) => response.writeHead(403).end();
  await expect(get("/list.m3u8?token=1", { segmentsAtOnce: 1 })).rejects.toThrow(
    /Segment 8 of 9 of video \(http:\/\/127.0.0.1:\d+\/s7.ts\) failed: the origin answered 403.*repeat the command/,
  );
  expect(asked.filter((address) => address === "/s7.ts")).toHaveLength(2);
  expect(existsSync(film())).toBe(false);
  asked = [];
  site["/s7.ts"] = bytesOf(7);
  let resumed = 0;
  await get("/list.m3u8?token=2", { segmentsAtOnce: 1, onStart: (start) => (resumed = start.resumedSegments) });
  expect(resumed).toBe(7);
  // The last segment of the earlier run is looked at, whether it is still the same.
  expect(asked).toEqual(["/list.m3u8?token=2", "/s6.ts", "/s7.ts", "/s8.ts"]);
  expect(readFileSync(film()).equals(joined(0, 1, 2, 3, 4, 5, 6, 7, 8))).toBe(true);
});

test("a segment is missing: the film is made, and a sentence says what it lacks", async () => {
  const notices: string[] = [];
  site = { "/list.m3u8": list('#EXT-X-MAP:URI="init"', ...segmentLines(20)), "/init": "INIT", ...segments(20) };
  delete site["/s0.ts"];
  delete site["/s5.ts"];
  const result = await get("/list.m3u8", { onNotice: (sentence) => notices.push(sentence), segmentsAtOnce: 1 });
  expect(result).toMatchObject({ segments: 20, gaps: 2 });
  expect(notices[1]).toMatch(/^Segment 6 of 20 of video \(.*s5\.ts\) .* answered 404\. The film lacks 1\.0 s there\.$/);
  const there = Array.from({ length: 20 }, (_, index) => index).filter((index) => index !== 0 && index !== 5);
  expect(readFileSync(film()).equals(Buffer.concat([Buffer.from("INIT"), joined(...there)]))).toBe(true);
});

test("more than a tenth of the segments are missing: that is an error, and so is an init segment", async () => {
  site = { "/list.m3u8": list(...segmentLines(20)), ...segments(20) };
  for (const index of [3, 4, 5]) delete site[`/s${index}.ts`];
  await expect(get("/list.m3u8", { retries: 0 })).rejects.toThrow(/Segment \d of 20 .* answered 404.*repeat/);
  site["/list.m3u8"] = list('#EXT-X-MAP:URI="init"', ...segmentLines(20));
  await expect(get("/list.m3u8", { retries: 0 })).rejects.toThrow(/The init segment .* answered 404/);
  expect(existsSync(film())).toBe(false);
});

test("the video changed between two runs: all of it is fetched", async () => {
  const notices: string[] = [];
  const made = (letter: string): void => {
    for (let index = 0; index < 5; index++)
      site[`/s${index}.ts`] = (_request, response) =>
        response.writeHead(200, { etag: `"${letter}"` }).end(`${letter}${index} `);
  };
  site = { "/list.m3u8": list(...segmentLines(5)) };
  made("a");
  site["/s3.ts"] = (_request, response) => response.writeHead(500).end();
  const options = { segmentsAtOnce: 1, retries: 0, onNotice: (sentence: string) => void notices.push(sentence) };
  await expect(get("/list.m3u8", options)).rejects.toThrow(/answered 500/);
  made("b");
  await get("/list.m3u8", options);
  expect(notices.at(0)).toBe("The video has changed since the earlier run, so all of it is fetched.");
  expect(readFileSync(film(), "utf8")).toBe("b0 b1 b2 b3 b4 ");
});

test("a file changes while its parts are fetched: an error, and the next run begins anew", async () => {
  let bytes = Buffer.from("aaaabbbbcccc");
  site = {
    "/list.m3u8": list(...[0, 4, 8].flatMap((at) => [`#EXT-X-BYTERANGE:4@${at}`, "#EXTINF:1,", "v.mp4"])),
    "/v.mp4": (request, response) => {
      const [start = 0, end = 0] = (request.headers.range ?? "").match(/\d+/g)!.map(Number);
      const etag = `"${bytes.toString("latin1", 0, 1)}"`;
      response.writeHead(206, { etag, "content-range": `bytes ${start}-${end}/${bytes.length}` });
      response.end(bytes.subarray(start, end + 1));
      if (start === 4) bytes = Buffer.from("xxxxyyyyzzzz");
    },
  };
  await expect(get("/list.m3u8", { segmentsAtOnce: 1 })).rejects.toThrow(/v\.mp4 has changed while.*begin anew/);
  await get("/list.m3u8", { segmentsAtOnce: 1 });
  expect(readFileSync(film(), "latin1")).toBe("xxxxyyyyzzzz");
});

test("an abort stops at once and keeps what is done; another playlist begins anew", async () => {
  const controller = new AbortController();
  site = { "/list.m3u8": list(...segmentLines(6)), ...segments(6) };
  site["/s3.ts"] = () => controller.abort(new Error("stopped by the test"));
  const options = { segmentsAtOnce: 1, signal: controller.signal };
  await expect(get("/list.m3u8", options)).rejects.toThrow("stopped by the test");
  expect(await readdir(`${film()}.parts`)).toContain("state.json");
  site["/list.m3u8"] = list(...segmentLines(2));
  await get("/list.m3u8");
  expect(readFileSync(film()).equals(joined(0, 1))).toBe(true);
});

test("the user's headers go to the playlist's origin, with keys and segments, and to no other server", async () => {
  const got: string[] = [];
  const note: Answer = ({ headers, url }, response) => {
    got.push(`${headers.host?.split(":")[0]} ${url} ${headers.authorization} ${headers["user-agent"]}`);
    response.end(url === "/list.m3u8" ? list("#EXTINF:1,", "s0.ts", "#EXTINF:1,", `${other}/s1.ts`) : bytesOf(0));
  };
  const other = url.replace("127.0.0.1", "localhost");
  site = { "/list.m3u8": note, "/s0.ts": note, "/s1.ts": note };
  const headers = { authorization: "Basic eA==", "user-agent": "mine" };
  await get("/list.m3u8", { get: { mode: "direct", headers }, segmentsAtOnce: 1 });
  expect(got).toEqual([
    "127.0.0.1 /list.m3u8 Basic eA== mine",
    "127.0.0.1 /s0.ts Basic eA== mine",
    "localhost /s1.ts undefined mine",
  ]);
});

test("a gap is left out with a sentence", async () => {
  site = { "/list.m3u8": list("#EXTINF:1,", "s0.ts", "#EXT-X-GAP", "#EXTINF:1,", "s1.ts", "#EXTINF:1,", "s2.ts") };
  Object.assign(site, segments(3));
  const notices: string[] = [];
  expect(await get("/list.m3u8", { onNotice: (sentence) => notices.push(sentence) })).toMatchObject({ gaps: 1 });
  expect(readFileSync(film()).equals(joined(0, 2))).toBe(true);
  expect(notices.join(" ")).toMatch(/Segment 2 of 3 of video is missing/);
  expect(asked).not.toContain("/s1.ts");
});

test("live: the recording begins near the end, follows the list, and `durationSec` ends it", async () => {
  const startedMs = Date.now();
  site = segments(30);
  site["/live.m3u8"] = (_request, response) => {
    const first = Math.floor((Date.now() - startedMs) / 500);
    const lines = Array.from({ length: 5 }, (_, index) => `#EXTINF:0.5,\ns${first + index}.ts`);
    response.end(`#EXTM3U\n#EXT-X-TARGETDURATION:1\n#EXT-X-MEDIA-SEQUENCE:${first}\n${lines.join("\n")}\n`);
  };
  expect(await get("/live.m3u8", { durationSec: 3 })).toMatchObject({ segments: 6, durationSec: 3 });
  expect(readFileSync(film()).equals(joined(2, 3, 4, 5, 6, 7))).toBe(true);
});

test("live: `finish` ends the recording, and the film has what was there", async () => {
  const finish = new AbortController();
  site = { "/live.m3u8": list(...segmentLines(3)).replace("#EXT-X-ENDLIST", ""), ...segments(3) };
  const result = get("/live.m3u8", {
    finish: finish.signal,
    onProgress: ({ segmentsDone }) => segmentsDone === 3 && finish.abort(),
  });
  expect(await result).toMatchObject({ segments: 3 });
  expect(readFileSync(film()).equals(joined(0, 1, 2))).toBe(true);
});

const playlistWithTexts = (): Record<string, Answer | string | Buffer> => ({
  "/master.m3u8":
    '#EXTM3U\n#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="Deutsch",LANGUAGE="de",URI="de.m3u8"\n' +
    '#EXT-X-MEDIA:TYPE=SUBTITLES,GROUP-ID="s",NAME="Suomi",LANGUAGE="fi",URI="fi.m3u8"\n' +
    '#EXT-X-STREAM-INF:BANDWIDTH=1000,SUBTITLES="s"\nlist.m3u8\n',
  "/list.m3u8": list(...segmentLines(2)),
  ...segments(2),
  "/de.m3u8": list("#EXTINF:1,", "de0.vtt", "#EXTINF:1,", "de1.vtt"),
  "/de0.vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\neins\n",
  "/de1.vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nzwei\n",
  "/fi.m3u8": list("#EXTINF:2,", "fi.vtt"),
  "/fi.vtt": "WEBVTT\n\n00:00.000 --> 00:01.000\nyksi\n",
});

test("subtitles lie beside the film, joined; a language that is absent names those there are", async () => {
  site = playlistWithTexts();
  await get("/master.m3u8", { subtitles: "de" });
  expect(readFileSync(path.join(folder, "film.de.vtt"), "utf8")).toBe(
    "WEBVTT\n\n00:00:00.000 --> 00:00:01.000\neins\n\n00:00:01.000 --> 00:00:02.000\nzwei\n",
  );
  const { files } = await get("/master.m3u8", { subtitles: "all" });
  expect(files.map((file) => path.basename(file.path))).toEqual(["film.ts", "film.de.vtt", "film.fi.vtt"]);
  await expect(get("/master.m3u8", { subtitles: "sv" })).rejects.toThrow('no subtitles "sv", allowed: de, fi');
});

test("what is no playlist is an error that says what came", async () => {
  site = { "/list.m3u8": "<html>blocked</html>" };
  await expect(get("/list.m3u8")).rejects.toThrow(/is no playlist: it begins with "<html>blocked/);
  await expect(get("/absent.m3u8")).rejects.toThrow(/playlist .*\/absent.m3u8 failed: the origin answered 404/);
});

test("the next quality is taken if the site lacks the playlist of the best one", async () => {
  const master = ["big", "small"].flatMap((name, index) => [
    `#EXT-X-STREAM-INF:BANDWIDTH=${2000 - index}`,
    `${name}.m3u8`,
  ]);
  site = { "/master.m3u8": `#EXTM3U\n${master.join("\n")}\n`, "/small.m3u8": list(...segmentLines(1)), ...segments(1) };
  const notices: string[] = [];
  await get("/master.m3u8", { retries: 0, onNotice: (sentence) => notices.push(sentence) });
  expect(readFileSync(film()).equals(joined(0))).toBe(true);
  expect(notices[0]).toMatch(/big\.m3u8 failed: the origin answered 404\. Another quality is taken\./);
  delete site["/small.m3u8"];
  await expect(get("/master.m3u8", { retries: 0 })).rejects.toThrow(/small\.m3u8 failed: the origin answered 404/);
});

test("a film that another process downloads is refused, and one whose process was killed is not", async () => {
  site = { "/list.m3u8": list(...segmentLines(1)), ...segments(1) };
  const lock = `${film()}.parts.lock`;
  writeFileSync(lock, String(process.ppid));
  await expect(get("/list.m3u8")).rejects.toThrow(new RegExp(`Process ${process.ppid} downloads to the same name`));
  writeFileSync(lock, "4194305");
  await get("/list.m3u8");
  expect(await readdir(folder)).toEqual(["film.ts"]);
});

test("a DASH file without an index whose beginning is another file, and a track without an address", async () => {
  const mpd = (body: string): string =>
    '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT2S"><Period>' +
    `<AdaptationSet mimeType="video/mp4"><Representation id="v" bandwidth="1">${body}</Representation>` +
    "</AdaptationSet></Period></MPD>";
  const base = '<SegmentBase><Initialization sourceURL="i.mp4"/></SegmentBase>';
  site = { "/v.mpd": mpd(`<BaseURL>s1.ts</BaseURL>${base}`), "/i.mp4": "INIT", ...segments(2) };
  await get("/v.mpd");
  expect(readFileSync(film()).equals(Buffer.concat([Buffer.from("INIT"), joined(1)]))).toBe(true);
  site["/w.mpd"] = mpd(base);
  await expect(get("/w.mpd")).rejects.toThrow(/names no address for the track "v"/);
});

test("a full disk is told as it is, and nothing is asked for again", async () => {
  const full = Object.assign(new Error("no space left on device"), { code: "ENOSPC", syscall: "write" });
  const attempt = jest.fn(() => Promise.reject(full));
  await expect(repeatedly({ retries: 3, signal: new AbortController().signal }, "it", attempt)).rejects.toBe(full);
  expect(attempt).toHaveBeenCalledTimes(1);
});
