/** Tests what Origo says of a database that it cannot open: the thing, the cause and the remedy, and no password. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm, stat, truncate, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { startPostgres, type TestPostgres } from "../../test/postgres";
import { AdminStore } from "./admin-store";
import { Store } from "./index";

jest.setTimeout(60_000);

const NEW_CERTIFICATE = [
  ...["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"],
  ...["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"],
];
type Three = [string, string, string];

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "origo-fault-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

describe("a DuckDB file", () => {
  const file = (): string => join(folder, "origo.duckdb");
  const made = async (): Promise<number> => {
    const store = await Store.open(folder);
    await new AdminStore(store.database).secret("one", () => "x");
    await store.close();
    return (await stat(file())).size;
  };
  const backup = "put a backup in its place";

  test.each<[string, (size: number) => number]>([
    ["one byte short", (size) => size - 1],
    ["one block short", (size) => size - 262_144],
    ["cut in its middle", (size) => size >> 1],
    ["cut after its headers", () => 12_288],
    ["cut in its headers", () => 5000],
  ])("that is %s is named with what to do, and is left as it is", async (_name, lengthOf) => {
    await truncate(file(), lengthOf(await made()));
    const before = await readFile(file());
    const opened = Store.open(folder);
    await expect(opened).rejects.toThrow(file());
    await expect(opened).rejects.toThrow(backup);
    expect((await readFile(file())).equals(before)).toBe(true);
  });

  test.each<[string, (header: Buffer) => unknown, string]>([
    ["a newer version made", (header) => header.writeBigUInt64LE(99n, 12), "use a newer Origo"],
    ["an older version made", (header) => header.writeBigUInt64LE(1n, 12), "an older version made it"],
    ["is encrypted", (header) => header.writeUInt8(255, 20), "it is encrypted"],
  ])("that %s is named with what to do, in one line", async (_name, change, text) => {
    await made();
    const bytes = await readFile(file());
    const header = bytes.subarray(0, 4096);
    expect(header.readBigUInt64LE(0)).toBe(checksumOf(header.subarray(8)));
    change(header);
    header.writeBigUInt64LE(checksumOf(header.subarray(8)), 0);
    await writeFile(file(), bytes);
    const { message } = await Store.open(folder).then(
      () => new Error("it was opened"),
      (error: Error) => error,
    );
    expect(message).toContain(`${file()} cannot be used: `);
    expect(message).toContain(text);
    expect(message).not.toContain("\n");
  });

  test.each(["READ_ONLY", "READ_WRITE"])(
    "that another process has open (%s) is named with what to do",
    async (mode) => {
      await made();
      const script = `const [, file, access_mode] = process.argv;
        require("@duckdb/node-api").DuckDBInstance.create(file, { access_mode })
      .then(() => { console.log("open"); setInterval(() => undefined, 1000); })`;
      const other = spawn(process.execPath, ["-e", script, file(), mode], {
        cwd: __dirname,
        stdio: ["ignore", "pipe", 2],
      });
      try {
        await once(other.stdout!, "data");
        await expect(Store.open(folder)).rejects.toThrow(
          `${file()} cannot be used: another process uses it: stop that one, or give this Origo another folder`,
        );
      } finally {
        other.kill();
        await once(other, "exit");
      }
      await (await Store.open(folder)).close();
    },
  );

  test("that has a damaged block is named with what to do", async () => {
    const size = await made();
    const bytes = await readFile(file());
    for (let at = 13_000; at < size; at += 997) bytes[at]! ^= 255;
    await writeFile(file(), bytes);
    await expect(Store.open(folder)).rejects.toThrow(`${file()} cannot be used: ${backup}`);
  });
});

/** DuckDB's checksum of the first header of a file, without the checksum itself. */
function checksumOf(header: Buffer): bigint {
  let sum = 5381n;
  for (let at = 0; at < header.length; at += 8)
    sum ^= BigInt.asUintN(64, header.readBigUInt64LE(at) * 0xbf58476d1ce4e5b9n);
  return sum;
}

