/**
 * Lock: keeps a second proxy off a library, because at its start it would sweep away what the first one is writing. The
 * lock is a Unix socket in the folder, so that it ends with its process, however that ends.
 */
import { rm } from "node:fs/promises";
import net from "node:net";
import path from "node:path";

/** Resolves with a function that gives the folder free. Rejects if another process has it or it cannot be locked. */
export async function lockFolder(dir: string): Promise<() => void> {
  const file = path.join(dir, "lock");
  // A socket's address is short (unix(7)), and one from here may be shorter.
  const address = [file, path.relative(process.cwd(), file)].reduce((a, b) => (b.length < a.length ? b : a));
  for (;;) {
    const server = net.createServer((socket) => socket.destroy()).unref();
    if (await listens(server, address)) return () => void server.close();
    if (await isAnswered(address)) throw new Error(`another proxy uses the library ${dir}`);
    await rm(file, { force: true });
  }
}

/** False if the address is taken. */
function listens(server: net.Server, address: string): Promise<boolean> {
  return new Promise((resolve, reject) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      error.code === "EADDRINUSE" ? resolve(false) : reject(error),
    );
    server.listen(address, () => resolve(true));
  });
}

/** False if the process that made the socket is gone. */
function isAnswered(address: string): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = net.connect(address, () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
