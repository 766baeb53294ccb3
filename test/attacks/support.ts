/**
 * Support for the attacks: a real proxy with an origin, a raw client over plain UDP that may come from any loopback
 * address, and a watch that says how long the proxy took to answer meanwhile.
 */
import { randomBytes } from "node:crypto";
import dgram from "node:dgram";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import http from "node:http";
import type { AddressInfo } from "node:net";
import os from "node:os";
import path from "node:path";
import { setTimeout as after } from "node:timers/promises";
import { repoRoot, startService, type Service } from "@tributary/lab-stack";
import {
  encodeFrame,
  encodeUdpPacket,
  parseFrame,
  parseUdpPacket,
  UDP_NONCE_BYTES,
  type Frame,
  type RequestFrame,
} from "@tributary/protocol";

/** The viewer and the attacker have different addresses of this machine. */
export const VIEWER = "127.0.0.1";
export const ATTACKER = "127.0.0.2";
const CLIENT = { "tributary-client": "test" };

export interface Stage {
  proxy: Service;
  udpPort: number;
  /** Answers /BYTES with as many bytes. */
  originUrl: string;
  /** How many requests the origin has got. */
  asked(): number;
  log(): Promise<string>;
  end(): Promise<void>;
}

/** Starts an origin and a proxy that may fetch from it, also by the name localhost. */
export async function startStage(env: Record<string, string> = {}): Promise<Stage> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-attack-"));
  let asked = 0;
  const origin = http.createServer((request, response) => {
    asked++;
    const bytes = Number(/^\/(\d+)/.exec(request.url ?? "")?.[1] ?? 0);
    response.setHeader("cache-control", "max-age=60").end(Buffer.alloc(bytes, 7));
  });
  origin.listen(0, VIEWER);
  await once(origin, "listening");
  const { port } = origin.address() as AddressInfo;
  const udpPort = await freeUdpPort();
  const hosts = `127.0.0.1:${port},localhost:${port}`;
  const logFile = path.join(folder, "proxy.log");
  const proxy = await startService({
    name: "proxy",
    script: path.join(repoRoot, "proxy/dist/main.js"),
    env: { HOST: VIEWER, ALLOW_HOSTS: "*", ALLOW_PRIVATE_HOSTS: hosts, UDP_PLAIN_PORT: String(udpPort), ...env },
    logFile,
  });
  const end = async (): Promise<void> => {
    await proxy.kill();
    origin.closeAllConnections();
    origin.close();
    await rm(folder, { recursive: true, force: true });
  };
  return {
    proxy,
    udpPort,
    originUrl: `http://127.0.0.1:${port}`,
    asked: () => asked,
    log: () => readFile(logFile, "utf8"),
    end,
  };
}

export async function freeUdpPort(): Promise<number> {
  const socket = dgram.createSocket("udp4").bind(0, VIEWER);
  await once(socket, "listening");
  const { port } = socket.address();
  await new Promise<void>((resolve) => socket.close(() => resolve()));
  return port;
}

/** A client over plain UDP, which sends what it likes. */
export class UdpClient {
  readonly frames: Frame[] = [];
  receivedBytes = 0;
  isClosed = false;
  #token: Uint8Array | undefined;
  readonly #socket = dgram.createSocket({ type: "udp4", recvBufferSize: 4 << 20 });
  readonly #port: number;

  private constructor(port: number) {
    this.#port = port;
  }

  /** Undefined when the proxy gives it no session within `msMax`. */
  static async open(port: number, from: string, msMax = 5000): Promise<UdpClient | undefined> {
    const client = new UdpClient(port);
    client.#socket.bind(0, from);
    await once(client.#socket, "listening");
    const nonce = randomBytes(UDP_NONCE_BYTES);
    let next = encodeUdpPacket({ type: "hello", nonce });
    let isRefused = false;
    client.#socket.on("error", () => undefined);
    client.#socket.on("message", (bytes) => {
      const packet = parseUdpPacket(bytes);
      if (packet?.type === "cookie") client.#put((next = encodeUdpPacket({ ...packet, type: "open" })));
      else if (packet?.type === "refused") isRefused = true;
      else if (packet?.type === "opened") client.#token ??= Uint8Array.from(packet.token);
      else if (packet?.type === "close") client.isClosed = true;
      else if (packet?.type === "message") client.#take(packet.datagram);
    });
    for (const endMs = Date.now() + msMax; !client.#token && !isRefused && Date.now() < endMs; await after(5))
      client.#put(next);
    // A session over the limit is closed at once.
    await after(20);
    if (client.#token && !client.isClosed) return client;
    client.end();
    return undefined;
  }

  send(frame: Frame): void {
    this.#put(encodeUdpPacket({ type: "message", token: this.#token!, datagram: encodeFrame(frame) }));
  }

  /** Waits until a frame of this type is there. */
  async heard(type: Frame["type"], msMax: number): Promise<boolean> {
    for (const endMs = Date.now() + msMax; Date.now() < endMs; await after(5))
      if (this.frames.some((frame) => frame.type === type)) return true;
    return false;
  }

  end(): void {
    this.#socket.close();
  }

  #take(datagram: Uint8Array): void {
    this.receivedBytes += datagram.length;
    const frame = parseFrame(datagram);
    if (frame.type !== "parseError" && frame.type !== "data") this.frames.push(frame);
  }

  #put(packet: Uint8Array): void {
    this.#socket.send(packet, this.#port, VIEWER, () => undefined);
  }
}

/** Milliseconds until the viewer has the whole answer of the proxy. Infinity when it fails. */
export async function fetchMs(proxyUrl: string, url: string, route: "fetch" | "digests" = "fetch"): Promise<number> {
  const startMs = performance.now();
  const at = `${proxyUrl}/v1/${route}?url=${encodeURIComponent(url)}`;
  const status = await get(at, VIEWER).catch(() => 0);
  return status === 200 ? performance.now() - startMs : Infinity;
}

/** Resolves with the status when the whole answer is there. */
export function get(url: string, from: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const options = { localAddress: from, agent: false, headers: CLIENT } as const;
    http
      .get(url, options, (response) => {
        response
          .on("error", reject)
          .on("close", () => resolve(response.complete ? response.statusCode! : 0))
          .resume();
      })
      .on("error", reject);
  });
}

/** Resolves with the status of the answer to this JSON. */
export function post(url: string, from: string, body: object): Promise<number> {
  return new Promise((resolve, reject) => {
    const headers = { "content-type": "application/json" };
    http
      .request(url, { method: "POST", localAddress: from, agent: false, headers }, (response) => {
        response.on("close", () => resolve(response.statusCode!)).resume();
      })
      .on("error", reject)
      .end(JSON.stringify(body));
  });
}

/** Asks for the health until `stop`, which returns the longest time that an answer took. */
export function watchHealth(proxyUrl: string): { stop(): Promise<number> } {
  let msMax = 0;
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const startMs = performance.now();
      const status = await get(`${proxyUrl}/healthz`, VIEWER).catch(() => 0);
      msMax = Math.max(msMax, status === 200 ? performance.now() - startMs : Infinity);
      await after(50);
    }
  })();
  const stop = async (): Promise<number> => {
    isOver = true;
    await watching;
    return msMax;
  };
  return { stop };
}

export function requestOf(requestId: number, url: string, more: Partial<RequestFrame> = {}): RequestFrame {
  const geometry = { symbolBytes: 1088, generationSize: 128, windowPackets: 256 };
  const share = { start: 0, end: 65535, firstGeneration: 0 };
  return { type: "request", requestId, mode: "coded", url, share, ...geometry, ...more };
}
