/** Reader: a light HTTP client on raw sockets. It reads bodies of one length, counts their bytes and drops them. */
import net from "node:net";

export interface ReadOptions {
  host: string;
  port: number;
  /** Asked for one after the other, again and again. */
  paths: readonly string[];
  bodyBytes: number;
  connections: number;
  ms: number;
}

const BUFFER_BYTES = 256 * 1024;

/** The body bytes that came in the given time. Rejects if an answer is not what it should be. */
export async function readFor(options: ReadOptions): Promise<number> {
  const counts = await Promise.all(
    Array.from({ length: options.connections }, (_, index) => readOn(options, index * options.paths.length)),
  );
  return counts.reduce((sum, count) => sum + count, 0);
}

/** Reads on one connection. `first`: where in the list it begins. */
function readOn({ host, port, paths, bodyBytes, ms, connections }: ReadOptions, first: number): Promise<number> {
  const buffer = Buffer.allocUnsafe(BUFFER_BYTES);
  let index = Math.floor(first / connections);
  let bytes = 0;
  /** Of the present answer. Null until its head has come. */
  let leftBytes: number | null = null;
  return new Promise((resolve, reject) => {
    const ask = (): void => {
      leftBytes = null;
      socket.write(`GET ${paths[index++ % paths.length]!} HTTP/1.1\r\nHost: ${host}\r\n\r\n`);
    };
    const take = (count: number): void => {
      let bodyCount = count;
      if (leftBytes === null) {
        const head = buffer.toString("latin1", 0, Math.min(count, 4096));
        const end = head.indexOf("\r\n\r\n") + 4;
        if (!head.startsWith("HTTP/1.1 200 ") || end < 4)
          return void socket.destroy(new Error(`unexpected answer: ${head.slice(0, 200)}`));
        leftBytes = bodyBytes;
        bodyCount = count - end;
      }
      leftBytes -= bodyCount;
      bytes += bodyCount;
      if (leftBytes === 0) ask();
    };
    const socket = net.connect({
      host,
      port,
      onread: {
        buffer,
        callback: (count) => {
          take(count);
          return true;
        },
      },
    });
    socket.once("connect", ask).once("error", reject);
    socket.once("close", () => resolve(bytes));
    setTimeout(() => socket.destroy(), ms);
  });
}
