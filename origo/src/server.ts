/**
 * Server: one running Origo: registry, store, HTTP API and proxy link on one port. Reads no environment: main.ts does.
 */
import { randomBytes } from "node:crypto";
import { createServer, type Server as HttpServer } from "node:http";
import type { AddressInfo } from "node:net";
import { makeApp } from "./app";
import { attachProxyLink } from "./proxy-link";
import { Registry } from "./registry";
import { Store } from "./store";

/** Requests under way get this long to finish at shutdown. */
const DRAIN_MS_MAX = 5000;

export interface OrigoOptions {
  host: string;
  /** 0 = any free one. */
  port: number;
  secret: string;
  dataDir: string;
  dashboardDir: string;
  /** Milliseconds since the epoch that never jump; default: the monotonic clock. */
  nowMs?: () => number;
}

export interface Origo {
  readonly url: string;
  /** Stops taking requests, lets those under way finish (5 s at most), closes the store. Safe to call twice. */
  close(): Promise<void>;
}

/** Throws when the port is taken or the store cannot be opened; then nothing is left open. */
export async function startOrigo(options: OrigoOptions): Promise<Origo> {
  const nowMs = options.nowMs ?? (() => performance.timeOrigin + performance.now());
  const store = await Store.open(options.dataDir);
  const registry = new Registry();
  let closed: Promise<void> | undefined;
  const gate = { admit: () => "local" };
  const app = makeApp({
    gate,
    registry, store, nowMs, rng: () => randomBytes(4).readUInt32LE(), dashboardDir: options.dashboardDir, closing: () => closed !== undefined,
  });
  const http = createServer({ requestTimeout: 30_000, headersTimeout: 10_000 }, app);
  try {
    await listen(http, options.port, options.host);
  } catch (error) {
    await store.close();
    throw error;
  }
  const link = attachProxyLink(http, { registry, secret: options.secret, nowMs });
  const { port } = http.address() as AddressInfo;
  const host = options.host.includes(":") ? `[${options.host}]` : options.host;
  const close = async (): Promise<void> => {
    const cut = setTimeout(() => http.closeAllConnections(), DRAIN_MS_MAX);
    const stopped = link.close();
    http.closeIdleConnections();
    await stopped;
    clearTimeout(cut);
    await store.close();
  };
  return { url: `http://${host}:${port}`, close: () => (closed ??= close()) };
}

function listen(http: HttpServer, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    http.once("error", reject);
    http.listen(port, host, () => {
      http.off("error", reject);
      resolve();
    });
  });
}
