/** `publish`, `list`, `unpublish` and `verify`, with an Origo and proxies that speak publications.md. */
import { mkdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { bytesOf, CLI, execute, makeFolder, type CommandOptions, type CommandRun } from "../../../test/command";
import { run as runProgram } from "../program";
import { idOf, LibraryStandIn, PublishingOrigo } from "../../../test/publishing";

let origo: PublishingOrigo;
let proxies: LibraryStandIn[];
let folder: ReturnType<typeof makeFolder>;

beforeEach(async () => {
  folder = makeFolder();
  origo = await new PublishingOrigo().start();
  proxies = await Promise.all(["paris", "oslo"].map((name) => new LibraryStandIn(name).start()));
  origo.proxies = proxies.map(({ info }) => info);
});
afterEach(() => {
  origo.stop();
  for (const proxy of proxies) proxy.stop();
  folder.remove();
});

const at = (name: string): string => path.join(folder.path, name);
const keyFile = (): string => at("config/tributary/publisher.pem");

const environment = (): NodeJS.ProcessEnv => ({ XDG_CONFIG_HOME: at("config"), TRIBUTARY_ORIGO: origo.url });

/** The command in this process. */
async function run(words: readonly string[]): Promise<{ status: number; stdout: string; stderr: string }> {
  const [before, cwd] = [{ ...process.env }, process.cwd()];
  const texts = { stdout: "", stderr: "" };
  for (const name of ["stdout", "stderr"] as const)
    jest.spyOn(process[name], "write").mockImplementation((text) => ((texts[name] += String(text)), true));
  Object.assign(process.env, environment());
  process.chdir(folder.path);
  try {
    const status = await runProgram(words);
    return { status, ...texts };
  } finally {
    process.chdir(cwd);
    process.env = before;
    jest.restoreAllMocks();
  }
}

function runProcess(words: readonly string[], during: CommandOptions["during"]): Promise<CommandRun> {
  return execute(process.execPath, [CLI, ...words], {
    cwd: folder.path,
    env: environment(),
    ...(during && { during }),
  });
}

function write(files: Record<string, string | Uint8Array>): void {
  for (const [name, body] of Object.entries(files)) {
    mkdirSync(path.dirname(at(name)), { recursive: true });
    writeFileSync(at(name), body);
  }
}

const SEGMENT = bytesOf(1, 300_000);
const FILM = {
  "My Film/master.m3u8": "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nhd/index.m3u8\n",
  "My Film/hd/index.m3u8": "#EXTM3U\n#EXTINF:4,\nein teil.m4s\n",
  "My Film/hd/ein teil.m4s": SEGMENT,
};

describe("publish", () => {
  test("publish: a folder goes to every proxy, and its address is printed", async () => {
    write(FILM);
    const { status, stdout, stderr } = await run(["publish", "My Film"]);
    expect([status, stderr]).toEqual([0, expect.stringContaining(`Made your publisher's key: ${keyFile()}`)]);
    const { manifest } = origo.released.get("my-film")!;
    expect(manifest.files.map(({ path: name, type }) => [name, type])).toEqual([
      ["hd/ein teil.m4s", "video/mp4"],
      ["hd/index.m3u8", "application/vnd.apple.mpegurl"],
      ["master.m3u8", "application/vnd.apple.mpegurl"],
    ]);
    expect(stdout).toMatch(/^play {3}http.*\/v\/.{43}\/my-film\/master\.m3u8\nembed {2}http.*\/my-film\/\n$/);
    for (const { objects } of proxies) expect([...objects.keys()]).toEqual([idOf(SEGMENT)]);
    expect(origo.playlists.size).toBe(2);
    expect(statSync(keyFile()).mode & 0o777).toBe(0o600);
    const pem = readFileSync(keyFile());
    expect((await run(["publish", "My Film"])).stderr).not.toContain("Made");
    expect(readFileSync(keyFile()).equals(pem)).toBe(true);
    expect(origo.released.get("my-film")!.manifest.revision).toBe(2);
  });

  test("publish: a private key is left out, also under another name, and is not published alone", async () => {
    write(FILM);
    const words = ["--key", "My Film/key.pem"];
    expect((await run(["publish", "My Film", ...words])).status).toBe(0);
    write({ "My Film/hd/copy.txt": readFileSync(at("My Film/key.pem")) });
    const { status, stderr } = await run(["publish", "My Film", ...words]);
    expect([status, stderr]).toEqual([
      0,
      expect.stringContaining("  hd/copy.txt: a private key\n  key.pem: a private key\n"),
    ]);
    expect(origo.released.get("my-film")!.manifest.files).toHaveLength(Object.keys(FILM).length);
    const alone = await run(["publish", "My Film/key.pem", ...words]);
    expect([alone.status, alone.stderr]).toEqual([1, expect.stringContaining("Left out: key.pem: a private key.")]);
  });

  test.each([0, 1, 16_384, 16_385])("publish: a file of %i bytes", async (bytes) => {
    write({ "a.bin": bytesOf(1, bytes) });
    const { status, stdout } = await run(["publish", "a.bin", "--quiet"]);
    expect([status, stdout]).toEqual([0, expect.stringMatching(/\/a\/a\.bin\n/)]);
    expect(proxies[0]!.objects.get(idOf(bytesOf(1, bytes)))!.length).toBe(bytes);
  });

  test("publish: an upload that breaks off goes on at once where the proxy has it", async () => {
    write({ "a.mp4": SEGMENT });
    proxies[0]!.mood = { breakAfterBytes: 100_000, times: 2 };
    const { status, stderr } = await run(["publish", "a.mp4"]);
    expect([status, stderr]).toEqual([0, expect.not.stringContaining("Warning")]);
    expect([...proxies[0]!.objects.values()].map((each) => each.equals(SEGMENT))).toEqual([true]);
    expect(proxies[0]!.patches).toBeGreaterThan(1);
  });

  test("publish: a proxy without room does not stop the others, and two do", async () => {
    write({ "a.mp4": SEGMENT });
    proxies[0]!.mood = { patch: [507, "libraryFull"] };
    const one = await run(["publish", "a.mp4"]);
    expect([one.status, one.stderr]).toEqual([0, expect.stringMatching(/not every proxy.*\n {2}paris: libraryFull/)]);
    write({ "b.mp4": SEGMENT.subarray(1) });
    proxies[1]!.mood = { patch: [507, "libraryFull"] };
    const none = await run(["publish", "b.mp4"]);
    expect([none.status, none.stderr]).toEqual([
      1,
      expect.stringMatching(/nothing new is published:\n.*paris.*\n.*oslo/),
    ]);
    expect([...origo.released.keys()]).toEqual(["a"]);
  });

  test("publish: the same command goes on after a signal", async () => {
    write({ "a.mp4": SEGMENT, "b.mp4": SEGMENT });
    for (const proxy of proxies) proxy.mood = { patch: [503, "starting"] };
    const stopped = await runProcess(["publish", "a.mp4"], (child) => {
      const timer = setInterval(() => proxies[0]!.patches > 0 && (clearInterval(timer), child.kill("SIGINT")), 20);
    });
    expect([stopped.status, stopped.stderr]).toEqual([130, expect.stringContaining("Run the same command again")]);
    expect(origo.pending.get("a")!.manifest.revision).toBe(1);
    for (const proxy of proxies) proxy.mood = {};
    expect((await run(["publish", "a.mp4"])).status).toBe(0);
    expect(origo.released.get("a")!.manifest.revision).toBe(1);
  });

  test("publish: a clock that is off by a day", async () => {
    write({ "a.mp4": SEGMENT });
    origo.mood = { aheadMs: -86_400_000 };
    expect((await run(["publish", "a.mp4"])).status).toBe(0);
    expect(origo.actions.slice(0, 2)).toEqual(["list", "list"]);
  });

  test("publish: hidden files, links and empty folders are left out, and that is said", async () => {
    write({ "f/a.mp4": SEGMENT, "f/.secret": "x" });
    mkdirSync(at("f/empty"));
    symlinkSync("/etc/passwd", at("f/link.mp4"));
    const { status, stderr } = await run(["publish", "f"]);
    expect(status).toBe(0);
    for (const text of [".secret: hidden", "link.mp4: a symbolic link", "empty/: an empty folder"])
      expect(stderr).toContain(text);
    expect(origo.released.get("f")!.manifest.files.map((file) => file.path)).toEqual(["a.mp4"]);
  });

  test("publish: an unknown key needs a code", async () => {
    write({ "a.mp4": SEGMENT });
    origo.mood = { code: "right" };
    const without = await run(["publish", "a.mp4"]);
    expect([without.status, without.stderr]).toEqual([1, expect.stringContaining("Add it with --code CODE")]);
    const wrong = await run(["publish", "a.mp4", "--code", "left"]);
    expect([wrong.status, wrong.stderr]).toEqual([
      1,
      expect.stringContaining("This code is wrong. Add it with --code CODE"),
    ]);
    expect((await run(["publish", "a.mp4", "--code", "right"])).status).toBe(0);
    expect((await run(["publish", "a.mp4"])).status).toBe(0);
  });

  test("publish: list shows it, and unpublish withdraws it", async () => {
    write({ "a.mp4": SEGMENT });
    await run(["publish", "a.mp4"]);
    const listed = (await run(["list"])).stdout;
    expect(listed).toMatch(/^name +revision .* served +address\na +1 +released +1 .* 2 +1.43 MiB .*\/a\/\n$/);
    expect(JSON.parse((await run(["list", "--json"])).stdout)).toMatchObject({ publications: [{ name: "a" }] });
    expect((await run(["unpublish", "a"])).status).toBe(0);
    expect(origo.released.size).toBe(0);
    expect((await run(["list"])).stderr).toContain("You have published nothing here");
  });

  test("publish: another command with the same key and name wins, and this one says so", async () => {
    write({ "a.mp4": SEGMENT });
    origo.mood = { grants: [404, "notFound"] };
    const { status, stderr } = await run(["publish", "a.mp4"]);
    expect([status, stderr]).toEqual([1, expect.stringContaining("Another command published or withdrew a with")]);
  });

  test("publish: Origo names another proxy for one that is gone", async () => {
    write({ "a.mp4": SEGMENT });
    const rome = await new LibraryStandIn("rome").start();
    proxies[0]!.mood = { patch: [507, "libraryFull"] };
    origo.onceAnnounced = () => (origo.proxies = [proxies[1]!.info, rome.info]);
    const { status, stderr } = await run(["publish", "a.mp4"]);
    rome.stop();
    expect([status, stderr]).toEqual([0, expect.stringMatching(/Sending to rome\.(.|\n)*paris: libraryFull/)]);
    expect(rome.objects.size).toBe(1);
  });

  test("publish: no room, a quota, and an Origo that is away", async () => {
    write({ "a.mp4": SEGMENT });
    origo.mood = { announce: [503, "noRoom"] };
    expect((await run(["publish", "a.mp4"])).stderr).toContain("noRoom. Ask Origo's operator for room");
    origo.mood = { announce: [409, "quotaExceeded"] };
    expect((await run(["publish", "a.mp4"])).stderr).toContain("quotaExceeded. Withdraw a publication");
    origo.stop();
    const away = await run(["publish", "a.mp4"]);
    expect([away.status, away.stderr]).toEqual([
      1,
      expect.stringMatching(/Origo .*does not answer.* Check --origo http/),
    ]);
  });

  test.each([
    [["publish", "none.mp4"], 1, /Cannot read none\.mp4: it does not exist/],
    [["publish", "empty"], 1, /empty has no file to publish/],
    [["publish", "a.mp4", "--name", "../x"], 2, /--name \.\.\/x: a name must have a-z/],
    [["publish", "ü ü"], 0, /Reading 1 file/],
    [["publish", "日本"], 2, /No name can be made from 日本: use --name/],
    [["publish", "back"], 1, /its name must not hold control characters, backslashes/],
    [["publish", "a.mp4", "--origo", "ftp://x"], 2, /--origo ftp:\/\/x is no address/],
    [["unpublish", "x"], 1, /There is no publisher's key/],
    [["verify", "http://o/v/short/name/x"], 2, /is no address of a publication/],
    [["publish", "empty", "--package"], 1, /--package/],
  ])("publish: %j ends with status %i", async (words, status, text) => {
    write({ "a.mp4": SEGMENT, "ü ü/x.ts": "x", "日本/x.ts": "x", "back/sl\\ash.ts": "x" });
    mkdirSync(at("empty"));
    const end = await run(words);
    expect([end.status, end.stderr]).toEqual([status, expect.stringMatching(text)]);
    if (status !== 0) expect(origo.released.size).toBe(0);
  });

  test("publish: a file that is another one when it is sent", async () => {
    write({ "a.mp4": SEGMENT });
    origo.onceAnnounced = () => write({ "a.mp4": SEGMENT.subarray(1) });
    const { status, stderr } = await run(["publish", "a.mp4"]);
    expect([status, stderr]).toEqual([1, expect.stringContaining("a.mp4 changed while it was published")]);
    expect(origo.released.size).toBe(0);
  });

  test("publish: playlists that lead elsewhere get a warning", async () => {
    write({ "f/i.m3u8": "#EXTM3U\nhttps://other.example/1.ts\n", "f/a.ts": "x" });
    const { status, stderr } = await run(["publish", "f"]);
    expect([status, stderr]).toEqual([0, expect.stringContaining("i.m3u8: https://other.example/1.ts")]);
  });

  test("verify: says which proxy lacks what, and which sends false bytes", async () => {
    write(FILM);
    const { stdout } = await run(["publish", "My Film"]);
    const [, address] = /^play +(\S+)/.exec(stdout)!;
    const whole = await run(["verify", "my-film"]);
    expect([whole.status, whole.stderr]).toEqual([0, expect.stringContaining("2 copies, and all 3 files are what")]);
    expect(whole.stdout).toMatch(/^paris +1 .*true$/m);
    const id = idOf(SEGMENT);
    proxies[0]!.objects.delete(id);
    proxies[1]!.objects.set(id, Buffer.concat([SEGMENT.subarray(1), Buffer.from("x")]));
    const faulty = await run(["verify", address!, "--key", "none"]);
    expect(faulty.status).toBe(1);
    expect(faulty.stdout).toMatch(/^paris .* lacks hd\/ein teil\.m4s$/m);
    expect(faulty.stdout).toMatch(/^oslo .* sends false bytes: hd\/ein teil\.m4s$/m);
    proxies[0]!.stop();
    const away = await run(["verify", "my-film", "--json"]);
    const { holders } = JSON.parse(away.stdout) as { holders: { holder: string; error?: string }[] };
    expect(holders.find(({ holder }) => holder === "paris")!.error).toContain("does not answer");
  });
});
