/** A publisher with a real Origo and real proxies: enrols, publishes, is killed, goes on, verifies and withdraws. */
import { execFileSync, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import os from "node:os";
import path from "node:path";
import { publisherCode, repoRoot, startFleet, type Fleet } from "@tributary/lab-stack";
import { clockOff, DAY_SEC } from "./skew";
import { eventually } from "./support";

let fleet: Fleet;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(path.join(os.tmpdir(), "tributary-publish-"));
  const proxyEnv = (index: number): Record<string, string> => ({ LIBRARY_DIR: libraryOf(index) });
  fleet = await startFleet({ proxyCount: 2, ports: "any", proxyEnv });
});
afterAll(async () => {
  await fleet?.stop();
  rmSync(folder, { recursive: true });
});

const at = (name: string): string => path.join(folder, name);
const libraryOf = (index: number): string => at(`library-${index}`);

interface Run {
  status: number | null;
  stdout: string;
  stderr: string;
}

/** Runs the command line as a user who has only this folder. */
function tributary(words: readonly string[], env: Record<string, string> = {}, killIf?: () => boolean): Promise<Run> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [path.join(repoRoot, "client/dist/cli.js"), ...words], {
      cwd: folder,
      env: {
        ...process.env,
        TRIBUTARY_ORIGO: fleet.origo.url,
        XDG_CONFIG_HOME: at("config"),
        XDG_CACHE_HOME: at("cache"),
        ...env,
      },
    });
    const run: Run = { status: null, stdout: "", stderr: "" };
    for (const name of ["stdout", "stderr"] as const)
      child[name].on("data", (text: Buffer) => (run[name] += text.toString()));
    const timer = setInterval(() => killIf?.() && child.kill("SIGKILL"), 5);
    child.once("close", (status) => {
      clearInterval(timer);
      resolve({ ...run, status });
    });
  });
}

/** `.../v/KEY/NAME/` of what `publish` printed. */
const addressOf = ({ stdout }: Run): string => /^embed +(\S+)$/m.exec(stdout)![1]!;
const bytesAt = async (url: string): Promise<Buffer> => Buffer.from(await (await fetch(url)).arrayBuffer());

/** Files in the libraries that are as long as this. */
function stored(bytes: number, index: number): string[] {
  if (!existsSync(libraryOf(index))) return [];
  return readdirSync(libraryOf(index), { recursive: true, encoding: "utf8" })
    .map((name) => path.join(libraryOf(index), name))
    .filter((file) => statSync(file, { throwIfNoEntry: false })?.size === bytes);
}

/** Whether a proxy has begun to take an object. */
const isUploading = (): boolean =>
  existsSync(path.join(libraryOf(0), "parts")) && readdirSync(path.join(libraryOf(0), "parts")).length > 0;

test("an unknown key is told to get a code, and a code lets it in", async () => {
  writeFileSync(at("hello.txt"), "hello");
  const unknown = await tributary(["publish", "hello.txt"]);
  expect([unknown.status, unknown.stderr]).toEqual([1, expect.stringContaining("--code CODE")]);
  const known = await tributary(["publish", "hello.txt", "--code", await publisherCode(fleet.origo.url)]);
  expect([known.status, known.stderr]).toEqual([0, expect.stringContaining("Origo knows your key as")]);
  expect((await bytesAt(`${addressOf(known)}hello.txt`)).toString()).toBe("hello");
});

test("a publish that is killed goes on, a plain player gets every byte, and each holder has them", async () => {
  const media = {
    "hd/teil 1.m4s": randomBytes(96_000_000),
    "hd/ü.m4s": randomBytes(16_385),
    "empty.bin": Buffer.alloc(0),
  };
  mkdirSync(at("film/hd"), { recursive: true });
  for (const [name, bytes] of Object.entries(media)) writeFileSync(at(`film/${name}`), bytes);
  writeFileSync(at("film/master.m3u8"), "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhd/index.m3u8\n");
  writeFileSync(
    at("film/hd/index.m3u8"),
    "#EXTM3U\n#EXTINF:4,\nteil%201.m4s\n#EXTINF:4,\n%C3%BC.m4s\n#EXT-X-ENDLIST\n",
  );
  const killed = await tributary(["publish", "film"], {}, isUploading);
  if (killed.status === null) expect((await tributary(["list"])).stdout).toMatch(/^film .*not finished/m);
  const done = await tributary(["publish", "film"]);
  expect([done.status, done.stderr]).toEqual([0, expect.not.stringContaining("Warning")]);
  const address = addressOf(done);
  expect(done.stdout).toContain(`play   ${address}master.m3u8\n`);
  for (const [name, bytes] of Object.entries(media))
    expect((await bytesAt(address + encodeURI(name))).equals(bytes)).toBe(true);
  const got = await tributary([
    "get",
    `${address}hd/teil%201.m4s`,
    "-o",
    "got",
    "--mode",
    "coded",
    "--no-fallback",
    "-q",
  ]);
  expect([got.status, readFileSync(at("got")).equals(media["hd/teil 1.m4s"])]).toEqual([0, true]);
  const verified = await tributary(["verify", `${address}master.m3u8`, "--key", "none"]);
  expect([verified.status, verified.stderr]).toEqual([0, expect.stringContaining("2 copies, and all 5 files")]);
});

