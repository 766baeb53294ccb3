/** Files of `get`, by real processes at a real origin. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import path from "node:path";
import { createHash } from "node:crypto";
import { bytesOf, get, makeFolder, startOrigin, type CommandOrigin, type OriginFile } from "../../test/command";

const OLD = "the good old bytes";
const BODY = bytesOf(1, 300_000);
const ETAG = { etag: '"one"' };
let origin: CommandOrigin;
let folder: ReturnType<typeof makeFolder>;
beforeAll(async () => {
  origin = await startOrigin();
  origin.files.set("/whole", { body: BODY, headers: ETAG });
  origin.files.set("/broken", { body: BODY, headers: ETAG, breakAfter: 100_000 });
  origin.files.set("/teapot", { body: Buffer.from("an error page"), status: 500 });
  origin.files.set("/unchanged", { body: Buffer.alloc(0), status: 304 });
});
afterAll(() => origin.close());
beforeEach(() => {
  folder = makeFolder();
  origin.requests.length = 0;
});
afterEach(() => folder.remove());

const at = (name: string): string => path.join(folder.path, name);
const getInto = (name: string, ...words: string[]) => get([...words, "-o", name, "--retry", "0"], { cwd: folder.path });
const url = (name: string): string => `${origin.url}/${name}`;

describe("files", () => {
  test.each(["teapot", "missing", "broken", "unchanged"])("files: %s leaves an old file as it is", async (name) => {
    writeFileSync(at("f"), OLD);
    expect((await getInto("f", url(name))).status).toBe(1);
    expect(readFileSync(at("f"), "utf8")).toBe(OLD);
    expect((await getInto("new", url(name))).status).toBe(1);
    expect(existsSync(at("new"))).toBe(false);
  });

  test("files: a whole file replaces the old one, keeps its mode and link, and leaves nothing else", async () => {
    writeFileSync(at("f"), OLD, { mode: 0o600 });
    symlinkSync("f", at("link"));
    expect((await getInto("link", url("whole"))).status).toBe(0);
    expect(readFileSync(at("f")).equals(BODY)).toBe(true);
    expect(statSync(at("f")).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder.path).sort()).toEqual(["f", "link"]);
  });

  test("files: --continue goes on where an error ended", async () => {
    origin.files.set("/again", { body: BODY, headers: ETAG, breakAfter: 100_000 });
    const first = await getInto("f", url("again"));
    expect(first.status).toBe(1);
    expect(first.stderr).toMatch(/bytes are kept in .*f\.part\. The same command with --continue goes on/);
    const kept = statSync(at("f.part")).size;
    origin.files.set("/again", { body: BODY, headers: ETAG });
    const sum = createHash("sha256").update(BODY).digest("hex");
    origin.requests.length = 0;
    const second = await getInto("f", url("again"), "--continue", "--checksum", `sha-256=${sum}`);
    expect({ status: second.status, ranges: origin.requests.map(({ headers }) => headers.range) }).toEqual({
      status: 0,
      ranges: [`bytes=${kept}-299999`],
    });
    expect(readFileSync(at("f")).equals(BODY)).toBe(true);
    expect(readdirSync(folder.path)).toEqual(["f"]);
    const third = await getInto("f", url("again"), "--continue");
    expect(third.stderr).toContain("is there already, with 300000 bytes");
  });

  test.each([
    ["another ETag", ETAG, { etag: '"two"' }, "starts anew"],
    ["no ETag at all", {}, {}, ""],
    ["another ETag than none", ETAG, {}, "starts anew"],
  ])("files: --continue never mixes two versions: %s", async (_name, before, after, sentence) => {
    origin.files.set("/changes", { body: BODY, headers: before, breakAfter: 100_000 });
    expect((await getInto("f", url("changes"))).status).toBe(1);
    const changed = bytesOf(2, 300_000);
    origin.files.set("/changes", { body: changed, headers: after });
    const { status, stderr } = await getInto("f", url("changes"), "--continue");
    expect(status).toBe(0);
    expect(stderr).toContain(sentence);
    expect(readFileSync(at("f")).equals(changed)).toBe(true);
  });

  test("files: --continue keeps the part if the origin answers with an error", async () => {
    origin.files.set("/later", { body: BODY, headers: ETAG, breakAfter: 100_000 });
    await getInto("f", url("later"));
    origin.files.set("/later", { body: Buffer.from("busy"), status: 503 });
    expect((await getInto("f", url("later"), "--continue")).status).toBe(1);
    expect(existsSync(at("f.part"))).toBe(true);
  });

  test("files: the later of two downloads to one name has it, and the other one fails", async () => {
    origin.files.set("/slow", { body: BODY, headers: ETAG, hangAfter: 100_000 });
    const first = get([url("slow"), "-o", "f"], {
      cwd: folder.path,
      during: (child) => {
        const timer = setInterval(() => {
          if (!existsSync(at("f.part")) || statSync(at("f.part")).size === 0) return;
          clearInterval(timer);
          void getInto("f", url("whole")).then(() => child.kill("SIGTERM"));
        }, 50);
      },
    });
    expect((await first).status).toBe(143);
    expect(readFileSync(at("f")).equals(BODY)).toBe(true);
    expect(readdirSync(folder.path)).toEqual(["f"]);
  });

  test.each([
    ["a folder", ".", /it is a folder \(EISDIR\)/],
    ["a missing folder", "no/f", /the folder does not exist \(ENOENT\)/],
    ["a name of 300 bytes", "x".repeat(300), /the name is too long; most disks allow 255 bytes/],
    ["a file as a folder", "file/f", /not a folder \(ENOTDIR\)/],
    ["a full device", "/dev/full", /the disk is full \(ENOSPC\)/],
  ])("files: %s is a clear error", async (_name, output, sentence) => {
    writeFileSync(at("file"), "");
    const { status, stderr } = await getInto(output, url("whole"));
    expect(status).toBe(1);
    expect(stderr).toMatch(sentence);
  });

  test.each(["/dev/null", "x".repeat(255)])("files: %s works", async (output) => {
    expect((await getInto(output, url("whole"))).status).toBe(0);
    if (output !== "/dev/null") expect(readFileSync(at(output)).equals(BODY)).toBe(true);
  });

  const isRoot = process.platform === "linux" && process.getuid?.() === 0;
  (isRoot ? test : test.skip)("files: a full disk leaves the old file and says so", async () => {
    mkdirSync(at("disk"));
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=100k", "none", at("disk")]);
    try {
      writeFileSync(at("disk/f"), OLD);
      const { status, stderr } = await getInto("disk/f", url("whole"));
      expect(status).toBe(1);
      expect(stderr).toMatch(/Cannot write .*f: the disk is full \(ENOSPC\)/);
      expect(readFileSync(at("disk/f"), "utf8")).toBe(OLD);
    } finally {
      execFileSync("umount", [at("disk")]);
    }
  });

  test("files: a wrong digest is an error, and nothing is left", async () => {
    const { status, stderr } = await getInto("f", url("whole"), "--checksum", `sha1=${"0".repeat(40)}`);
    expect(status).toBe(1);
    expect(stderr).toContain("The sha1 digest is wrong: got ");
    expect(readdirSync(folder.path)).toEqual([]);
  });

  test("files: the server names the file, inside the folder and never over another one", async () => {
    const headers = { "content-disposition": 'attachment; filename="../../film.ts"' };
    origin.files.set("/named", { body: BODY, headers });
    mkdirSync(at("in"));
    const words = [url("named"), "-J", "--output-dir", "in"];
    expect((await get(words, { cwd: folder.path })).status).toBe(0);
    expect(readFileSync(at("in/film.ts")).equals(BODY)).toBe(true);
    const again = await get(words, { cwd: folder.path });
    expect(again.status).toBe(1);
    expect(again.stderr).toContain("in/film.ts, and that exists");
  });

  test("files: a list of addresses goes to names of its own, and one error does not stop it", async () => {
    origin.files.set("/a/x.ts", { body: bytesOf(3, 10) });
    origin.files.set("/b/x.ts", { body: bytesOf(4, 10) });
    const stdin = `# a list\n${url("a/x.ts")}\r\n\n${url("missing")}\n  ${url("b/x.ts")}\n`;
    const { status, stderr } = await get(["-i", "-", "-q"], { cwd: folder.path, stdin });
    expect(status).toBe(1);
    expect(stderr).toBe("tributary: The origin answered 404. Its text is not kept.\n");
    expect(readFileSync(at("x.ts")).equals(bytesOf(3, 10))).toBe(true);
    expect(readFileSync(at("x.1.ts")).equals(bytesOf(4, 10))).toBe(true);
  });

  test("files: a file that changes while it is fetched comes anew, and one that never rests fails", async () => {
    const changed = { body: bytesOf(2, 300_000), headers: { etag: '"two"' } };
    origin.files.set("/changing", { body: BODY, headers: ETAG, breakAfter: 100_000, next: changed });
    const words = ["-o", "f", "--retry", "1"];
    const first = await get([url("changing"), ...words], { cwd: folder.path });
    expect([first.status, first.stderr]).toEqual([0, expect.stringContaining("the download starts anew")]);
    expect(readFileSync(at("f")).equals(changed.body)).toBe(true);
    // Each start gets a part, then twice another version.
    const again: OriginFile = { body: BODY, headers: ETAG, breakAfter: 100_000 };
    again.next = { ...changed, next: { ...changed, next: again } };
    origin.files.set("/changing", again);
    const second = await get([url("changing"), ...words], { cwd: folder.path });
    expect([second.status, second.stderr]).toEqual([1, expect.stringContaining("originChanged")]);
    expect(readFileSync(at("f")).equals(changed.body)).toBe(true);
  });

  test.each([
    ["-500", BODY.subarray(-500)],
    ["-400000", BODY],
    ["0-9,20-29,299990-", Buffer.concat([BODY.subarray(0, 10), BODY.subarray(20, 30), BODY.subarray(-10)])],
    ["-5,0-4,400000-400009", Buffer.concat([BODY.subarray(-5), BODY.subarray(0, 5)])],
  ])("files: --range %s", async (range, expected) => {
    expect((await getInto("f", url("whole"), "-r", range)).status).toBe(0);
    expect(readFileSync(at("f")).equals(expected)).toBe(true);
    expect((await get([url("whole"), "-r", range, "-o", "-"], { cwd: folder.path })).stdout.equals(expected)).toBe(
      true,
    );
  });

  test("files: several ranges are of one version, and an error leaves no file", async () => {
    const old: OriginFile = { body: BODY, headers: ETAG };
    const now: OriginFile = { body: bytesOf(2, 300_000), headers: { etag: '"two"' } };
    origin.files.set("/replaced", { ...old, next: { ...old, next: now } });
    const replaced = await getInto("f", url("replaced"), "-r", "0-9,20-29");
    expect([replaced.status, replaced.stderr]).toEqual([
      1,
      expect.stringContaining("The file changed while its ranges"),
    ]);
    origin.files.set("/untold", { body: BODY });
    const untold = await getInto("f", url("untold"), "-r", "0-9,20-29");
    expect([untold.status, untold.stderr]).toEqual([
      1,
      expect.stringContaining("Nothing in the answer tells versions"),
    ]);
    const beyond = await getInto("f", url("whole"), "-r", "300000-,400000-");
    expect([beyond.status, beyond.stderr]).toEqual([1, expect.stringContaining("The file has 300000 bytes")]);
    expect((await getInto("f", url("missing"), "-r", "-5")).stderr).toMatch(/The origin answered 404/);
    expect(readdirSync(folder.path)).toEqual([]);
    // One range of a file that nothing tells apart is one answer.
    expect((await getInto("f", url("untold"), "-r", "-500")).status).toBe(0);
    expect(readFileSync(at("f")).equals(BODY.subarray(-500))).toBe(true);
  });

  test("files: --remote-time is the origin's", async () => {
    origin.files.set("/dated", { body: BODY, headers: { "last-modified": "Wed, 01 Jan 2020 00:00:00 GMT" } });
    expect((await getInto("f", url("dated"), "-R")).status).toBe(0);
    expect(statSync(at("f")).mtime.toISOString()).toBe("2020-01-01T00:00:00.000Z");
  });

  test("files: --limit-rate holds the download back", async () => {
    const startMs = performance.now();
    expect((await getInto("f", url("whole"), "--limit-rate", "150k")).status).toBe(0);
    expect(performance.now() - startMs).toBeGreaterThan(1500);
  });
});