describe("PostgreSQL", () => {
  let postgres: TestPostgres;
  let made: string;
  beforeAll(async () => {
    postgres = await startPostgres();
    made = await postgres.newDatabase();
  });
  afterAll(() => postgres.stop());

  const query = async (sql: string): Promise<void> => {
    const client = new Client({ connectionString: made });
    await client.connect();
    await client.query(sql).finally(() => client.end());
  };
  const other = (change: (url: URL) => void): string => {
    const url = new URL(made);
    change(url);
    return url.href;
  };

  test.each<[string, string, (url: URL) => void, RegExp]>([
    ["does not run", "", (url) => (url.port = "1"), /at 127\.0\.0\.1:1, .*nothing listens there: start PostgreSQL/],
    ["has no such database", "", (url) => (url.pathname = "/lost"), /database lost as .*: create the database/],
    [
      "has no such user",
      "",
      (url) => (url.username = "lost"),
      /as user lost, .*: the server does not let this user in/,
    ],
    ["gives no rights", "CREATE USER poor", (url) => (url.username = "poor"), /user poor, .*: make the user the owner/],
    [
      "has no such mode of TLS",
      "",
      (url) => url.searchParams.set("sslmode", "on"),
      /^DATABASE_URL: sslmode must be one of disable, prefer, require, verify-ca, verify-full, no-verify, got "on"$/,
    ],
    [
      "has no TLS",
      "",
      (url) => url.searchParams.set("sslmode", "require"),
      /it has no TLS: turn TLS on there, or remove sslmode from DATABASE_URL/,
    ],
    [
      "should have a certificate that is not there",
      "",
      (url) => (url.search = "?sslmode=require&sslrootcert=/lost"),
      /a file that DATABASE_URL names cannot be read: .*\/lost/,
    ],
    [
      "is read-only",
      "ALTER ROLE poor SET default_transaction_read_only = on",
      (url) => (url.username = "poor"),
      /is read-only/,
    ],
  ])("that %s is named with what to do, without the password", async (_name, sql, change, text) => {
    if (sql !== "") await query(sql);
    const url = other((given) => {
      given.password = "hush";
      change(given);
    });
    const opened = Store.open(folder, url);
    await expect(opened).rejects.toThrow(text);
    await expect(opened).rejects.not.toThrow("hush");
  });

  test("with TLS is used as its mode says, and the driver warns of nothing", async () => {
    const [key, certificate, foreign] = ["key", "certificate", "other"].map((name) => join(folder, name)) as Three;
    for (const [keyFile, certFile] of [
      [join(folder, "other-key"), foreign],
      [key, certificate],
    ] as const)
      execFileSync("openssl", [...NEW_CERTIFICATE, "-keyout", keyFile, "-out", certFile], { stdio: "ignore" });
    // The server writes its own files, since they must be its own.
    for (const [name, from] of [
      ["server.key", key],
      ["server.crt", certificate],
    ] as const) {
      const lines = (await readFile(from, "utf8")).trim().split("\n");
      const rows = lines.map((line) => `('${line}')`).join(", ");
      await query(`COPY (VALUES ${rows}) TO PROGRAM 'umask 077; cat > "$PWD/${name}"'`);
    }
    await query("ALTER SYSTEM SET ssl = on");
    await query("SELECT pg_reload_conf()");
    const warned: string[] = [];
    const hear = ({ message }: Error): void => void warned.push(message);
    process.on("warning", hear);
    const opened = async (mode: string, authority?: string, host?: string): Promise<string> => {
      const url = other((given) => {
        given.searchParams.set("sslmode", mode);
        if (authority !== undefined) given.searchParams.set("sslrootcert", authority);
        if (host !== undefined) given.hostname = host;
      });
      return Store.open(folder, url).then(
        (store) => store.close().then(() => "opened"),
        (error: Error) => error.message,
      );
    };
    const unknown = /its certificate is not known here: add sslrootcert=FILE/;
    while (!unknown.test(await opened("require"))) await new Promise((resolve) => setTimeout(resolve, 50));
    for (const mode of ["prefer", "require", "verify-ca", "verify-full"]) {
      expect([mode, await opened(mode, certificate)]).toEqual([mode, "opened"]);
      expect([mode, await opened(mode, foreign)]).toEqual([mode, expect.stringMatching(unknown)]);
      expect(await opened(mode, certificate, "localhost")).toMatch(/its certificate has another name/);
    }
    expect(await opened("no-verify")).toBe("opened");
    await new Promise((resolve) => setImmediate(resolve));
    process.off("warning", hear);
    expect(warned).toEqual([]);
  });
});
