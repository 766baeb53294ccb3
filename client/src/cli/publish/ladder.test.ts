import { spawn, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { ladderArguments, makeLadder, rungsOf, segmentSeconds, type Film } from "./ladder";

describe("ladder", () => {
  test.each([
    [2160, [2160, 1440, 1080, 720]],
    [4320, [2160, 1440, 1080, 720]],
    [1080, [1080, 720, 480, 240]],
    [811, [810, 480, 240]],
    [720, [720, 480, 240]],
    [500, [500, 240]],
    [240, [240]],
    [100, [100]],
    [1, [2]],
  ])("ladder: a film of %i lines", (lines, expected) => {
    expect(rungsOf(lines).map((rung) => rung.lines)).toEqual(expected);
    const rates = rungsOf(lines).map(({ kbitPerSec }) => kbitPerSec);
    expect(rates).toEqual([...rates].sort((one, other) => other - one));
  });

  test("ladder: segments are 4 s, and longer where a publication could not have so many", () => {
    expect([60, 7200, 36_000].map((seconds) => segmentSeconds(seconds, 5))).toEqual([4, 4, 19]);
  });

  test("ladder: without sound there is no track for it", () => {
    const film = { file: "/f", id: "i", ffmpeg: "/ffmpeg", seconds: 9, lines: 480 };
    const words = (hasSound: boolean): string => ladderArguments({ ...film, hasSound }, rungsOf(480), "/out").join(" ");
    expect(words(true)).toContain("id=0,streams=v id=1,streams=a");
    expect(words(false)).not.toMatch(/streams=a|0:a/);
  });
});

describe("ladder: several runs of one film", () => {
  const cache = process.env["XDG_CACHE_HOME"];
  let folder: string;
  let film: Film;
  const at = (name: string): string => path.join(folder, "tributary", name);
  const leave = (name: string): void => {
    mkdirSync(at(name), { recursive: true });
    writeFileSync(path.join(at(name), "who"), name);
  };
  const left = (): string[] => readdirSync(path.join(folder, "tributary")).sort();
  const overPid = (): number => spawnSync("true").pid;

  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), "ladder-"));
    process.env["XDG_CACHE_HOME"] = folder;
    const ffmpeg = path.join(folder, "ffmpeg");
    writeFileSync(ffmpeg, '#!/bin/sh\nfor last; do :; done\necho made > "$(dirname "$last")/who"\n');
    chmodSync(ffmpeg, 0o755);
    film = { file: "/film.mp4", id: "abc", ffmpeg, seconds: 1, lines: 240, hasSound: false };
  });
  afterEach(() => {
    if (cache === undefined) delete process.env["XDG_CACHE_HOME"];
    else process.env["XDG_CACHE_HOME"] = cache;
    rmSync(folder, { recursive: true });
  });

  test("each has a folder of its own, whether the other has finished or not", async () => {
    const other = spawn("sleep", ["60"]);
    const theirs = [`ladder-abc-${other.pid}`, `ladder-abc-${other.pid}.part`];
    theirs.forEach(leave);
    const made = await makeLadder(film, true);
    expect([made, readFileSync(path.join(made, "who"), "utf8")]).toEqual([at(`ladder-abc-${process.pid}`), "made\n"]);
    expect(left()).toEqual([...theirs, path.basename(made)].sort());
    other.kill();
  });

  test("a run takes over what an interrupted one has finished, and removes the rest", async () => {
    const [over, older] = [overPid(), overPid()];
    [`ladder-abc-${over}`, `ladder-abc-${older}`, `ladder-abc-${older}.part`, "ladder-def-1.part"].forEach(leave);
    const made = await makeLadder({ ...film, ffmpeg: "/none" }, true);
    expect(readFileSync(path.join(made, "who"), "utf8")).toMatch(/^ladder-abc-/);
    expect(left()).toEqual([path.basename(made), "ladder-def-1.part"].sort());
  });

  test("ffmpeg that fails leaves nothing", async () => {
    writeFileSync(film.ffmpeg, "#!/bin/sh\necho broken >&2\nexit 1\n");
    await expect(makeLadder(film, true)).rejects.toThrow("ffmpeg failed: broken");
    expect(left()).toEqual([]);
  });
});
