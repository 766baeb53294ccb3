/**
 * Starts a PostgreSQL server for tests and benchmarks: a new cluster in a temporary folder, on loopback. The end of
 * this process removes it.
 *
 *   node infra/postgres.mjs [--durable]
 *
 * Prints one JSON line {"url"} when the server answers, and stops when standard input closes. The input line `halt`
 * stops the server like a crash, `resume` starts it again; each is printed when done. Without --durable the server
 * skips what only protects against a crash of the machine. Needs PostgreSQL's programs (Debian: postgresql). They never
 * run as root.
 */
import { spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import os from "node:os";
import path from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

/** The folder with initdb and pg_ctl, or undefined. */
export function postgresFolder() {
  const debian = "/usr/lib/postgresql";
  const versions = existsSync(debian)
    ? readdirSync(debian)
        .sort((a, b) => Number(b) - Number(a))
        .map((version) => path.join(debian, version, "bin"))
    : [];
  return [...versions, ...(process.env.PATH ?? "").split(path.delimiter)].find(
    (folder) => existsSync(path.join(folder, "initdb")) && existsSync(path.join(folder, "pg_ctl")),
  );
}

/** Starts the server. Its errors are sentences for a person. */
export async function startPostgres({ durable = false } = {}) {
  const bin = postgresFolder();
  if (!bin)
    throw new Error("PostgreSQL is needed and was not found: install it (on Debian: sudo apt-get install postgresql)");
  const folder = mkdtempSync(path.join(os.tmpdir(), "tributary-postgres-"));
  const owner = ownerOf(folder);
  const data = path.join(folder, "data");
  const port = await freePort();
  const call = (program, words) => {
    const command = [...owner, path.join(bin, program), ...words];
    const { status, stdout, stderr } = spawnSync(command[0], command.slice(1), { cwd: folder, encoding: "utf8" });
    if (status !== 0) throw new Error(`${program} failed:\n${stdout}${stderr}`);
  };
  const speed = durable ? "" : "-c fsync=off -c synchronous_commit=off -c full_page_writes=off";
  const settings = `-p ${port} -k ${folder} -c listen_addresses=127.0.0.1 ${speed}`;
  try {
    call("initdb", [
      "-D",
      data,
      "-U",
      "origo",
      "--auth=trust",
      "-E",
      "UTF8",
      "--locale=C.UTF-8",
      ...(durable ? [] : ["--no-sync"]),
    ]);
    call("pg_ctl", ["-D", data, "-w", "-l", path.join(folder, "log"), "-o", settings, "start"]);
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
  const stop = () => {
    try {
      call("pg_ctl", ["-D", data, "-w", "-m", "immediate", "stop"]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  };
  const halt = () => call("pg_ctl", ["-D", data, "-w", "-m", "immediate", "stop"]);
  const resume = () => call("pg_ctl", ["-D", data, "-w", "-l", path.join(folder, "log"), "-o", settings, "start"]);
  return { url: `postgres://origo@127.0.0.1:${port}/postgres`, folder, stop, halt, resume };
}

/** For root: gives the folder to the user `postgres` and returns the words that run a command as that user. */
function ownerOf(folder) {
  if (process.getuid?.() !== 0) return [];
  const idOf = (flag) => Number(spawnSync("id", [flag, "postgres"], { encoding: "utf8" }).stdout.trim());
  const [user, group] = [idOf("-u"), idOf("-g")];
  if (!user) throw new Error("PostgreSQL does not run as root, and there is no user postgres to run it as");
  chownSync(folder, user, group);
  return ["setpriv", `--reuid=${user}`, `--regid=${group}`, "--clear-groups"];
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? "").href) {
  try {
    const { url, stop, halt, resume } = await startPostgres({ durable: process.argv.includes("--durable") });
    const end = () => {
      stop();
      process.exit(0);
    };
    process.on("SIGTERM", end);
    process.on("SIGINT", end);
    const orders = createInterface(process.stdin).on("close", end);
    orders.on("line", (line) => {
      if (line === "halt") halt();
      else if (line === "resume") resume();
      console.log(line);
    });
    console.log(JSON.stringify({ url }));
  } catch (error) {
    console.error(`postgres: ${error.message}`);
    process.exit(1);
  }
}
