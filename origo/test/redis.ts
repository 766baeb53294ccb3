/** Starts a Redis server for one test file. It listens on loopback and keeps nothing on disk. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { createInterface } from "node:readline";

export interface TestRedis {
  url: string;
  stop(): Promise<void>;
}

/** Uses any free port if none is given. Throws when redis-server is not installed. */
export async function startRedis(port?: number): Promise<TestRedis> {
  port ??= await freePort();
  const child = spawn(
    "redis-server",
    ["--port", String(port), "--bind", "127.0.0.1", "--save", "", "--dir", tmpdir()],
    { stdio: ["ignore", "pipe", "inherit"] },
  );
  const missing = new Promise<never>((_resolve, reject) => {
    child.once("error", () =>
      reject(new Error("Redis is not installed. On Debian: sudo apt-get install redis-server")),
    );
  });
  const ended = new Promise((resolve) => child.once("exit", resolve));
  const ready = (async () => {
    for await (const line of createInterface(child.stdout)) if (line.includes("Ready to accept connections")) return;
    throw new Error("redis-server ended before it was ready");
  })();
  await Promise.race([ready, missing]);
  child.stdout.resume();
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await ended;
  };
  return { url: `redis://127.0.0.1:${port}`, stop };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, "close");
  return port;
}