test("verify names the proxy whose copy is damaged, and the next publish mends it", async () => {
  writeFileSync(at("twice.bin"), randomBytes(16_387));
  expect((await tributary(["publish", "twice.bin"])).status).toBe(0);
  const [file] = stored(16_387, 0);
  const bytes = readFileSync(file!);
  bytes[16_384]! ^= 1;
  writeFileSync(file!, bytes);
  const { status, stdout } = await tributary(["verify", "twice"]);
  expect([status, stdout]).toEqual([1, expect.stringMatching(/^proxy-1 .*twice\.bin$/m)]);
  expect(stdout).toMatch(/^proxy-2 .* true$/m);
  expect((await tributary(["publish", "twice.bin"])).status).toBe(0);
  expect((await tributary(["verify", "twice"])).stderr).toContain("2 copies");
});

test.each([DAY_SEC, -DAY_SEC])("a clock that is %i seconds ahead does not matter", async (seconds) => {
  const { status, stderr } = await tributary(["publish", "hello.txt"], clockOff(seconds));
  expect([status, stderr]).toEqual([0, expect.not.stringContaining("clock")]);
});

test("two commands with one key and one name: one is published as a whole, and the other says so", async () => {
  for (const name of ["a", "b"]) {
    mkdirSync(at(`${name}/twins`), { recursive: true });
    writeFileSync(at(`${name}/twins/${name}.bin`), randomBytes(8_000_000));
  }
  const runs = await Promise.all(["a", "b"].map((name) => tributary(["publish", `${name}/twins`])));
  const failed = runs.filter(({ status }) => status !== 0);
  for (const { stderr } of failed) expect(stderr).toMatch(/Another (command|machine) publishe[ds] /);
  expect(failed.length).toBeLessThan(2);
  const address = addressOf(runs.find(({ status }) => status === 0)!);
  const [a, b] = await Promise.all(["a.bin", "b.bin"].map(async (name) => (await fetch(address + name)).status));
  expect([a, b].sort()).toEqual([200, 404]);
  expect((await tributary(["list"])).stdout.match(/^twins .*/gm)).toEqual([expect.stringContaining(" released ")]);
});

test("--package makes qualities of one video, also twice at once, and ffmpeg plays them from the address", async () => {
  const source = [
    "-f",
    "lavfi",
    "-i",
    "testsrc2=size=640x480:rate=10:duration=2",
    "-f",
    "lavfi",
    "-i",
    "sine=duration=2",
  ];
  execFileSync("ffmpeg", [
    "-v",
    "error",
    ...source,
    "-c:v",
    "libx264",
    "-preset",
    "ultrafast",
    "-c:a",
    "aac",
    at("Clip 1.mp4"),
  ]);
  const runs = await Promise.all(
    [[], ["--name", "clip-2"]].map(async (words) => {
      const run = await tributary(["publish", "Clip 1.mp4", "--package", ...words]);
      expect([run.status, run.stderr]).toEqual([0, expect.stringContaining("Packaging in 480p, 240p")]);
      return run;
    }),
  );
  const { stdout } = runs[0]!;
  const listed = (await tributary(["list"])).stdout;
  for (const name of ["clip-1", "clip-2"]) expect(listed).toMatch(new RegExp(`^${name} .* released `, "m"));
  const [, play] = /^play +(\S+\/clip-1\/master\.m3u8)$/m.exec(stdout)!;
  for (const url of [play!, play!.replace("master.m3u8", "manifest.mpd")]) {
    const words = ["-v", "error", "-show_entries", "stream=codec_name,height", "-of", "csv", url];
    const said = execFileSync("ffprobe", words, { encoding: "utf8" });
    for (const text of ["h264,480", "h264,240", "aac"]) expect(said).toContain(text);
  }
  expect(readdirSync(at("cache/tributary"))).toEqual([]);
});

test("what is withdrawn is gone", async () => {
  const listed = JSON.parse((await tributary(["list", "--json"])).stdout) as {
    publications: { name: string; address: string }[];
  };
  expect(listed.publications.map(({ name }) => name).sort()).toEqual([
    "clip-1",
    "clip-2",
    "film",
    "hello",
    "twice",
    "twins",
  ]);
  for (const { name, address } of listed.publications) {
    expect((await tributary(["unpublish", name])).status).toBe(0);
    expect((await fetch(`${address}hello.txt`)).status).toBe(404);
  }
  const after = await eventually(
    () => tributary(["list"]),
    ({ stderr }) => stderr.includes("nothing"),
  );
  expect(after.stderr).toContain("You have published nothing here");
  expect((await tributary(["verify", "film"])).status).toBe(1);
});
