/** How `get` ends: signals, readers that do not read, closed streams. By real processes. */
import { execFileSync, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from "node:fs";
import net from "node:net";
import path from "node:path";
import { bytesOf, CLI, execute, get, makeFolder, startOrigin, type CommandOrigin } from "../../test/command";

const BODY = bytesOf(1, 300_000);
const TWIN = bytesOf(2, 300_000);
const ENDS_WITHIN_MS = 10_000;
let origin: CommandOrigin;
let folder: ReturnType<typeof makeFolder>;
beforeAll(async () => {
  origin = await startOrigin();
  origin.files.set("/whole", { body: BODY });
  origin.files.set("/twin", { body: TWIN });
  origin.files.set("/hangs", { body: BODY, headers: { etag: '"one"' }, hangAfter: 100_000 });
});
afterAll(() => origin.close());
beforeEach(() => (folder = makeFolder()));
afterEach(() => folder.remove());

const at = (name: string): string => path.join(folder.path, name);

async function until(isTrue: () => boolean): Promise<void> {
  while (!isTrue()) await new Promise((resolve) => setTimeout(resolve, 50));
}

/** A host that answers no packet of a new connection: its process is stopped, and its queue is full. */
async function blackHole(): Promise<{ url: string; isAsked(): boolean; close(): void }> {
  const script =
    'require("net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 }, ' +
    "function () { console.log(this.address().port); })";
  const host = spawn(process.execPath, ["-e", script], { stdio: ["ignore", "pipe", "inherit"] });
  const port = await new Promise<number>((resolve) => host.stdout.once("data", (text) => resolve(Number(text))));
  host.kill("SIGSTOP");
  // The state 02 is SYN-SENT.
  const isWaiting = new RegExp(`:${port.toString(16).toUpperCase().padStart(4, "0")} 02 `);
  const isAsked = (): boolean => isWaiting.test(readFileSync("/proc/net/tcp", "utf8"));
  const sockets: net.Socket[] = [];
  while (!isAsked()) {
    sockets.push(net.connect(port, "127.0.0.1").on("error", () => undefined));
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  sockets.at(-1)!.destroy();
  await until(() => !isAsked());
  const close = (): void => {
    for (const socket of sockets) socket.destroy();
    host.kill("SIGKILL");
  };
  return { url: `http://127.0.0.1:${port}`, isAsked, close };
}

describe("signals", () => {
  test.each([
    ["SIGINT", 130],
    ["SIGTERM", 143],
    ["SIGHUP", 129],
  ] as const)("signals: %s ends a download with status %i and keeps the part", async (signal, expected) => {
    const { status, stderr } = await get([`${origin.url}/hangs`, "-o", "f"], {
      cwd: folder.path,
      during: (child) =>
        void until(() => existsSync(at("f.part")) && statSync(at("f.part")).size > 0).then(() => child.kill(signal)),
    });
    expect(status).toBe(expected);
    expect(stderr).toMatch(/bytes are kept in .*f\.part/);
    expect(existsSync(at("f"))).toBe(false);
  });

  test("signals: of two downloads to one name the finished one stays, and the other says what happened", async () => {
    const slow = get([`${origin.url}/whole`, "-o", "f", "--limit-rate", "60k"], { cwd: folder.path });
    await until(() => existsSync(at("f.part")) && statSync(at("f.part")).size > 0);
    expect((await get([`${origin.url}/twin`, "-o", "f"], { cwd: folder.path })).status).toBe(0);
    const { status, stderr } = await slow;
    expect([status, stderr]).toEqual([1, expect.stringContaining("another process downloads to the same name")]);
    expect(readFileSync(at("f")).equals(TWIN)).toBe(true);
    expect(readdirSync(folder.path)).toEqual(["f"]);
  });

  test("signals: downloads to one folder at the same time do not meet", async () => {
    const names = ["a", "b", "c"];
    const all = await Promise.all(names.map((name) => get([`${origin.url}/whole`, "-o", name], { cwd: folder.path })));
    expect(all.map(({ status }) => status)).toEqual([0, 0, 0]);
    expect(readdirSync(folder.path).sort()).toEqual(names);
    for (const name of names) expect(readFileSync(at(name)).equals(BODY)).toBe(true);
  });

  test("signals: a host that drops packets is given up after --timeout, and a signal ends the wait", async () => {
    const hole = await blackHole();
    try {
      const words = [`${hole.url}/f`, "-o", "f", "--retry", "0"];
      const silent = await get([...words, "--timeout", "1"], { cwd: folder.path });
      expect([silent.status, silent.stderr]).toEqual([1, expect.stringContaining("sent nothing for 1000 ms")]);
      const ended = await get([...words, "--timeout", "60"], {
        cwd: folder.path,
        during: (child) => void until(() => hole.isAsked()).then(() => child.kill("SIGINT")),
      });
      expect(ended.status ?? ended.signal).toBe(130);
      expect(readdirSync(folder.path)).toEqual([]);
    } finally {
      hole.close();
    }
  });

  test("signals: SIGINT with --json prints the record", async () => {
    const { status, stdout } = await get([`${origin.url}/hangs`, "-o", "f", "--json"], {
      cwd: folder.path,
      during: (child) => void until(() => existsSync(at("f.part"))).then(() => child.kill("SIGINT")),
    });
    expect(status).toBe(130);
    expect(JSON.parse(stdout.toString())).toMatchObject({ outcome: "aborted" });
  });

  test("signals: record, file and summary agree when a signal comes while received bytes wait", async () => {
    const { status, stdout, stderr } = await get([`${origin.url}/whole`, "-o", "f", "--json", "--limit-rate", "50k"], {
      cwd: folder.path,
      during: (child) =>
        void until(() => existsSync(at("f.part")) && statSync(at("f.part")).size > 180_000).then(() =>
          child.kill("SIGINT"),
        ),
    });
    const kept = statSync(at("f.part")).size;
    expect(status).toBe(130);
    expect(kept).toBeLessThan(BODY.length);
    expect(JSON.parse(stdout.toString())).toMatchObject({ outcome: "aborted", netBytes: kept });
    expect(stderr).toContain(`${kept} bytes are kept`);
  });

  test("signals: SIGTERM ends a download whose reader does not read", async () => {
    const script =
      `"${process.execPath}" "${CLI}" get --mode direct --no-record "${origin.url}/whole" ` +
      "> >(exec sleep 25 >/dev/null 2>&1) & pid=$!; sleep 2; kill -TERM $pid; wait $pid; echo status $? >&2";
    const startMs = performance.now();
    const { stderr } = await execute("bash", ["-c", script], { cwd: folder.path });
    expect(stderr).toContain("status 143");
    expect(performance.now() - startMs).toBeLessThan(2000 + ENDS_WITHIN_MS);
  });

  test("signals: SIGTERM ends the wait for the reader of a fifo", async () => {
    execFileSync("mkfifo", [at("fifo")]);
    const { status } = await get([`${origin.url}/whole`, "-o", "fifo"], {
      cwd: folder.path,
      during: (child) => child.stderr?.once("data", () => child.kill("SIGTERM")),
    });
    expect(status).toBe(143);
  });

  test("signals: a fifo gets every byte", async () => {
    execFileSync("mkfifo", [at("fifo")]);
    const { status } = await get([`${origin.url}/whole`, "-o", "fifo"], {
      cwd: folder.path,
      during: (child) =>
        child.stderr?.once("data", () => void execute("sh", ["-c", "cat fifo > copy"], { cwd: folder.path })),
    });
    expect(status).toBe(0);
    await until(() => statSync(at("copy")).size === BODY.length);
    expect(readFileSync(at("copy")).equals(BODY)).toBe(true);
  });

  test.each([
    ["a reader that ends early", "| head -c 5", "141 0", /its reader is gone \(EPIPE\)/],
    ["closed standard output", ">&-", "1", /Standard output is closed/],
    ["/dev/stdout", "-o /dev/stdout | cat", "0 0", /complete/],
    ["standard output", "-o - | cat", "0 0", /complete/],
  ])("signals: %s", async (_name, redirection, statuses, sentence) => {
    const command = `"${process.execPath}" "${CLI}" get --mode direct --no-record "${origin.url}/whole"`;
    const script = `${command} ${redirection}; echo "\${PIPESTATUS[*]}" > statuses`;
    const { stdout, stderr } = await execute("bash", ["-c", script], { cwd: folder.path });
    expect(readFileSync(at("statuses"), "utf8").trim()).toBe(statuses);
    expect(stderr).toMatch(sentence);
    if (redirection.endsWith("cat")) expect(stdout.equals(BODY)).toBe(true);
  });

  test("signals: the folder of the user counts under npm run", async () => {
    const root = path.resolve(__dirname, "../../..");
    const words = ["--prefix", root, "run", "-s", "tributary", "--", "get", "--mode", "direct", "--no-record"];
    const run = await execute("npm", [...words, `${origin.url}/whole`, "-o", "f"], { cwd: realpathSync(folder.path) });
    expect(run.status).toBe(0);
    expect(readFileSync(at("f")).equals(BODY)).toBe(true);
  });
});
