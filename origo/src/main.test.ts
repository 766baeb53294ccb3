/** Tests Origo as a real child process: environment, ready line, signals, and what survives kill -9. */
import { spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { chmod, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { DATABASES, stopDatabases } from "../test/databases";
import { recordOf } from "../../contract/test/samples";
import type { RecordsResponse } from "@tributary/contract/schema";

jest.setTimeout(60_000);

let folder: string;
let children: ChildProcess[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-main-"));
});
afterEach(async () => {
  for (const child of children) if (child.exitCode === null) child.kill("SIGKILL");
  children = [];
  await rm(folder, { recursive: true, force: true });
});

function run(environment: Record<string, string>): ChildProcess {
  const child = spawn(process.execPath, [join(__dirname, "../test/run-main.js")], {
    env: { PATH: process.env["PATH"] ?? "", ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  return child;
}

afterAll(stopDatabases);

async function ready(more: Record<string, string> = {}): Promise<{ child: ChildProcess; url: string }> {
  const child = run({ PORT: "0", DATA_DIR: folder, LOGIN: "off", ...more });
  if (child.stdout === null) throw new Error("no stdout");
  const [line] = (await once(createInterface(child.stdout), "line")) as [string];
  const message = JSON.parse(line) as { ready: boolean; url: string };
  expect(message).toEqual({ ready: true, url: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/) as string });
  return { child, url: message.url };
}

async function failed(environment: Record<string, string>): Promise<{ code: number; text: string }> {
  const child = run(environment);
  let text = "";
  child.stderr?.on("data", (data: Buffer) => (text += data.toString()));
  const [code] = (await once(child, "close")) as [number];
  return { code, text };
}

describe("the Origo process", () => {
  test.each(DATABASES)(
    "over %s keeps every acknowledged record, and no half of another batch, when killed with SIGKILL in mid-intake",
    async (_name, make) => {
      const place = await make();
      const { child, url } = await ready(place.environment);
      const acknowledged: string[] = [];
      const send = async (): Promise<void> => {
        for (;;) {
          const records = [recordOf(), recordOf(), recordOf()];
          const response = await fetch(`${url}/v1/records`, {
            method: "POST",
            headers: { "content-type": "application/json" },
            body: JSON.stringify({ records }),
          });
          if (response.status !== 202) throw new Error(`got ${response.status}`);
          acknowledged.push(...records.map((record) => record.id));
          if (acknowledged.length > 150 && child.exitCode === null) child.kill("SIGKILL");
        }
      };
      await Promise.allSettled([send(), send(), send()]);
      if (child.signalCode === null) await once(child, "exit");
      expect(child.signalCode).toBe("SIGKILL");

      const again = await ready(place.environment);
      const stored = (await (await fetch(`${again.url}/v1/records?limit=500`)).json()) as RecordsResponse;
      const ids = new Set(stored.records.map((record) => record.id));
      expect(acknowledged.length).toBeGreaterThan(150);
      expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
      expect(stored.records.length % 3).toBe(0);
      expect(stored.records.every((record) => record.proxies.length === 2)).toBe(true);
      await place.remove();
    },
  );

  test("treats empty variables as not set, because Docker Compose passes them so", async () => {
    const { url } = await ready({
      DATABASE_URL: "",
      REDIS_URL: "",
      RETENTION_DAYS: "",
      GEO_DB: "",
      TRUSTED_HOPS: "",
      LOG_LEVEL: "",
    });
    expect((await fetch(`${url}/readyz`)).status).toBe(200);
  });

  test.each(["SIGTERM", "SIGINT"] as const)("ends with 0 on %s", async (signal) => {
    const { child } = await ready();
    child.kill(signal);
    expect(await once(child, "exit")).toEqual([0, null]);
  });

  test.each([
    ["no folder", {}, "DATA_DIR is missing"],
    ["a misspelt folder", { DATADIR: "x" }, "DATADIR is not a variable of this program: did you mean DATA_DIR?"],
    [
      "no login on a public address",
      { DATA_DIR: "x", LOGIN: "off", HOST: "0.0.0.0" },
      "LOGIN may be off only when HOST is a loopback",
    ],
    [
      "another database",
      { DATA_DIR: "x", DATABASE_URL: "mysql://u:p@127.0.0.1/x" },
      "DATABASE_URL must begin with postgres:// or postgresql://",
    ],
    ["a port out of range", { DATA_DIR: "x", PORT: "65536" }, 'PORT must be a port, 0 to 65535, got "65536"'],
    ["a port with a line end of Windows", { DATA_DIR: "x", PORT: "80\r" }, 'or line ends at its ends, got "80\\r"'],
    ["a quoted folder", { DATA_DIR: "'x'" }, "DATA_DIR must not have quotes around it, got \"'x'\""],
    ["no place", { DATA_DIR: " " }, "DATA_DIR must not have spaces"],
    ["a quoted password", { DATA_DIR: "x", DATABASE_URL: '"postgres://u:hush@h/x"' }, "quotes around it\n"],
    ["a folder with its name", { DATA_DIR: "DATA_DIR=x" }, 'must not begin with its own name, got "DATA_DIR=x"'],
    ["a folder of a shell", { DATA_DIR: "~/x" }, "DATA_DIR must be written out"],
    ["a lower-case name", { data_dir: "x" }, "data_dir is not a variable of this program: did you mean DATA_DIR?"],
    ["a login in capitals", { DATA_DIR: "x", LOGIN: "OFF" }, 'LOGIN must be one of required, off, got "OFF"\n'],
    ["a folder that begins with =", { DATA_DIR: "=x", PORT: "x" }, "origo: the value of DATA_DIR begins with ="],
    ["half an address", { DATA_DIR: "x", DATABASE_URL: "postgres://u:hush@:x/x" }, "must be a URL"],
  ])("says what is wrong and ends with 2: %s", async (_name, environment, text) => {
    expect(await failed(environment as Record<string, string>)).toEqual({
      code: 2,
      text: expect.stringContaining(text) as string,
    });
  });

  test("only the owner can read the data folder and its files, also those that others could read before", async () => {
    const modes = async (): Promise<string[]> => {
      const paths = [folder, ...(await readdir(folder)).map((name) => join(folder, name))];
      const kinds = await Promise.all(paths.map((path) => stat(path)));
      return [...new Set(kinds.map((kind) => (kind.isDirectory() ? "d" : "-") + (kind.mode & 0o777).toString(8)))];
    };
    const store = async (url: string): Promise<void> => {
      const body = JSON.stringify({ records: [recordOf()] });
      await fetch(`${url}/v1/records`, { method: "POST", headers: { "content-type": "application/json" }, body });
    };
    const first = await ready();
    await store(first.url);
    expect(await modes()).toEqual(["d700", "-600"]);
    first.child.kill("SIGKILL");
    await once(first.child, "exit");
    for (const name of await readdir(folder)) await chmod(join(folder, name), 0o644);
    await chmod(folder, 0o755);
    const second = await ready();
    await store(second.url);
    expect(await modes()).toEqual(["d700", "-600"]);
  });

  test("a folder that others share is refused", async () => {
    await chmod(folder, 0o1777);
    const { code, text } = await failed({ DATA_DIR: folder });
    expect([code, text]).toEqual([1, expect.stringContaining("DATA_DIR")]);
  });

  const SQLITE = Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(4080)]);
  test.each<[string, (file: string) => Promise<unknown>, RegExp]>([
    ["of 0 bytes", (file) => writeFile(file, ""), /origo\.duckdb has 0 bytes.*backup/],
    ["of SQLite", (file) => writeFile(file, SQLITE), /origo\.duckdb is no database of Origo, but another file.*backup/],
    ["of 9 bytes", (file) => writeFile(file, "123456789"), /origo\.duckdb is no database of Origo.*backup/],
    ["that ends early", (file) => writeFile(file, "12345678DUCK@"), /origo\.duckdb cannot be used.*backup/],
    ["that is a folder", (file) => mkdir(file), /origo\.duckdb is no file.*backup/],
    ["with a folder for its log", (file) => mkdir(`${file}.wal`), /origo\.duckdb\.wal is no file.*away/],
    ["that is a link to nowhere", (file) => symlink("nowhere", file), /origo\.duckdb cannot be read.*link/],
  ])("a database file %s is an error that says what to do", async (_name, make, text) => {
    await make(join(folder, "origo.duckdb"));
    const failure = await failed({ DATA_DIR: folder });
    expect([failure.code, failure.text]).toEqual([1, expect.stringMatching(text)]);
  });

  test("a folder that another Origo uses is a clear error", async () => {
    await ready();
    const { code, text } = await failed({ DATA_DIR: folder });
    expect([code, text]).toEqual([1, expect.stringContaining("lock")]);
  });
});
