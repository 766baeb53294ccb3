/**
 * Starts a fleet on loopback: Origo, N proxies and the sample origin, each in a process. It has a temporary
 * folder for data and logs that is deleted when it stops.
 */
import dgram from "node:dgram";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import net from "node:net";
import os from "node:os";
import path from "node:path";
import { startService } from "./services";
import type { Service } from "./services";

export const repoRoot = path.resolve(__dirname, "../../..");
export const DEFAULT_PORTS = { origo: 7600, proxy: 7611, sample: 7680 };
const HOST = "127.0.0.1";
const REGISTER_MS_MAX = 15_000;

export interface FleetOptions {
  proxyCount: number;
  /** Rate of each proxy. 0: unlimited. */
  rateBytesPerSec?: number;
  /** Further `HOST` or `HOST:PORT` that the proxies may fetch from. */
  allow?: readonly string[];
  /** `default`: the documented ports, or the next free ones. `any`: any free ports, for tests. */
  ports?: "default" | "any";
  /** Whether the proxies may fetch from the sample origin, which is on a private address. Default: yes. */
  allowSample?: boolean;
  /** Origo's site rules for the extension. */
  siteRules?: readonly { host: string; path: string; carried: boolean }[];
  /** More variables of each proxy, for example to give one a fault. */
  proxyEnv?: (index: number) => Record<string, string>;
  /** Called when a process ends by itself. */
  onDeath?: (service: Service) => void;
}

export interface Fleet {
  readonly origo: Service;
  readonly sample: Service;
  readonly proxies: readonly Service[];
  /** Starts a killed proxy again under its name. Resolves when it is up. */
  restart(index: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startFleet(options: FleetOptions): Promise<Fleet> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "tributary-"));
  const services: Service[] = [];
  const stop = async (): Promise<void> => {
    await Promise.all(services.map((service) => service.stop()));
    await rm(folder, { recursive: true, force: true });
  };
  const launch = async (name: string, script: string, env: Record<string, string>): Promise<Service> => {
    const service = await startService({
      name,
      script: path.join(repoRoot, script),
      env: { HOST, ...env },
      logFile: path.join(folder, `${name}.log`),
    });
    services.push(service);
    void service.ended.then(() => service.stopping || options.onDeath?.(service));
    return service;
  };
  try {
    return { ...(await launchAll(options, folder, launch)), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

type Launch = (name: string, script: string, env: Record<string, string>) => Promise<Service>;

async function launchAll(options: FleetOptions, folder: string, launch: Launch): Promise<Omit<Fleet, "stop">> {
  const taken = new Set<number>();
  const pick = async (first: number): Promise<string> =>
    options.ports === "any" ? "0" : String(await freePort(first, taken));
  if (options.siteRules)
    await writeFile(path.join(folder, "site-rules.json"), JSON.stringify({ rules: options.siteRules }));
  const sample = await launch("sample", "lab/stack/dist/sample/main.js", { PORT: await pick(DEFAULT_PORTS.sample) });
  const origo = await launch("origo", "origo/dist/main.js", {
    PORT: await pick(DEFAULT_PORTS.origo),
    DATA_DIR: folder,
    LOGIN: "off",
  });
  const allowed = [...(options.allowSample === false ? [] : [new URL(sample.url).host]), ...(options.allow ?? [])];
  const common = {
    ORIGO_URL: origo.url,
    ORIGO_CODE_FILE: path.join(folder, "enrolment-code"),
    REQUIRE_TOKEN: "1",
    RATE_BYTES_PER_SEC: String(options.rateBytesPerSec ?? 0),
    ALLOW_HOSTS: allowed.join(","),
    ALLOW_PRIVATE_HOSTS: allowed.filter(isPrivateLiteral).join(","),
  };
  const proxies: Service[] = [];
  const startProxy = async (index: number): Promise<void> => {
    const port = await pick(DEFAULT_PORTS.proxy + index);
    proxies[index] = await launch(`proxy-${index + 1}`, "proxy/dist/main.js", {
      ...common,
      DATA_DIR: path.join(folder, `proxy-${index + 1}`),
      LIBRARY_DIR: path.join(folder, `proxy-${index + 1}`, "library"),
      PROXY_NAME: `proxy-${index + 1}`,
      PORT: port,
      UDP_PORT: port,
      ...options.proxyEnv?.(index),
    });
  };
  for (let index = 0; index < options.proxyCount; index++) await startProxy(index);
  await registered(origo.url, options.proxyCount);
  return { origo, sample, proxies, restart: startProxy };
}

/**
 * `localhost` and address literals, because the operator named the address. A name that resolves to such an address is
 * never trusted.
 */
export function isPrivateLiteral(allowed: string): boolean {
  const host = allowed.replace(/:\d+$/, "").replace(/^\[|\]$/g, "");
  return host === "localhost" || net.isIP(host) !== 0;
}

async function registered(origoUrl: string, count: number): Promise<void> {
  const deadlineMs = Date.now() + REGISTER_MS_MAX;
  for (let seen = 0; seen < count;) {
    const answer = (await (await fetch(`${origoUrl}/v1/fleet`)).json()) as { proxies: unknown[] };
    seen = answer.proxies.length;
    if (seen < count && Date.now() > deadlineMs)
      throw new Error(`${seen} of ${count} proxies registered with Origo in ${REGISTER_MS_MAX / 1000} s`);
    if (seen < count) await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The first port from `first` on that is free for TCP and UDP and not in `taken`. Adds it to `taken`. */
export async function freePort(first: number, taken: Set<number>): Promise<number> {
  for (let port = first; port < first + 1000 && port < 65_536; port++) {
    if (taken.has(port) || !(await tcpFree(port)) || !(await udpFree(port))) continue;
    taken.add(port);
    return port;
  }
  throw new Error(`no free port from ${first} on`);
}

function tcpFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const server = net.createServer();
    server.once("error", () => resolve(false));
    server.listen(port, HOST, () => server.close(() => resolve(true)));
  });
}

function udpFree(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = dgram.createSocket("udp4");
    socket.once("error", () => resolve(false));
    socket.bind(port, HOST, () => socket.close(() => resolve(true)));
  });
}
