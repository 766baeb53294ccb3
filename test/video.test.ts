/** Whole videos by the command line, through a real fleet, checked with ffprobe and with the origin's own bytes. */
import { execFileSync, spawnSync } from "node:child_process";
import http from "node:http";
import type { AddressInfo } from "node:net";
import { mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { mediaDir, repoRoot, startFleet, type Fleet } from "@tributary/lab-stack";
import { cli, startScript, stopScripts, type CliRun } from "./support";

const VIDEO_ID = "8c5f2d1e-3b7a-4f60-9c1d-2a4e6b8d0f13";

let fleet: Fleet;
let folder: string;
beforeAll(async () => {
  fleet = await startFleet({ proxyCount: 3, ports: "any" });
});
afterAll(() => fleet?.stop());
beforeEach(() => (folder = mkdtempSync(path.join(tmpdir(), "video-"))));
afterEach(async () => {
  await stopScripts();
  rmSync(folder, { recursive: true });
});

const film = (name = "film.mp4"): string => path.join(folder, name);
const get = (address: string, ...words: string[]): Promise<CliRun> =>
  cli("get", `${fleet.sample.url}${address}`, "-o", film(), "--origo", fleet.origo.url, ...words);

/** `h264 1280x720 24`, one line for each stream. */
function streamsOf(file: string): string[] {
  const words = ["-v", "error", "-of", "json", "-show_entries", "stream=codec_name,width,height,duration", file];
  const { streams } = JSON.parse(execFileSync("ffprobe", words, { encoding: "utf8" })) as {
    streams: { codec_name: string; width?: number; height?: number; duration: string }[];
  };
  return streams.map(({ codec_name, width, height, duration }) =>
    [codec_name, ...(width ? [`${width}x${height}`] : []), Math.round(Number(duration))].join(" "),
  );
}

/** Decodes each frame. Throws if ffmpeg complains. */
function decode(file: string): void {
  const said = execFileSync("ffmpeg", ["-v", "error", "-xerror", "-i", file, "-f", "null", "-"], { encoding: "utf8" });
  expect(said).toBe("");
}

/** The init segment and all segments of a track, as the origin has them. */
function originBytes(track: number): Buffer {
  const folder = path.join(mediaDir, "cmaf");
  const names = readdirSync(folder)
    .filter((name) => name.startsWith(`segment-${track}-`))
    .sort();
  return Buffer.concat([`init-${track}.m4s`, ...names].map((name) => readFileSync(path.join(folder, name))));
}

test.each([
  ["HLS", "/media/cmaf/master.m3u8"],
  ["DASH", "/media/cmaf/stream.mpd"],
])("%s: the best quality and its sound become one film, through the proxies", async (_name, address) => {
  const { status, stderr } = await get(address, "--no-fallback");
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(streamsOf(film())).toEqual(["h264 1280x720 24", "aac 24"]);
  decode(film());
  expect(readdirSync(folder)).toEqual(["film.mp4"]);
});

test("a chosen quality and duration", async () => {
  expect(await get("/media/cmaf/master.m3u8", "--quality", "480p", "--duration", "7")).toMatchObject({ status: 0 });
  expect(streamsOf(film())).toEqual(["h264 832x468 8", "aac 8"]);
});

test.each([
  ["HLS with AES-128", "/aes/media.m3u8", 0],
  ["HLS of byte ranges", `/static/streaming-playlists/hls/${VIDEO_ID}/${VIDEO_ID}-1.m3u8`, 1],
  ["DASH of byte ranges", "/ranges/stream.mpd", 1],
])("%s: without ffmpeg the film has the origin's bytes, and a sentence says so", async (_name, address, track) => {
  const words = ["get", `${fleet.sample.url}${address}`, "-o", film(), "--origo", fleet.origo.url];
  const env = { ...process.env, PATH: folder };
  const script = path.join(repoRoot, "client/dist/cli.js");
  const { status, stderr } = spawnSync(process.execPath, [script, ...words], { env, encoding: "utf8" });
  expect({ status, stderr }).toMatchObject({ status: 0 });
  expect(stderr).toContain("ffmpeg was not found in PATH");
  expect(readFileSync(film()).equals(originBytes(track))).toBe(true);
});

test("a playlist without a telling name or type is recognised, and one for standard output stays one", async () => {
  const redirect = `/__redirect?to=${encodeURIComponent(`${fleet.sample.url}/aes/media.m3u8`)}`;
  expect(await get(redirect)).toMatchObject({ status: 0 });
  expect(streamsOf(film())).toEqual(["h264 416x234 24"]);
  const { stdout } = await cli("get", `${fleet.sample.url}/aes/media.m3u8`, "-o", "-", "--origo", fleet.origo.url);
  expect(stdout.toString()).toMatch(/^#EXTM3U/);
});

test("every sound of a film: the picture's own, and those apart, with their languages", async () => {
  const make = (name: string, ...inputs: string[]): void =>
    void execFileSync("ffmpeg", [
      ...["-v", "error", ...inputs.flatMap((input) => ["-f", "lavfi", "-i", input]), "-t", "2", "-c:a", "aac"],
      ...["-hls_list_size", "0", "-hls_playlist_type", "vod", path.join(folder, name)],
    ]);
  make("own.m3u8", "testsrc=s=64x64:r=10", "sine=300");
  for (const hz of ["400", "500"]) make(`${hz}.m3u8`, `sine=${hz}`);
  const media = (language: string, more: string): string =>
    `#EXT-X-MEDIA:TYPE=AUDIO,GROUP-ID="a",NAME="${language}",LANGUAGE="${language}"${more}\n`;
  const master =
    `#EXTM3U\n${media("en", ",DEFAULT=YES")}${media("de", ',URI="400.m3u8"')}${media("fr", ',URI="500.m3u8"')}` +
    '#EXT-X-STREAM-INF:BANDWIDTH=9000,AUDIO="a"\nown.m3u8\n';
  const site = http.createServer(({ url = "" }, response) => {
    const name = path.basename(url);
    response.end(name === "master.m3u8" ? master : readFileSync(path.join(folder, name)));
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  try {
    const address = `http://127.0.0.1:${(site.address() as AddressInfo).port}/master.m3u8`;
    const soundsFor = async (audio: string): Promise<string[]> => {
      const words = ["get", address, "-o", film(), "--mode", "direct", "--no-record", "--audio", audio];
      expect(await cli(...words)).toMatchObject({ status: 0 });
      const asked = ["-v", "error", "-select_streams", "a", "-show_entries", "stream_tags=language", "-of", "csv=p=0"];
      return execFileSync("ffprobe", [...asked, film()], { encoding: "utf8" })
        .trim()
        .split("\n");
    };
    expect(await soundsFor("all")).toEqual(["eng", "deu", "fra"]);
    decode(film());
    expect(await soundsFor("fr,de")).toEqual(["fra", "deu"]);
  } finally {
    site.close();
  }
});

test("Ctrl-C keeps what is done, and the same command goes on there", async () => {
  const words = ["get", `${fleet.sample.url}/long/resume/40/master.m3u8`, "-o", film(), "--origo", fleet.origo.url];
  const script = startScript("client/dist/cli.js", ...words, "--connections", "3");
  await until(() => readdirSync(folder).some((name) => name.endsWith(".parts") && joined(film(name)) > 3));
  script.signal("SIGINT");
  expect(await script.ended).toBe(130);
  expect(script.output()).toMatch(/film\.mp4\.parts: repeat the command to go on/);
  const { status, stderr } = await cli(...words);
  expect(stderr).toMatch(/\d+ segments are there from an earlier run/);
  expect({ status, streams: streamsOf(film()) }).toEqual({ status: 0, streams: ["h264 1280x720 40"] });
});

function joined(parts: string): number {
  try {
    return (JSON.parse(readFileSync(path.join(parts, "state.json"), "utf8")) as { tracks: { joined: number }[] })
      .tracks[0]!.joined;
  } catch {
    return 0;
  }
}

async function until(isSo: () => boolean): Promise<void> {
  for (const deadlineMs = Date.now() + 30_000; !isSo(); await new Promise((resolve) => setTimeout(resolve, 20)))
    if (Date.now() > deadlineMs) throw new Error("it did not happen within 30 s");
}

test.each(["/live/master.m3u8", "/live/stream.mpd"])(
  "live %s: Ctrl-C ends the recording with a film",
  async (address) => {
    const words = ["get", `${fleet.sample.url}${address}`, "-o", film(), "--origo", fleet.origo.url];
    const script = startScript("client/dist/cli.js", ...words);
    await until(() => readdirSync(folder).some((name) => name.endsWith(".parts") && joined(film(name)) >= 4));
    script.signal("SIGINT");
    expect(await script.ended).toBe(0);
    expect(streamsOf(film())[0]).toMatch(/^h264 832x468 (8|10|12)$/);
    decode(film());
  },
);
