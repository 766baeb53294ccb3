/** Proxies for browsers: SOCKS5 and HTTP. They refuse nothing and keep nothing. */
import http from "node:http";
import net from "node:net";
import type { AddressInfo } from "node:net";

/** A proxy for browsers. `passed` counts the connections and requests that went through it. */
export interface BrowserProxy {
  port: number;
  passed: number;
  stop(): void;
}

const join = (from: net.Socket, to: net.Socket): void => {
  from.pipe(to).pipe(from);
  for (const each of [from, to]) each.on("error", () => void [from.destroy(), to.destroy()]);
};

/** SOCKS5 (RFC 1928) with CONNECT alone. */
export async function startSocks(): Promise<BrowserProxy> {
  const reply = (code: number): Buffer => Buffer.from([5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
  const sockets = new Set<net.Socket>();
  const server = net.createServer((client) => {
    sockets.add(client);
    client.on("error", () => client.destroy());
    client.once("data", () => {
      client.write(Buffer.from([5, 0]));
      client.once("data", (request) => {
        const isName = request[3] === 3;
        const end = isName ? 5 + request[4]! : 8;
        const host = isName ? request.toString("latin1", 5, end) : request.subarray(4, 8).join(".");
        if (request[1] !== 1) return client.end(reply(7));
        proxy.passed++;
        const onward = net.connect(request.readUInt16BE(end), host, () => client.write(reply(0)));
        join(client, onward);
      });
    });
  });
  const stop = (): void => {
    server.close();
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const proxy: BrowserProxy = { port: (server.address() as AddressInfo).port, passed: 0, stop };
  return proxy;
}

/** A proxy for http addresses and tunnels. */
export async function startHttpProxy(): Promise<BrowserProxy> {
  const server = http.createServer((request, response) => {
    proxy.passed++;
    const { method, headers } = request;
    const onward = http.request(request.url ?? "", { method, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on("error", () => response.destroy());
    response.on("close", () => onward.destroy());
    request.pipe(onward);
  });
  server.on("connect", ({ url = "" }, socket: net.Socket) => {
    const [host, port] = url.split(":");
    const onward = net.connect(Number(port), host, () => socket.write("HTTP/1.1 200 OK\r\n\r\n"));
    join(socket, onward);
  });
  await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  const stop = (): void => {
    server.close();
    server.closeAllConnections();
  };
  const proxy: BrowserProxy = { port: (server.address() as AddressInfo).port, passed: 0, stop };
  return proxy;
}
